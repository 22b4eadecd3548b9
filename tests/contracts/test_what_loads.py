"""Who loads what: the compiler only where a kernel is built, the HTTP server only where one runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import few

NUMBA_FREE = (
    "streamwatch.settings",
    "streamwatch.core.pipeline.sections",
    "streamwatch.core.estimators.catalogue",
    "streamwatch.core.estimators.set",
    "streamwatch.core.merge",
    "streamwatch.core.pipeline.pipeline",
    "streamwatch.edge.decoders.formats.json",
    "streamwatch.edge.stores.memory",
    "streamwatch.edge.stores.rocksdb",
    "streamwatch.assembly.build",
    "streamwatch.assembly.checks",
    "streamwatch.cli",
)
HEAVY = ("aiohttp", "aiokafka", "numba", "numpy", "pydantic", "rocksdict")


def loaded_by(code: str, modules: tuple[str, ...], home: Path) -> set[str]:
    """Which of some modules a fresh interpreter has loaded after `code`; it must leave `home` as it was."""
    script = f"{code}\nimport sys\nprint(*sorted(set({modules!r}) & set(sys.modules)))"
    environment = {**os.environ, "HOME": str(home), "PYTHONDONTWRITEBYTECODE": "1"}
    environment = {k: v for k, v in environment.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.slow
@pytest.mark.parametrize("module", few(NUMBA_FREE, 1))
def test_importing_it_loads_no_compiler_and_writes_no_file(module: str, tmp_path: Path) -> None:
    assert loaded_by(f"import {module}", ("numba", "llvmlite"), tmp_path) == set()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_what_a_daemon_is_made_of_loads_no_scipy_before_something_needs_it(tmp_path: Path) -> None:
    assert loaded_by("import streamwatch.assembly.build", ("scipy",), tmp_path) == set()


@pytest.mark.slow
def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    code = """
import sys
from streamwatch.cli import main
sys.argv = ["streamwatch", "--help"]
try:
    main()
except SystemExit:
    pass
"""
    assert loaded_by(code, HEAVY, tmp_path) == set()


@pytest.mark.slow
@pytest.mark.parametrize("command", few(["example", "schema"], 1))
def test_writing_a_configuration_loads_no_compiler_and_no_client(command: str, tmp_path: Path) -> None:
    code = f"""
import sys
from streamwatch.cli import main
sys.argv = ["streamwatch", "config", "{command}"]
try:
    main()
except SystemExit:
    pass
"""
    assert loaded_by(code, ("aiohttp", "aiokafka", "numba", "rocksdict"), tmp_path) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", ["streamwatch.assembly.specs", "streamwatch.assembly.checks", "streamwatch.edge.web"]
)
def test_only_what_serves_loads_the_http_server(module: str, tmp_path: Path) -> None:
    assert loaded_by(f"import {module}", ("aiohttp", "numba"), tmp_path) == set()


@pytest.mark.slow
def test_estimators_load_the_compiler_when_they_are_first_fed(tmp_path: Path) -> None:
    """The control of the tests above: they would see it."""
    code = "from streamwatch.core.estimators.warming import ENTRIES\nENTRIES[0].dispatcher"
    assert "numba" in loaded_by(code, ("numba",), tmp_path)
