"""Inbox of an id bucket in columns: holds chunks by partition until they are due."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from streamwatch.core.buckets.columns.pieces import (
    Chunk,
    ColumnPiece,
    Moments,
    PackedChunk,
    PackedMoments,
    pack_chunk,
    pack_moments,
)
from streamwatch.core.buckets.places import rank_of, ranks_of
from streamwatch.core.events import Partition, Side


@dataclass(frozen=True, slots=True)
class DueRecords:
    """Records due in a batch by partition, ordered by rank, each in the order of its log."""

    chunks: Sequence[tuple[Partition, Chunk]]
    moments: Sequence[tuple[Partition, Moments]]


class ColumnInboxState(msgspec.Struct, array_like=True, frozen=True):
    """State of an inbox."""

    reached_ms: int
    running: list[tuple[str, int, int]]
    chunks: list[tuple[str, int, PackedChunk]]
    moments: list[tuple[str, int, PackedMoments]]


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
        """Time the bucket has reached: that of the batch, or of the newest record if that is earlier."""

    def __len__(self) -> int:
        return sum(len(chunk.rows) for several in self._chunks.values() for chunk in several)

    def rank(self, partition: Partition) -> int:
        """Rank of a partition among all."""
        return rank_of(self._ranks, partition)

    def take(self, pieces: Sequence[ColumnPiece], end_ms: int | None) -> DueRecords:
        """Add pieces, and remove and return what is due."""
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
        self.rank(partition)
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
