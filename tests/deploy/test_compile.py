"""`streamwatch compile`, and a start from what it left in a directory nobody can write to."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from streamwatch.cli.compile import described, kept
from streamwatch.core.estimators.warming import WarmUpResult
from tests.deploy.repository import DEPLOY

CONFIG = DEPLOY / "docker" / "streamwatch.yaml"
SMALL = ("--set", "monitors.forgetting=[landmark]", "--set", "monitors.detectors=[]")
OTHER = ("--set", "monitors.forgetting=[landmark, {sliding: {size: 100}}]", "--set", "monitors.detectors=[]")
pytestmark = [pytest.mark.slow, pytest.mark.together("tests/deploy/test_compile.py")]

START = """
import sys
from pathlib import Path
from streamwatch.assembly.warming import warm_up_run
from streamwatch.core.jit.cache import KernelCache
from streamwatch.core.jit.observers import observers
from streamwatch.edge.sources.kafka.batches.opened import compiled_plain_batches
from streamwatch.edge.sources.kafka.batches.scan import compiled_scan
from streamwatch.settings import load

asked, missed = [], []
loading = KernelCache.load_overload
KernelCache.load_overload = lambda cache, *key: (asked.append(cache), loading(cache, *key))[1]
observers.append(lambda function, done: missed.append(function))
warm_up_run(load(Path(sys.argv[1]), sys.argv[3::2]))
compiled_scan()
compiled_plain_batches()
print(len(asked), *missed)
"""
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1


def without_root_rights() -> None:
    """Permissions hold for root, too."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)


def python(kernel: Path, arguments: Sequence[object]) -> subprocess.CompletedProcess[str]:
    """A process as in the container: its kernel's directory, any processor, no home."""
    home = {"HOME": "/nonexistent", "NUMBA_CACHE_DIR": str(kernel), "NUMBA_CPU_NAME": "generic"}
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        env={**os.environ, **home},
        preexec_fn=without_root_rights,
        capture_output=True,
        text=True,
        check=False,
    )


def compiled(kernel: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return python(kernel, ["-m", "streamwatch", "compile", "--config", CONFIG, *arguments])


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Few estimators and all else that a start needs, compiled once, then made read-only."""
    folder = tmp_path_factory.mktemp("compiled-ahead")
    done = compiled(folder, *SMALL)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("compiled ")
    assert f"kept in {folder}" in done.stdout
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return folder


def contents(folder: Path) -> dict[Path, tuple[int, bytes]]:
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.rglob("*") if path.is_file()
    }


def test_the_directory_of_these_tests_cannot_be_written_to(kernel: Path) -> None:
    done = python(kernel, ["-c", f"open({str(kernel / 'new')!r}, 'w')"])
    assert "PermissionError" in done.stderr


def test_what_was_compiled_ahead_is_used_where_nothing_can_be_written(kernel: Path) -> None:
    before = contents(kernel)

    done = compiled(kernel, *SMALL)

    assert done.returncode == 0, done.stderr
    shown, _, rest = done.stdout.partition(" functions ")
    there = len(list(kernel.rglob("*.nbc")))
    loaded = int(shown.removeprefix("nothing to compile: "))
    assert there - 3 <= loaded <= there  # one or two are entries that only compiled functions call so
    assert str(kernel) in rest
    assert contents(kernel) == before


def test_a_start_compiles_nothing(kernel: Path) -> None:
    done = python(kernel, ["-c", START, CONFIG, *SMALL])
    assert done.returncode == 0, done.stderr
    asked, *missed = done.stdout.split()
    assert int(asked) > 50
    assert not missed


def test_other_estimators_are_compiled_for_this_start_alone_and_that_is_stated(kernel: Path) -> None:
    before = contents(kernel)

    done = compiled(kernel, *OTHER)

    assert done.returncode == 2
    assert "not kept, every start compiles them" in done.stderr
    assert f"{kernel}" in done.stderr
    assert contents(kernel) == before


def test_no_directory_at_all_is_stated() -> None:
    nowhere = WarmUpResult(compiled=6, loaded=0, cache_directory=None)
    assert not kept(nowhere)
    assert "every start compiles them: set NUMBA_CACHE_DIR" in described(nowhere, 24.0)
