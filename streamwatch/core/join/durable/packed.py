"""Packing of integer columns into bytes: a commit writes one value for thousands of entries.

    version, columns, rows          1, 1, 4 bytes
    base, width                     9 bytes a column
    data                            width × rows bytes a column

Each column is stored as differences from its smallest value, in as few bytes as the largest difference needs;
none if all are equal. All numbers are little-endian. Halves of digests (uint64) are stored as they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from struct import Struct
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import CARRIED
from streamwatch.core.join.cold.overflow import OutsideCounts, Overflow
from streamwatch.core.join.counters import EARLY, OVER_LIMIT, PENDING, RESOLVED, RETAINED, UNMATCHED
from streamwatch.core.join.durable.totals import JoinTotals
from streamwatch.core.join.layout import NO_TIME, Records
from streamwatch.core.join.names import JoinNames, NumberedNames
from streamwatch.core.records import MOST_TOPICS
from streamwatch.core.scores import ScoreLists

VERSION: Final = 1
MOST_ROWS: Final = 2**28
"""Largest number of rows of one value."""
_HEAD: Final = Struct("<BBI")
_COLUMN: Final = Struct("<qB")
_WAITING_COLUMNS: Final = 10
"""Number of columns of entries without segments and topics."""
_MORE_COLUMNS: Final = 2
_AS_IT_IS: Final = 9
"""Width that marks a column of uint64."""
_TYPES: Final[Mapping[int, str]] = MappingProxyType(
    {1: "<u1", 2: "<u2", 4: "<u4", 8: "<u8", _AS_IT_IS: "<u8"}
)

Column = NDArray[np.int64] | NDArray[np.uint64]


class PackedError(ValueError):
    """Raised if a packed value is not what a commit writes."""


@contextmanager
def reading(what: str) -> Generator[None]:
    """Name the part of a state that cannot be decoded in the block; raises PackedError."""
    try:
        yield
    except (msgspec.DecodeError, UnicodeDecodeError, PackedError) as error:
        raise PackedError(f"{what} cannot be read: {error}") from error


def carried_in(columns: Sequence[Column]) -> NDArray[np.int64]:
    """Join stored columns of `core.events.CARRIED`, (n,) each; raises PackedError for an invalid number."""
    for number, column in zip(CARRIED, columns, strict=True):
        if not number.is_valid(column):
            raise PackedError(f"expected {number.meaning}, got others")
    return np.stack([column.astype(np.int64) for column in columns], axis=1)


class WaitingRows(NamedTuple):
    """Waiting entries as columns of equal length; -1 stands for no name."""

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    record_ms: NDArray[np.int64]
    timestamp_ms: NDArray[np.int64]
    """`NO_TIME` without a time."""
    model: NDArray[np.int64]
    named: NDArray[np.int64]
    """Predicted class of a prediction, true class of a label."""
    label_at_prediction: NDArray[np.int64]
    state: NDArray[np.int64]
    rewritten: NDArray[np.int64]
    """Number of times the entry was written before."""
    segments: NDArray[np.int64]
    """Number of the segments; -1 without any."""
    topic: NDArray[np.int64]
    """Number of the topic; 0 without one."""


class DedupRows(NamedTuple):
    """Dedup entries of one generation: what is stored of `ENTRY`, as columns of equal length."""

    low: NDArray[np.uint64]
    high: NDArray[np.uint64]
    model: NDArray[np.int64]
    predicted_class: NDArray[np.int64]
    true_or_scores: NDArray[np.int64]
    """True class; -1 without a label."""
    state: NDArray[np.int64]


class ObsoletePlaces(NamedTuple):
    """Places of entries that changed since they were written."""

    dead: NDArray[np.int64]
    """Places of entries that no longer wait, ascending."""
    matched: NDArray[np.int64]
    """Places of labels that were matched and still wait for those of further models, ascending."""


def pack_columns(columns: Sequence[Column]) -> bytes:
    """Pack columns of equal length, int64 or uint64."""
    parts = [_HEAD.pack(VERSION, len(columns), len(columns[0]))]
    data: list[bytes] = []
    for column in columns:
        base, width, written = _narrowed(column)
        parts.append(_COLUMN.pack(base, width))
        data.append(written)
    return b"".join(parts + data)


def _narrowed(column: Column) -> tuple[int, int, bytes]:
    if column.dtype == np.uint64:
        return 0, _AS_IT_IS, column.astype("<u8", copy=False).tobytes()
    if not len(column):
        return 0, 0, b""
    base, most = int(column.min()), int(column.max())
    span = most - base
    width = 0 if span == 0 else next(width for width in (1, 2, 4, 8) if span < 1 << 8 * width)
    if width == 0:
        return base, 0, b""
    return base, width, (column - base).astype(_TYPES[width]).tobytes()


def unpack_columns(value: bytes, count: int) -> list[Column]:
    """Unpack `count` columns.

    Raises
    ------
    PackedError
        If version, number of columns, a width or the length is wrong.
    """
    if len(value) < _HEAD.size:
        raise PackedError(f"expected at least {_HEAD.size} bytes, got {len(value)}")
    version, columns, rows = _HEAD.unpack_from(value)
    if rows > MOST_ROWS:
        raise PackedError(f"expected at most {MOST_ROWS} rows, got {rows}")
    if version != VERSION or columns != count:
        raise PackedError(f"expected version {VERSION} and {count} columns, got {version} and {columns}")
    start = _HEAD.size + _COLUMN.size * count
    if len(value) < start:
        raise PackedError(f"expected at least {start} bytes, got {len(value)}")
    found: list[Column] = []
    at = start
    for number in range(count):
        base, width = _COLUMN.unpack_from(value, _HEAD.size + _COLUMN.size * number)
        if width == 0:
            found.append(np.full(rows, base, np.int64))
            continue
        if width not in _TYPES:
            raise PackedError(
                f"expected a width of 1, 2, 4, 8 or {_AS_IT_IS}, got {width} of column {number}"
            )
        size = min(width, 8) * rows
        if len(value) < at + size:
            raise PackedError(f"expected {rows} rows, got {len(value)} bytes that end in column {number}")
        raw = np.frombuffer(value, _TYPES[width], rows, at)
        found.append(raw.astype(np.uint64) if width == _AS_IT_IS else raw.astype(np.int64) + base)
        at += size
    if at != len(value):
        raise PackedError(f"expected {at} bytes, got {len(value)}")
    return found


def pack_waiting(
    entries: Records, rewritten: NDArray[np.int64], segments: NDArray[np.int64] | None = None
) -> bytes:
    """Pack waiting entries (`ENTRY`), and how often each was written before; scores are stored separately.

    `segments` holds the numbers of their segments, -1 without any; None, which takes no room, if no entry has
    any. Topics take no room if no entry has one.
    """
    topics = entries["topic"].astype(np.int64)
    has_topics = bool(topics.any())
    if has_topics and segments is None:
        segments = np.full(len(entries), -1, np.int64)
    pending = entries["state"] == PENDING
    record_ms = entries["record_ms"]
    named = np.where(pending, entries["predicted_class"], entries["true_or_scores"])
    return pack_columns(
        (
            entries["low"],
            entries["high"],
            record_ms,
            *pack_times(entries["timestamp_ms"], record_ms),
            entries["model"].astype(np.int64),
            named.astype(np.int64),
            entries["label_at_prediction"].astype(np.int64),
            entries["state"].astype(np.int64),
            rewritten,
            *(() if segments is None else (segments,)),
            *((topics,) if has_topics else ()),
        )
    )


def unpack_waiting(value: bytes) -> WaitingRows:
    """Unpack the result of `pack_waiting`.

    Raises
    ------
    PackedError
        If it cannot be such a result.
    """
    more = value[1] - _WAITING_COLUMNS if len(value) > 1 else 0
    if not 0 <= more <= _MORE_COLUMNS:
        more = 0
    low, high, record_ms, timed, offset_ms, *rest = unpack_columns(value, _WAITING_COLUMNS + more)
    own_ms = unpack_times(timed, offset_ms, record_ms)
    columns = [_signed(column) for column in rest]
    columns += [np.full(len(low), nothing, np.int64) for nothing in (-1, 0)[more:]]
    rows = WaitingRows(*_digests(low, high), _signed(record_ms), own_ms, *columns)
    _require(rows.segments, -1, 2**30, "numbers of segments")
    _require(rows.topic, 0, MOST_TOPICS - 1, "numbers of topics")
    _require(rows.state, PENDING, RETAINED, "states of what waits")
    _require(rows.rewritten, 0, 2**16, "times it was written")
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


def pack_dedup(entries: Records) -> bytes:
    """Pack dedup entries (`ENTRY`) of one generation."""
    low, high, *numbers = DedupRows._fields
    return pack_columns((entries[low], entries[high], *(entries[name].astype(np.int64) for name in numbers)))


def unpack_dedup(value: bytes) -> DedupRows:
    """Unpack the result of `pack_dedup`.

    Raises
    ------
    PackedError
        If it cannot be such a result.
    """
    low, high, *rest = unpack_columns(value, len(DedupRows._fields))
    rows = DedupRows(*_digests(low, high), *map(_signed, rest))
    _require(rows.state, RESOLVED, OVER_LIMIT, "states of dedup entries")
    return rows


def pack_obsolete(obsolete: ObsoletePlaces) -> bytes:
    """Pack places of entries that no longer wait, and of labels that were matched."""
    columns = [np.diff(places, prepend=np.int64(0)) for places in obsolete]
    return b"".join(_HEAD.pack(VERSION, 1, len(part := pack_columns((each,)))) + part for each in columns)


def unpack_obsolete(value: bytes) -> ObsoletePlaces:
    """Unpack the result of `pack_obsolete`.

    Raises
    ------
    PackedError
        If it cannot be such a result.
    """
    places: list[NDArray[np.int64]] = []
    at = 0
    for _ in range(2):
        if len(value) < at + _HEAD.size:
            raise PackedError(f"expected two lists of places, got {len(value)} bytes")
        _, _, size = _HEAD.unpack_from(value, at)
        at += _HEAD.size
        (steps,) = unpack_columns(value[at : at + size], 1)
        found = np.cumsum(_signed(steps))
        _require(found, 0, 2**62, "places")
        places.append(found)
        at += size
    if at != len(value):
        raise PackedError(f"expected {at} bytes of places, got {len(value)}")
    return ObsoletePlaces(*places)


class PackedScores(msgspec.Struct, array_like=True, frozen=True):
    """Scores of some of n rows as bytes; classes are numbers."""

    rows: bytes
    """Packed columns: steps between positions of the rows with scores, and how many scores each has."""
    scores: bytes
    """Packed columns: number of the class, and the value, by its bits."""


_SCORES_ENCODER: Final = msgspec.msgpack.Encoder()
_SCORES_DECODER: Final = msgspec.msgpack.Decoder(PackedScores)


def pack_scores(scored: NDArray[np.int64], scores: ScoreLists) -> bytes:
    """Pack the scores of rows at these positions, ascending, without what is beside them; empty for none."""
    if not len(scored):
        return b""
    rows = pack_columns((np.diff(scored, prepend=np.int64(0)), np.diff(scores.ends, prepend=np.int64(0))))
    values = np.ascontiguousarray(scores.values).view(np.uint64)
    packed = PackedScores(rows, pack_columns((scores.classes.astype(np.int64), values)))
    return _SCORES_ENCODER.encode(packed)


def unpack_scores(value: bytes, rows: int) -> tuple[NDArray[np.int64], ScoreLists]:
    """Unpack a result of `pack_scores` that is not empty, with -1 beside every row's scores.

    Raises
    ------
    PackedError
        If it cannot be such a result of this many rows.
    """
    try:
        packed = _SCORES_DECODER.decode(value)
    except msgspec.DecodeError as error:
        raise PackedError(f"expected packed scores: {error}") from error
    steps, sizes = map(_signed, unpack_columns(packed.rows, 2))
    numbered, values = unpack_columns(packed.scores, 2)
    classes, scored = _signed(numbered), np.cumsum(steps)
    _require(classes, 0, 2**31 - 1, "numbers of classes")
    _require(sizes, 0, MOST_ROWS, "numbers of scores")
    if values.dtype != np.uint64 or int(sizes.sum()) != len(values):
        raise PackedError(f"expected {sizes.sum()} scores by their bits, got {len(values)}")
    if (
        not len(steps)
        or int(steps[1:].min(initial=1)) < 1
        or not 0 <= int(scored[0]) <= int(scored[-1]) < rows
    ):
        raise PackedError(f"expected scores of {rows} rows, in their order")
    beside = np.full(len(scored), -1, np.int32)
    return scored, ScoreLists(np.cumsum(sizes), classes.astype(np.int32), values.view(np.float64), beside)


def _digests(low: Column, high: Column) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    if low.dtype != np.uint64 or high.dtype != np.uint64:
        raise PackedError("expected digests in the first two columns, got small numbers")
    return low.astype(np.uint64, copy=False), high.astype(np.uint64, copy=False)


def _signed(column: Column) -> NDArray[np.int64]:
    if column.dtype != np.int64:
        raise PackedError("expected small numbers, got digests")
    return column.astype(np.int64, copy=False)


def _require(column: NDArray[np.int64], least: int, most: int, what: str) -> None:
    if len(column) and not (least <= int(column.min()) and int(column.max()) <= most):
        raise PackedError(f"expected {what} from {least} to {most}, got {column.min()} to {column.max()}")


# Keys of the compiled join in a store: a letter for the kind, then big-endian numbers, so that they sort.


CHANGED: Final = b"r"
"""Predictions that changed since they were written, by commit."""
CLASS: Final = b"c"
"""Name of a class, by number."""
DEDUP: Final = b"d"
"""Dedup entries, by generation and a running number."""
OBSOLETE: Final = b"l"
"""Places of changed entries, by commit."""
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
"""Scores of pending predictions, by the place of the first entry of their run."""
SEGMENTS: Final = b"g"
"""Values of segments, by number."""
SIDE: Final = b"x"
"""Side columns of waiting entries, by the place of the first entry of their run."""
TOPIC: Final = b"t"
"""Name of a topic, by number."""
WAITING: Final = b"w"
"""Run of waiting entries, by the place of its first."""

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


# Validation of values that are read back: raises for what commits cannot have written.


def has_names(names: NumberedNames, numbers: NDArray[np.int32] | NDArray[np.int64]) -> bool:
    """Tell whether every number has a name; negative ones are ignored."""
    return set(names.values()).issuperset(np.unique(numbers[numbers >= 0]).tolist())


def check_outside(names: JoinNames, overflow: Overflow) -> None:
    """Raise PackedError if entries outside the table use numbers without a name."""
    for named, used in (
        (names.models, overflow.contents.cold.models()),
        (names.classes, overflow.contents.cold.classes()),
        (names.segments, overflow.contents.cold.segments()),
    ):
        for numbers in used:
            if not has_names(named, numbers):
                raise PackedError("expected numbers of names in the runs of cold entries, got one released")


def check_names(names: JoinNames, entries: NDArray[np.void]) -> None:
    """Raise PackedError if entries use numbers without a name."""
    pending = entries["state"] == PENDING
    for each, columns in (
        (names.models, (entries["model"],)),
        (
            names.classes,
            (entries["predicted_class"], entries["true_or_scores"], entries["label_at_prediction"]),
        ),
    ):
        named = np.zeros(len(each.names) + 1, np.bool_)
        named[list(each.values())] = True
        named[-1] = True  # for -1, which means no name
        for column in columns:
            if len(column) and not (int(column.min()) >= -1 and int(column.max()) < len(each.names)):
                raise PackedError(f"expected numbers of {len(each.names)} names, got {column.max()}")
            if not named[column].all():
                raise PackedError("expected numbers of names, got one that was released")
    if len(entries) and int(entries["topic"].max()) >= len(names.topics.names):
        raise PackedError(
            f"expected numbers of {len(names.topics.names)} topics, got {entries['topic'].max()}"
        )
    if (entries["model"][pending] < 0).any():
        raise PackedError("expected the model of every prediction, got none of one")


def check_counts(
    states: NDArray[np.int16],
    ends: dict[int, tuple[int, int]],
    totals: JoinTotals,
    outside: OutsideCounts,
    cold: tuple[int, ...],
) -> None:
    """Raise PackedError if the numbers of entries, with those outside the table, differ from the totals."""
    pending = sum(model.pending for model in totals.join_models.models)
    unmatched, retained = int((states == UNMATCHED).sum()), int((states == RETAINED).sum())
    expected = (pending, totals.early, totals.unmatched, totals.retained)
    found = (
        int((states == PENDING).sum()) + cold[0],
        int((states == EARLY).sum()) + cold[1],
        unmatched + outside.unmatched,
        unmatched + retained + cold[2],
    )
    if expected != found:
        raise PackedError(f"expected {expected} predictions and labels of each kind that wait, got {found}")
    dedup = {each.number: each.count for each in (*totals.dedup.closed, totals.dedup.opened) if each.count}
    written = Counter({generation: end - first for generation, (first, end) in ends.items() if end > first})
    written.update(outside.settled)
    if dedup != written:
        raise PackedError(f"expected dedup entries {dedup} by generation, got {written}")


# Numbers that grow within each of several groups, as differences from the one before in the same group.


_RADIX: Final = 2**16
"""Number of groups below which numpy sorts by their bytes."""


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
    order, begins = _by_group(groups)
    ordered = values[order].astype(np.int64)
    between = np.diff(ordered, prepend=np.int64(0))
    between[begins] = 0
    steps = np.empty(len(groups), np.int64)
    steps[order] = between
    return ordered[begins], steps


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
    """Positions ordered by group, and a mask, in that order, of each group's first one."""
    few = int(groups.max(initial=-1)) < _RADIX
    order = np.argsort(groups.astype(np.uint16) if few else groups, kind="stable")
    own = groups[order]
    begins = np.ones(len(own), np.bool_)
    begins[1:] = own[1:] != own[:-1]
    return order, begins
