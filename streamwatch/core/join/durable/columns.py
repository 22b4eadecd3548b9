"""Integer columns as bytes: a commit writes one value for thousands of rows.

    version, columns, rows          1, 1, 4 bytes
    base, width                     9 bytes a column
    data                            of all columns, those of the largest width first

Each column is stored as differences from its smallest value, in 1, 2, 4 or 8 bytes as the largest difference
needs; none if all are equal. In a value of more than `MOST_EQUAL_ROWS` rows one column has data all the same,
so that what a reader allocates is in proportion to the value. All numbers are little-endian. Halves of
digests (uint64) are stored as they are, or, if that is shorter, as a bit for each row that is 1 where another
value begins, filled up to words, and these values: predictions of many models come one after another for the
same id.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry
from streamwatch.core.records.batch import Records, words_of_array
from streamwatch.core.records.events import CARRIED
from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM

VERSION: Final = 2
MOST_ROWS: Final = 2**28
"""Largest number of rows of one value."""
MOST_EQUAL_ROWS: Final = 65_536
"""Largest number of rows of a value without data, all rows equal: a damaged value cannot claim more,
and 20 columns of them are 10 MB in memory. Runs of entries and of outcomes, most of what is written, have
fewer rows (4,096 and 8,192); a larger value of equal rows pays one byte a row."""
HEAD: Final = Struct("<BBI")
_COLUMN: Final = np.dtype([("base", "<i8"), ("width", "u1")])
_AS_IT_IS: Final = 9
"""Width that marks a column of uint64."""
_REPEATED: Final = 10
"""Width that marks a column of uint64 with a bit for each row."""
_TYPES: Final = {1: "<u1", 2: "<u2", 4: "<u4", 8: "<u8"}

Column = NDArray[np.int64] | NDArray[np.uint64]


class PackedError(ValueError):
    """Raised if a packed value is not what a commit writes."""


@entry
def narrow(
    table: Any, digests: Any, bases: Any, widths: Any, words: Any, fours: Any, twos: Any, ones: Any
) -> int:
    """Write the columns of a value; return the number of bytes.

    Parameters
    ----------
    table
        int64 (columns, rows): numbers, and the bits of digests.
    digests
        bool (columns,): whether a column holds halves of digests.
    bases, widths
        int64 and uint8, (columns,), output: smallest value and width of each column.
    words, fours, twos, ones
        The same memory, of at least columns × rows words, as uint64, uint32, uint16 and uint8; output.
    """
    columns, rows = table.shape
    for c in range(columns):
        bases[c] = widths[c] = 0
        column = table[c]
        if digests[c]:
            begun = min(rows, 1)
            for i in range(1, rows):
                begun += column[i] != column[i - 1]
            widths[c] = _REPEATED if (rows + 63) // 64 + begun < rows else _AS_IT_IS
        elif rows:
            least = most = column[0]
            for i in range(1, rows):
                least = min(least, column[i])
                most = max(most, column[i])
            bases[c] = least
            span = np.uint64(most) - np.uint64(least)
            if span >> np.uint64(32):
                widths[c] = 8
            elif span >> np.uint64(16):
                widths[c] = 4
            elif span >> np.uint64(8):
                widths[c] = 2
            elif span:
                widths[c] = 1
    at = 0
    for c in range(columns):
        column, base = table[c], bases[c]
        if widths[c] == _REPEATED:
            word = at + (rows + 63) // 64
            for first in range(0, rows, 64):
                bits = np.uint64(0)
                for i in range(first, min(first + 64, rows)):
                    if i == 0 or column[i] != column[i - 1]:
                        bits |= np.uint64(1) << np.uint64(i - first)
                        words[word] = np.uint64(column[i])
                        word += 1
                words[at + first // 64] = bits
            at = word
        elif widths[c] >= 8:
            for i in range(rows):
                words[at + i] = np.uint64(column[i] - base)
            at += rows
    at *= 2
    for c in range(columns):
        column, base = table[c], bases[c]
        if widths[c] == 4:
            for i in range(rows):
                fours[at + i] = np.uint32(column[i] - base)
            at += rows
    at *= 2
    for c in range(columns):
        column, base = table[c], bases[c]
        if widths[c] == 2:
            for i in range(rows):
                twos[at + i] = np.uint16(column[i] - base)
            at += rows
    at *= 2
    for c in range(columns):
        column, base = table[c], bases[c]
        if widths[c] == 1:
            for i in range(rows):
                ones[at + i] = np.uint8(column[i] - base)
            at += rows
    return at


def pack_table(table: NDArray[np.int64], digests: Sequence[int] = ()) -> bytes:
    """Pack columns, the rows of a table of shape (columns, rows).

    Parameters
    ----------
    table
        Numbers, and the bits of halves of digests.
    digests
        Which columns hold halves of digests.
    """
    columns, rows = table.shape
    described = np.empty(columns, _COLUMN)
    bases, widths = np.empty(columns, np.int64), np.empty(columns, np.uint8)
    of_digests = np.zeros(columns, np.bool_)
    of_digests[list(digests)] = True
    words = np.empty(columns * rows, np.uint64)
    ones = words.view(np.uint8)
    size = narrow(table, of_digests, bases, widths, words, words.view(np.uint32), words.view(np.uint16), ones)
    if rows > MOST_EQUAL_ROWS and columns and not widths.any():
        widths[0], size = 1, rows
        ones[:rows] = 0
    described["base"], described["width"] = bases, widths
    return HEAD.pack(VERSION, columns, rows) + described.tobytes() + ones[:size].tobytes()


def pack_columns(columns: Sequence[Column]) -> bytes:
    """Pack columns of equal length, of integers or, as uint64, of halves of digests."""
    table = np.empty((len(columns), len(columns[0])), np.int64)
    for row, column in zip(table, columns, strict=True):
        row[:] = column.view(np.int64) if column.dtype == np.uint64 else column
    return pack_table(table, [n for n, column in enumerate(columns) if column.dtype == np.uint64])


def pack_numbers(numbers: NDArray[np.int32]) -> bytes:
    """Pack one column of integers, as `pack_columns` does, without a copy of it in 64 bits."""
    rows = len(numbers)
    least, most = (int(numbers.min()), int(numbers.max())) if rows else (0, 0)
    width = next(width for width in (0, 1, 2, 4) if (most - least) >> 8 * width == 0)
    if rows > MOST_EQUAL_ROWS:
        width = max(width, 1)
    described = np.array([(least, width)], _COLUMN)
    head = HEAD.pack(VERSION, 1, rows) + described.tobytes()
    if not width:
        return head
    # Modulo 2³², as the widest type is one of 32 bits.
    differences = numbers.view(np.uint32) - np.uint32(least & 0xFFFFFFFF)
    return head + differences.astype(_TYPES[width]).tobytes()


def unpack_columns(value: bytes, count: int) -> list[Column]:
    """Unpack `count` columns.

    Raises
    ------
    PackedError
        If version, number of columns, a width or the length is wrong, or more rows are claimed than there can
        be data for, which is checked before anything is allocated for them.
    """
    if len(value) < HEAD.size:
        raise PackedError(f"expected at least {HEAD.size} bytes, got {len(value)}")
    version, columns, rows = HEAD.unpack_from(value)
    if rows > MOST_ROWS:
        raise PackedError(f"expected at most {MOST_ROWS} rows, got {rows}")
    if version != VERSION or columns != count:
        raise PackedError(f"expected version {VERSION} and {count} columns, got {version} and {columns}")
    start = HEAD.size + _COLUMN.itemsize * count
    if len(value) < start:
        raise PackedError(f"expected at least {start} bytes, got {len(value)}")
    described = np.frombuffer(value, _COLUMN, count, HEAD.size)
    bases: list[int] = described["base"].tolist()
    widths: list[int] = described["width"].tolist()
    most = MOST_EQUAL_ROWS if not any(widths) else 8 * (len(value) - start)  # a bit or more of each row
    if rows > most:
        raise PackedError(f"expected at most {most} rows in {len(value)} bytes, got {rows}")
    found: dict[int, Column] = {}
    at = start
    for number in sorted(range(count), key=lambda number: -min(widths[number], 8)):
        base, width = bases[number], widths[number]
        if width == 0:
            found[number] = np.full(rows, base, np.int64)
        elif width == _REPEATED:
            found[number], at = _unpack_repeated(value, rows, at)
        elif width in {*_TYPES, _AS_IT_IS}:
            size = min(width, 8)
            if len(value) < at + size * rows:
                raise PackedError(f"expected {rows} rows, got {len(value)} bytes that end in column {number}")
            raw = np.frombuffer(value, _TYPES[size], rows, at)
            found[number] = raw.astype(np.uint64) if width == _AS_IT_IS else raw.astype(np.int64) + base
            at += size * rows
        else:
            raise PackedError(f"expected a width of 0, 1, 2, 4, 8, 9 or 10, got {width} of column {number}")
    if at != len(value):
        raise PackedError(f"expected {at} bytes, got {len(value)}")
    return [found[number] for number in range(count)]


def signed(column: Column) -> NDArray[np.int64]:
    """Return an unpacked column as one of integers; raises PackedError if it holds halves of digests."""
    if column.dtype != np.int64:
        raise PackedError("expected small numbers, got digests")
    return column.astype(np.int64, copy=False)


def require(column: NDArray[np.int64], least: int, most: int, what: str) -> None:
    """Raise PackedError unless all numbers are from `least` to `most`."""
    if len(column) and not (least <= int(column.min()) and int(column.max()) <= most):
        raise PackedError(f"expected {what} from {least} to {most}, got {column.min()} to {column.max()}")


def _unpack_repeated(value: bytes, rows: int, at: int) -> tuple[NDArray[np.uint64], int]:
    """Return the values of a `_REPEATED` column at byte `at`, and the byte at which the next one begins."""
    size = 8 * ((rows + 63) // 64)
    bits = np.unpackbits(np.frombuffer(value[at : at + size], np.uint8), bitorder="little")
    begun = int(bits.sum())
    if len(bits) < 8 * size or len(value) < at + size + 8 * begun:
        raise PackedError(f"expected {rows} rows with a bit each, and their values, got {len(value)} bytes")
    if not rows or not bits[0] or bits[rows:].any():
        raise PackedError(f"expected bits of {rows} rows, the first of which begins a value, got others")
    values = np.frombuffer(value, "<u8", begun, at + size)
    return values[np.cumsum(bits[:rows], dtype=np.int64) - 1].astype(np.uint64), at + size + 8 * begun


def carried_in(columns: Sequence[Column]) -> NDArray[np.int64]:
    """Join stored columns of `core.records.events.CARRIED`, (n,) each; raises PackedError on a bad one."""
    for number, column in zip(CARRIED, columns, strict=True):
        if not number.is_valid(column):
            raise PackedError(f"expected {number.meaning}, got others")
    return np.stack([column.astype(np.int64) for column in columns], axis=1)


# Numbers that grow within each of several groups, as differences from the one before in the same group.


_RADIX: Final = 2**16
"""Number of groups below which numpy sorts by their bytes."""


@entry
def split_steps(groups: Any, values: Any, first: Any, newest: Any, begun: Any, steps: Any) -> None:
    """Write what `steps_within` returns.

    Parameters
    ----------
    groups, values
        int64 (n,): the group of each value, and the values.
    first, newest, begun
        int64, int64 and bool, of all groups: their first and newest values so far, and whether they have any;
        read and written.
    steps
        int64 (n,), output.
    """
    for i in range(groups.shape[0]):
        group, value = groups[i], values[i]
        if begun[group]:
            steps[i] = value - newest[group]
        else:
            begun[group] = True
            first[group] = value
            steps[i] = 0
        newest[group] = value


def steps_within(
    groups: NDArray[np.int32 | np.int64], values: NDArray[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split values into the first of each group and the differences within groups.

    Parameters
    ----------
    groups
        Group of each value, shape (n,): every number from 0 up to the largest must occur.
    values
        Values, shape (n,).

    Returns
    -------
    first, steps
        First value of each group, (groups,). Difference of each value from the one before of its group, (n,);
        0 for the first.
    """
    number = int(groups.max(initial=-1)) + 1
    first, newest = np.empty(number, np.int64), np.empty(number, np.int64)
    steps = np.empty(len(groups), np.int64)
    split_steps(
        np.ascontiguousarray(groups, np.int64),
        np.ascontiguousarray(values, np.int64),
        first,
        newest,
        np.zeros(number, np.bool_),
        steps,
    )
    return first, steps


def values_within(
    groups: NDArray[np.int32], first: NDArray[np.int64], steps: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Join what `steps_within` split; every group must have a first value."""
    order, begins = _by_group(groups)
    so_far = np.cumsum(steps[order])
    starts = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
    values = np.empty(len(groups), np.int64)
    values[order] = first[groups[order]] + so_far - so_far[starts]
    return values


def _by_group(groups: NDArray[np.int32 | np.int64]) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
    """Return the positions ordered by group, and a mask, in that order, of the first of each group."""
    few = int(groups.max(initial=-1)) < _RADIX
    order = np.argsort(groups.astype(np.uint16) if few else groups, kind="stable")
    own = groups[order]
    begins = np.ones(len(own), np.bool_)
    begins[1:] = own[1:] != own[:-1]
    return order, begins


# Outcomes in columns as commits write them, and renumbering of columns.
#
# All fields are copied in one pass, since copying one field of records reads as much memory as copying all.


_CARRIED: Final = len(CARRIED)
LOW, HIGH, DELAY, MODEL, TRUE, PREDICTED, LABEL, ASSUMED, MADE, RESOLVED = range(10)
"""Numbers of the columns; those of `CARRIED` follow after `SEGMENTS`."""
_AFTER, _BEHIND, LAST, SEGMENTS = range(10, 14)
"""Further columns: resolution less the label's time; the prediction's own time less its record's, which
gives `waited_ms`; the class predicted last; the number of the segments."""
COLUMNS: Final = SEGMENTS + 1 + _CARRIED
CLASSES: Final = (TRUE, PREDICTED, LABEL)
_MADE: Final = 2**32
"""Number at which `made` begins again at 0."""
_MOST_MS: Final = 2**60
"""Bound of times and of differences between them, so that sums of a few do not overflow."""


@entry
def split_outcomes(outcomes, columns, start):
    """Copy fields of outcomes to columns from `start` on.

    Parameters
    ----------
    outcomes
        Records `OUTCOME`, (n,).
    columns
        Output: int64 (at least `COLUMNS`, rows). Segments are -1.
    start
        Row of the first outcome in the columns.
    """
    for i in range(outcomes.shape[0]):
        o, at = outcomes[i], start + i
        after = o.resolved_ms - o.event_ms
        columns[LOW, at] = np.int64(o.low)
        columns[HIGH, at] = np.int64(o.high)
        columns[DELAY, at] = o.delay_ms
        columns[MODEL, at] = o.model
        columns[TRUE, at] = o.true_class
        columns[PREDICTED, at] = o.predicted_class
        columns[LABEL, at] = o.label_at_prediction
        columns[ASSUMED, at] = o.assumed
        columns[MADE, at] = o.made
        columns[RESOLVED, at] = o.resolved_ms
        columns[_AFTER, at] = after
        columns[_BEHIND, at] = o.waited_ms - o.delay_ms - after
        columns[LAST, at] = o.last_class
        columns[SEGMENTS, at] = -1
        for k in range(_CARRIED):
            columns[SEGMENTS + 1 + k, at] = o.carried[k]


def columns_of(parts: Sequence[Records], more: int = 0) -> NDArray[np.int64]:
    """Copy the fields of records `OUTCOME`, one part after another, to columns: shape (COLUMNS + more, n).

    Segments are -1, and further columns undefined.
    """
    columns = np.empty((COLUMNS + more, sum(map(len, parts))), np.int64)
    start = 0
    for part in parts:
        split_outcomes(words_of_array(part).reshape(-1).view(OUTCOME), columns, start)
        start += len(part)
    return columns


def outcomes_of(columns: Sequence[Column], models: int, classes: int, segments: int) -> Records:
    """Join columns to records `OUTCOME`, with numbers of segments where scores would be.

    Parameters
    ----------
    columns
        Those of `columns_of`.
    models, classes, segments
        Numbers of names of each kind.

    Raises
    ------
    PackedError
        If they are of the wrong kind, a number has no name, or a time is beyond 2^60 ms.
    """
    if any((column.dtype == np.uint64) != (number < DELAY) for number, column in enumerate(columns)):
        raise PackedError("expected digests of outcomes in the first two columns and small numbers in others")
    for number, least, most, name in (
        (MODEL, 0, models, "model"),
        (TRUE, -1, classes, "true_class"),
        (PREDICTED, -1, classes, "predicted_class"),
        (LABEL, -1, classes, "label_at_prediction"),
        (LAST, 0, classes + 1, "last_class"),
        (SEGMENTS, -1, segments, "segments"),
        (ASSUMED, 0, 2, "assumed"),
        (MADE, 0, _MADE, "number of predictions"),
        (DELAY, -_MOST_MS, _MOST_MS, "delay_ms"),
        (RESOLVED, -_MOST_MS, _MOST_MS, "resolved_ms"),
        (_AFTER, -_MOST_MS, _MOST_MS, "time from the label to the outcome"),
        (_BEHIND, -_MOST_MS, _MOST_MS, "time from the prediction to its record"),
    ):
        column = columns[number]
        if not are_within(column, least, most):
            raise PackedError(
                f"expected numbers from {least} to {most - 1} of outcomes as {name}, "
                f"got {column.min()} to {column.max()}"
            )
    records = np.zeros(len(columns[0]), OUTCOME)
    for number, name in (
        (LOW, "low"),
        (HIGH, "high"),
        (DELAY, "delay_ms"),
        (MODEL, "model"),
        (TRUE, "true_class"),
        (PREDICTED, "predicted_class"),
        (LABEL, "label_at_prediction"),
        (ASSUMED, "assumed"),
        (MADE, "made"),
        (RESOLVED, "resolved_ms"),
        (LAST, "last_class"),
    ):
        records[name] = columns[number]
    after, behind, of_segments = (columns[number].astype(np.int64) for number in (_AFTER, _BEHIND, SEGMENTS))
    records["event_ms"] = records["resolved_ms"] - after
    records["waited_ms"] = records["delay_ms"] + after + behind
    records["scores"] = np.where(of_segments < 0, -1, of_segments + SEGMENTS_FROM)
    records["carried"] = carried_in(columns[SEGMENTS + 1 : COLUMNS])
    return records


def are_within(column: NDArray[Any], least: int, most: int) -> bool:
    """Return whether all numbers are at least `least` and below `most`."""
    return not len(column) or (least <= int(column.min()) and int(column.max()) < most)


@entry
def mark_used(column, used):
    """Mark in a bool array the numbers that occur in an int64 column; -1 stands for none."""
    for i in range(column.shape[0]):
        if column[i] >= 0:
            used[column[i]] = True


@entry
def renumber(column, here, found):
    """Write `here[number]` to `found` for each number of an int64 column; -1 stays -1."""
    for i in range(column.shape[0]):
        found[i] = here[column[i]] if column[i] >= 0 else -1


def warm_up_columns() -> None:
    """Split, pack and renumber outcomes, so that every compiled function is called."""
    columns = columns_of([np.zeros(1, OUTCOME)])
    steps_within(columns[MODEL], columns[MADE])
    pack_table(columns, (LOW, HIGH))
    mark_used(columns[MODEL], np.zeros(1, np.bool_))
    renumber(columns[MODEL], np.zeros(1, np.int64), columns[MODEL])
