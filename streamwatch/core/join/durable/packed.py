"""Columns that a join writes at commits: waiting entries and dedup entries; and the keys of values."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from struct import Struct
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, prefetch, trailing_zeros
from streamwatch.core.join.counters import OVER_LIMIT, PENDING, RESOLVED, RETAINED
from streamwatch.core.join.durable.columns import (
    MOST_ROWS,
    Column,
    PackedError,
    pack_table,
    require,
    signed,
    unpack_columns,
)
from streamwatch.core.join.layout import NO_TIME, POSITION_BITS, Records
from streamwatch.core.join.names import NumberedNames
from streamwatch.core.records.batch import MOST_TOPICS

_OF_WAITING: Final = 12
"""Number of columns stored of waiting entries, the first ones of `EntryColumns.table`."""
_OF_DEDUP: Final = slice(8, 14)
"""Columns of `EntryColumns.table` stored of dedup entries; the first four are among those of waiting ones."""
_LOW: Final = 8
_COLUMNS: Final = 14
_SEGMENTS: Final = 1
_REWRITTEN: Final = 7
_SIZE: Final = Struct("<I")
MOST_POSITIONS: Final = 2**POSITION_BITS
"""Number of positions of waiting entries that an entry has room for."""
_AHEAD = 16
"""Number of entries between prefetching one and reading it."""


@contextmanager
def reading(what: str) -> Generator[None]:
    """Name the part of a state that is decoded in the block; raises PackedError for what is not one.

    A number that does not fit where it belongs is an OverflowError there.
    """
    try:
        yield
    except (msgspec.DecodeError, ValueError, OverflowError) as error:
        raise PackedError(f"{what} cannot be read: {error}") from error


@contextmanager
def fitting(what: str) -> Generator[None]:
    """Name the part of a state whose numbers the block uses; raises PackedError if one does not fit."""
    try:
        yield
    except OverflowError as error:
        raise PackedError(f"{what} cannot be read: a number is out of range: {error}") from error


class WaitingRows(NamedTuple):
    """Waiting entries as columns of equal length; -1 stands for no name."""

    topic: NDArray[np.int64]
    """Number of the topic; 0 without one."""
    segments: NDArray[np.int64]
    """Number of the segments; -1 without any."""
    record_ms: NDArray[np.int64]
    timestamp_ms: NDArray[np.int64]
    """`NO_TIME` without a time."""
    named: NDArray[np.int64]
    """Predicted class of a prediction, true class of a label."""
    label_at_prediction: NDArray[np.int64]
    rewritten: NDArray[np.int64]
    """Number of times the entry was written before."""
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    model: NDArray[np.int64]
    state: NDArray[np.int64]


class DedupRows(NamedTuple):
    """Dedup entries of one generation: the stored fields of `ENTRY`, as columns of equal length."""

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    model: NDArray[np.int64]
    state: NDArray[np.int64]
    predicted_class: NDArray[np.int64]
    true_or_scores: NDArray[np.int64]
    """True class; -1 without a label."""


class PositionRuns(NamedTuple):
    """Runs of successive positions, ascending and apart, as columns of equal length.

    They are not spelled out before the log of entries is known: few bytes stand for many positions.
    """

    firsts: NDArray[np.int64]
    counts: NDArray[np.int64]

    @property
    def newest(self) -> int:
        """Largest position; -1 without any."""
        return int(self.firsts[-1] + self.counts[-1]) - 1 if len(self.firsts) else -1

    def positions(self, begin: int) -> NDArray[np.int64]:
        """Positions from `begin` on, ascending."""
        ends = self.firsts + self.counts
        firsts = np.maximum(self.firsts, begin)[ends > begin]
        counts = ends[ends > begin] - firsts
        before = np.cumsum(counts) - counts
        return np.repeat(firsts - before, counts) + np.arange(counts.sum())


class ObsoletePositions(NamedTuple):
    """Positions of entries that stopped waiting, or were matched, since they were written; at least one."""

    dead: PositionRuns
    """Positions of entries that no longer wait."""
    matched: PositionRuns
    """Positions of labels that were matched and still wait for those of further models."""

    @property
    def newest(self) -> int:
        """Largest position."""
        return max(self.dead.newest, self.matched.newest)

    @property
    def total(self) -> int:
        """Number of positions."""
        return int(self.dead.counts.sum() + self.matched.counts.sum())


@entry
def split_entries(entries: Any, chosen: Any, columns: Any) -> int:
    """Copy fields of entries to columns; return how many predictions carry scores or segments.

    Parameters
    ----------
    entries
        Records `ENTRY`.
    chosen
        int32 (n,): positions of the entries.
    columns
        int64 (`_COLUMNS`, n), output: values stored of waiting entries and of dedup entries. The columns of
        segments and of times written are left as they are.
    """
    carrying = 0
    for i in range(chosen.shape[0]):
        if i + _AHEAD < chosen.shape[0]:
            prefetch(entries, entries.itemsize * np.int64(chosen[i + _AHEAD]))
        e = entries[chosen[i]]
        columns[0, i] = e.topic
        columns[2, i] = e.record_ms
        timed = e.timestamp_ms != NO_TIME
        columns[3, i] = timed
        columns[4, i] = e.timestamp_ms - e.record_ms if timed else 0
        columns[5, i] = e.true_or_scores
        if e.state == PENDING:
            columns[5, i] = e.predicted_class
            carrying += e.true_or_scores >= 0
        columns[6, i] = e.label_at_prediction
        columns[8, i] = np.int64(e.low)
        columns[9, i] = np.int64(e.high)
        columns[10, i] = e.model
        columns[11, i] = e.state
        columns[12, i] = e.predicted_class
        columns[13, i] = e.true_or_scores
    return carrying


class EntryColumns(NamedTuple):
    """Entries in columns, to be packed."""

    table: NDArray[np.int64]
    """Shape (columns, n), as `split_entries` writes them."""
    carrying: int
    """Number of predictions that carry scores or segments."""

    @property
    def carried(self) -> NDArray[np.int32]:
        """Number of each prediction's scores or segments, as in `ENTRY`, int32 (n,); -1 for others."""
        return np.where(self.table[11] == PENDING, self.table[13], -1).astype(np.int32)

    @property
    def pending(self) -> NDArray[np.bool_]:
        """Mask of the entries that are predictions, (n,)."""
        return self.table[11] == PENDING


def entry_columns(entries: Records, chosen: NDArray[np.int32]) -> EntryColumns:
    """Copy the stored fields of some entries (`ENTRY`) to columns."""
    table = np.empty((_COLUMNS, len(chosen)), np.int64)
    return EntryColumns(table, split_entries(entries, chosen, table))


def pack_waiting(
    entries: EntryColumns, rewritten: NDArray[np.int64], segments: NDArray[np.int64] | None = None
) -> bytes:
    """Pack waiting entries, and how often each was written before; scores are stored separately.

    `segments` holds the numbers of their segments, -1 without any; None if no entry has any.
    """
    entries.table[_SEGMENTS] = -1 if segments is None else segments
    entries.table[_REWRITTEN] = rewritten
    return pack_table(entries.table[:_OF_WAITING], (_LOW, _LOW + 1))


def unpack_waiting(value: bytes) -> WaitingRows:
    """Unpack the result of `pack_waiting`.

    Raises
    ------
    PackedError
        If it cannot be such a result.
    """
    columns = unpack_columns(value, _OF_WAITING)
    low, high = _digests(columns[_LOW], columns[_LOW + 1])
    topic, segments, record_ms, timed, offset_ms, named, label, rewritten = map(signed, columns[:_LOW])
    model, state = map(signed, columns[_LOW + 2 :])
    own_ms = unpack_times(timed, offset_ms, record_ms)
    rows = WaitingRows(topic, segments, record_ms, own_ms, named, label, rewritten, low, high, model, state)
    require(rows.segments, -1, 2**30, "numbers of segments")
    require(rows.topic, 0, MOST_TOPICS - 1, "numbers of topics")
    require(rows.state, PENDING, RETAINED, "states of what waits")
    require(rows.rewritten, 0, 2**16, "times it was written")
    return rows


def pack_times(
    timestamp_ms: NDArray[np.int64], from_ms: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split own times into whether there is one (0 or 1), and how far after `from_ms` it is."""
    timed = timestamp_ms != NO_TIME
    return timed.astype(np.int64), np.where(timed, timestamp_ms - np.where(timed, from_ms, 0), 0)


def unpack_times(timed: Column, offset_ms: Column, from_ms: Column) -> NDArray[np.int64]:
    """Join own times from the parts that `pack_times` gave; `NO_TIME` where there is none."""
    return np.where(timed != 0, from_ms + offset_ms, NO_TIME).astype(np.int64)


def pack_dedup(entries: EntryColumns) -> bytes:
    """Pack dedup entries of one generation."""
    return pack_table(entries.table[_OF_DEDUP], (0, 1))


def unpack_dedup(value: bytes) -> DedupRows:
    """Unpack the result of `pack_dedup`.

    Raises
    ------
    PackedError
        If it cannot be such a result.
    """
    low, high, *rest = unpack_columns(value, len(DedupRows._fields))
    rows = DedupRows(*_digests(low, high), *map(signed, rest))
    require(rows.state, RESOLVED, OVER_LIMIT, "states of dedup entries")
    return rows


def pack_obsolete(dead: NDArray[np.int64], matched: NDArray[np.int64]) -> bytes:
    """Pack runs of positions of entries that no longer wait, and of labels that were matched."""
    packed = pack_table(dead)
    return _SIZE.pack(len(packed)) + packed + pack_table(matched)


@entry
def find_runs(marks: Any, begin: int, base: int, runs: Any) -> int:
    """Write what `runs_of_positions` returns; return the number of runs."""
    count = 0
    end = newest = np.int64(0)
    for word in range(begin >> 6, marks.shape[0]):
        bits = marks[word]
        if word == begin >> 6:
            bits = bits >> np.uint64(begin & 63) << np.uint64(begin & 63)
        while bits:
            position = base + 64 * word + trailing_zeros(bits)
            bits &= bits - np.uint64(1)
            if count and position == end:
                runs[1, count - 1] += 1
            else:
                runs[0, count] = position - newest
                runs[1, count] = 1
                newest = position
                count += 1
            end = position + 1
    return count


def runs_of_positions(marks: NDArray[np.uint64], base: int, first: int, most: int) -> NDArray[np.int64]:
    """Find runs of successive positions.

    Parameters
    ----------
    marks
        A bit for each position from `base` on.
    base, first
        Position of the first bit, and the position before which none counts.
    most
        Number of marked positions, or more.

    Returns
    -------
    runs
        How far each run begins after the one before (the first: after 0), and its length; (2, runs).
    """
    runs = np.empty((2, most), np.int64)
    return np.ascontiguousarray(runs[:, : find_runs(marks, max(first - base, 0), base, runs)])


def unpack_obsolete(value: bytes) -> ObsoletePositions:
    """Unpack the result of `pack_obsolete`.

    Raises
    ------
    PackedError
        If it cannot be such a result.
    """
    if len(value) < _SIZE.size:
        raise PackedError(f"expected two lists of positions, got {len(value)} bytes")
    end = _SIZE.size + _SIZE.unpack_from(value)[0]
    found = ObsoletePositions(_unpacked_runs(value[_SIZE.size : end]), _unpacked_runs(value[end:]))
    if found.newest < 0:
        raise PackedError("expected positions of changed entries, got none")
    return found


def _unpacked_runs(value: bytes) -> PositionRuns:
    steps, counts = map(signed, unpack_columns(value, 2))
    first = np.cumsum(steps)
    require(first, 0, MOST_POSITIONS - 1, "positions")
    require(counts, 1, MOST_ROWS, "lengths of runs of positions")
    require(np.cumsum(counts), 1, MOST_ROWS, "numbers of positions")
    if (steps[1:] < counts[:-1]).any():
        raise PackedError("expected ascending positions, got runs that overlap")
    return PositionRuns(first, counts)


def _digests(low: Column, high: Column) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    if low.dtype != np.uint64 or high.dtype != np.uint64:
        raise PackedError("expected digests in the first two columns, got small numbers")
    return low.astype(np.uint64, copy=False), high.astype(np.uint64, copy=False)


# Keys of the compiled join in a store: a letter for the kind, then big-endian numbers, so that they sort.


CHANGED: Final = b"r"
"""Predictions that changed since they were written, by commit."""
CLASS: Final = b"c"
"""Name of a class, by number."""
DEDUP: Final = b"d"
"""Dedup entries, by generation and a running number."""
OBSOLETE: Final = b"l"
"""Positions of entries that no longer wait, and of labels that were matched, by commit."""
HELD: Final = b"h"
"""Run of outcomes held for the order of predictions, by its number."""
HELD_SCORES: Final = b"i"
"""Their scores, by the number of the run."""
HELD_PAIRS: Final = b"j"
"""Their pairs, by the number of the run."""
MODEL: Final = b"m"
"""Name of a model, by number."""
OUTSIDE: Final = b"o"
"""Counts of entries outside the table; a single value."""
SCORES: Final = b"s"
"""Scores of pending predictions, by the position of the first entry of their run."""
SEGMENTS: Final = b"g"
"""Values of segments, by number."""
SIDE: Final = b"x"
"""Side columns of waiting entries, by the position of the first entry of their run."""
TOPIC: Final = b"t"
"""Name of a topic, by number."""
WAITING: Final = b"w"
"""Run of waiting entries, by the position of its first."""

_OF_HELD: Final = {HELD, HELD_SCORES, HELD_PAIRS}
_OF_SIDE: Final = {CHANGED, SIDE}
_NUMBERED: Final = {CLASS, MODEL, OBSOLETE, OUTSIDE, SCORES, SEGMENTS, TOPIC, WAITING, *_OF_HELD, *_OF_SIDE}
_ONE: Final = Struct(">cQ")
_TWO: Final = Struct(">cQQ")


class ColumnKey(NamedTuple):
    """Parts of a key."""

    kind: bytes
    first: int
    second: int = 0


def key_of(kind: bytes, first: int, second: int | None = None) -> bytes:
    """Build the key of a value; only keys of dedup entries have a second number."""
    return _ONE.pack(kind, first) if second is None else _TWO.pack(kind, first, second)


def parts_of(key: bytes) -> ColumnKey:
    """Split a key into its parts.

    Raises
    ------
    PackedError
        If it is not a key of these kinds.
    """
    kind = key[:1]
    if kind == DEDUP and len(key) == _TWO.size:
        return ColumnKey(*_TWO.unpack(key))
    if kind in _NUMBERED and len(key) == _ONE.size:
        return ColumnKey(*_ONE.unpack(key))
    raise PackedError(f"expected the key of a kind of entries and numbers, got {key.hex()}")


def has_names(names: NumberedNames, numbers: NDArray[np.int32] | NDArray[np.int64]) -> bool:
    """Return whether every number has a name; negative ones are ignored."""
    return set(names.values()).issuperset(np.unique(numbers[numbers >= 0]).tolist())
