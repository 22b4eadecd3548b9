"""Logs of several partitions on a simulated host, and a reader that polls and crashes at random.

The oracle is `sequence_of`: all records sorted by (running maximum of their partition, rank, partition,
offset), computed from the whole logs at once.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from streamwatch.core.merge import Arrivals, Merge, MergeProgress, MergeSpec, Released
from streamwatch.core.records.batch import batch_of
from streamwatch.core.records.events import Label, Partition, Prediction, Side

RANK = {"prediction": 0, "both": 1, "label": 2}


@dataclass(frozen=True)
class Entry:
    """A record of a log: when it was stamped, appended, and readable (later where a transaction is open)."""

    stamp_ms: int
    appended_ms: int
    readable_ms: int
    decodable: bool = True


@dataclass
class Logs:
    sides: dict[str, Side]
    entries: dict[Partition, list[Entry]] = field(default_factory=dict)

    @property
    def partitions(self) -> list[Partition]:
        order = sorted(self.sides, key=lambda topic: RANK[self.sides[topic]])
        return sorted(self.entries, key=lambda p: (order.index(p.topic), p.partition))


def sequence_of(logs: Logs) -> list[tuple[Partition, int, int]]:
    """Partition, offset and clock of every record, in order."""
    keys = []
    for rank, partition in enumerate(logs.partitions):
        running = -1
        for offset, entry in enumerate(logs.entries[partition]):
            running = max(running, entry.stamp_ms) if entry.decodable else running
            keys.append((running, rank, offset, partition))
    clock = -1
    sequence = []
    for running, _, offset, partition in sorted(keys):
        clock = max(clock, running)
        sequence.append((partition, offset, clock))
    return sequence


@dataclass
class Reader:
    """One life of a reader; `progress` is what survives it."""

    logs: Logs
    spec: MergeSpec
    chance: random.Random
    progress: MergeProgress
    most: int = 5
    share: float = 0.6
    host_offset_ms: int = 0
    unreachable: frozenset[Partition] = frozenset()

    def __post_init__(self) -> None:
        self.merge = Merge(self.spec, self.logs.sides, self.progress)
        self.read = {p: self.progress.positions.get(p, 0) for p in self.logs.partitions}
        self.merge.set_partitions(self.logs.partitions)
        self.out: list[tuple[Partition, int, int]] = []

    def poll(self, now_ms: int) -> None:
        """Ask some partitions for their next records, then release what may go."""
        partitions = self.logs.partitions
        self.chance.shuffle(partitions)
        crowded = self.merge.crowded()
        for partition in partitions:
            if partition in self.unreachable or partition in crowded or self.chance.random() > self.share:
                continue
            log, start = self.logs.entries[partition], self.read[partition]
            stop = start
            while stop < len(log) and log[stop].readable_ms <= now_ms and stop - start < self.most:
                stop += 1
            self.read[partition] = stop
            self._add(partition, log[start:stop], start, now_ms)
            end = sum(entry.appended_ms <= now_ms for entry in log)
            self.merge.found({partition: now_ms if stop == end else None})
        self._release(now_ms)

    def _add(self, partition: Partition, entries: Sequence[Entry], start: int, now_ms: int) -> None:
        side = self.logs.sides[partition.topic]
        event = Prediction if side == "prediction" else Label
        offsets = np.arange(start, start + len(entries))
        events = [event(f"{partition}{i}", "m", "a", 0) for i in range(len(entries))]
        arrivals = Arrivals(
            offsets,
            np.array([entry.stamp_ms for entry in entries], np.int64),
            np.array([entry.decodable for entry in entries], np.bool_),
            batch_of(events, offsets),  # type: ignore[arg-type]
        )
        self.merge.add({partition: arrivals}, now_ms)

    def _release(self, now_ms: int, *, crash: bool = False) -> None:
        """Evaluate what may go turn by turn, each in two parts; a crash comes between any of them."""
        for released in self.merge.in_turns(now_ms, now_ms + self.host_offset_ms):
            cut = self.chance.randrange(len(released) + 1)
            self._evaluate(released.part(0, cut))
            if crash and self.chance.random() < 0.5:
                return
            self._evaluate(released.part(cut, len(released)))

    def _evaluate(self, part: Released) -> None:
        if len(part):
            self.progress.note(part)
            self.out += [
                (part.partitions[index], offset, clock)
                for index, offset, clock in zip(
                    part.indices.tolist(), part.offsets.tolist(), part.clock_ms.tolist(), strict=True
                )
            ]

    def crash(self, now_ms: int) -> MergeProgress:
        """Die while evaluating; what is left is as a store would give it back."""
        self._release(now_ms, crash=True)
        return MergeProgress.restored(self.progress.state(), self.logs.sides)

    def run(self, start_ms: int, stop_ms: int, step_ms: int = 50) -> Reader:
        for now_ms in range(start_ms, stop_ms, step_ms):
            self.poll(now_ms)
        return self
