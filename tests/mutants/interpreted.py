"""Plugin of pytest: Python itself runs compiled functions, so that a mutant of one need not be compiled.

The variable names a module. Entry points that reach one of its functions are interpreted, with all that they
call; others stay compiled, on the same arrays. Numbers are those of NumPy: integers of 64 bits that wrap
around, and floats that divide by zero. Unlike compiled code, an index beyond an array raises `IndexError`.
"""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import builtins
import math
import os
from collections.abc import Callable, Iterator, Sequence
from types import CellType, CodeType, FunctionType
from typing import Any, Final, cast

import numpy as np
from hypothesis import Phase, settings
from numpy.typing import NDArray

from streamwatch.core.jit.decorators import CompiledFunction, WhereFilled
from streamwatch.core.jit.intrinsics import Intrinsic

VARIABLE: Final = "STREAMWATCH_INTERPRETED"

# Numbers, records and arrays as compiled functions see them.


_WORD_BITS: Final = 64
_NARROW: Final = (np.int8, np.int16, np.uint8, np.uint16, np.longlong)


class _Int32(np.int64):
    """Integer of 64 bits that was read from 32: what it is computed with gives one of 64."""


def _int64(value: Any) -> np.int64:
    """Convert as compiled code does: floats towards zero, integers modulo 2^64."""
    if isinstance(value, (np.floating, float)):
        return np.float64(cast("Any", value)).astype(np.int64)
    word = builtins.int(value) & (2**_WORD_BITS - 1)
    return np.int64(word - 2**_WORD_BITS if word >> (_WORD_BITS - 1) else word)


def _uint64(value: Any) -> np.uint64:
    return np.uint64(builtins.int(_int64(value)) & (2**_WORD_BITS - 1))


def _narrowed(kind: type[Any]) -> Callable[[Any], np.int64]:
    return lambda value: np.int64(np.array(_int64(value)).astype(kind))


def _int(value: Any) -> Any:
    """Convert as `int` does in compiled code, which keeps unsigned integers."""
    return value if type(value) is np.uint64 else _int64(value)


def _seen(value: Any) -> Any:
    """Return an element of an array or a field of a record as compiled functions see it."""
    kind = type(value)
    if kind is np.void:
        return Record(value)
    if kind in _NARROW:
        return np.int64(value)
    if kind in {np.int32, np.uint32}:
        return _Int32(value)
    if kind is np.ndarray:
        return value.view(Array)
    return value


def _stored(value: Any, kind: np.dtype[Any]) -> Any:
    """Return a value as it is written to an element or field; integers lose the bits that do not fit."""
    if type(value) is Record:
        return value._void
    if kind.kind in "iu" and isinstance(value, np.integer | int):
        return np.array(_int64(value)).astype(kind)
    return value


class Record:
    """Record of a structured array, whose fields are attributes or items."""

    __slots__ = ("_void",)

    def __init__(self, void: np.void) -> None:
        object.__setattr__(self, "_void", void)

    def __getattr__(self, name: str) -> Any:
        return _seen(self._void[name])

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __getitem__(self, name: str) -> Any:
        return _seen(self._void[name])

    def __setitem__(self, name: str, value: Any) -> None:
        self._void[name] = _stored(value, cast("Any", self._void.dtype)[name])


class Array(np.ndarray[Any, Any]):
    """Array whose elements are records, integers of 64 bits, or floats; its fields are attributes."""

    def __getitem__(self, index: Any) -> Any:
        return _seen(super().__getitem__(_whole(index)))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(_whole(index), _stored(value, self.dtype))

    def __getattr__(self, name: str) -> Any:
        if self.dtype.names is None or name not in self.dtype.names:
            raise AttributeError(name)
        return _seen(super().__getitem__(name))

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))


def _whole(index: Any) -> Any:
    """Take a boolean index for 0 or 1."""
    if type(index) is tuple:
        return tuple(_whole(each) for each in index)
    return builtins.int(index) if isinstance(index, np.bool_ | bool) else index


def _argument(value: Any) -> Any:
    """Return an argument given by Python as compiled functions see it."""
    if isinstance(value, np.ndarray):
        return cast("NDArray[Any]", value).view(Array)
    if isinstance(value, tuple):
        given = cast("tuple[Any, ...]", value)
        seen = [_argument(each) for each in given]
        return type(given)(*seen) if hasattr(given, "_fields") else tuple(seen)
    if isinstance(value, np.void):
        return Record(value)
    if type(value) is int:
        return _int64(value)
    return np.float64(value) if type(value) is float else _seen(value)


def _result(value: Any) -> Any:
    """Return a result as Python gets it from compiled functions."""
    if isinstance(value, tuple):
        return tuple(_result(each) for each in cast("tuple[Any, ...]", value))
    return value.item() if isinstance(value, np.generic) else value


# Intrinsics.


def _prefetch(array: Any, offset: Any) -> None:
    """Do nothing."""


def _class_bits(entry: Any) -> int:
    if isinstance(entry, np.ndarray):
        return 11 if cast("NDArray[Any]", entry).itemsize == 4 else 27
    return 11 if isinstance(entry, _Int32) else 27


def _word_at(data: Any, at: Any) -> np.uint64:
    return np.uint64(builtins.int.from_bytes(data[at : at + 8].tobytes(), "little"))


def _copy_bytes(out: Any, at: Any, data: Any, start: Any, count: Any) -> None:
    to, source, size = builtins.int(at), builtins.int(start), builtins.int(count)
    np.asarray(out)[to : to + size] = np.asarray(data)[source : source + size]


def _trailing_zeros(bits: Any) -> np.int64:
    word = builtins.int(bits)
    return np.int64((word & -word).bit_length() - 1 if word else _WORD_BITS)


def _count_bits(bits: Any) -> np.int64:
    return np.int64(builtins.int(_uint64(bits)).bit_count())


def _high_product(left: Any, right: Any) -> np.uint64:
    return np.uint64(builtins.int(left) * builtins.int(right) >> _WORD_BITS)


def _swapped(word: Any) -> np.uint64:
    return np.uint64(word).byteswap()


def _lanes(value: Any) -> NDArray[np.float64]:
    return np.full(8, value, np.float64)


def _lanes_of(array: Any, row: Any) -> NDArray[np.float64]:
    return np.array(array.reshape(-1)[8 * row : 8 * row + 8])


def _put_lanes(array: Any, row: Any, values: Any) -> None:
    array.reshape(-1)[8 * row : 8 * row + 8] = values


def _larger(left: Any, right: Any) -> NDArray[np.float64]:
    return np.where(left > right, left, right)


def _where_at_most(left: Any, right: Any, then: Any, otherwise: Any) -> NDArray[np.float64]:
    return np.where(left <= right, then, otherwise)


def _bits_at_most(left: Any, right: Any) -> np.int64:
    return np.int64(sum(1 << k for k in range(8) if left[k] <= right[k]))


def _either(condition: Any, then: Any, otherwise: Any) -> Any:
    return then if condition else otherwise


def _lanes_where(bits: Any, values: Any) -> NDArray[np.float64]:
    return np.array([values[k] if builtins.int(bits) >> k & 1 else 0.0 for k in range(8)])


def _bytes_with(array: Any, bit: Any) -> np.int64:
    return _int64(sum(1 << k for k in range(64) if builtins.int(array[k]) >> builtins.int(bit) & 1))


def _lane(values: Any, index: Any) -> np.float64:
    return values[index]


def _sum_in_pairs(v: Any) -> np.float64:
    return ((v[0] + v[1]) + (v[2] + v[3])) + ((v[4] + v[5]) + (v[6] + v[7]))


def _ones_of(array: Any) -> NDArray[np.float64]:
    return np.ones(array.shape[0])


def _with_entry(row: Any, index: Any, value: Any) -> NDArray[np.float64]:
    changed = row.copy()
    changed[builtins.int(index)] = value
    return changed


def _add_to_row(array: Any, index: Any, start: Any, row: Any, factor: Any) -> None:
    first = builtins.int(start)
    np.asarray(array)[builtins.int(index), first : first + len(row)] += row * builtins.float(factor)


_INTRINSICS: Final[dict[str, Callable[..., Any]]] = {
    "prefetch": _prefetch,
    "class_bits": _class_bits,
    "copy_bytes": _copy_bytes,
    "word_at": _word_at,
    "trailing_zeros": _trailing_zeros,
    "count_bits": _count_bits,
    "either": _either,
    "high_product": _high_product,
    "swapped": _swapped,
    "lanes": _lanes,
    "lanes_of": _lanes_of,
    "put_lanes": _put_lanes,
    "larger": _larger,
    "where_at_most": _where_at_most,
    "bits_at_most": _bits_at_most,
    "lanes_where": _lanes_where,
    "bytes_with": _bytes_with,
    "lane": _lane,
    "sum_in_pairs": _sum_in_pairs,
    "ones_of": _ones_of,
    "with_entry": _with_entry,
    "add_to_row": _add_to_row,
    "log_lanes": np.log,
    "exp_lanes": np.exp,
}

# Functions: their globals, and what they call, are replaced.


class _NumPy:
    """NumPy with integers of 64 bits."""

    int64 = intp = staticmethod(_int64)
    uint64 = staticmethod(_uint64)
    int32, int16, int8 = (staticmethod(_narrowed(kind)) for kind in (np.int32, np.int16, np.int8))
    uint32, uint16, uint8 = (staticmethod(_narrowed(kind)) for kind in (np.uint32, np.uint16, np.uint8))

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)


class _Math:
    """Functions of `math` where those of NumPy give infinity or NaN instead of an error."""

    def __getattr__(self, name: str) -> Any:
        found = getattr(math, name)
        return _computed(found) if callable(found) else found


def _computed(function: Callable[..., Any]) -> Callable[..., Any]:
    def computed(*values: Any) -> Any:
        try:
            found = function(*values)
        except (ValueError, OverflowError):
            found = getattr(np, function.__name__)(*map(np.float64, values))
        return np.float64(found) if isinstance(found, float) else found

    return computed


_BUILTINS: Final = {"int": _int, "float": np.float64}
_functions: dict[int, tuple[Any, Callable[..., Any]]] = {}
_globals: dict[int, dict[str, Any]] = {}


def _replaced(value: Any) -> Any:
    """Return what stands for a global or a variable of a closure in interpreted functions."""
    if isinstance(value, CompiledFunction | WhereFilled):
        return interpreted(value)
    if isinstance(value, Intrinsic):
        return _INTRINSICS.get(value._name, value)
    if value is np or value is math:
        return _NumPy() if value is np else _Math()
    if getattr(value, "__module__", None) == "math" and callable(value):
        return _computed(value)
    if isinstance(value, np.ndarray):
        return cast("NDArray[Any]", value).view(Array)
    return _seen(value) if isinstance(value, np.generic) else value


def interpreted(function: CompiledFunction | WhereFilled) -> Callable[..., Any]:
    """Make a function that Python runs, and that calls only such functions."""
    known = _functions.get(id(function))
    if known is not None:
        return known[1]
    if isinstance(function, WhereFilled):
        made = _chosen(function)
        _functions[id(function)] = function, made
        return made
    original = cast("FunctionType", function.py_func)
    cells = original.__closure__ or ()
    closure = tuple(CellType() for _ in cells)
    new = _globals.setdefault(id(original.__globals__), dict(_BUILTINS))
    made = FunctionType(original.__code__, new, original.__name__, original.__defaults__, closure)
    _functions[id(function)] = function, made
    for new_cell, cell in zip(closure, cells, strict=True):
        new_cell.cell_contents = _replaced(cell.cell_contents)
    for name in _names_of(original.__code__):
        if name not in new and name in original.__globals__:
            new[name] = _replaced(original.__globals__[name])
    return made


def _chosen(choice: WhereFilled) -> Callable[..., Any]:
    function, otherwise = (interpreted(cast("Any", each)) for each in (choice._function, choice._otherwise))

    def chosen(record: Record, *arguments: Any) -> Any:
        kind = cast("Any", record)._void.dtype.fields[choice._field][0]
        return (function if kind.shape[0] > 0 else otherwise)(record, *arguments)

    return chosen


def _names_of(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names_of(constant)


def _named_by(function: CompiledFunction) -> Iterator[Any]:
    """What a function's globals and closure hold that it names."""
    original = cast("FunctionType", function.py_func)
    yield from (cell.cell_contents for cell in original.__closure__ or ())
    names = _names_of(original.__code__)
    yield from (original.__globals__[name] for name in names if name in original.__globals__)


def reaches(function: Any, modules: Sequence[str]) -> bool:
    """Tell whether a function is of one of the modules, or calls one that is, directly or not."""
    seen: set[int] = set()
    left = [function]
    while left:
        each = left.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, WhereFilled):
            left += [each._function, each._otherwise]
        elif isinstance(each, CompiledFunction):
            if each.py_func.__module__ in modules:
                return True
            left += _named_by(each)
    return False


def call(function: CompiledFunction, *arguments: Any) -> Any:
    """Call a function with Python in place of the compiler."""
    with np.errstate(all="ignore"):
        return _result(interpreted(function)(*map(_argument, arguments)))


def pytest_configure() -> None:
    """Leave out that hypothesis looks for the smallest example: the first failure is enough."""
    phases = (Phase.explicit, Phase.generate)
    settings.register_profile("interpreted", settings.default, phases=phases)
    settings.load_profile("interpreted")


if VARIABLE in os.environ:
    _modules = os.environ[VARIABLE].split(",")
    _compiled = CompiledFunction.__call__
    _decided: dict[int, tuple[CompiledFunction, bool]] = {}

    def _called(self: CompiledFunction, *arguments: Any) -> Any:
        decided = _decided.get(id(self))
        if decided is None:
            decided = _decided[id(self)] = self, reaches(self, _modules)
        return call(self, *arguments) if self.kept and decided[1] else _compiled(self, *arguments)

    CompiledFunction.__call__ = _called
