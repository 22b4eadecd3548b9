"""Compiled functions of the kernel are there after warming up, and none can be taken for another."""

from __future__ import annotations

import pytest

from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.estimators.detectors.chain import observe_all, show_all
from streamwatch.core.estimators.warming import warm_up
from streamwatch.core.jit.cache import cache_directory
from tests.layouts import EVERYTHING


def test_warming_up_leaves_nothing_to_compile() -> None:
    assert warm_up(EVERYTHING, tracing=True).cache_directory == cache_directory()
    assert warm_up(EVERYTHING, tracing=True).compiled == 0


def links_of(first) -> list[str]:
    """Names of a chain's functions, from its first link on."""
    names = []
    while (function := first.py_func).__closure__:
        names.append(function.__qualname__)
        first = function.__closure__[function.__code__.co_freevars.index("rest")].cell_contents
    return names


@pytest.mark.parametrize("first", [observe_all, show_all], ids=["observe", "show"])
def test_no_two_links_of_a_chain_can_share_a_symbol_in_different_processes(first) -> None:
    """Numba's own number in a symbol is counted anew by every process, so names have to differ."""
    names = links_of(first)
    assert len(names) == len(KINDS)
    assert len(set(names)) == len(KINDS)
