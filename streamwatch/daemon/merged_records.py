"""Polled records, decoded and merged into one sequence, which is released in turns of bounded size."""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np

from streamwatch.core.join.caveats import Mismatch
from streamwatch.core.merge import Arrivals, Merge, MergeProgress, MergeSpec, Released, arrivals_of
from streamwatch.core.merge.merge import held_families
from streamwatch.core.merge.released import expanded_in_turns
from streamwatch.core.metrics.series import Family
from streamwatch.core.ports import DeadLetters, Decoder, Explains, Poll, Record
from streamwatch.core.publishing.kept import RecordKeeper
from streamwatch.core.records.batch import RecordBatch
from streamwatch.core.records.events import Invalid, Partition, Side
from streamwatch.core.records.fetched import OFFSET, FetchedRecords
from streamwatch.daemon.status import Clocks
from streamwatch.daemon.turns import ROOM, Room, in_turns, rooms_after
from streamwatch.telemetry import (
    ClassesDisjoint,
    HostClockBehind,
    HostClockRight,
    NameTableFull,
    NothingJoins,
    PartitionLeftBehind,
    ScoresAsClasses,
    Telemetry,
)


class RecentRecords:
    """Keeps records by partition until they are evaluated, the last one longer, to identify the log."""

    def __init__(self) -> None:
        self._delivered: dict[Partition, deque[Sequence[Record]]] = {}

    def add(self, partition: Partition, records: Sequence[Record]) -> None:
        """Remember records in offset order, one or more."""
        self._delivered.setdefault(partition, deque()).append(records)

    def forget(self, partition: Partition) -> None:
        """Drop the records of a partition."""
        self._delivered.pop(partition, None)

    def drop_before(self, offsets: Mapping[Partition, int]) -> None:
        """Drop the records before these offsets, as far as whole deliveries lie before them.

        Values of a backlog's records take much memory, which should be free before the next commit.
        """
        for partition, offset in offsets.items():
            delivered = self._delivered.get(partition)
            if not delivered:
                continue
            while delivered and _last_offset(delivered[0]) < offset:
                delivered.popleft()
            if delivered and len(delivered[0]) > 1 and _last_offset(delivered[0]) == offset:
                delivered[0] = (delivered[0][-1],)

    def take(self, offsets: Mapping[Partition, int]) -> dict[Partition, Record]:
        """Return the records at these offsets, except forgotten ones, and drop deliveries before them."""
        found: dict[Partition, Record] = {}
        for partition, offset in offsets.items():
            delivered = self._delivered.get(partition)
            while delivered and _last_offset(delivered[0]) < offset:
                delivered.popleft()
            if delivered:
                record = delivered[0][_index_of(delivered[0], offset)]
                if record.offset == offset:
                    found[partition] = record
        return found


def _last_offset(records: Sequence[Record]) -> int:
    """Offset of the last record; for columns, read without making a record object."""
    if isinstance(records, FetchedRecords):
        return int(records.rows[-1, OFFSET])
    return records[-1].offset


def _index_of(records: Sequence[Record], offset: int) -> int:
    """Index of the first record at or after an offset."""
    if isinstance(records, FetchedRecords):
        return int(np.searchsorted(records.rows[:, OFFSET], offset))
    return bisect_left(records, offset, key=lambda record: record.offset)


class RejectedRecords:
    """Keeps invalid records as read until they are evaluated, then passes them to the dead-letter topic.

    Parameters
    ----------
    dead_letters
        Writes the invalid records, before the commit.
    keeper
        Used instead with several replicas: stores invalid records in the commit, after which one replica
        writes them. With neither, nothing is kept.
    """

    def __init__(self, dead_letters: DeadLetters | None = None, keeper: RecordKeeper | None = None) -> None:
        self._dead_letters = dead_letters
        self._keeper = keeper
        self._keeps = dead_letters is not None or keeper is not None
        self._records: dict[tuple[str, int, int], Record] = {}

    def keep(self, records: Sequence[Record], batch: RecordBatch) -> None:
        """Keep the records that were decoded to at least one invalid event of this batch."""
        if self._keeps and batch.objects:
            for index, event in zip(batch.records_of_objects().tolist(), batch.objects, strict=True):
                if type(event) is Invalid:
                    self._records[event.topic, event.partition, event.offset] = records[index]

    def release(self, event: Invalid) -> None:
        """Hand the record of an evaluated event to the dead-letter topic, once even if it has several."""
        record = self._records.pop((event.topic, event.partition, event.offset), None)
        if record is None:
            return
        if self._keeper is not None:
            self._keeper.keep(record, event.reason, event.record_ms)
        elif self._dead_letters is not None:
            self._dead_letters.put(record, event.reason)

    @property
    def filled(self) -> float:
        """Bytes of invalid records to be committed, as a share of what a commit may contain."""
        return 0.0 if self._keeper is None else self._keeper.filled

    @property
    def problem(self) -> str | None:
        """Reason for which dead letters wait to be written; None if none wait."""
        return None if self._dead_letters is None else self._dead_letters.problem

    async def deliver(self, *, only_if_full: bool = False) -> None:
        """Write the released invalid records; with `only_if_full`, only if the buffer for them is full."""
        if self._dead_letters is not None and (self._dead_letters.is_full or not only_if_full):
            await self._dead_letters.flush()

    def families(self) -> Sequence[Family]:
        """Dead letters written and dropped; empty without a topic for them."""
        return () if self._dead_letters is None else self._dead_letters.families()


@dataclass(frozen=True, slots=True)
class Topic:
    """Side of a topic (predictions, labels or both), and the decoder of its records."""

    side: Side
    decoder: Decoder


def _explain(records: Sequence[Record], batch: RecordBatch, decoder: Explains) -> None:
    """Set the detail of the first invalid event of each reason; explaining every one would take too long."""
    explained: set[str] = set()
    for index, event in zip(batch.records_of_objects().tolist(), batch.objects, strict=True):
        if type(event) is Invalid and event.reason not in explained:
            explained.add(event.reason)
            event.detail = decoder.explain(records[index], event.reason)


REQUEST_STEPS: Final = 4
"""Turns of the event loop that an HTTP request takes."""
HELD_SECONDS: Final = 0.003
"""Time for which the event loop is not given up; giving it up costs as much as evaluating 100 records."""

_turned: WeakKeyDictionary[asyncio.AbstractEventLoop, float] = WeakKeyDictionary()
"""Time at which `yield_to_loop` last gave each loop up, by the loop's clock."""


async def yield_to_loop() -> None:
    """Let other tasks run, if the event loop was not given up for `HELD_SECONDS`.

    Gives up several turns, as an HTTP request takes one for each of its steps (read, handle, answer): after a
    single turn, a whole batch would delay the next step.
    """
    loop = asyncio.get_running_loop()
    if loop.time() - _turned.get(loop, 0.0) < HELD_SECONDS:
        return
    for _ in range(REQUEST_STEPS):
        await asyncio.sleep(0)
    _turned[loop] = loop.time()


class MergedRecords:
    """Decodes records, holds them until their order is certain, and releases them.

    Parameters
    ----------
    topics
        Side and decoder of each topic by name, in the order of the settings.
    telemetry
        Receives internal events: partitions that are not waited for, a host's clock that is not trusted.
    clocks
        The host's clocks.
    merge
        Limits of how long records wait for other partitions.
    progress
        Position in the merged sequence; updated by `next_turn` and by the caller that evaluates.
    rejected
        Keeps every invalid record until it is evaluated.
    """

    def __init__(
        self,
        topics: Mapping[str, Topic],
        telemetry: Telemetry,
        clocks: Clocks,
        merge: MergeSpec,
        progress: MergeProgress,
        rejected: RejectedRecords,
    ) -> None:
        self._topics = topics
        self._telemetry = telemetry
        self._clocks = clocks
        sides: dict[str, Side] = {name: topic.side for name, topic in topics.items()}
        self.merge = Merge(merge, sides, progress)
        self._progress = progress
        self._rejected = rejected
        self._recent = RecentRecords()
        self._turns: Iterator[Released] = iter(())
        self._rooms: dict[str, Room] = {}
        self._read: Mapping[Partition, int] = {}
        self._host_was_behind = False
        self.ready: Released | None = None
        """Released records, to be evaluated before `next_turn` is called; None without any."""
        self.records = 0
        """Records decoded since the start."""

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Return whether a record read at or before this monotonic time is not evaluated yet."""
        return self.ready is not None or self.merge.holds_from_before(arrived_ms)

    def flush(self, moved: frozenset[Partition]) -> None:
        """Release the held records of partitions whose logs are gone; call only if `ready` is None."""
        self._begin(self.merge.flush(sorted(moved), self._clocks.host_ms()))

    def forget_records(self, partitions: frozenset[Partition]) -> None:
        """Forget the records that identify the logs of these partitions, as the logs were replaced."""
        for partition in partitions:
            self._recent.forget(partition)

    def take_newest(self) -> Mapping[Partition, Record]:
        """Return the last record evaluated since the last call by partition; it identifies the log."""
        return self._recent.take(self._progress.take_newest())

    async def receive(self, poll: Poll, *, connected: bool) -> None:
        """Decode a poll's records and release those whose order is certain; call only if `ready` is None.

        Parameters
        ----------
        poll
            Records by partition, and the state of every partition.
        connected
            Whether the brokers answer.
        """
        self._meet(poll)
        clocks = self._clocks
        for turn, delivered in enumerate(in_turns(poll.records, self._room_of)):
            if turn:
                await yield_to_loop()
            decoded = {
                partition: self._decoded(partition, records) for partition, records in delivered.items()
            }
            self._rooms |= rooms_after(decoded)
            self.merge.add(decoded, clocks.monotonic_ms())
        self.merge.found({partition: state.at_end_ms for partition, state in poll.partitions.items()})
        self.merge.leave_behind(poll.left_behind)
        self._read = {partition: state.position for partition, state in poll.partitions.items()}
        self._begin(self.merge.in_turns(clocks.monotonic_ms(), clocks.host_ms(), connected=connected))

    def _room_of(self, topic: str) -> Room:
        return self._rooms.get(topic, ROOM)

    def next_turn(self) -> None:
        """Set `ready` to the next released records; None if there are no more."""
        self.ready = next(self._turns, None)
        self._report()
        if self.ready is None:
            self._recent.drop_before(self._progress.newest)
            self._advance_positions()

    def families(self) -> Sequence[Family]:
        """Records held by the merge, and the partitions that it waits for."""
        return held_families(self.merge, self._clocks.monotonic_ms())

    def _begin(self, turns: Iterable[Released]) -> None:
        self._turns = expanded_in_turns(turns)
        self.next_turn()

    def _advance_positions(self) -> None:
        """Set the position of partitions without held records to the read position, past control records."""
        for partition, position in self._read.items():
            if self.merge.is_empty(partition):
                self._progress.positions[partition] = position

    def _meet(self, poll: Poll) -> None:
        """Add partitions seen for the first time to the progress, and forget those that are gone."""
        for partition in poll.moved:  # an offset of the old log means nothing in the new one
            self._progress.newest.pop(partition, None)
        for partition, state in poll.partitions.items():
            if partition not in self._progress.positions or partition in poll.moved:
                records = poll.records.get(partition, ())
                self._progress.positions[partition] = records[0].offset if records else state.position
        if poll.partitions:
            self.merge.set_partitions(list(poll.partitions))
            for partition in self._progress.positions.keys() - poll.partitions.keys():
                self._progress.forget(partition)

    def _decoded(self, partition: Partition, records: Sequence[Record]) -> Arrivals:
        decoder = self._topics[partition.topic].decoder
        batch = decoder.decode_batch(records)
        self._recent.add(partition, records)
        self.records += len(records)
        self._rejected.keep(records, batch)
        if batch.objects and isinstance(decoder, Explains):
            _explain(records, batch, decoder)
        return arrivals_of(records, batch)

    def _report(self) -> None:
        """Emit events for partitions no longer waited for, full name tables and the host's clock."""
        for partition in self.merge.left_behind:
            self._progress.left_behind += 1
            self._telemetry.emit(PartitionLeftBehind(partition.topic, partition.partition))
        self.merge.left_behind.clear()
        for kind in self.merge.full_names:
            self._telemetry.emit(NameTableFull(kind))
        self.merge.full_names.clear()
        if self.merge.host.is_behind != self._host_was_behind:
            self._host_was_behind = self.merge.host.is_behind
            self._telemetry.emit(HostClockBehind() if self._host_was_behind else HostClockRight())


class MismatchReporter:
    """Emits an internal event when a model begins to have a mismatch, such as labels of other classes."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._reported: set[tuple[str, str]] = set()

    def report(self, found: Sequence[Mismatch]) -> None:
        """Emit events for the mismatches that were not among those of the previous call.

        Parameters
        ----------
        found
            All current mismatches.
        """
        now: set[tuple[str, str]] = set()
        for each in found:
            if each.disjoint is not None:
                now.add(("classes", each.model))
                if ("classes", each.model) not in self._reported:
                    predicted_class, true = each.disjoint
                    self._telemetry.emit(ClassesDisjoint(each.model, tuple(predicted_class), tuple(true)))
            if each.scores is not None:
                now.add(("scores", each.model))
                if ("scores", each.model) not in self._reported:
                    self._telemetry.emit(ScoresAsClasses(each.model, tuple(each.scores)))
            if each.predictions is not None:
                now.add(("joins", each.model))
                if ("joins", each.model) not in self._reported:
                    self._telemetry.emit(NothingJoins(each.model, each.predictions))
        self._reported = now
