"""Pieces that readers send to id buckets: packed events, and counts of records by time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.durable.columns import PackedError, pack_columns, unpack_columns
from streamwatch.core.records.batch import OBJECT, Records, taken
from streamwatch.core.records.events import (
    CARRIED,
    Event,
    Invalid,
    Label,
    Name,
    NullRecord,
    Partition,
    Prediction,
    WrongFold,
    carried_by,
    carried_fields,
)

# Events that do not fit into columns, as readers send them to id buckets.


PREDICTION: Final = 0
LABEL: Final = 1
NULL: Final = 2
WRONG_FOLD: Final = 3
INVALID: Final = 4


class Row(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """Event of a record; a skipped record has none."""

    time_ms: int
    """Running maximum of the timestamps from the first record of the piece on; -1 before one is believed."""
    offset: int
    event: int
    """Number of the event within its record."""
    kind: int
    id: str | None = None
    model: str | None = None
    name: str = ""
    """Class, or reason why the record is invalid."""
    timestamp_ms: int | None = None
    scores: dict[str, float] | None = None
    segments: dict[str, str] | None = None
    withdraws: bool = False
    carried: tuple[int, ...] = (0,) * len(CARRIED)
    """Numbers of `core.records.events.CARRIED`."""

    def event_at(self, partition: Partition, record_ms: int) -> Event:
        """Build the event, with `record_ms` as its record time."""
        if self.kind == PREDICTION:
            return Prediction(
                self.id or "",
                self.model or "",
                self.name,
                record_ms,
                self.timestamp_ms,
                self.scores,
                self.segments,
                partition.topic,
                *carried_fields(self.carried),
            )
        if self.kind == LABEL:
            return Label(self.id or "", self.name, record_ms, self.model, self.timestamp_ms, partition.topic)
        if self.kind == NULL:
            return NullRecord(partition.topic, self.id, self.model, record_ms, self.withdraws)
        if self.kind == WRONG_FOLD:
            return WrongFold(record_ms)
        return Invalid(partition.topic, partition.partition, self.offset, self.name, record_ms, self.model)


def row_of(found: Event, time_ms: int, offset: int, event: int) -> Row | None:
    """Build the row of an event; None for a skipped record."""
    if isinstance(found, Prediction):
        return Row(
            time_ms,
            offset,
            event,
            PREDICTION,
            found.id,
            found.model,
            found.predicted_class,
            found.timestamp_ms,
            found.scores,
            found.segments,
            carried=carried_by(found),
        )
    if isinstance(found, Label):
        return Row(time_ms, offset, event, LABEL, found.id, found.model, found.true_class, found.timestamp_ms)
    if isinstance(found, NullRecord):
        return Row(time_ms, offset, event, NULL, found.id, found.model, withdraws=found.withdraws)
    if isinstance(found, WrongFold):
        return Row(time_ms, offset, event, WRONG_FOLD)
    if isinstance(found, Invalid):
        return Row(time_ms, offset, event, INVALID, None, found.model, found.reason)
    return None


ARRIVED: Final = np.dtype(
    [
        ("low", np.uint64),
        ("high", np.uint64),
        ("time_ms", np.int64),
        ("timestamp_ms", np.int64),
        ("offset", np.int64),
        ("event", np.int32),
        ("model", np.int32),
        ("class", np.int32),
        ("segments", np.int32),
        ("side", np.int32),
        ("object", np.int32),
    ],
    align=True,
)
"""Event of a record; -1 stands for none.

`time_ms`: running maximum in its partition. `event`: number of the event within its record. `model`, `class`,
`segments`: indices in the lists of the chunk. `side`: as in `records`. If it is `OBJECT`, `object` is the
index in the chunk's objects, and of the other fields only `time_ms`, `offset` and `event` are used.
"""

_NAMED: Final = ("model", "class", "segments")
_COLUMNS: Final = tuple(ARRIVED.names or ())

MOMENT: Final = ("time_ms", "records", "timed", "events", "skipped", "tied")
"""Columns of counts of the records of one partition that have one time.

`timed`: those that could be decoded, which can therefore be out of order. `skipped`: those from which no
mapping makes an event. `tied`: predictions whose class was one of several with the largest score.
"""


@dataclass(frozen=True, slots=True)
class Moments:
    """Counts of records of one partition by time: int64 columns in the order of `MOMENT`, shape (n, 6)."""

    columns: NDArray[np.int64]
    corrected: Sequence[tuple[int, str, int]] = ()
    """Time, reason and number of timestamps that were not believed."""

    @property
    def times_ms(self) -> NDArray[np.int64]:
        """Times, not decreasing."""
        return self.columns[:, 0]


NO_MOMENTS: Final = Moments(np.zeros((0, len(MOMENT)), np.int64))


@dataclass(frozen=True, slots=True)
class Chunk:
    """Events of one partition in the order of its log."""

    rows: Records
    """Dtype `ARRIVED`, shape (n,)."""
    models: Sequence[str]
    """Names of models by number; `classes` and `segments` likewise."""
    classes: Sequence[str]
    segments: Sequence[str]
    """Texts of segment values (`core.records.events.segments_text`)."""
    objects: Sequence[Row]

    def part(self, start: int, stop: int) -> Chunk:
        """Events from `start` up to `stop`, without a copy."""
        return Chunk(self.rows[start:stop], self.models, self.classes, self.segments, self.objects)

    def only(self, chosen: NDArray[np.intp]) -> Chunk:
        """Copy the chosen events, with their objects."""
        rows = taken(self.rows, chosen)
        at = np.flatnonzero(rows["side"] == OBJECT)
        objects = [self.objects[number] for number in rows["object"][at].tolist()]
        rows["object"][at] = np.arange(len(at))
        return Chunk(rows, self.models, self.classes, self.segments, objects)


class PackedChunk(msgspec.Struct, array_like=True, frozen=True):
    """Chunk as bytes."""

    columns: bytes
    models: Sequence[Name]
    classes: Sequence[Name]
    segments: Sequence[Name]
    objects: Sequence[Row]

    def unpacked(self) -> Chunk:
        """Unpack the chunk; raises PackedError if a number has no name or object."""
        columns = unpack_columns(self.columns, len(_COLUMNS))
        rows = np.zeros(len(columns[0]), ARRIVED)
        for name, column in zip(_COLUMNS, columns, strict=True):
            rows[name] = column
        named = (self.models, self.classes, self.segments, self.objects)
        for name, values in zip((*_NAMED, "object"), named, strict=True):
            if len(rows) and not -1 <= int(rows[name].min()) <= int(rows[name].max()) < len(values):
                raise PackedError(
                    f"expected numbers of {len(values)} as {name}, "
                    f"got {rows[name].min()} to {rows[name].max()}"
                )
        return Chunk(rows, self.models, self.classes, self.segments, self.objects)


def pack_chunk(chunk: Chunk) -> PackedChunk:
    """Pack a chunk."""
    columns = [
        chunk.rows[name] if chunk.rows[name].dtype == np.uint64 else chunk.rows[name].astype(np.int64)
        for name in _COLUMNS
    ]
    return PackedChunk(pack_columns(columns), chunk.models, chunk.classes, chunk.segments, chunk.objects)


class PackedMoments(msgspec.Struct, array_like=True, frozen=True):
    """Counts of records by time, as bytes."""

    columns: bytes
    corrected: Sequence[tuple[int, Name, int]]

    def unpacked(self) -> Moments:
        """Unpack the counts."""
        columns = unpack_columns(self.columns, len(MOMENT))
        return Moments(np.stack([column.astype(np.int64) for column in columns], axis=1), self.corrected)


def pack_moments(moments: Moments) -> PackedMoments:
    """Pack counts of records by time."""
    return PackedMoments(pack_columns(list(moments.columns.T)), moments.corrected)


class ColumnPiece(msgspec.Struct, array_like=True, frozen=True, tag="columns"):
    """Share of one id bucket in the records of one range of one partition."""

    bucket: int
    topic: Name
    partition: int
    first_offset: int
    newest_ms: int
    """Running maximum at the end of the range; -1 if no timestamp was believed."""
    chunk: PackedChunk
    moments: PackedMoments
    """Counts of all records of the range, in one bucket's piece; empty in the others."""


ENCODER: Final = msgspec.msgpack.Encoder()
PIECES: Final = msgspec.msgpack.Decoder(ColumnPiece)


# Translation of indices in a list of names into other numbers of the same names.


class NumberOfName(Protocol):
    """Mapping of names to numbers, which may assign one at the first look-up."""

    def __getitem__(self, name: str, /) -> int:
        """Return the number of a name."""
        ...


def renumbered(column: NDArray[np.int32], names: Sequence[str], numbers: NumberOfName) -> NDArray[np.int32]:
    """Translate a column of indices in `names` into the numbers of these names; -1 stays -1.

    Numbers are looked up in the order of `names`, and only of names that occur.
    """
    here = np.full(len(names) + 1, -1, np.int32)
    for number in np.flatnonzero(np.bincount(column + 1, minlength=1)[1:]).tolist():
        here[number] = numbers[names[number]]
    return here[column]


# Numbers of the names in one piece or part, in order of first occurrence.


class NameNumbers:
    """Assigns numbers to names, from 0 on, in order of first use."""

    def __init__(self) -> None:
        self.by_name: dict[str, int] = {}

    def __getitem__(self, name: str) -> int:
        return self.by_name.setdefault(name, len(self.by_name))

    def of(self, column: NDArray[np.int32], names: Sequence[str]) -> NDArray[np.int32]:
        """Translate a column of indices in `names` into numbers of this object; -1 stays -1."""
        return renumbered(column, names, self)
