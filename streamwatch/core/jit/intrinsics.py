"""Functions that compiled functions call, and whose machine code is written by hand.

They are described here; their code is in `instructions`, which imports numba, and is imported when a function
that names one of these is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., Any])


class Intrinsic:
    """Function whose machine code is written by hand, under the same name in `instructions`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.__doc__ = function.__doc__
        self._name = function.__name__

    @cached_property
    def _numba_type_(self) -> Any:
        from streamwatch.core.jit.dispatcher import type_of  # noqa: PLC0415  (it imports numba)

        return type_of(getattr(import_module("streamwatch.core.jit.instructions"), self._name))


def _intrinsic(function: Function) -> Function:
    return cast("Function", Intrinsic(function))


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
def copy_bytes(out: Any, at: Any, data: Any, start: Any, count: Any) -> None:
    """Copy `count` bytes from index `start` of a uint8 array to index `at` of another one.

    Both ranges must exist and must not overlap.
    """


@_intrinsic
def text_stops(data: Any, at: Any) -> Any:
    """Find which of 32 bytes end plain text in JSON: bit i of the uint64 is that of byte `at` + i.

    Quotes, backslashes, and all bytes that are not printable ASCII do. The 32 bytes must exist.
    """


@_intrinsic
def digit_stops(data: Any, at: Any) -> Any:
    """Find which of 32 bytes are no digits, in the same way."""


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
def either(condition: Any, then: Any, otherwise: Any) -> Any:
    """Choose one of two numbers of one type without a branch: for conditions that cannot be foreseen."""


@_intrinsic
def count_bits(bits: Any) -> Any:
    """Count the bits that are set, of an int64."""


@_intrinsic
def lanes(value: Any) -> Any:
    """Give a vector of eight copies of a double; vectors are added, subtracted, multiplied and divided."""


@_intrinsic
def lanes_of(array: Any, row: Any) -> Any:
    """Give row `row` of a float64 array of shape (n, 8) as a vector."""


@_intrinsic
def put_lanes(array: Any, row: Any, values: Any) -> None:
    """Write a vector to row `row` of a float64 array of shape (n, 8)."""


@_intrinsic
def lane(values: Any, index: Any) -> Any:
    """Give one of the eight doubles."""


@_intrinsic
def larger(left: Any, right: Any) -> Any:
    """Give the larger of two vectors, by lane."""


@_intrinsic
def where_at_most(left: Any, right: Any, then: Any, otherwise: Any) -> Any:
    """Give `then` in lanes where left ≤ right, `otherwise` in the others."""


@_intrinsic
def bits_at_most(left: Any, right: Any) -> Any:
    """Find the lanes where left ≤ right: bit k of the int64 is that of lane k."""


@_intrinsic
def lanes_where(bits: Any, values: Any) -> Any:
    """Give a vector with 0 in each lane k whose bit k of an int64 is not set."""


@_intrinsic
def bytes_with(array: Any, bit: Any) -> Any:
    """Find which of the first 64 bytes of a uint8 array have a bit set: bit i of the int64 is of byte i."""


@_intrinsic
def sum_in_pairs(values: Any) -> Any:
    """Give ((v0 + v1) + (v2 + v3)) + ((v4 + v5) + (v6 + v7)): no addition waits for seven others."""


@_intrinsic
def ones_of(array: Any) -> Any:
    """Give a vector of ones, as many as a nested array of float64 has rows."""


@_intrinsic
def with_entry(row: Any, index: Any, value: Any) -> Any:
    """Give a copy of such a vector with another entry."""


@_intrinsic
def add_to_row(array: Any, index: Any, start: Any, row: Any, factor: Any) -> None:
    """Add such a vector times a double to entries of a row of a float64 array, from entry `start` on."""


@_intrinsic
def log_lanes(values: Any) -> Any:
    """Give natural logarithms of positive normal doubles, to 1 unit in the last place."""


@_intrinsic
def exp_lanes(values: Any) -> Any:
    """Give exponentials of values in [−700, 700], to 2 units in the last place."""
