"""Where compiled functions are kept, and that they are there after warming up."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from streamwatch.core.kernel import compiled
from streamwatch.core.kernel.warming import warm_up
from streamwatch.core.specs import LandmarkSpec, MonitorsSpec

TINY = "from streamwatch.core.specs import LandmarkSpec, MonitorsSpec; spec = MonitorsSpec((LandmarkSpec(),), (), ())"
WARM = f"from streamwatch.core.kernel.warming import warm_up; {TINY}; print(warm_up(spec))"


def test_the_cache_directory_follows_the_environment(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    directory = compiled._cache_directory()
    assert directory == str(tmp_path / "xdg" / "streamwatch" / f"kernel-{compiled._sources_hash()}")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert compiled._cache_directory() == str(tmp_path / "numba" / f"kernel-{compiled._sources_hash()}")


def test_without_a_writable_place_there_is_no_cache(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(occupied))
    assert compiled._cache_directory() is None


def test_a_second_process_loads_what_the_first_compiled(tmp_path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}

    def warmed() -> str:
        done = subprocess.run(
            [sys.executable, "-c", WARM], env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout

    assert "loaded=0" in warmed()
    again = warmed()
    assert "compiled=0" in again
    assert str(tmp_path) in again


def test_warming_up_leaves_nothing_to_compile() -> None:
    spec = MonitorsSpec((LandmarkSpec(),), (), ())
    warm_up(spec, tracing=True)
    assert warm_up(spec, tracing=True).compiled == 0
