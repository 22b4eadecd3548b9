"""Search for the oldest entries of a queue: planned and finished by the loop, run in a thread.

Runs are sorted by digest, not by age, so the search reads every run that may contain some of them completely.
This pays because it takes many at once: those that are not due yet wait in the table, before all others.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import detached
from streamwatch.core.join.cold.block import (
    ARRIVAL,
    RECORD_MS,
    WORDS,
    Words,
    count_at,
    entries_of,
    is_set,
    long_at,
    side_of,
    unpack_entries,
)
from streamwatch.core.join.cold.finding import read_living_blocks
from streamwatch.core.join.cold.run import Run, copy_in_order
from streamwatch.core.join.cold.store import ColdSpec, RunStore

_BEYOND = 2**63 - 1


@detached
def add_older(
    data, begins, first, block_entries, dead, into, source, limit, count, words, positions, sources
):
    """Add the living entries of blocks with an arrival of at most `limit`; return the new number of entries.

    Of the others only the arrival is read. `first` is the number of the first block.
    """
    for b in range(begins.shape[0] - 1):
        at = begins[b]
        for i in range(count_at(data, at)):
            position = (first + b) * block_entries + i
            if is_set(dead, position) or long_at(data, at, ARRIVAL, i) > limit:
                continue
            unpack_entries(data, at, i, 1, words, count, into)
            positions[count] = position
            sources[count] = source
            count += 1
    return count


@detached
def keep_older(words, positions, sources, count, limit):
    """Keep those of the first `count` entries with an arrival of at most `limit`; return their number."""
    kept = 0
    for i in range(count):
        if np.int64(words[i, ARRIVAL]) <= limit:
            for w in range(words.shape[1]):
                words[kept, w] = words[i, w]
            positions[kept] = positions[i]
            sources[kept] = sources[i]
            kept += 1
    return kept


@dataclass(slots=True)
class _Room:
    """Entries found: the first `count` rows of the arrays."""

    count: int
    words: Words
    positions: NDArray[np.int64]
    sources: NDArray[np.int32]
    """Index of each entry's run."""


class TakenEntries(NamedTuple):
    """Entries taken from the runs, oldest first."""

    entries: NDArray[np.void]
    """`PACKED_ENTRY`, shape (n,)."""
    side: NDArray[np.int32]
    """Side columns, shape (n, columns)."""


class OldestSearch:
    """Search for the `count` oldest entries of a queue, in its state when the search is planned.

    Parameters
    ----------
    store
        Store of the blocks.
    spec
        Sizes of chunks.
    queue
        Queue of the entries.
    runs
        All runs of the queue.
    count
        Number of entries wanted.

    Raises
    ------
    ValueError
        If `count` is below 1.
    """

    def __init__(self, store: RunStore, spec: ColdSpec, queue: int, runs: list[Run], count: int) -> None:
        if count < 1:
            raise ValueError(f"at least one entry must be wanted, got {count}")
        self._store = store
        self._spec = spec
        self.queue = queue
        self.runs = sorted(runs, key=lambda run: run.oldest_arrival)
        self._bounds = [run.oldest_arrival for run in self.runs]
        self._dead = [run.dead.copy() for run in self.runs]
        self._alive = sum(run.alive for run in runs)
        self._count = count
        self._width = WORDS + max((run.columns for run in runs), default=0)
        self._found = _Room(
            0, np.empty((0, self._width), np.uint64), np.empty(0, np.int64), np.empty(0, np.int32)
        )
        self.limit = -1
        """All entries left in the runs have a larger arrival than this."""

    def run(self) -> None:
        """Read the runs; to be called in a thread. The result may be discarded.

        Raises
        ------
        ColdDamaged
            If a block is not what was written.
        ValueError
            If more entries than `count` have one arrival.
        """
        self.limit = _BEYOND
        chunk = self._spec.chunk_blocks * max((run.manifest.block_entries for run in self.runs), default=1)
        size = min(2 * self._count, self._alive + chunk) + chunk
        found = self._found = _Room(
            0, np.empty((size, self._width), np.uint64), np.empty(size, np.int64), np.empty(size, np.int32)
        )
        for k, (run, bound, dead) in enumerate(zip(self.runs, self._bounds, self._dead, strict=True)):
            if bound > self.limit:
                break
            for data, begins, numbers in read_living_blocks(self._store, run, dead, self._spec.chunk_blocks):
                if found.count + chunk > size:
                    self._keep()
                    if found.count > self._count:
                        raise ValueError(f"arrivals must differ, got {self.limit} several times")
                found.count = add_older(
                    data,
                    begins,
                    int(numbers[0]),
                    run.manifest.block_entries,
                    dead,
                    run.into,
                    k,
                    self.limit,
                    found.count,
                    found.words,
                    found.positions,
                    found.sources,
                )
            if found.count > self._count:
                self._keep()

    def _keep(self) -> None:
        """Keep only the oldest of the entries found so far."""
        found = self._found
        ages = arrivals(found.words[: found.count])
        self.limit = int(np.partition(ages, self._count - 1)[self._count - 1])
        found.count = keep_older(found.words, found.positions, found.sources, found.count, self.limit)

    def take_found(self) -> TakenEntries:
        """Remove the entries found that are still alive from their runs, and return them, oldest first."""
        found = self._found
        words, positions = found.words[: found.count], found.positions[: found.count]
        sources = found.sources[: found.count]
        kept = np.ones(found.count, np.bool_)
        latest_ms = int(words[:, RECORD_MS].view(np.int64).max(initial=0))
        for k, run in enumerate(self.runs):
            own = np.flatnonzero(sources == k)
            in_run = positions[own]
            kept[own] = (run.dead[in_run >> 6] >> (in_run & 63).astype(np.uint64)) & np.uint64(1) == 0
            run.mark_dead(in_run.astype(np.uint32))
            if self.limit != _BEYOND:
                run.oldest_arrival = max(run.oldest_arrival, self.limit + 1)
                run.oldest_ms = max(run.oldest_ms, latest_ms)
        alive = np.flatnonzero(kept)
        order = alive[np.argsort(arrivals(words)[alive])]
        out = np.empty((len(order), words.shape[1]), np.uint64)
        copy_in_order(words, order, out)
        return TakenEntries(entries_of(out), side_of(out))


def arrivals(words: Words) -> NDArray[np.int64]:
    """Arrivals of packed entries, (n,)."""
    return words[:, ARRIVAL].view(np.int64)
