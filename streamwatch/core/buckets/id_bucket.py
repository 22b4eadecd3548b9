"""Id bucket: merges pieces sent by readers, joins them, and sends outcomes to model buckets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.buckets.contract import (
    TOTALS,
    Activity,
    BucketsSpec,
    FeedResult,
    InvalidOfModel,
    ModelRoutes,
    rank_of,
    ranks_of,
)
from streamwatch.core.buckets.id_join import ColumnJoin, ColumnReportedModel, share_of
from streamwatch.core.buckets.log import BaseReader, BatchInput, decode_entry, encode_base, encode_entry
from streamwatch.core.buckets.made import PredictionPositionsState
from streamwatch.core.buckets.parts import ENCODER, ColumnPart, OutcomeParts, pack_rows
from streamwatch.core.buckets.pieces import (
    PIECES,
    Chunk,
    ColumnPiece,
    Moments,
    PackedChunk,
    PackedMoments,
    pack_chunk,
    pack_moments,
)
from streamwatch.core.buckets.view import RecordCounts, Totals, encode_totals
from streamwatch.core.join.counters import PENDING
from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.durable.totals import JoinTotals
from streamwatch.core.records.events import Name, Partition, Side

# Inbox of an id bucket: holds chunks by partition until they are due.


@dataclass(frozen=True, slots=True)
class DueRecords:
    """Records due in a batch: partitions ordered by rank, the records of each in the order of its log."""

    chunks: Sequence[tuple[Partition, Chunk]]
    moments: Sequence[tuple[Partition, Moments]]


class ColumnInboxState(msgspec.Struct, array_like=True, frozen=True):
    """State of an inbox; all but the time reached by partition, as its topic and number."""

    reached_ms: int
    running: list[tuple[Name, int, int]]
    """Running maximum of the timestamps."""
    chunks: list[tuple[Name, int, PackedChunk]]
    """Events that are not due."""
    moments: list[tuple[Name, int, PackedMoments]]
    """Counts of records that are not due."""


class ColumnInbox:
    """Holds events by partition until they are due.

    Parameters
    ----------
    sides
        Kind of events of each topic, in the order of the settings.
    """

    def __init__(self, sides: Mapping[str, Side]) -> None:
        self._ranks = ranks_of(sides)
        self._running: dict[Partition, int] = {}
        self._chunks: dict[Partition, list[Chunk]] = {}
        self._moments: dict[Partition, list[Moments]] = {}
        self.reached_ms = -1
        """Time the bucket has reached: that of the batch, or of the newest record if that is earlier.

        -1 before the first record; it never decreases.
        """

    def __len__(self) -> int:
        return sum(len(chunk.rows) for several in self._chunks.values() for chunk in several)

    def rank(self, partition: Partition) -> int:
        """Rank of a partition among those of all topics; raises ValueError for another topic."""
        return rank_of(self._ranks, partition)

    def take(self, pieces: Sequence[ColumnPiece], end_ms: int | None) -> DueRecords:
        """Add pieces, and remove and return what is due at `end_ms`; everything if that is None."""
        for piece in sorted(pieces, key=lambda p: (p.topic, p.partition, p.first_offset)):
            self._add(piece)
        newest_ms = max(self._running.values(), default=-1)
        reached_ms = newest_ms if end_ms is None else min(end_ms, newest_ms)
        self.reached_ms = reached_ms = max(reached_ms, self.reached_ms)
        partitions = sorted({*self._chunks, *self._moments}, key=self.rank)
        chunks = [(name, chunk) for name in partitions for chunk in self._take_due_chunks(name, reached_ms)]
        moments = [(name, each) for name in partitions for each in self._take_due_moments(name, reached_ms)]
        return DueRecords(chunks, moments)

    def _add(self, piece: ColumnPiece) -> None:
        partition = Partition(piece.topic, piece.partition)
        self.rank(partition)  # refuses unknown topics before anything of them is kept
        so_far = self._running.get(partition, -1)
        chunk, moments = piece.chunk.unpacked(), piece.moments.unpacked()
        if len(chunk.rows):
            np.maximum(chunk.rows["time_ms"], so_far, out=chunk.rows["time_ms"])
            self._chunks.setdefault(partition, []).append(chunk)
        if len(moments.columns):
            np.maximum(moments.times_ms, so_far, out=moments.times_ms)
            corrected = [(max(so_far, time_ms), why, count) for time_ms, why, count in moments.corrected]
            self._moments.setdefault(partition, []).append(Moments(moments.columns, corrected))
        self._running[partition] = max(so_far, piece.newest_ms)

    def _take_due_chunks(self, partition: Partition, reached_ms: int) -> list[Chunk]:
        released: list[Chunk] = []
        kept: list[Chunk] = []
        for chunk in self._chunks.pop(partition, ()):
            count = int(np.searchsorted(chunk.rows["time_ms"], reached_ms, "right"))
            if count:
                released.append(chunk.part(0, count))
            if count < len(chunk.rows):
                kept.append(chunk.only(np.arange(count, len(chunk.rows))) if count else chunk)
        if kept:
            self._chunks[partition] = kept
        return released

    def _take_due_moments(self, partition: Partition, reached_ms: int) -> list[Moments]:
        released: list[Moments] = []
        kept: list[Moments] = []
        for moments in self._moments.pop(partition, ()):
            count = int(np.searchsorted(moments.times_ms, reached_ms, "right"))
            now = [each for each in moments.corrected if each[0] <= reached_ms]
            later = [each for each in moments.corrected if each[0] > reached_ms]
            if count:
                released.append(Moments(moments.columns[:count], now))
            if count < len(moments.columns):
                kept.append(Moments(moments.columns[count:].copy(), later))
        if kept:
            self._moments[partition] = kept
        return released

    def state(self) -> ColumnInboxState:
        """State from which `restore` continues."""
        chunks, moments = sorted(self._chunks.items()), sorted(self._moments.items())
        return ColumnInboxState(
            self.reached_ms,
            [(name.topic, name.partition, ms) for name, ms in sorted(self._running.items())],
            [
                (name.topic, name.partition, pack_chunk(chunk))
                for name, several in chunks
                for chunk in several
            ],
            [
                (name.topic, name.partition, pack_moments(each))
                for name, several in moments
                for each in several
            ],
        )

    def restore(self, state: ColumnInboxState) -> None:
        """Continue from a state."""
        self.reached_ms = state.reached_ms
        self._running = {Partition(topic, number): ms for topic, number, ms in state.running}
        for topic, number, chunk in state.chunks:
            self._chunks.setdefault(Partition(topic, number), []).append(chunk.unpacked())
        for topic, number, moments in state.moments:
            self._moments.setdefault(Partition(topic, number), []).append(moments.unpacked())


# State of an id bucket as parts of a base: counts first, then its entries, packed.


class ColumnIdState(msgspec.Struct, frozen=True):
    """State of an id bucket without its entries."""

    batch: int
    inbox: ColumnInboxState
    records: RecordCounts
    totals: JoinTotals
    positions: PredictionPositionsState
    partitions: list[tuple[Name, int]]
    reported_activity: list[ColumnReportedModel]


_STATE: Final = msgspec.msgpack.Decoder(ColumnIdState)
_ITEMS: Final = msgspec.msgpack.Decoder(list[tuple[bytes, bytes]])


def state_of(bucket: ColumnIdBucket) -> tuple[ColumnIdState, Iterator[tuple[object, int]]]:
    """Return the state without entries, and its encoded entries with their sizes."""
    own = bucket.join
    join = own.join
    entries = join.arrays.entries[: int(join.arrays.totals["top"][0])]
    pending = entries["state"] == PENDING
    numbers = entries["label_at_prediction"][pending].copy()
    positions, _ = own.prediction_positions.state(numbers)
    state = ColumnIdState(
        bucket.batch,
        bucket.inbox.state(),
        bucket.records,
        join.totals(),
        positions,
        [(topic, number) for topic, number in own.partition_numbers],
        own.reported_activity.state(),
    )
    # These are numbers of predictions, which `all_entries` would take for classes.
    entries["label_at_prediction"][pending] = -1
    changes = join.all_entries()
    entries["label_at_prediction"][pending] = numbers
    kept = sorted((key, value) for key, value in changes.items() if value is not None)
    return state, ((each, len(each[1])) for each in kept)


class BaseItems:
    """Parts of a base read so far."""

    __slots__ = ("items", "state")

    def __init__(self) -> None:
        self.state: ColumnIdState | None = None
        self.items: list[tuple[bytes, bytes]] = []


def restore_part(bucket: ColumnIdBucket, body: bytes, *, number: int, is_last: bool) -> None:
    """Restore the next body of a base into a new bucket; the last one completes it.

    Raises
    ------
    msgspec.DecodeError
        If it is not of this version.
    PackedError
        If the entries are not what `state_of` writes.
    """
    found = bucket.base_items
    if number == 0:
        found.state = _STATE.decode(body)
    else:
        found.items += _ITEMS.decode(body)
    if is_last and found.state is not None:
        _restore(bucket, found.state, found.items)
        bucket.base_items = BaseItems()


def _restore(bucket: ColumnIdBucket, state: ColumnIdState, items: list[tuple[bytes, bytes]]) -> None:
    own = bucket.join
    start_ms = own.join.start_ms
    bucket.batch, bucket.records = state.batch, state.records
    bucket.inbox.restore(state.inbox)
    own.join.restore(state.totals, items)
    own.join.start_ms = start_ms  # that of the specification, not of the state
    own.partition_numbers = {Partition(*each): number for number, each in enumerate(state.partitions)}
    own.reported_activity.restore(state.reported_activity)
    numbers = own.prediction_positions.restore(state.positions)
    entries = own.join.arrays.entries[: int(own.join.arrays.totals["top"][0])]
    pending = np.flatnonzero(entries["state"] == PENDING)
    if len(pending) != len(numbers):
        raise PackedError(f"expected positions of {len(pending)} predictions that wait, got {len(numbers)}")
    entries["label_at_prediction"][pending] = numbers  # both are in the order of acceptance


_SECOND_MS: Final = 1_000


class ColumnIdBucket:
    """Id bucket (`contract.Bucket`): the daemon's compiled join of some ids.

    Parameters
    ----------
    number
        Number of the id bucket, from 0.
    spec
        Partitioning of the stream.

    Raises
    ------
    ValueError
        If the compiled join does not support the settings.
    """

    def __init__(self, number: int, spec: BucketsSpec) -> None:
        self._number = number
        self._name = f"ids/{number}"
        self._spec = spec
        self._ordered = spec.join.order == "prediction_time"
        self._routes = ModelRoutes(spec)
        self._reader = BaseReader(self._name)
        self.inbox = ColumnInbox(spec.sides)
        self.join = ColumnJoin(share_of(spec.join, spec.id_buckets), spec.start_ms, self.inbox.rank)
        self.records = RecordCounts()
        self.base_items = BaseItems()
        self.batch = -1
        """Number of the last batch."""

    def feed(self, batch: int, pieces: Sequence[bytes], end_ms: int | None) -> FeedResult:
        """Process one batch; see `contract.Bucket`."""
        self._reader.end()
        if batch <= self.batch:
            raise ValueError(f"expected a batch after {self.batch} in bucket {self._name}, got {batch}")
        found = [PIECES.decode(piece) for piece in pieces]
        for piece in found:
            if piece.bucket != self._number:
                raise ValueError(f"expected pieces for bucket {self._name}, got one for ids/{piece.bucket}")
        self.batch = batch
        before_ms = self.inbox.reached_ms
        taken = self.inbox.take(found, end_ms)
        self.join.feed(taken.chunks, before_ms, self.inbox.reached_ms)
        self._count(taken.moments, before_ms)
        parts = self._parts(taken.moments, before_ms, ended=end_ms is None)
        results = [(TOTALS, self._name, encode_totals(self.totals()))]
        return FeedResult(parts, results, encode_entry(BatchInput(self._name, batch, end_ms, pieces)))

    def take_in(self, delta: bytes) -> None:
        """Repeat a feed or restore a part of a base; see `contract.Bucket`."""
        entry = decode_entry(delta, self._name)
        if isinstance(entry, BatchInput):
            self.feed(entry.batch, entry.pieces, entry.end_ms)
            return
        self._reader.take(entry)
        restore_part(self, entry.body, number=entry.number, is_last=entry.number == entry.count - 1)

    def base(self) -> list[bytes]:
        """Encode the whole state; see `contract.Bucket`."""
        return encode_base(self._name, *state_of(self))

    def totals(self) -> Totals:
        """Counters and gauges, without those that model buckets count."""
        held = self.join.join.holdings()
        return Totals(
            self.inbox.reached_ms,
            self.join.counters,
            self.records,
            pending=held.pending,
            early=held.early,
            unmatched=held.unmatched,
            retained=held.retained,
            dedup_entries=held.dedup_entries,
            held_records=len(self.inbox),
            oldest_ms=held.oldest_ms,
        )

    def _count(self, moments_of_partitions: Sequence[tuple[Partition, Moments]], before_ms: int) -> None:
        counts = self.records
        for partition, moments in moments_of_partitions:
            topic, columns = partition.topic, moments.columns
            late = columns[columns[:, 0] <= before_ms]
            _, records, _, events, skipped, tied = columns.sum(axis=0).tolist()
            timed = int(late[:, 2].sum())
            late_ms = int(((before_ms - late[:, 0]) * late[:, 2]).sum())
            for column, count in (
                (counts.evaluated, records),
                (counts.events, events),
                (counts.skipped, skipped),
                (counts.tied, tied),
                (counts.out_of_order, timed),
            ):
                if count:
                    column[topic] = column.get(topic, 0) + count
            if timed:
                counts.lateness_ms[topic] = counts.lateness_ms.get(topic, 0) + late_ms
            for _, reason, count in moments.corrected:
                counts.corrected[reason] = counts.corrected.get(reason, 0) + count

    def _parts(
        self, moments_of_partitions: Sequence[tuple[Partition, Moments]], before_ms: int, *, ended: bool
    ) -> list[tuple[int, bytes]]:
        buckets, routes = range(self._spec.model_buckets), self._routes
        join = self._spec.join
        beside = join.conflicts == "both" or bool(join.carried)
        complete = self._ordered or beside or (join.folds and join.folds_share_stream)
        outcomes = OutcomeParts(self.join.outcomes, self.join.ranks, complete=complete)
        ticks = _ticks(moments_of_partitions, before_ms)
        clocks = windows = b""
        if self._ordered:
            clocks = pack_rows(_clocks(moments_of_partitions, before_ms)[:, None])
            windows = outcomes.windows()
        activities: list[list[Activity]] = [[] for _ in buckets]
        invalid: list[list[InvalidOfModel]] = [[] for _ in buckets]
        for activity in self.join.reported_activity.take_new():
            for bucket in routes[activity.model]:
                activities[bucket].append(activity)
        for each in self.join.invalid:
            invalid[routes[each.model][0]].append(each)
        models, accepted = outcomes.models, self.join.accepted
        predicting, ranks = accepted.models, self.join.ranks
        parts: list[tuple[int, bytes]] = []
        for bucket in buckets:
            own = outcomes.of(np.array([bucket in routes[model] for model in models], np.bool_))
            made = accepted.of(np.array([bucket in routes[model] for model in predicting], np.bool_), ranks)
            reached_ms = self.inbox.reached_ms
            part = ColumnPart(
                bucket,
                self._number,
                reached_ms,
                ended,
                ticks,
                own,
                made,
                activities[bucket],
                invalid[bucket],
                clocks,
                windows,
            )
            parts.append((bucket, ENCODER.encode(part)))
        return parts


def _ticks(moments_of_partitions: Sequence[tuple[Partition, Moments]], before_ms: int) -> list[int]:
    """Times at which model buckets let time pass: that of the first record in each second."""
    times = _clocks(moments_of_partitions, before_ms)
    _, first = np.unique(times // _SECOND_MS, return_index=True)
    return times[first].tolist()


def _clocks(moments_of_partitions: Sequence[tuple[Partition, Moments]], before_ms: int) -> NDArray[np.int64]:
    """Distinct record times later than `before_ms`, the time reached by the previous batch, ascending."""
    found = [moments.times_ms for _, moments in moments_of_partitions]
    times = np.unique(np.concatenate([np.zeros(0, np.int64), *found]))
    return times[np.searchsorted(times, max(before_ms, -1), "right") :]
