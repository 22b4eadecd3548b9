"""Stages of the job: rows from Spark are passed to the object of their bucket, whose changes are logged."""

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

# Rows that go between the stages of the job, and their order.
#
# Spark delivers the rows of a key in any order. Pieces have their origin, so that a bucket is fed the
# same sequence at every attempt.


SCHEMA: Final = (
    "bucket int, batch long, end_ms long, origin int, part int, kind string, name string, body binary"
)
"""Schema of the rows into each stage. A row with a `kind` is a result for the sink, any other a piece."""
RESULT_SCHEMA: Final = "batch long, results binary"
"""Schema of the rows into the sink: each has many results, as a batch has one of every model."""
_RESULTS_BYTES: Final = 4_000_000
"""Bytes from which on further results are in another row."""


class Row(NamedTuple):
    """A row of `SCHEMA`."""

    bucket: int
    batch: int
    end_ms: int
    origin: int
    """Number of the source partition, or of the bucket of ids, that it is from."""
    part: int
    """Number among the rows of one origin to one bucket."""
    kind: str | None
    name: str | None
    body: bytes


class ResultRow(NamedTuple):
    """A result on its way to the sink."""

    batch: int
    kind: str
    name: str
    body: bytes


class PackedResults(NamedTuple):
    """A row of `RESULT_SCHEMA`."""

    batch: int
    results: bytes

    def unpacked(self) -> list[ResultRow]:
        """Give the results of the row, in order."""
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
    """Results of the stage before."""


def arrived(rows: Iterable[Any]) -> Arrived:
    """Put the rows of a bucket, which Spark delivers in any order, in order.

    Raises
    ------
    ValueError
        They are of several batches: each batch of Spark is one of ours.
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
"""From the number of a bucket, counted from 0, to its object without state."""
KEPT: Final = KeptObjects({})
"""Objects of this worker process: Spark gives each task new processors, and reuses the process."""


class ObjectSlot(Protocol):
    """Access of one task to the slot that keeps a bucket's object between batches."""

    @property
    def kept(self) -> CachedObject | None:
        """Object of the batch before, if it is there; a failed batch leaves none."""
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
    """Where objects are: in this process, unless its parent has holders (`assembly.spark_workers`)."""

    slots: ObjectSlots = KEPT


HOME: Final = _Home()


@dataclass(frozen=True, slots=True)
class StageSpec:
    """One stage of buckets."""

    name: str
    """Distinguishes its kept objects from those of other stages and jobs."""
    keys: Sequence[int]
    """Key of each bucket, by its number: Spark deals rows out by the hash of the key."""
    new_bucket: NewBucket
    next_keys: Sequence[int] = ()
    """Keys of the buckets of the next stage; none after the last."""
    rebase_bytes: int = LEAST_REBASE_BYTES


class Stage(StatefulProcessor):
    """Feeds buckets; its output is rows to the buckets of the next stage, or results after the last.

    Parameters
    ----------
    spec
        Which buckets there are.
    """

    def __init__(self, spec: StageSpec) -> None:
        self._spec = spec

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the states of Spark."""
        head = handle.getValueState("head", HEAD_SCHEMA)
        entries = handle.getMapState("log", KEY_SCHEMA, VALUE_SCHEMA)
        self._log = DeltaLog(cast("Head", head), cast("Entries", entries), self._spec.rebase_bytes)

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: tuple[Any, ...],
        rows: Iterator[SparkRow],
        timerValues: object,  # noqa: N803 - Spark's name
    ) -> Iterator[SparkRow]:
        """Pass the rows of this key to its bucket.

        The object is kept for the next batch before Spark commits this one. Should Spark not commit it, the
        object's token is not that of the log's last entry, and it is built anew.
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
        """Close nothing: what is kept is for the next batch."""
        freeze_once()


def rows_onward(next_keys: Sequence[int], number: int, came: Arrived, fed: FeedResult) -> list[Row]:
    """Rows to the next stage; results, those of the source included, ride along to the sink."""
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
    """Rows to the sink: results of the stage before, then those of this one."""
    before = [(result.kind, result.name, result.body) for result in came.results]
    return packed_results(came.batch, [*before, *fed.results])


def _of_spark(row: Row | PackedResults) -> SparkRow:
    return SparkRow(**row._asdict())
