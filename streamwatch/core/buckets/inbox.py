"""What an id bucket was sent: brought into one sequence, and held until the batch's time has come to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from streamwatch.core.buckets.pieces import Moment, Piece, Row
from streamwatch.core.buckets.places import rank_of, ranks_of
from streamwatch.core.events import Partition, Side


@dataclass(frozen=True, slots=True)
class Held:
    """An event, its time in its partition, and the rank of that."""

    time_ms: int
    rank: int
    partition: Partition
    row: Row


@dataclass(frozen=True, slots=True)
class Taken:
    """What the batch's time has come to: events in order, and how many records there were."""

    rows: Sequence[Held]
    moments: Sequence[tuple[Partition, Moment]]


class InboxState(msgspec.Struct, array_like=True, frozen=True):
    """State of an inbox."""

    reached_ms: int
    running: list[tuple[str, int, int]]
    rows: list[tuple[str, int, int, Row]]
    """Topic, partition, time, event."""
    moments: list[tuple[str, int, Moment]]


class Inbox:
    """Holds events by partition until their time has come.

    Parameters
    ----------
    sides
        What each topic carries, in the order of the settings.
    """

    def __init__(self, sides: Mapping[str, Side]) -> None:
        self._ranks = ranks_of(sides)
        self._running: dict[Partition, int] = {}
        self._rows: list[Held] = []
        self._moments: list[tuple[Partition, Moment]] = []
        self.reached_ms = -1
        """Time to which the bucket has come: that of the batch, or the newest record's if that is earlier."""

    def __len__(self) -> int:
        return len(self._rows)

    def take(self, pieces: Sequence[Piece], end_ms: int | None) -> Taken:
        """Take in pieces, and take out what may go."""
        for piece in sorted(pieces, key=lambda p: (p.topic, p.partition, p.first_offset)):
            self._add(piece)
        newest_ms = max(self._running.values(), default=-1)
        reached_ms = newest_ms if end_ms is None else min(end_ms, newest_ms)
        self.reached_ms = reached_ms = max(reached_ms, self.reached_ms)
        rows = [held for held in self._rows if held.time_ms <= reached_ms]
        moments = [each for each in self._moments if each[1].time_ms <= reached_ms]
        self._rows = [held for held in self._rows if held.time_ms > reached_ms]
        self._moments = [each for each in self._moments if each[1].time_ms > reached_ms]
        rows.sort(key=lambda held: (held.time_ms, held.rank, held.row.offset, held.row.event))
        return Taken(rows, moments)

    def _add(self, piece: Piece) -> None:
        partition = Partition(piece.topic, piece.partition)
        rank = rank_of(self._ranks, partition)
        so_far = self._running.get(partition, -1)
        self._rows += [Held(max(so_far, row.time_ms), rank, partition, row) for row in piece.rows]
        for moment in piece.moments:
            moment.time_ms = max(so_far, moment.time_ms)
            self._moments.append((partition, moment))
        self._running[partition] = max(so_far, piece.newest_ms)

    def state(self) -> InboxState:
        """State that `restore` continues from."""
        return InboxState(
            self.reached_ms,
            [(name.topic, name.partition, ms) for name, ms in sorted(self._running.items())],
            [(held.partition.topic, held.partition.partition, held.time_ms, held.row) for held in self._rows],
            [(name.topic, name.partition, moment) for name, moment in self._moments],
        )

    def restore(self, state: InboxState) -> None:
        """Continue from a `state`."""
        self.reached_ms = state.reached_ms
        self._running = {Partition(topic, number): ms for topic, number, ms in state.running}
        self._rows = [
            Held(ms, rank_of(self._ranks, Partition(topic, number)), Partition(topic, number), row)
            for topic, number, ms, row in state.rows
        ]
        self._moments = [(Partition(topic, number), moment) for topic, number, moment in state.moments]
