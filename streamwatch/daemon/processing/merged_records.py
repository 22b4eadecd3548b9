"""What polls deliver, decoded and merged into one sequence, of which a turn at a time is released."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from streamwatch.core.events import Partition, Side
from streamwatch.core.merge import Arrivals, Merge, MergeProgress, MergeSpec, Released, arrivals_of
from streamwatch.core.merge.elements import expanded_in_turns
from streamwatch.core.merge.series import held_families
from streamwatch.core.ports import Poll, Record
from streamwatch.core.records import OBJECT
from streamwatch.core.series import Family
from streamwatch.daemon.clock import Clocks
from streamwatch.daemon.giving_way import yield_to_loop
from streamwatch.daemon.processing.recent_records import RecentRecords
from streamwatch.daemon.processing.rejected_records import RejectedRecords
from streamwatch.daemon.processing.topic import Topic
from streamwatch.daemon.processing.turns import ROOM, in_turns, room_after
from streamwatch.telemetry import (
    HostClockBehind,
    HostClockRight,
    NameTableFull,
    PartitionLeftBehind,
    Telemetry,
)


class MergedRecords:
    """Decodes records, holds them until their place in the sequence is certain, and releases them.

    Parameters
    ----------
    topics
        What each topic carries, and how to decode it; in the order of the settings.
    telemetry
        Told of partitions that are not waited for, and of a host's clock that is not believed.
    clocks
        The host's clocks.
    merge
        How long records wait for others.
    progress
        Where the sequence goes on; `next_turn` and whoever evaluates keep it.
    rejected
        Keeps every invalid record until it is released.
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
        self._merge = Merge(merge, sides, progress)
        self._progress = progress
        self._rejected = rejected
        self._recent = RecentRecords()
        self._turns: Iterator[Released] = iter(())
        self._room = ROOM
        self._read: Mapping[Partition, int] = {}
        self._host_was_behind = False
        self.ready: Released | None = None
        """Records to be evaluated before `next_turn`; None where none are."""
        self.records = 0
        """Records decoded since the start."""

    @property
    def held_records(self) -> int:
        """Records that wait for their place in the sequence."""
        return self._merge.held_records

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Tell whether something is yet to be evaluated that was read by then."""
        return self.ready is not None or self._merge.holds_from_before(arrived_ms)

    def crowded(self) -> frozenset[Partition]:
        """Name the partitions that are so far ahead of others that no more should be asked of them."""
        return self._merge.crowded()

    def flush(self, moved: frozenset[Partition]) -> None:
        """Release what is held of these partitions, whose logs are no longer there; nothing may be ready."""
        self._begin(self._merge.flush(sorted(moved), self._clocks.host_ms()))

    def forget_records(self, partitions: frozenset[Partition]) -> None:
        """Recognise these logs no longer by what was read of them: they are others now."""
        for partition in partitions:
            self._recent.forget(partition)

    def take_newest(self) -> Mapping[Partition, Record]:
        """Hand over the last records evaluated since the last call, by which the logs are recognised."""
        return self._recent.take(self._progress.take_newest())

    async def receive(self, poll: Poll, *, connected: bool) -> None:
        """Decode what a poll delivered and release what may go; nothing may be ready.

        Parameters
        ----------
        poll
            Records by partition, and the state of every partition.
        connected
            Whether brokers answer.
        """
        self._meet(poll)
        clocks = self._clocks
        for turn, delivered in enumerate(in_turns(poll.records, lambda: self._room)):
            if turn:
                await yield_to_loop()
            decoded = {
                partition: self._decoded(partition, records) for partition, records in delivered.items()
            }
            self._room = room_after(decoded.values())
            self._merge.add(decoded, clocks.monotonic_ms())
        self._merge.found({partition: state.at_end_ms for partition, state in poll.partitions.items()})
        self._merge.leave_behind(poll.left_behind)
        self._read = {partition: state.position for partition, state in poll.partitions.items()}
        self._begin(self._merge.in_turns(clocks.monotonic_ms(), clocks.host_ms(), connected=connected))

    def next_turn(self) -> None:
        """Have the next of what is released ready, if there is more."""
        self.ready = next(self._turns, None)
        self._tell()
        if self.ready is None:
            self._recent.let_go(self._progress.newest)
            self._advance_positions()

    def families(self) -> Sequence[Family]:
        """Records held by the merge, and the partitions waited for."""
        return held_families(self._merge, self._clocks.monotonic_ms())

    def _begin(self, turns: Iterable[Released]) -> None:
        self._turns = expanded_in_turns(turns)
        self.next_turn()

    def _advance_positions(self) -> None:
        """Go on where reading stands in partitions of which nothing is held: past control records, too."""
        for partition, position in self._read.items():
            if self._merge.is_empty(partition):
                self._progress.positions[partition] = position

    def _meet(self, poll: Poll) -> None:
        """Take up partitions seen for the first time, and forget those that are no longer there."""
        for partition in poll.moved:  # an offset of the log before says nothing of this one
            self._progress.newest.pop(partition, None)
        for partition, state in poll.partitions.items():
            if partition not in self._progress.positions or partition in poll.moved:
                records = poll.records.get(partition, ())
                self._progress.positions[partition] = records[0].offset if records else state.position
        if poll.partitions:
            self._merge.set_partitions(list(poll.partitions))
            for partition in self._progress.positions.keys() - poll.partitions.keys():
                self._progress.forget(partition)

    def _decoded(self, partition: Partition, records: Sequence[Record]) -> Arrivals:
        batch = self._topics[partition.topic].decoder.decode_batch(records)
        self._recent.add(partition, records)
        self.records += len(records)
        if batch.objects:
            self._rejected.keep(records, batch, np.flatnonzero(batch.rows["side"] == OBJECT))
        return arrivals_of(records, batch)

    def _tell(self) -> None:
        """Say who is not waited for any more, and whether the host's clock is believed."""
        for partition in self._merge.left_behind:
            self._progress.left_behind += 1
            self._telemetry.emit(PartitionLeftBehind(partition.topic, partition.partition))
        self._merge.left_behind.clear()
        for kind in self._merge.full_names:
            self._telemetry.emit(NameTableFull(kind))
        self._merge.full_names.clear()
        if self._merge.host_is_behind != self._host_was_behind:
            self._host_was_behind = self._merge.host_is_behind
            self._telemetry.emit(HostClockBehind() if self._host_was_behind else HostClockRight())
