"""Where compiled functions are kept, and that they are there after warming up."""

from __future__ import annotations

import ast
import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import streamwatch
from streamwatch.core.estimators.detectors import KINDS, chain
from streamwatch.core.estimators.warming import warm_up
from streamwatch.core.jit_cache import (
    cache_directory,
    kernel_hash,
    kernel_sources,
    sources_of_room,
)
from streamwatch.core.jit_sources import remembered_syntax_hash, syntax_hash
from tests.layouts import EVERYTHING

COLLECT = """
import numpy as np
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.kernel.fold import collect
from streamwatch.core.specs import LandmarkSpec, MonitorsSpec
table = ModelTable(MonitorsSpec((LandmarkSpec(),), (), (), max_models=1))
table.totals(np.array([table.add_model()]), 0)
print(len(collect.signatures) - collect.loaded, collect.loaded)
"""


def test_the_cache_directory_follows_the_environment(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    directory = cache_directory()
    assert directory == str(tmp_path / "xdg" / "streamwatch" / f"kernel-{kernel_hash()}")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "numba"))
    assert cache_directory() == str(tmp_path / "numba" / f"kernel-{kernel_hash()}")


def test_without_a_writable_place_there_is_no_cache(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(occupied))
    assert cache_directory() is None


@pytest.mark.slow
def test_a_second_process_loads_what_the_first_compiled(tmp_path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}

    def collected() -> str:
        done = subprocess.run(
            [sys.executable, "-c", COLLECT], env=environment, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    assert collected() == "1 0"
    assert collected() == "0 1"
    assert list(tmp_path.glob("kernel-*/fold.collect-*.nbc"))


MOVED = b"""
from streamwatch.core.jit import entry


@entry
def step(n):
    return n + 1
"""


def test_a_compiled_function_that_was_moved_does_not_load_what_names_its_old_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)
    for room in ("old_room", "new_room"):
        folder = tmp_path / room
        folder.mkdir()
        (folder / "moved_step.py").write_bytes(MOVED)
        module = importlib.import_module(f"{room}.moved_step")
        assert module.step(1) == 2
        assert module.step.loaded == 0
        del sys.modules[f"{room}.moved_step"]
        shutil.rmtree(folder)
    assert len(list(tmp_path.glob("cache/kernel-*/moved_step.step-*.nbc"))) == 2


def test_warming_up_leaves_nothing_to_compile() -> None:
    assert warm_up(EVERYTHING, tracing=True).cache_directory == cache_directory()
    assert warm_up(EVERYTHING, tracing=True).compiled == 0


KERNEL = b'''
"""A module."""
LIMIT = 3
"""A constant."""


def step(m, miss):
    """One outcome."""
    return m.n + miss < LIMIT  # a comment
'''


@pytest.mark.parametrize(
    "change",
    [
        (b"One outcome.", b"What one outcome does."),
        (b"A constant.", b"Text"),
        (b"  # a comment", b""),
        (b"\n\n\n", b"\n\n"),
    ],
    ids=["docstring", "docstring of a constant", "comment", "blank lines"],
)
def test_words_about_a_kernel_change_nothing_of_it(change: tuple[bytes, bytes]) -> None:
    assert KERNEL.replace(*change) != KERNEL
    assert syntax_hash([KERNEL.replace(*change)]) == syntax_hash([KERNEL])


@pytest.mark.parametrize(
    "change", [(b"< LIMIT", b"<= LIMIT"), (b"LIMIT = 3", b"LIMIT = 4"), (b"m.n", b"m.losses")]
)
def test_every_other_change_of_a_kernel_is_another_kernel(change: tuple[bytes, bytes]) -> None:
    assert KERNEL.replace(*change) != KERNEL
    assert syntax_hash([KERNEL.replace(*change)]) != syntax_hash([KERNEL])


def test_a_remembered_hash_is_that_of_the_sources_at_hand(tmp_path: Path) -> None:
    changed = KERNEL.replace(b"< LIMIT", b"<= LIMIT")
    for sources in ([KERNEL], [changed], [KERNEL, changed], [KERNEL + changed], [KERNEL]):
        assert remembered_syntax_hash(sources, tmp_path / "sources") == syntax_hash(sources)
    assert len(list(tmp_path.rglob("*.hash"))) == 4


def test_a_source_that_was_seen_before_is_not_parsed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = remembered_syntax_hash([KERNEL], tmp_path)
    monkeypatch.setattr(ast, "parse", None)
    assert remembered_syntax_hash([KERNEL], tmp_path) == known


@pytest.mark.parametrize("damage", [b"", b"ab", b"0123456789abcdef0", b"\xff" * 16], ids=repr)
def test_a_damaged_memory_of_a_source_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    known = remembered_syntax_hash([KERNEL], tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage)
    assert remembered_syntax_hash([KERNEL], tmp_path) == known
    assert file.read_text() == known


def test_where_nothing_can_be_written_sources_are_parsed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert remembered_syntax_hash([KERNEL], tmp_path / "file") == syntax_hash([KERNEL])


PACKAGE = Path(streamwatch.__file__).parent
COMPILED = [file for file in PACKAGE.rglob("*.py") if b"core.jit import" in file.read_bytes()]


@pytest.mark.parametrize("source", COMPILED, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_compiled_function_is_known_by_its_own_source(source: Path) -> None:
    """Else what was compiled before a change would be run after it."""
    assert source in {*kernel_sources(), *sources_of_room(source.parent)}


def test_rows_of_files_are_compiled_anew_when_the_scanner_that_they_call_changes() -> None:
    found = sources_of_room(PACKAGE / "lab" / "outcome_rows")
    scanner = PACKAGE / "edge" / "decoders" / "scanner"
    assert {scanner / "tokens.py", scanner / "contents.py"} <= {*found}


def links_of(first) -> list[str]:
    """Names of a chain's functions, from its first link on."""
    names = []
    while (function := first.py_func).__closure__:
        names.append(function.__qualname__)
        first = function.__closure__[function.__code__.co_freevars.index("rest")].cell_contents
    return names


@pytest.mark.parametrize("first", [chain.observe_all, chain.show_all], ids=["observe", "show"])
def test_no_two_links_of_a_chain_can_share_a_symbol_in_different_processes(first) -> None:
    """Numba's own number in a symbol is counted anew by every process, so names have to differ."""
    names = links_of(first)
    assert len(names) == len(KINDS)
    assert len(set(names)) == len(KINDS)
