"""Decorators for compiled functions: `entry`, `detached`, `inner`, `hot`; `where_filled`; and intrinsics.

A decorated function costs nothing until it is needed: numba is imported, and the function handed to it, when
Python first calls it or when a compiled caller first names it. So whoever only reads the tables of estimators
(settings, `streamwatch --help`, `check`) never loads a compiler. The work is in `jit_numba`, that of
vectors in `jit_vectors`.
"""

# ruff: noqa: PLC0415  (numba is imported when a kernel is built)
from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, update_wrapper
from importlib import import_module
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


class CompiledFunction:
    """A function that numba compiles when it is first needed; what numba keeps of it is in `dispatcher`.

    Parameters
    ----------
    function
        Python source of it, in the subset that numba compiles.
    kept
        Whether the result is kept between runs: entry points; what they call is compiled into them.
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
        from streamwatch.core.jit_numba import dispatcher

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
        """Of those, how many came from the cache."""
        if "dispatcher" not in self.__dict__:
            return 0
        return sum(self.dispatcher.stats.cache_hits.values())

    def __call__(self, *arguments: Any) -> Any:
        """Run it, compiled or loaded first if it was never called with such arguments."""
        return self.dispatcher(*arguments)


class Intrinsic:
    """A function whose machine code is written by hand under the same name in another file."""

    def __init__(self, function: Callable[..., Any], module: str) -> None:
        self.__doc__ = function.__doc__
        self._name = function.__name__
        self._module = module

    @cached_property
    def _numba_type_(self) -> Any:
        from streamwatch.core.jit_numba import type_of

        return type_of(getattr(import_module(self._module), self._name))


def entry(function: Function) -> Function:
    """Compile a function called from Python, kept in the cache."""
    return cast("Function", CompiledFunction(function, kept=True))


def detached(function: Function) -> Function:
    """Compile a function called from a thread, kept in the cache; its arguments must be nobody else's.

    It runs without the interpreter's lock, so the event loop goes on meanwhile.
    """
    return cast("Function", CompiledFunction(function, kept=True, unlocked=True))


def inner(function: Function) -> Function:
    """Compile a function called from compiled functions, on rare paths; it lives in its callers' cache."""
    return cast("Function", CompiledFunction(function))


def hot(function: Function) -> Function:
    """Compile a function called for every outcome: always inlined, which saves 30 ns an outcome."""
    return cast("Function", CompiledFunction(function, inlined=True))


class WhereFilled:
    """A compiled function for records whose field, an array, is not empty, and another for all others.

    Which of the two is decided by the type of the first argument while the caller is compiled: the function
    that is not called is not compiled either.
    """

    def __init__(self, field: str, function: Callable[..., Any], otherwise: Callable[..., Any]) -> None:
        self._field = field
        self._function = function
        self._otherwise = otherwise

    @cached_property
    def _numba_type_(self) -> Any:
        from streamwatch.core.jit_numba import choice

        return choice(self._field, self._function, self._otherwise)


def where_filled(field: str, function: Function, otherwise: Function) -> Function:
    """Call `function` in compiled code if the record given first has `field` filled, else `otherwise`."""
    return cast("Function", WhereFilled(field, function, otherwise))


def _intrinsic(function: Function) -> Function:
    return cast("Function", Intrinsic(function, "streamwatch.core.jit_numba"))


def _of_vectors(function: Function) -> Function:
    return cast("Function", Intrinsic(function, "streamwatch.core.jit_vectors"))


@_intrinsic
def without_refcount(array: Any) -> Any:
    """Give the same array without reference counting, for a callee whose caller holds it.

    Counting is atomic, and was a third of the time per outcome.
    """


@_intrinsic
def prefetch(array: Any, offset: Any) -> None:
    """Ask the processor to bring in the cache line `offset` bytes after the start of `array`; a hint only."""


@_intrinsic
def class_bits(entry: Any) -> Any:
    """Bits of a class in a ring entry, or in the entries of rings: 11 of 32, 27 of 64."""


@_intrinsic
def word_at(data: Any, at: Any) -> Any:
    """Read the 8 bytes at `at` of a uint8 array as one little-endian uint64, aligned or not."""


@_intrinsic
def text_stops(data: Any, at: Any) -> Any:
    """Tell which of 32 bytes end plain text in JSON: bit i of the uint64 is that of byte `at` + i.

    They are quotes, backslashes, and all that is not printable ASCII. The 32 bytes must exist.
    """


@_intrinsic
def digit_stops(data: Any, at: Any) -> Any:
    """Tell which of 32 bytes are no digits, in the same way."""


@_intrinsic
def trailing_zeros(bits: Any) -> Any:
    """Count the zeros below the lowest bit that is set, of a uint64; 64 if none is. Gives an int64."""


@_intrinsic
def high_product(left: Any, right: Any) -> Any:
    """Give the upper 64 bits of the product of two uint64."""


@_intrinsic
def swapped(word: Any) -> Any:
    """Reverse the 8 bytes of a uint64."""


@_intrinsic
def count_bits(bits: Any) -> Any:
    """Count the bits that are set, of an int64."""


@_of_vectors
def lanes(value: Any) -> Any:
    """Give a vector of eight times the same double; vectors are added, subtracted, multiplied and divided."""


@_of_vectors
def lanes_of(array: Any, row: Any) -> Any:
    """Give row `row` of a float64 array of shape (n, 8) as a vector."""


@_of_vectors
def put_lanes(array: Any, row: Any, values: Any) -> None:
    """Write a vector to row `row` of a float64 array of shape (n, 8)."""


@_of_vectors
def lane(values: Any, index: Any) -> Any:
    """Give one of the eight doubles."""


@_of_vectors
def larger(left: Any, right: Any) -> Any:
    """Give the larger of two vectors, by lane."""


@_of_vectors
def where_at_most(left: Any, right: Any, then: Any, otherwise: Any) -> Any:
    """Give `then` in lanes where left ≤ right, `otherwise` in the others."""


@_of_vectors
def bits_at_most(left: Any, right: Any) -> Any:
    """Tell in which lanes left ≤ right: bit k of the int64 is that of lane k."""


@_of_vectors
def lanes_where(bits: Any, values: Any) -> Any:
    """Give a vector with 0 in each lane k whose bit k of an int64 is not set."""


@_of_vectors
def bytes_with(array: Any, bit: Any) -> Any:
    """Tell which of the first 64 bytes of a uint8 array have a bit set: bit i of the int64 is of byte i."""


@_of_vectors
def sum_in_pairs(values: Any) -> Any:
    """Give ((v0 + v1) + (v2 + v3)) + ((v4 + v5) + (v6 + v7)): no addition waits for seven others."""


@_of_vectors
def log_lanes(values: Any) -> Any:
    """Give natural logarithms of positive normal doubles, to 1 unit in the last place."""


@_of_vectors
def exp_lanes(values: Any) -> Any:
    """Give exponentials of values in [−700, 700], to 2 units in the last place."""
