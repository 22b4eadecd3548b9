"""Stages of the job: pass rows from Spark to the object of their bucket, and log its changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, NamedTuple, Protocol, cast

import msgspec
from pyspark.sql import Row as SparkRow
from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle

from streamwatch.core.buckets.contract import Bucket, FeedResult
from streamwatch.spark.delta_log import (
    HEAD_SCHEMA,
    KEY_SCHEMA,
    LEAST_REBASE_BYTES,
    VALUE_SCHEMA,
    CachedObject,
    DeltaLog,
    Entries,
    Head,
    KeptObjects,
)
from streamwatch.spark.holders import freeze_once

# Rows between the stages of the job, and their order.
#
# Spark delivers the rows of a key in any order. Rows have an origin and a part, by which they are sorted, so
# that a bucket is fed the same sequence at every attempt.


SCHEMA: Final = (
    "bucket int, batch long, end_ms long, origin int, part int, kind string, name string, body binary"
)
"""Schema of the input rows of each stage. A row with a `kind` is a result for the sink, any other a piece."""
RESULT_SCHEMA: Final = "batch long, results binary"
"""Schema of the input rows of the sink; each has many results, as a batch has one for every model."""
_RESULTS_BYTES: Final = 4_000_000
"""Number of bytes of results from which a new row is begun."""


class Row(NamedTuple):
    """A row of `SCHEMA`."""

    bucket: int
    batch: int
    end_ms: int
    origin: int
    """Number of the source partition, or of the id bucket, that sent the row."""
    part: int
    """Number among the rows from one origin to one bucket."""
    kind: str | None
    name: str | None
    body: bytes


class ResultRow(NamedTuple):
    """Result sent to the sink."""

    batch: int
    kind: str
    name: str
    body: bytes


class PackedResults(NamedTuple):
    """A row of `RESULT_SCHEMA`."""

    batch: int
    results: bytes

    def unpacked(self) -> list[ResultRow]:
        """Return the results of the row, in order."""
        return [ResultRow(self.batch, *result) for result in _RESULTS.decode(self.results)]


_RESULTS: Final = msgspec.msgpack.Decoder(list[tuple[str, str, bytes]])


def packed_results(batch: int, results: Iterable[tuple[str, str, bytes]]) -> Iterator[PackedResults]:
    """Pack results (kind, name and body) of a batch into rows of some megabytes, in order."""
    some: list[tuple[str, str, bytes]] = []
    size = 0
    for result in results:
        some.append(result)
        size += len(result[2])
        if size >= _RESULTS_BYTES:
            yield PackedResults(batch, msgspec.msgpack.encode(some))
            some, size = [], 0
    if some:
        yield PackedResults(batch, msgspec.msgpack.encode(some))


@dataclass(slots=True)
class Arrived:
    """Rows of one bucket in one batch."""

    batch: int = -1
    end_ms: int = -1
    pieces: Sequence[bytes] = ()
    """Pieces, in the order of their origins."""
    results: Sequence[ResultRow] = field(default_factory=list[ResultRow])
    """Results of the source and of the previous stage, to pass on."""


def arrived(rows: Iterable[Any]) -> Arrived:
    """Sort the rows of a bucket, which Spark delivers in any order, by origin and part.

    Raises
    ------
    ValueError
        If rows are of several batches; each batch of Spark must have rows of one.
    """
    found = Arrived()
    pieces: list[tuple[int, int, bytes]] = []
    results: list[tuple[int, int, ResultRow]] = []
    for came in rows:
        row = Row(*(came[name] for name in Row._fields))
        if found.batch not in {-1, row.batch}:
            raise ValueError(f"rows of a bucket must be of one batch, got {found.batch} and {row.batch}")
        found.batch = row.batch
        found.end_ms = row.end_ms
        body = bytes(row.body)
        if row.kind is None or row.name is None:
            pieces.append((row.origin, row.part, body))
        else:
            results.append((row.origin, row.part, ResultRow(row.batch, row.kind, row.name, body)))
    found.pieces = [body for _, _, body in sorted(pieces)]
    found.results = [result for _, _, result in sorted(results, key=lambda each: each[:2])]
    return found


NewBucket = Callable[[int], Bucket]
"""Function from the number of a bucket, from 0, to a new object without state."""
KEPT: Final = KeptObjects({})
"""Objects of this worker process, which Spark reuses, while every task gets new `Stage` objects."""


class ObjectSlot(Protocol):
    """Access of one task to the slot that keeps a bucket's object between batches."""

    @property
    def kept(self) -> CachedObject | None:
        """Object kept by the previous batch; None without one, as after a failed batch."""
        ...

    def new(self, make: Callable[[], Bucket]) -> Bucket:
        """Make a bucket without state."""
        ...

    def keep(self, kept: CachedObject) -> None:
        """Keep the object for the next batch."""
        ...


class ObjectSlots(Protocol):
    """Slots that keep the objects of buckets between batches."""

    def open_slot(self, stage: str, bucket: int) -> AbstractContextManager[ObjectSlot]:
        """Open the slot of one bucket."""
        ...


class _Home:
    """Choice of the slots: in this process, unless its parent has holders (`assembly.spark_workers`)."""

    slots: ObjectSlots = KEPT


HOME: Final = _Home()


@dataclass(frozen=True, slots=True)
class StageSpec:
    """Specification of one stage of buckets."""

    name: str
    """Name that distinguishes the stage's kept objects from those of other stages and jobs."""
    keys: Sequence[int]
    """Key of each bucket, by number; Spark assigns rows to shuffle partitions by the hash of the key."""
    new_bucket: NewBucket
    next_keys: Sequence[int] = ()
    """Keys of the buckets of the next stage; none after the last."""
    rebase_bytes: int = LEAST_REBASE_BYTES


class Stage(StatefulProcessor):
    """Feeds buckets; its output rows go to the buckets of the next stage, those of the last to the sink.

    Parameters
    ----------
    spec
        Specification of the stage.
    """

    def __init__(self, spec: StageSpec) -> None:
        self._spec = spec

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the log in Spark's states."""
        head = handle.getValueState("head", HEAD_SCHEMA)
        entries = handle.getMapState("log", KEY_SCHEMA, VALUE_SCHEMA)
        self._log = DeltaLog(cast("Head", head), cast("Entries", entries), self._spec.rebase_bytes)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: tuple[Any, ...],
        rows: Iterator[SparkRow],
        timerValues: object,  # noqa: N803 - Spark's name
    ) -> Iterator[SparkRow]:
        """Feed the rows of a key to its bucket, and yield the output rows.

        The object is kept for the next batch before Spark commits this one. If Spark does not commit it, the
        object's token differs from that of the log's last entry, and the object is built anew.
        """
        del timerValues
        spec = self._spec
        number = spec.keys.index(int(key[0]))
        came = arrived(rows)
        with HOME.slots.open_slot(spec.name, number) as slot:
            kept = self._log.load(slot.kept, lambda: slot.new(partial(spec.new_bucket, number)))
            fed = kept.bucket.feed(came.batch, came.pieces, came.end_ms)
            self._log.append(kept, fed.delta)
            slot.keep(kept)
        if spec.next_keys:
            yield from map(_of_spark, rows_onward(spec.next_keys, number, came, fed))
        else:
            yield from map(_of_spark, rows_of_results(came, fed))

    def close(self) -> None:
        """Close nothing, as objects are kept for the next batch."""
        freeze_once()


def rows_onward(next_keys: Sequence[int], number: int, came: Arrived, fed: FeedResult) -> list[Row]:
    """Build the rows for the next stage: parts for its buckets, and all results so far to pass on."""
    batch, end_ms = came.batch, came.end_ms
    rows = [
        Row(next_keys[bucket], batch, end_ms, number, 0, None, None, piece) for bucket, piece in fed.parts
    ]
    onward = next_keys[number % len(next_keys)]
    passed = [(result.kind, result.name, result.body) for result in came.results]
    for part, (kind, name, body) in enumerate([*passed, *fed.results]):
        rows.append(Row(onward, batch, end_ms, number, part, kind, name, body))
    return rows


def rows_of_results(came: Arrived, fed: FeedResult) -> Iterator[PackedResults]:
    """Build the rows for the sink: results of the source and of previous stages, then those of this one."""
    before = [(result.kind, result.name, result.body) for result in came.results]
    return packed_results(came.batch, [*before, *fed.results])


def _of_spark(row: Row | PackedResults) -> SparkRow:
    return SparkRow(**row._asdict())
