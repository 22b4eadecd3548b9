"""Where compiled functions are kept, and that they are there after warming up."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from streamwatch.core.kernel import compiled
from streamwatch.core.warming import warm_up
from tests.core.kernel.streams import EVERYTHING

COLLECT = """
import numpy as np
from streamwatch.core.kernel.table import ModelTable
from streamwatch.core.kernel.fold import collect
from streamwatch.core.specs import LandmarkSpec, MonitorsSpec
table = ModelTable(MonitorsSpec((LandmarkSpec(),), (), (), max_models=1))
table.totals(np.array([table.add_model()]), 0)
print(sum(collect.stats.cache_misses.values()), sum(collect.stats.cache_hits.values()))
"""


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

    def collected() -> str:
        done = subprocess.run(
            [sys.executable, "-c", COLLECT], env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    assert collected() == "1 0"
    assert collected() == "0 1"
    assert list(tmp_path.glob("kernel-*/*/fold.collect-*.nbc"))


def test_warming_up_leaves_nothing_to_compile() -> None:
    assert warm_up(EVERYTHING, tracing=True).cache_directory == compiled.CACHE_DIRECTORY
    assert warm_up(EVERYTHING, tracing=True).compiled == 0
