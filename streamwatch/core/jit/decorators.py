"""Decorators for compiled functions: `entry`, `detached`, `inner`, `hot`; and `where_filled`.

The work is in `dispatcher`, which imports numba; it is imported when a function is first needed.
"""

# ruff: noqa: PLC0415  (numba is imported when a kernel is built)
from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


class CompiledFunction:
    """Function that numba compiles when it is first needed; `dispatcher` is numba's form of it.

    Parameters
    ----------
    function
        Python function, in the subset of the language that numba compiles.
    kept
        Whether it is an entry point, whose compiled form is kept between runs, with all that it calls.
    inlined
        Whether the optimizer must inline it into its callers.
    unlocked
        Whether it runs without the interpreter's lock.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        kept: bool = False,
        inlined: bool = False,
        unlocked: bool = False,
    ) -> None:
        update_wrapper(self, function)
        self.py_func = function
        self.kept = kept
        self._inlined = inlined
        self._unlocked = unlocked

    @cached_property
    def dispatcher(self) -> Any:
        """Numba's form of the function, made at the first use."""
        from streamwatch.core.jit.dispatcher import dispatcher

        return dispatcher(self.py_func, kept=self.kept, inlined=self._inlined, unlocked=self._unlocked)

    @property
    def _numba_type_(self) -> Any:
        """Type of the function for callers that are being compiled (numba's protocol)."""
        return self.dispatcher._numba_type_

    @property
    def signatures(self) -> list[Any]:
        """Argument types it was compiled for, or loaded for, in this process."""
        return self.dispatcher.signatures if "dispatcher" in self.__dict__ else []

    @property
    def loaded(self) -> int:
        """Number of `signatures` that came from the cache."""
        if "dispatcher" not in self.__dict__:
            return 0
        return sum(self.dispatcher.stats.cache_hits.values())

    def __call__(self, *arguments: Any) -> Any:
        """Run the function, compiled or loaded first if it was never called with such arguments.

        Raises
        ------
        TypeError
            If only compiled functions may call the function: it has no entry for Python.
        """
        if not self.kept:
            name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
            raise TypeError(
                f"{name} is called by compiled functions only; "
                "Python calls functions decorated by `entry` or `detached`"
            )
        return self.dispatcher(*arguments)


def entry(function: Function) -> Function:
    """Compile a function called from Python, kept in the cache."""
    return cast("Function", CompiledFunction(function, kept=True))


def detached(function: Function) -> Function:
    """Compile a function called from a thread, kept in the cache; nothing else may use its arguments.

    It runs without the interpreter's lock, so the event loop goes on meanwhile.
    """
    return cast("Function", CompiledFunction(function, kept=True, unlocked=True))


def inner(function: Function) -> Function:
    """Compile a function called from compiled functions, on rare paths; it is compiled into its callers."""
    return cast("Function", CompiledFunction(function))


def hot(function: Function) -> Function:
    """Compile a function called for every outcome: always inlined, which saves 30 ns an outcome."""
    return cast("Function", CompiledFunction(function, inlined=True))


class WhereFilled:
    """Compiled function for records whose field, an array, is not empty, and another for all others.

    Which of the two is decided by the type of the first argument while the caller is compiled: the function
    that is not called is not compiled either.
    """

    def __init__(self, field: str, function: Callable[..., Any], otherwise: Callable[..., Any]) -> None:
        self._field = field
        self._function = function
        self._otherwise = otherwise

    @cached_property
    def _numba_type_(self) -> Any:
        from streamwatch.core.jit.dispatcher import choice

        return choice(self._field, self._function, self._otherwise)


def where_filled(field: str, function: Function, otherwise: Function) -> Function:
    """Call `function` in compiled code if the record given first has `field` filled, else `otherwise`."""
    return cast("Function", WhereFilled(field, function, otherwise))
