"""A stretch of the sequence: records in order, with the clock at each; and how far evaluation has come."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge.queues import IN_ORDER, LATENESS_UNKNOWN
from streamwatch.core.merge.timestamps import REASONS
from streamwatch.core.records.batch import SEVERAL, RecordBatch, no_records, rows_of, words_of
from streamwatch.core.records.events import Int64, Name, Partition

__all__ = ["CONTINUED", "IN_ORDER", "LATENESS_UNKNOWN", "Released", "together"]

CONTINUED: Final = -3
"""Instead of a lateness: the next row is of the same record, and has the lateness of both."""


@dataclass(frozen=True, slots=True)
class Released:
    """Released records, in order; columns of one length.

    Attributes
    ----------
    records
        Decoded records, with the clock at each of them.
    partitions
        Partitions that `indices` refer to.
    indices
        int64: which partition each record is of.
    offsets, times_ms
        int64: offset, and time in its partition.
    clock_ms
        int64: the clock at each record, in milliseconds since the epoch; not decreasing.
    lateness_ms
        int64: the clock less the record's time, if a later record was released before; otherwise `IN_ORDER`.
        `LATENESS_UNKNOWN` if such a record has no own time, as it could not be decoded; or `CONTINUED`.
    reasons
        uint8: why its timestamp was corrected (`timestamps.REASONS`), or 0.
    events, tied
        int64: events that the record holds, 0 if it was skipped, and predictions among them whose class was
        one of several with the largest score. A record that has several rows reports all at its last.
        None where every record holds one event, and no class was tied.
    """

    records: RecordBatch
    partitions: Sequence[Partition]
    indices: NDArray[np.int64]
    offsets: NDArray[np.int64]
    times_ms: NDArray[np.int64]
    clock_ms: NDArray[np.int64]
    lateness_ms: NDArray[np.int64]
    reasons: NDArray[np.uint8]
    events: NDArray[np.int64] | None = None
    tied: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.records)

    def end_of_record(self, stop: int) -> int:
        """Return the first row, from `stop` (at least 1) on, before which a record ends."""
        if stop < len(self):
            while self.lateness_ms[stop - 1] == CONTINUED:
                stop += 1
        return min(stop, len(self))

    def part(self, start: int, stop: int) -> Released:
        """Take the records from `start` up to `stop`."""
        columns: list[Any] = [getattr(self, name) for name in _COLUMNS]
        parts: list[Any] = [None if column is None else column[start:stop] for column in columns]
        return Released(self.records.part(start, stop), self.partitions, *parts)


_COLUMNS: Final = tuple(field.name for field in fields(Released))[2:]


def together(parts: Sequence[Released]) -> Released:
    """Concatenate stretches of the sequence that were released one after another, before they are expanded.

    Texts, names and objects are those of the last, which has those of all.
    """
    if len(parts) == 1:
        return parts[0]
    if not parts:
        none, codes = np.empty(0, np.int64), np.empty(0, np.uint8)
        return Released(no_records(), (), none, none, none, none, none, codes)
    last = parts[-1].records
    return Released(
        RecordBatch(
            rows_of(np.concatenate([words_of(part.records.rows) for part in parts])),
            last.texts,
            last.objects,
            last.vocabulary,
            last.topics,
            last.scores,
            last.elements,
        ),
        parts[0].partitions,
        *(np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS[:-2]),
    )


# Expansion of released records that hold several events, or none, into a row for each event.
#
# Until its release a record is one row, as waiting, lateness and positions concern whole records.
# Afterwards each of its events is a row with the record's offset and time. All but the last are marked
# (`CONTINUED`), so that neither a turn nor a commit ends between them.


EVENTS_PER_TURN: Final = 4_096
"""Events, of records with several, after which a turn ends: with the record that reaches this number."""


def expanded(released: Released) -> Released:
    """Return a stretch of the sequence with a row for each event, and one for each record without any."""
    if not len(_several(released.records)):
        return released
    batch, of, events, tied = released.records.spread()
    is_last = np.ones(len(of), np.bool_)
    is_last[:-1] = of[1:] != of[:-1]

    def at_last_row(column: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.where(is_last, column[of], 0)

    return Released(
        batch,
        released.partitions,
        released.indices[of],
        released.offsets[of],
        released.times_ms[of],
        released.clock_ms[of],
        np.where(is_last, released.lateness_ms[of], CONTINUED),
        np.where(is_last, released.reasons[of], 0).astype(np.uint8),
        at_last_row(events),
        at_last_row(tied),
    )


def expanded_in_turns(stretches: Iterable[Released]) -> Generator[Released, None, None]:
    """Yield stretches of the sequence, expanded, in shorter ones where records hold many events."""
    for released in stretches:
        start = 0
        for stop in _stops(released.records):
            yield expanded(released.part(start, stop))
            start = stop
        if start < len(released):
            yield expanded(released.part(start, len(released)))


def _stops(records: RecordBatch) -> Generator[int, None, None]:
    """Yield the row after each record with which the events of records with several fill a turn."""
    indices = _several(records)
    ends = np.cumsum(records.elements.sizes(records.rows["object"][indices]))
    before = 0
    while len(ends) and ends[-1] >= before + EVENTS_PER_TURN:
        last = int(np.searchsorted(ends, before + EVENTS_PER_TURN))
        yield int(indices[last]) + 1
        before = int(ends[last])


def _several(records: RecordBatch) -> NDArray[np.intp]:
    """Find the records that hold several events, or none."""
    return np.flatnonzero(records.rows["side"] == SEVERAL) if len(records.elements) else np.empty(0, np.intp)


# Progress of the evaluation, from which a restart continues with exactly the same sequence.


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
    pause though they are not late, and their position in the order changes no number.
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
        touched = np.flatnonzero(last_rows >= 0)
        last = last_rows[touched]
        names = [released.partitions[index] for index in touched.tolist()]
        self.positions.update(zip(names, (offsets[last] + 1).tolist(), strict=True))
        self.running_ms.update(zip(names, times[last].tolist(), strict=True))
        self.newest.update(zip(names, offsets[last].tolist(), strict=True))
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
        of_partitions = [each.topic for each in released.partitions]
        topics = list(dict.fromkeys(of_partitions))
        numbers = {topic: number for number, topic in enumerate(topics)}
        by_row = np.array([numbers[topic] for topic in of_partitions])[released.indices]
        columns: list[tuple[dict[str, int], NDArray[Any] | None]]
        if released.events is None or released.tied is None:
            columns = [(self.evaluated, None), (self.events, None)]
        else:
            is_record = released.lateness_ms != CONTINUED
            columns = [
                (self.evaluated, is_record),
                (self.events, released.events),
                (self.skipped, is_record & (released.events == 0)),
                (self.tied, released.tied),
            ]
        for counts, weights in columns:
            for topic, count in zip(topics, np.bincount(by_row, weights, len(topics)).tolist(), strict=True):
                if count:
                    counts[topic] = counts.get(topic, 0) + int(count)

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
