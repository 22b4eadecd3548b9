"""Commands that wait for the compiler say so, and for how long; those that need not wait say nothing."""

from __future__ import annotations

import threading

import pytest

from streamwatch.cli.compile import reporting_compilation
from streamwatch.core.jit.cache import KernelCache
from streamwatch.core.jit.observers import observers


def fold() -> None:
    """Stand in for a compiled function."""


class Codegen:
    def magic_tuple(self) -> tuple[str, ...]:
        return ("a processor",)


class Target:
    def refresh(self) -> None:
        pass

    def codegen(self) -> Codegen:
        return Codegen()


def test_the_first_function_that_no_cache_has_is_stated_at_once_and_the_end_with_its_time(tmp_path) -> None:
    reported: list[str] = []
    cache = KernelCache(fold, str(tmp_path))
    with reporting_compilation(reported.append):
        assert cache.load_overload((), Target()) is None
        assert reported[0].startswith("compiling the estimators for these settings, once on this machine")
        for observer in observers:
            observer("fold", True)
    assert reported[1:] == ["compiled 1 function in 0 s"]
    assert observers == []


def test_while_a_function_is_being_compiled_its_name_and_the_seconds_are_reported_again() -> None:
    reported: list[str] = []
    again = threading.Event()

    def tell(line: str) -> None:
        reported.append(line)
        if line.startswith("compiling fold: "):
            again.set()

    with reporting_compilation(tell, every_seconds=0.01):
        for observer in observers:
            observer("fold", False)
        assert again.wait(60)


def test_where_nothing_is_compiled_nothing_is_shown() -> None:
    reported: list[str] = []
    with reporting_compilation(reported.append):
        pass
    assert reported == []


def test_an_error_ends_the_telling() -> None:
    def failing() -> None:
        with reporting_compilation([].append):
            observers[0]("fold", False)
            raise ValueError("no recording")

    with pytest.raises(ValueError, match="no recording"):
        failing()
    assert observers == []
