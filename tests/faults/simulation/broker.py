"""Logs that grow with time, and a reader of them that is as unpunctual as a Kafka client."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random

import msgspec
import numpy as np

from streamwatch.core.ports import PartitionState, Poll
from streamwatch.core.records.batch import batch_of
from streamwatch.core.records.events import Event, Fingerprint, Mark, Partition
from streamwatch.edge.sources.kafka.source import source_families
from tests.faults.simulation.disk import BrokenPromiseError, Disk

GRACE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class SimRecord:
    """A record that carries the event itself."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    event: Event
    timestamp_type: int = 0
    value: bytes = b""
    key: None = None
    headers: Sequence[tuple[str, bytes]] = ()
    fault: str | None = None


@dataclass
class Log:
    """One partition: records by offset, with gaps, and when each could be read."""

    partition: Partition
    appends_time: bool = False
    """Whether timestamps are those of the broker."""
    records: list[SimRecord] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    appended: list[float] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    """High watermark after each record, the gap behind it included."""

    def append(self, at: float, timestamp: int, event: Event, gap: int) -> None:
        offset = self.ends[-1] if self.ends else 0
        self.records.append(SimRecord(*self.partition, offset, timestamp, event, int(self.appends_time)))
        self.offsets.append(offset)
        self.appended.append(at)
        self.ends.append(offset + 1 + gap)

    def append_time(self) -> None:
        """Timestamps are the broker's, and believed."""
        self.appends_time = True
        self.records = [replace(record, timestamp_type=1) for record in self.records]

    def event_at(self, offset: int) -> Event:
        return self.records[bisect_left(self.offsets, offset)].event

    @property
    def end(self) -> int:
        return self.ends[-1] if self.ends else 0

    def high_watermark(self, now: float) -> int:
        written = bisect_right(self.appended, now)
        return self.ends[written - 1] if written else 0

    def before(self, position: int) -> SimRecord | None:
        """The last record that lies before this position."""
        place = bisect_left(self.offsets, position)
        return self.records[place - 1] if place else None


class SimDecoder:
    """Copies the events that records carry, and remembers where each came from."""

    def __init__(self, origins: dict[int, tuple[Event, Partition, int]]) -> None:
        self._origins = origins

    def decode_all(self, records, stamps):
        events = []
        for record, stamp in zip(records, stamps, strict=True):
            event = msgspec.structs.replace(record.event, record_ms=stamp)
            self._origins[id(event)] = (event, Partition(record.topic, record.partition), record.offset)
            events.append(event)
        return events

    def decode_batch(self, records):
        stamps = np.array([record.timestamp for record in records], np.int64)
        offsets = np.array([record.offset for record in records], np.int64)
        return batch_of(self.decode_all(records, stamps.tolist()), offsets, stamps)


@dataclass(frozen=True)
class Habits:
    """How the client reads."""

    records: int = 12
    """Most of one partition in one poll."""
    wait_seconds: float = 0.5
    stale: float = 0.2
    """How often a poll works with what was fetched before."""
    away: float = 0.02
    """How often brokers cannot be reached."""
    slow_topic: str = ""
    """Of this one, a poll delivers one record at most."""


class SimSource:
    """Implements the daemon's `Source` for one life of a process."""

    name = "Kafka"

    def __init__(
        self,
        logs: Mapping[Partition, Log],
        seen_from: Mapping[Partition, float],
        disk: Disk,
        chance: Random,
        habits: Habits,
    ) -> None:
        self._logs = logs
        self._seen_from = seen_from
        self._disk = disk
        self._chance = chance
        self._habits = habits
        self._positions: dict[Partition, int] = {}
        self._fetched: dict[Partition, tuple[int, float]] = {}
        self._held: frozenset[Partition] = frozenset()
        self.up = self.assigned = False
        self.losses: Mapping[str, int] = {}
        self.records_lost: Mapping[str, int] = {}
        self.position_unverified = 0
        """Counts the times reading began: each has one finding, for `release_findings`."""
        self._begun = 0
        self._marks: dict[Partition, Mark] = {}
        self.committed: Mapping[Partition, int] = {}

    async def start(self, positions, fingerprints):
        await asyncio.sleep(self._chance.random())
        self._seek(positions, fingerprints)
        self.up = self.assigned = True

    async def rewind(self, positions, fingerprints):
        await asyncio.sleep(self._chance.random() * 0.1)
        self._seek(positions, fingerprints)

    def count_from(self, losses, records_lost, unverified_positions) -> None:
        self.losses, self.records_lost, self.position_unverified = losses, records_lost, unverified_positions
        self._begun = unverified_positions

    def _seek(self, positions, fingerprints) -> None:
        self._fetched = {}
        self._begun += 1
        self._marks = {p: fingerprint.marks[0] for p, fingerprint in fingerprints.items()}
        self._positions = {p: 0 for p in self._logs if self._visible(p)} | dict(positions)
        for partition, position in positions.items():
            last, fingerprint = self._logs[partition].before(position), fingerprints.get(partition)
            marks = fingerprint.marks if fingerprint else ()
            if marks != (() if last is None else (Mark(last.offset, last.timestamp),)):
                raise BrokenPromiseError(f"{partition} at {position} with the fingerprint {fingerprint}")

    def _visible(self, partition: Partition) -> bool:
        return self._seen_from[partition] <= asyncio.get_running_loop().time()

    def fingerprints(self):
        return {partition: Fingerprint("t", (mark,)) for partition, mark in self._marks.items()}

    def evaluated(self, newest) -> None:
        for partition, record in newest.items():
            self._marks[partition] = Mark(record.offset, record.timestamp)

    def release_findings(self) -> None:
        self.position_unverified = self._begun

    def durable(self, positions) -> None:
        if self._disk.store is not None and self._disk.at(positions) is None:
            raise BrokenPromiseError("offsets were given out that are not durable")
        self.committed = dict(positions)

    def families(self, counts):
        return source_families(counts, up=self.up)

    def pause(self, partitions) -> None:
        self._held = partitions

    async def stop(self) -> None:
        self.up = self.assigned = False

    async def poll(self) -> Poll:
        chance, habits = self._chance, self._habits
        await asyncio.sleep(0)
        self.up = chance.random() >= habits.away
        if not self.up:
            await asyncio.sleep(habits.wait_seconds * chance.random())
            self._fetched = {}
            return Poll({}, {p: PartitionState(at, -1, False) for p, at in self._positions.items()})
        found = self._deliver()
        if not found:
            await asyncio.sleep(habits.wait_seconds * (0.5 + chance.random()))
            found = self._deliver()
        return Poll(found, self._states())

    def _deliver(self) -> dict[Partition, list[SimRecord]]:
        chance, now = self._chance, asyncio.get_running_loop().time()
        for partition in self._logs:
            if partition not in self._positions and self._visible(partition):
                self._positions[partition] = 0
        partitions = list(self._positions)
        chance.shuffle(partitions)
        found: dict[Partition, list[SimRecord]] = {}
        for partition in partitions:
            if partition in self._held:
                continue
            log, position = self._logs[partition], self._positions[partition]
            if partition not in self._fetched or chance.random() >= self._habits.stale:
                self._fetched[partition] = (log.high_watermark(now), now)
            end = self._fetched[partition][0]
            first, last = bisect_left(log.offsets, position), bisect_left(log.offsets, end)
            most = 1 if partition.topic == self._habits.slow_topic else self._habits.records
            last = min(last, first + chance.randint(0, most))
            if last > first:
                found[partition] = log.records[first:last]
                self._positions[partition] = position = log.offsets[last - 1] + 1
            following = bisect_left(log.offsets, position)
            if chance.random() < 0.5:  # past control records
                following_offset = log.offsets[following] if following < len(log.offsets) else end
                self._positions[partition] = max(position, min(following_offset, end))
        return found

    def _states(self) -> dict[Partition, PartitionState]:
        now = asyncio.get_running_loop().time()
        states = {}
        for partition, position in self._positions.items():
            end, at = self._fetched.get(partition, (-1, -GRACE_SECONDS))
            at_end = end == position
            states[partition] = PartitionState(
                position,
                max(end, position) if end >= 0 else -1,
                at_end and now - at < GRACE_SECONDS,
                int(at * 1_000) if at_end else None,
            )
        return states
