"""Inbox of an id bucket: brings pieces into one sequence, and holds events beyond the time of the batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from streamwatch.core.buckets.pieces import Moment, Piece, Row
from streamwatch.core.buckets.places import rank_of, ranks_of
from streamwatch.core.events import Partition, Side

Held: TypeAlias = tuple[int, int, int, int, Row]
"""(time in the partition, rank of the partition, offset, number in the record, event); sorts like places."""


@dataclass(frozen=True, slots=True)
class DueEvents:
    """Events due in a batch, in order, and counts of their records."""

    rows: Sequence[Held]
    moments: Sequence[tuple[Partition, Moment]]


class InboxState(msgspec.Struct, array_like=True, frozen=True):
    """State of an inbox."""

    reached_ms: int
    running: list[tuple[str, int, int]]
    rows: list[tuple[str, int, int, Row]]
    """Topic, partition, time, event of each event held."""
    moments: list[tuple[str, int, Moment]]


class Inbox:
    """Holds events by partition until they are due.

    Parameters
    ----------
    sides
        Kind of events of each topic, in the order of the settings.
    """

    def __init__(self, sides: Mapping[str, Side]) -> None:
        self._ranks = ranks_of(sides)
        self._running: dict[Partition, int] = {}
        self.partitions: dict[int, Partition] = {}
        """Partitions by rank, of those from which pieces came."""
        self._rows: list[Held] = []
        self._moments: list[tuple[Partition, Moment]] = []
        self.reached_ms = -1
        """Time the bucket has reached: that of the batch, or of the newest record if that is earlier."""

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, pieces: Sequence[Piece], end_ms: int | None) -> DueEvents:
        """Add pieces, and remove and return what is due."""
        for piece in sorted(pieces, key=lambda p: (p.topic, p.partition, p.first_offset)):
            self._add(piece)
        newest_ms = max(self._running.values(), default=-1)
        reached_ms = newest_ms if end_ms is None else min(end_ms, newest_ms)
        self.reached_ms = reached_ms = max(reached_ms, self.reached_ms)
        rows = [held for held in self._rows if held[0] <= reached_ms]
        moments = [each for each in self._moments if each[1].time_ms <= reached_ms]
        self._rows = [held for held in self._rows if held[0] > reached_ms]
        self._moments = [each for each in self._moments if each[1].time_ms > reached_ms]
        rows.sort()
        return DueEvents(rows, moments)

    def _add(self, piece: Piece) -> None:
        partition = Partition(piece.topic, piece.partition)
        rank = rank_of(self._ranks, partition)
        so_far = self._running.get(partition, -1)
        self.partitions[rank] = partition
        self._rows += [(max(so_far, row.time_ms), rank, row.offset, row.event, row) for row in piece.rows]
        for moment in piece.moments:
            moment.time_ms = max(so_far, moment.time_ms)
            self._moments.append((partition, moment))
        self._running[partition] = max(so_far, piece.newest_ms)

    def state(self) -> InboxState:
        """State from which `restore` continues."""
        return InboxState(
            self.reached_ms,
            [(name.topic, name.partition, ms) for name, ms in sorted(self._running.items())],
            [(*self._name(rank), time_ms, row) for time_ms, rank, _, _, row in self._rows],
            [(name.topic, name.partition, moment) for name, moment in self._moments],
        )

    def restore(self, state: InboxState) -> None:
        """Continue from a state."""
        self.reached_ms = state.reached_ms
        self._running = {Partition(topic, number): ms for topic, number, ms in state.running}
        ranks = {partition: rank_of(self._ranks, partition) for partition in self._running}
        self.partitions = {rank: partition for partition, rank in ranks.items()}
        self._rows = [
            (time_ms, ranks[Partition(topic, number)], row.offset, row.event, row)
            for topic, number, time_ms, row in state.rows
        ]
        self._moments = [(Partition(topic, number), moment) for topic, number, moment in state.moments]

    def _name(self, rank: int) -> tuple[str, int]:
        partition = self.partitions[rank]
        return partition.topic, partition.partition
