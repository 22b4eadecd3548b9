"""Functions that come compiled with an installation are taken where none of this machine's own is kept."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from streamwatch.core.jit.shipped import LEVEL, choose_processor, compiling_for_level, flags_of

ROOT = Path(__file__).parents[3]
V3 = "fpu cx16 lahf_lm popcnt pni sse4_1 sse4_2 ssse3 avx avx2 bmi1 bmi2 f16c fma abm movbe xsave avx512f aes"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    for name in compiling_for_level():
        monkeypatch.setenv(name, "")  # so that it is as before afterwards
        monkeypatch.delenv(name)
    return monkeypatch


def chosen() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name in compiling_for_level()}


def cpuinfo(folder: Path, flags: str) -> Path:
    file = folder / "cpuinfo"
    file.write_text(f"processor\t: 0\nflags\t\t: {flags}\n\nprocessor\t: 1\nflags\t\t: other\n")
    return file


@pytest.mark.usefixtures("environment")
def test_a_processor_of_the_level_compiles_for_it(tmp_path: Path) -> None:
    assert choose_processor(tmp_path, cpuinfo(tmp_path, V3))
    assert chosen() == compiling_for_level() == {"NUMBA_CPU_NAME": LEVEL, "NUMBA_CPU_FEATURES": ""}


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("missing", ["avx2", "abm", "pni"])
def test_an_older_processor_compiles_for_itself(tmp_path: Path, missing: str) -> None:
    assert not choose_processor(tmp_path, cpuinfo(tmp_path, V3.replace(missing, "")))
    assert not choose_processor(tmp_path, tmp_path / "no such file")
    assert chosen() == {}


def test_where_nothing_is_shipped_or_a_processor_is_named_nothing_is_changed(
    tmp_path: Path, environment: pytest.MonkeyPatch
) -> None:
    file = cpuinfo(tmp_path, V3)
    assert not choose_processor(tmp_path / "absent", file)
    environment.setattr("platform.machine", lambda: "aarch64")
    assert not choose_processor(tmp_path, file)
    environment.setattr("platform.machine", lambda: "x86_64")
    environment.setenv("NUMBA_CPU_NAME", "generic")
    assert not choose_processor(tmp_path, file)
    assert chosen() == {"NUMBA_CPU_NAME": "generic"}


def test_flags_are_those_of_the_first_processor(tmp_path: Path) -> None:
    assert flags_of(cpuinfo(tmp_path, "a b")) == {"a", "b"}


FOLD = """
import sys, numpy as np
from pathlib import Path
from streamwatch.core.jit import cache, shipped
shipped.SHIPPED = cache.SHIPPED = Path(sys.argv[1])
cache.KernelCache.__init__.__defaults__ = (Path(sys.argv[1]),)
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.kernel.readout import collect
from streamwatch.core.specs import LandmarkSpec, MonitorsSpec
table = ModelTable(MonitorsSpec((LandmarkSpec(),), (), (), max_models=1))
table.totals(np.array([table.add_model()]), 0)
print(len(collect.signatures) - collect.loaded, collect.loaded)
"""


@pytest.mark.slow
def test_what_is_shipped_is_loaded_and_neither_compiled_nor_copied(tmp_path: Path) -> None:
    def collected(shipped: Path, own: Path) -> str:
        variables = os.environ | {"NUMBA_CACHE_DIR": str(own)}
        command = [sys.executable, "-c", FOLD, str(shipped)]
        return subprocess.run(
            command, env=variables, check=True, capture_output=True, text=True
        ).stdout.strip()

    made, shipped, own = tmp_path / "made", tmp_path / "shipped", tmp_path / "own"
    assert collected(shipped, made) == "1 0"
    shutil.copytree(made, shipped)
    assert collected(shipped, own) == "0 1"
    assert not list(own.rglob("*.nbc"))
    for file in shipped.rglob("*.nbc"):
        file.unlink()
    assert collected(shipped, own) == "1 0", "what is not shipped is compiled"
    assert list(own.rglob("readout.collect-*.nbc"))


def test_the_extra_pins_the_versions_of_the_lock_file() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    locked: dict[str, set[str]] = {}
    for package in tomllib.loads((ROOT / "uv.lock").read_text("utf-8"))["package"]:
        locked.setdefault(package["name"], set()).add(package.get("version", ""))
    pinned: dict[str, set[str]] = {}
    for requirement in extras["fast-start"]:
        name, version = re.fullmatch(r"(\w+)==([\d.]+)(?:;.*)?", requirement).groups()  # pyright: ignore[reportOptionalMemberAccess]
        pinned.setdefault(name, set()).add(version)
    assert pinned == {name: locked[name] for name in ("numba", "llvmlite", "numpy")}
    assert all(metadata.version(name) in versions for name, versions in pinned.items())
