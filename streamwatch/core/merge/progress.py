"""Progress of the evaluation, from which a restart continues with exactly the same sequence."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge.released import CONTINUED, IN_ORDER, Released
from streamwatch.core.merge.timestamps import REASONS
from streamwatch.core.records.events import Int64, Name, Partition


class Key(msgspec.Struct, frozen=True, array_like=True):
    """Position of a record in the sequence."""

    time_ms: Int64
    topic: Name
    partition: Int64
    offset: Int64


class PartitionProgress(msgspec.Struct, frozen=True, array_like=True):
    """Progress of the evaluation of one partition."""

    topic: Name
    partition: Int64
    position: Int64
    """Offset of the next record to be evaluated."""
    running_ms: Int64
    """Newest time of its records that were evaluated; -1 before the first."""


class ReleasedState(msgspec.Struct, frozen=True, array_like=True):
    """State of the merge as a commit keeps it for a restart."""

    partitions: list[PartitionProgress] = []
    last: Key | None = None
    clock_ms: Int64 = -1
    out_of_order: dict[Name, Int64] = {}
    lateness_ms: dict[Name, Int64] = {}
    corrected: dict[Name, Int64] = {}
    left_behind: Int64 = 0
    evaluated: dict[Name, Int64] = {}
    events: dict[Name, Int64] = {}
    skipped: dict[Name, Int64] = {}
    tied: dict[Name, Int64] = {}


_COUNTS: Final = ("out_of_order", "lateness_ms", "corrected", "evaluated", "events", "skipped", "tied")
"""Counts by topic, or by reason, of `ReleasedState` and `MergeProgress`."""


@dataclass(slots=True)
class MergeProgress:
    """Positions, running maxima and counters as of the last evaluated record."""

    positions: dict[Partition, int] = field(default_factory=dict[Partition, int])
    """Offset of the next record to be evaluated, by partition."""
    running_ms: dict[Partition, int] = field(default_factory=dict[Partition, int])
    """Newest time, by partition."""
    last: Key | None = None
    """The newest position in the sequence that was reached."""
    clock_ms: int = -1
    """Time of the record evaluated last; -1 before the first. It never goes back."""
    out_of_order: dict[str, int] = field(default_factory=dict[str, int])
    """Records that came after a later one had been evaluated, by topic.

    Without those that could not be decoded: the time they take, their partition's newest, is old after a
    pause though they are not late, and their place in the order changes no number.
    """
    lateness_ms: dict[str, int] = field(default_factory=dict[str, int])
    """Sum of the lateness of these records, by topic."""
    corrected: dict[str, int] = field(default_factory=dict[str, int])
    """Timestamps that were not believed, by reason."""
    left_behind: int = 0
    """Number of times that a partition was no longer waited for."""
    evaluated: dict[str, int] = field(default_factory=dict[str, int])
    """Records evaluated, by topic."""
    events: dict[str, int] = field(default_factory=dict[str, int])
    """Events in these records, by topic: predictions, labels, null and invalid records."""
    skipped: dict[str, int] = field(default_factory=dict[str, int])
    """Records evaluated from which no mapping makes an event, by topic."""
    tied: dict[str, int] = field(default_factory=dict[str, int])
    """Predictions whose class was one of several with the largest score, by topic."""
    newest: dict[Partition, int] = field(default_factory=dict[Partition, int])
    """Offset of the last record evaluated of each partition, since `take_newest`."""

    def note(self, released: Released) -> None:
        """Count records as evaluated, in order."""
        if not len(released):
            return
        indices, offsets, times = released.indices, released.offsets, released.times_ms
        last_rows = np.full(len(released.partitions), -1)
        last_rows[indices] = np.arange(len(indices))  # the last row of each partition remains
        for index in np.flatnonzero(last_rows >= 0).tolist():
            last, partition = int(last_rows[index]), released.partitions[index]
            self.positions[partition] = int(offsets[last]) + 1
            self.running_ms[partition] = int(times[last])
            self.newest[partition] = int(offsets[last])
        self._count(released)
        self.clock_ms = int(released.clock_ms[-1])
        if released.lateness_ms[-1] == IN_ORDER:  # late records come first
            self.last = Key(int(times[-1]), *released.partitions[int(indices[-1])], int(offsets[-1]))
        for row in np.flatnonzero(released.lateness_ms >= 0).tolist():
            topic = released.partitions[int(indices[row])].topic
            self.out_of_order[topic] = self.out_of_order.get(topic, 0) + 1
            self.lateness_ms[topic] = self.lateness_ms.get(topic, 0) + int(released.lateness_ms[row])
        if released.reasons.any():
            codes, counts = np.unique(released.reasons, return_counts=True)
            for code, count in zip(codes.tolist(), counts.tolist(), strict=True):
                if REASONS[code]:
                    self.corrected[REASONS[code]] = self.corrected.get(REASONS[code], 0) + count

    def _count(self, released: Released) -> None:
        """Count records, and the events that they hold, by topic."""
        indices = released.indices
        if released.events is None or released.tied is None:
            for index, count in enumerate(np.bincount(indices).tolist()):
                topic = released.partitions[index].topic
                _add(self.evaluated, topic, count)
                _add(self.events, topic, count)
            return
        is_record = released.lateness_ms != CONTINUED
        columns: list[tuple[dict[str, int], NDArray[Any]]] = [
            (self.evaluated, is_record),
            (self.events, released.events),
            (self.skipped, is_record & (released.events == 0)),
            (self.tied, released.tied),
        ]
        for counts, weights in columns:
            for index, count in enumerate(np.bincount(indices, weights=weights).tolist()):
                _add(counts, released.partitions[index].topic, int(count))

    def take_newest(self) -> Mapping[Partition, int]:
        """Return the offset of the last record evaluated of each partition since the last call."""
        newest, self.newest = self.newest, {}
        return newest

    def forget(self, partition: Partition) -> None:
        """Drop a partition that is no longer there."""
        for column in (self.positions, self.running_ms, self.newest):
            column.pop(partition, None)

    def state(self) -> ReleasedState:
        """State that `restored` continues from."""
        indices = [
            PartitionProgress(*partition, position, self.running_ms.get(partition, -1))
            for partition, position in sorted(self.positions.items())
        ]
        # By name, so that their order does not depend on how records were cut into parts.
        counts = {name: dict(sorted(getattr(self, name).items())) for name in _COUNTS}
        return ReleasedState(indices, self.last, self.clock_ms, left_behind=self.left_behind, **counts)

    @classmethod
    def restored(cls, state: ReleasedState, topics: Collection[str]) -> MergeProgress:
        """Continue from a `state`, without the partitions of topics that are no longer read."""
        partitions = [each for each in state.partitions if each.topic in topics]
        return cls(
            {Partition(p.topic, p.partition): p.position for p in partitions},
            {Partition(p.topic, p.partition): p.running_ms for p in partitions},
            state.last,
            state.clock_ms,
            left_behind=state.left_behind,
            **{name: dict(getattr(state, name)) for name in _COUNTS},
        )


def _add(counts: dict[str, int], topic: str, count: int) -> None:
    if count:
        counts[topic] = counts.get(topic, 0) + count
