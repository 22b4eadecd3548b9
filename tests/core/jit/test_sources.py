"""Hashes of sources: words about a function change nothing, every other change does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamwatch.core.jit import cache
from streamwatch.core.jit.cache import remembered_syntax_hash, syntax_hash

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
    "change",
    [
        (b"< LIMIT", b"<= LIMIT"),
        (b"LIMIT = 3", b"LIMIT = 4"),
        (b"m.n", b"m.losses"),
        (b"LIMIT = 3", b"LIMIT = 3.0"),
        (b"LIMIT = 3", b"LIMIT = (1, 3)"),
        (b"(m, miss)", b"(miss, m)"),
        (b"return m.n", b"assert m\n    return m.n"),
    ],
)
def test_every_other_change_of_a_kernel_is_another_kernel(change: tuple[bytes, bytes]) -> None:
    assert KERNEL.replace(*change) != KERNEL
    assert syntax_hash([KERNEL.replace(*change)]) != syntax_hash([KERNEL])


def test_a_hash_is_the_same_in_every_process() -> None:
    source = b"def f(c):\n    return c in {'a', 'b', 'c'}, c in (1, {'d', 'e', 'f'})\n"
    code = f"from streamwatch.core.jit.cache import syntax_hash; print(syntax_hash([{source!r}]))"
    command = [sys.executable, "-c", code]
    found = {
        subprocess.run(
            command, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, check=True, timeout=120
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(found) == 1


def test_a_remembered_hash_is_that_of_the_sources_at_hand(tmp_path: Path) -> None:
    changed = KERNEL.replace(b"< LIMIT", b"<= LIMIT")
    for sources in ([KERNEL], [changed], [KERNEL, changed], [KERNEL + changed], [KERNEL]):
        assert remembered_syntax_hash(sources, tmp_path / "sources") == syntax_hash(sources)
    assert len(list(tmp_path.rglob("*.hash"))) == 4


def test_a_source_that_was_seen_before_is_not_compiled_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = remembered_syntax_hash([KERNEL], tmp_path)
    monkeypatch.setattr(cache, "syntax_hash", None)
    assert remembered_syntax_hash([KERNEL], tmp_path) == known


@pytest.mark.parametrize("damage", [b"", b"ab", b"0123456789abcdef0", b"\xff" * 16], ids=repr)
def test_a_damaged_memory_of_a_source_is_made_anew(tmp_path: Path, damage: bytes) -> None:
    known = remembered_syntax_hash([KERNEL], tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage)
    assert remembered_syntax_hash([KERNEL], tmp_path) == known
    assert file.read_text() == known


def test_where_nothing_can_be_written_sources_are_compiled(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert remembered_syntax_hash([KERNEL], tmp_path / "file") == syntax_hash([KERNEL])
