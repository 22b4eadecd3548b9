"""Dedup entries of settled predictions, kept in generations: a store drops them whole and needs no index."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import msgspec

from streamwatch.core.join.entry import JoinEntry
from streamwatch.core.join.expiry import deadline

GENERATIONS = 8
"""Into how many parts a full dedup index is cut, by time and by number: what eviction drops is one part."""


class Generation(msgspec.Struct, gc=False, array_like=True):
    """Dedup entries that are dropped together."""

    number: int
    count: int
    newest_ms: int
    """Latest record time at which one of them was settled."""


@dataclass(frozen=True, slots=True)
class DedupState:
    """State of a dedup index."""

    closed: list[Generation]
    opened: Generation
    opened_ms: int
    clock_ms: int
    floor: int


class DedupIndex:
    """Dedup entries, at most `max_dedup_entries`, each kept for at least `horizon_ms` after it was settled.

    A generation is closed when the clock has moved by an eighth of the horizon since it was opened,
    or when it holds an eighth of the maximum. It is dropped when the clock is `horizon_ms` past its
    newest dedup entry, or, oldest first, when there are too many. The records of a dropped generation (below
    `floor`) are dead at once, whenever the store removes them.
    """

    __slots__ = (
        "_base",
        "_clock_ms",
        "_closed",
        "_closed_count",
        "_horizon_ms",
        "_maximum",
        "_opened_ms",
        "_share",
        "dedup_added",
        "dropped",
        "entries",
        "evicted",
        "floor",
        "newest_ms",
        "number",
        "room",
    )

    def __init__(self, horizon_ms: int, maximum: int) -> None:
        self._horizon_ms = horizon_ms
        self._maximum = maximum
        self._share = max(1, maximum // GENERATIONS)
        self._closed: deque[Generation] = deque()
        self._closed_count = 0
        self._opened_ms = -1
        self._clock_ms = -1
        self._base = 0  # of the open generation, before this batch
        self.number = 0
        self.floor = 0
        self.newest_ms = -1
        self.entries: list[JoinEntry] = []
        self.dedup_added: list[tuple[int, list[JoinEntry]]] = []
        self.dropped: list[int] = []
        self.evicted = 0
        self.room = 0
        self._measure()

    def __len__(self) -> int:
        return self._closed_count + self._base + len(self.entries)

    def _measure(self) -> None:
        self.room = min(self._share, self._maximum - self._closed_count + 1) - self._base

    def add(self, record: JoinEntry, state: int, record_ms: int) -> None:
        """Make a dedup entry of the record, settled at `record_ms`."""
        record.state = state
        record.generation = self.number
        if record.scores is not None:
            record.scores = None
        if record.segments is not None:
            record.segments = None
        if record.last_class is not None:
            record.last_class = None
        entries = self.entries
        entries.append(record)
        if record_ms > self.newest_ms:  # noqa: PLR1730 - a call of max() per event is what this avoids
            self.newest_ms = record_ms
        if len(entries) >= self.room:
            self.rotate_generations()

    def rotate_generations(self) -> None:
        """Close the open generation if it is full, and drop the oldest if there are too many entries."""
        if self._base + len(self.entries) >= self._share:
            self._close()
        if len(self) > self._maximum:
            if not self._closed:
                self._close()
            self.evicted += self._drop()
        self._measure()

    def _close(self) -> None:
        count = self._base + len(self.entries)
        self._closed.append(Generation(self.number, count, self.newest_ms))
        self._closed_count += count
        self._collect()
        self._base = 0
        self.newest_ms = -1
        self.number += 1
        self._opened_ms = self._clock_ms

    def _collect(self) -> None:
        if self.entries:
            self.dedup_added.append((self.number, self.entries))
            self.entries = []

    def _drop(self) -> int:
        generation = self._closed.popleft()
        self._closed_count -= generation.count
        self.dropped.append(generation.number)
        self.floor = generation.number + 1
        return generation.count

    def pass_time(self, clock_ms: int) -> None:
        """Close the open generation, and drop old ones, as far as the clock requires."""
        self._clock_ms = clock_ms
        if self._base + len(self.entries) == 0:
            self._opened_ms = clock_ms
        elif clock_ms - self._opened_ms >= max(1000, self._horizon_ms // GENERATIONS):
            self._close()
            self._measure()
        while self._closed and clock_ms // 1000 >= deadline(self._closed[0].newest_ms, self._horizon_ms):
            self._drop()
            self._measure()

    @property
    def clock_ms(self) -> int:
        """Clock at which time passed last."""
        return self._clock_ms

    def end_batch(self) -> tuple[list[tuple[int, list[JoinEntry]]], list[int]]:
        """Return the dedup entries made since the last call, by generation, and the generations dropped."""
        self._base += len(self.entries)
        self._collect()
        self._measure()
        dedup_added, self.dedup_added = self.dedup_added, []
        dropped, self.dropped = self.dropped, []
        return dedup_added, dropped

    def state(self) -> DedupState:
        """State that `restore` continues from; between batches."""
        opened = Generation(self.number, self._base, self.newest_ms)
        return DedupState(list(self._closed), opened, self._opened_ms, self._clock_ms, self.floor)

    def restore(self, state: DedupState) -> None:
        """Continue from a `state`."""
        self._closed = deque(state.closed)
        self._closed_count = sum(generation.count for generation in state.closed)
        self._base = state.opened.count
        self._opened_ms = state.opened_ms
        self._clock_ms = state.clock_ms
        self.number = state.opened.number
        self.floor = state.floor
        self.newest_ms = state.opened.newest_ms
        self._measure()
