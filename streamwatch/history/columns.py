"""Conversion of columns (arrays, lists, columns of frames) to arrays, and of their values to numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.probabilities import probabilities_under
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.records.events import segments_text
from streamwatch.core.records.scores import ScoreLists
from streamwatch.core.specs import MonitorsSpec
from streamwatch.edge.decoders.fields import MAX_TEXT_BYTES, MAX_TIMESTAMP_MS, canonical_text

_FEW: Final = 1 << 16
"""Range of whole numbers within which they are numbered by a table."""
_FIRST_MS: Final = -62_135_596_800_000
_EXPECTED_YEARS: Final = "event_ms must be milliseconds since 1970, or datetimes, of the years 1 to 9999"


class Numbers:
    """Assigns numbers to names, from 0, in order of first occurrence."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._numbers: dict[str, int] = {}
        self._seen: dict[tuple[type, Any], int] = {}

    def of(self, values: Iterable[Any], what: str) -> NDArray[np.int32]:
        """Return the number of each value, shape (n,).

        Raises ValueError, which names the column `what`, unless values are texts, whole numbers or booleans.
        """
        column = column_of(values)
        if column.ndim != 1:
            raise ValueError(f"{what} must have one dimension, got shape {column.shape}")
        if column.dtype.kind in "iu" and len(column):
            low, high = int(column.min()), int(column.max())
            if high - low < _FEW:
                wide = column.astype(np.int64) if column.dtype.kind == "i" else column
                offsets = wide - wide.dtype.type(low)  # an int8 could not hold the difference
                return self._of_few(offsets.astype(np.intp), low, high - low + 1, what)
        listed: list[Any] = (
            [_plain(value) for value in column.tolist()] if column.dtype.kind == "O" else column.tolist()
        )
        if len(set(map(type, listed))) > 1:  # 1, 1.0 and True are equal as keys
            return np.fromiter((self._number(value, what) for value in listed), np.int32, len(listed))
        try:
            numbers = {value: self._number(value, what) for value in dict.fromkeys(listed)}
        except TypeError:  # a list or an array, which is no key
            raise _no_name(what, listed[0]) from None
        return np.fromiter(map(numbers.__getitem__, listed), np.int32, len(listed))

    def _of_few(self, offsets: NDArray[np.intp], low: int, width: int, what: str) -> NDArray[np.int32]:
        """Return the numbers of the whole numbers `low + offset`, by a table."""
        first = np.full(width, -1, np.int64)
        first[offsets[::-1]] = np.arange(len(offsets) - 1, -1, -1)  # the earliest is written last and stays
        seen = np.flatnonzero(first >= 0)
        table = np.zeros(width, np.int32)
        for offset in seen[np.argsort(first[seen])].tolist():
            table[offset] = self._number(low + offset, what)
        return table[offsets]

    def _number(self, value: Any, what: str) -> int:
        key = (type(value), value)
        try:
            number = self._seen.get(key)
        except TypeError:
            raise _no_name(what, value) from None
        if number is None:
            number = self._seen[key] = self.number_of(name_of(value, what))
        return number

    def number_of(self, name: str) -> int:
        """Return the number of a name, without checks."""
        number = self._numbers.setdefault(name, len(self.names))
        if number == len(self.names):
            self.names.append(name)
        return number


def name_of(value: Any, what: str) -> str:
    """Convert a text, whole number or boolean, also of numpy, to a name.

    Raises ValueError, which names the column `what`, for any other value.
    """
    value = _plain(value)
    text = canonical_text(value)
    broken = isinstance(value, float) and not value.is_integer()  # a probability is no class
    if text is None or text == "" or broken:
        raise _no_name(what, value)
    return text


def _no_name(what: str, value: Any) -> ValueError:
    texts = "texts"
    if isinstance(value, str):
        texts = f"texts of 1 to {MAX_TEXT_BYTES} bytes without control characters"
    return ValueError(f"{what} must be {texts}, whole numbers or booleans, got {value!r}")


def _plain(value: Any) -> Any:
    """Convert a scalar of numpy, as of a list of single predictions, to Python's."""
    return value.item() if isinstance(value, np.generic) else value


def column_of(values: Iterable[Any]) -> NDArray[Any]:
    """Convert values to an array; a column of a frame by its `to_numpy`, others as objects."""
    if isinstance(values, np.ndarray):
        return values
    to_numpy = getattr(values, "to_numpy", None)
    if to_numpy is not None:
        if (
            getattr(getattr(values, "dtype", None), "tz", None) is not None
        ):  # `to_numpy` alone would return objects
            return np.asarray(to_numpy(dtype="datetime64[ms]"))
        return np.asarray(to_numpy())
    listed = list(values)
    column = np.empty(len(listed), object)
    column[:] = listed
    return column


def _in_utc(time: datetime) -> np.datetime64:
    """Convert a datetime; one without a zone is taken as UTC, as numpy does.

    Raises
    ------
    ValueError
        If it is before year 1 or after 9999 in UTC.
    """
    if str(time) == "NaT":  # its type in pandas is a subclass of datetime
        return np.datetime64("NaT")
    try:
        return np.datetime64(time.astimezone(UTC).replace(tzinfo=None) if time.tzinfo else time, "ms")
    except OverflowError:
        raise ValueError(f"{_EXPECTED_YEARS}, got {time}") from None


def times_of(event_ms: Iterable[Any] | None, count: int, begun: int) -> NDArray[np.int64]:
    """Convert event times to milliseconds, shape (count,); without any, number outcomes from `begun` on.

    Raises
    ------
    ValueError
        If a time is missing, their number is not `count`, they are no datetimes or whole numbers, or one is
        before year 1 or after 9999, as microseconds are that are taken for milliseconds.
    """
    if event_ms is None:
        return np.arange(begun, begun + count)
    times = column_of(event_ms)
    if times.dtype.kind == "O":  # numbers or datetimes of a list, or datetimes with a zone
        times = np.asarray([_in_utc(each) if isinstance(each, datetime) else each for each in times.tolist()])
    if times.dtype.kind == "M":
        if np.isnat(times).any():
            raise ValueError(f"event_ms must be known, got none in row {int(np.isnat(times).argmax())}")
        years = times.astype("datetime64[Y]").astype(np.int64) + 1970  # milliseconds could overflow
        _check_times(times, (years >= 1) & (years <= 9999))
        times = times.astype("datetime64[ms]").astype(np.int64)
    if times.shape != (count,):
        raise ValueError(f"event_ms must be one time per outcome ({count}), got shape {times.shape}")
    if times.dtype.kind not in "iu":
        raise ValueError(f"event_ms must be datetimes or whole milliseconds, got {times.dtype}")
    milliseconds: NDArray[Any] = times
    _check_times(milliseconds, (milliseconds >= _FIRST_MS) & (milliseconds <= MAX_TIMESTAMP_MS))
    return milliseconds.astype(np.int64)


def _check_times(times: NDArray[Any], expected: NDArray[np.bool_]) -> None:
    if not expected.all():
        row = int(np.argmin(expected))
        raise ValueError(f"{_EXPECTED_YEARS}, got {times[row]} in row {row}")


# Scores of classes and values of segments that outcomes carry, as columns.


_ABSENT_OF_PANDAS: Final = frozenset({"NAType", "NaTType"})
"""Names of the types of `pandas.NA` and `pandas.NaT`."""


def default_spec() -> MonitorsSpec:
    """Build the specification of a daemon without settings, with the registers for scores and segments."""
    plain = MonitorsSpec()
    return replace(plain, registers=(probabilities_under(plain.forgetting), SegmentsSpec()))


def scores_of(
    given: Any, count: int, segments: NDArray[np.int32], numbers: Numbers
) -> tuple[NDArray[np.intp], ScoreLists]:
    """Find the outcomes with scores: return their indices, and their scores and segments in this order.

    Parameters
    ----------
    given
        A column of probabilities for each class, shape (count,): a mapping or a frame of pandas or polars.
        NaN where an outcome has no score of the class.
    count
        Number of outcomes.
    segments
        Number of each outcome's segments, shape (count,).
    numbers
        Numbers of classes; the classes of the columns are added to them.

    Raises
    ------
    ValueError
        If a column has another length, or a value that is no probability.
    """
    columns = columns_of(given, "scores")
    table = np.empty((count, len(columns)), np.float64)
    for index, (name, values) in enumerate(columns.items()):
        try:
            column = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ValueError(f"scores[{name!r}] must be numbers: {error}") from error
        _check_length(f"scores[{name!r}]", column, count)
        wrong = np.flatnonzero((column < 0) | (column > 1))
        if len(wrong):
            raise ValueError(
                f"scores[{name!r}] must be in [0, 1] or NaN, got {column[wrong[0]]} at position {wrong[0]}"
            )
        table[:, index] = column
    there = ~np.isnan(table)
    sizes = np.count_nonzero(there, axis=1)
    scored = np.flatnonzero(sizes)
    classes = np.array([numbers.number_of(name) for name in columns], np.int32)
    listed = np.broadcast_to(classes, table.shape)[there]
    return scored, ScoreLists(np.cumsum(sizes[scored]), listed, table[there], segments[scored])


def segments_of(given: Any, count: int) -> tuple[NDArray[np.int32], list[str]]:
    """Number the combinations of segment values of outcomes, and return their texts by number.

    Parameters
    ----------
    given
        A column of values for each segment, shape (count,): texts, whole numbers, booleans; None or NaN where
        a prediction does not have the field. A mapping, or a frame of pandas or polars.
    count
        Number of outcomes.

    Returns
    -------
    (ndarray, list of str)
        Number of each outcome, shape (count,), −1 without any segment; texts as of `segments_text`.

    Raises
    ------
    ValueError
        If a column has another length, or a value that is no segment value.
    """
    combined = np.zeros(count, np.int64)
    first = np.zeros(0, np.intp)
    columns: list[tuple[str, NDArray[np.int64], list[str]]] = []
    for name, column in columns_of(given, "segments").items():
        _check_length(f"segments[{name!r}]", column, count)
        numbers = Numbers()
        own = np.full(count, -1, np.int64)
        there = _present(column)
        own[there] = numbers.of(column[there], f"segments[{name!r}]")
        columns.append((name, own, numbers.names))
        combined = combined * (len(numbers.names) + 1) + own + 1
        _, first, combined = np.unique(combined, return_index=True, return_inverse=True)
    texts: list[str] = []
    number_of = np.full(len(first), -1, np.int32)
    for combination, at in enumerate(first.tolist()):
        values = {name: names[own[at]] for name, own, names in columns if own[at] >= 0}
        if values:
            number_of[combination] = len(texts)
            texts.append(segments_text(values))
    return (number_of[combined] if columns else np.full(count, -1, np.int32)), texts


def columns_of(given: Any, what: str) -> dict[str, NDArray[Any]]:
    """Convert the columns of a mapping or a frame, by their names as texts; empty for None.

    Raises
    ------
    ValueError
        If it has no columns with names, a name cannot be a text, or two are the same.
    """
    if given is None:
        return {}
    if not isinstance(given, Mapping) and not hasattr(given, "columns"):
        raise ValueError(
            f"{what} must be a mapping or a frame, whose columns have names, got {type(given).__name__}"
        )
    names: Iterable[Any] = cast("Mapping[Any, Any]", given) if isinstance(given, Mapping) else given.columns
    found: dict[str, NDArray[Any]] = {}
    for name in names:
        text = canonical_text(name.item() if isinstance(name, np.generic) else name)
        if not text or text in found:
            raise ValueError(f"{what} must have columns of different names, got {name!r}")
        found[text] = column_of(given[name])
    return found


def part_of(columns: Mapping[str, NDArray[Any]], part: slice) -> dict[str, NDArray[Any]]:
    """Slice all columns."""
    return {name: column[part] for name, column in columns.items()}


def _present(column: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the values that are neither None nor NaN, nor what pandas has for these."""
    if column.dtype.kind == "f":
        return ~np.isnan(column)
    if column.dtype.kind != "O":
        return np.ones(len(column), np.bool_)
    listed: list[Any] = column.tolist()
    return np.array([not _is_absent(value) for value in listed], np.bool_)


def _is_absent(value: Any) -> bool:
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    return value is None or type(value).__name__ in _ABSENT_OF_PANDAS


def _check_length(what: str, column: NDArray[Any], count: int) -> None:
    if column.shape != (count,):
        raise ValueError(f"{what} must have one value per outcome ({count}), got shape {column.shape}")
