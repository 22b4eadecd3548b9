"""Pieces that readers send to id buckets in columns: packed events, and counts of records by time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.buckets.pieces import Row
from streamwatch.core.join.compiled.durable.packed import PackedError, pack_columns, unpack_columns
from streamwatch.core.records import OBJECT
from streamwatch.core.words import Records, taken

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
`segments`: indices in the lists of the chunk. `side`: as in `records`; for an `OBJECT`, `object` is the index
in the chunk's objects, and of the rest only time, offset and event are used.
"""

_NAMED: Final = ("model", "class", "segments")
_COLUMNS: Final = tuple(ARRIVED.names or ())

MOMENT: Final = ("time_ms", "records", "timed", "events", "skipped", "tied")
"""Columns of counts by time; see `pieces.Moment`."""


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
    classes: Sequence[str]
    segments: Sequence[str]
    """Names by number; here texts of segment values."""
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
    models: Sequence[str]
    classes: Sequence[str]
    segments: Sequence[str]
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
                raise PackedError(f"expected numbers of {len(values)} as {name}, got {rows[name].max()}")
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
    corrected: Sequence[tuple[int, str, int]]

    def unpacked(self) -> Moments:
        """Unpack the counts."""
        columns = unpack_columns(self.columns, len(MOMENT))
        return Moments(np.stack([column.astype(np.int64) for column in columns], axis=1), self.corrected)


def pack_moments(moments: Moments) -> PackedMoments:
    """Pack counts of records by time."""
    return PackedMoments(pack_columns(list(moments.columns.T)), moments.corrected)


class ColumnPiece(msgspec.Struct, array_like=True, frozen=True, tag="columns"):
    """Share of one id bucket in the records of one range of one partition; see `pieces.Piece`."""

    bucket: int
    topic: str
    partition: int
    first_offset: int
    newest_ms: int
    chunk: PackedChunk
    moments: PackedMoments


ENCODER: Final = msgspec.msgpack.Encoder()
PIECES: Final = msgspec.msgpack.Decoder(ColumnPiece)
