"""Columns of any make as arrays, and their values as numbers for names."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.edge.decoders.fields import canonical_text

_FEW: Final = 1 << 16
"""Whole numbers so near each other are numbered by a table."""


class Numbers:
    """Numbers for names, in the order in which they came."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._seen: dict[tuple[type, Any], int] = {}

    def of(self, values: Iterable[Any], what: str) -> NDArray[np.int32]:
        """Number of each value; shape (n,)."""
        column = column_of(values)
        if column.ndim != 1:
            raise ValueError(f"{what} must have one dimension, got shape {column.shape}")
        if column.dtype.kind in "iu" and len(column):
            low, high = int(column.min()), int(column.max())
            if high - low < _FEW:
                wide = column.astype(np.int64) if column.dtype.kind == "i" else column
                places = wide - wide.dtype.type(low)  # an int8 could not hold the difference
                return self._of_few(places.astype(np.intp), low, high - low + 1, what)
        listed: list[Any] = column.tolist()
        if len(set(map(type, listed))) > 1:  # 1, 1.0 and True are equal as keys
            return np.fromiter((self._number(value, what) for value in listed), np.int32, len(listed))
        numbers = {value: self._number(value, what) for value in dict.fromkeys(listed)}
        return np.fromiter(map(numbers.__getitem__, listed), np.int32, len(listed))

    def _of_few(self, places: NDArray[np.intp], low: int, width: int, what: str) -> NDArray[np.int32]:
        """Number of each whole number `low + place`, by a table."""
        first = np.full(width, -1, np.int64)
        first[places[::-1]] = np.arange(len(places) - 1, -1, -1)  # the earliest is written last, and stays
        seen = np.flatnonzero(first >= 0)
        table = np.zeros(width, np.int32)
        for place in seen[np.argsort(first[seen])].tolist():
            table[place] = self._number(low + place, what)
        return table[places]

    def _number(self, value: Any, what: str) -> int:
        key = (type(value), value)
        number = self._seen.get(key)
        if number is None:
            text = canonical_text(value)
            broken = isinstance(value, float) and not value.is_integer()  # a probability is no class
            if text is None or text == "" or broken:
                raise ValueError(f"{what} must be texts, whole numbers or booleans, got {value!r}")
            number = self._numbers.setdefault(text, len(self.names))
            if number == len(self.names):
                self.names.append(text)
            self._seen[key] = number
        return number


def column_of(values: Iterable[Any]) -> NDArray[Any]:
    """Values as an array; those of a frame's column are taken without asking what made it."""
    if isinstance(values, np.ndarray):
        return values
    to_numpy = getattr(values, "to_numpy", None)
    if to_numpy is not None:
        if (
            getattr(getattr(values, "dtype", None), "tz", None) is not None
        ):  # pandas would make objects of them
            return np.asarray(to_numpy(dtype="datetime64[ms]"))
        return np.asarray(to_numpy())
    listed = list(values)
    column = np.empty(len(listed), object)
    column[:] = listed
    return column


def _in_utc(time: datetime) -> np.datetime64:
    """A datetime as numpy wants it; one without a zone is taken for UTC, as numpy does."""
    if str(time) == "NaT":  # pandas calls it a datetime
        return np.datetime64("NaT")
    return np.datetime64(time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time, "ms")


def times_of(event_ms: Iterable[Any] | None, count: int, begun: int) -> NDArray[np.int64]:
    """Event times in milliseconds, shape (count,); numbers from `begun` on where none are given."""
    if event_ms is None:
        return np.arange(begun, begun + count)
    times = column_of(event_ms)
    if times.dtype.kind == "O":  # a list's numbers or datetimes, or a column of datetimes with a zone
        times = np.asarray([_in_utc(each) if isinstance(each, datetime) else each for each in times.tolist()])
    if times.dtype.kind == "M":
        if np.isnat(times).any():
            raise ValueError(f"event_ms must be known, got none in row {int(np.isnat(times).argmax())}")
        times = times.astype("datetime64[ms]").astype(np.int64)
    if times.shape != (count,):
        raise ValueError(f"event_ms must be one time per outcome ({count}), got shape {times.shape}")
    if times.dtype.kind not in "iu":
        raise ValueError(f"event_ms must be datetimes or whole milliseconds, got {times.dtype}")
    return times.astype(np.int64)
