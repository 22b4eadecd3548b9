"""Work of threads on runs: building them of evicted entries, merging several, finding the oldest entries."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

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
    with_side,
)
from streamwatch.core.join.cold.finding import Living, read_living, read_living_blocks
from streamwatch.core.join.cold.run import Positions, Run, RunWriter, copy_in_order, sorted_by_low
from streamwatch.core.join.cold.store import ColdSpec, RunStore

# Eviction of entries to a new run: planned and finished by the loop, built in a thread.


class Evicted(Protocol):
    """Entries evicted from the table, in any order; read in a thread, while nothing else uses them."""

    def low(self) -> NDArray[np.uint64]:
        """Lower halves of their digests, (n,)."""
        ...

    def write(self, order: NDArray[np.int32], words: Words) -> None:
        """Write the entries with the indices `order` to rows of words, uint64 (len(order), words)."""
        ...


class PackedEntries:
    """Entries that are packed already.

    Parameters
    ----------
    entries
        `PACKED_ENTRY` (n,).
    side
        Their side columns, (n, columns).
    """

    def __init__(self, entries: NDArray[np.void], side: NDArray[np.int32]) -> None:
        self._words = with_side(entries, side)

    def low(self) -> NDArray[np.uint64]:
        """Lower halves of their digests, (n,)."""
        return self._words[:, 0].copy()

    def write(self, order: NDArray[np.int32], words: Words) -> None:
        """Write the entries with the indices `order` to rows of words."""
        copy_in_order(self._words, order, words)


class Eviction:
    """Entries to be written as a run.

    Parameters
    ----------
    store
        Store for blocks, fences and filter.
    spec
        Sizes of blocks and filter.
    number
        Number of the run.
    queue
        Queue of all entries.
    entries
        The entries, at least one.
    names
        Names of their side columns.
    floor
        Oldest generation of dedup entries that is not dropped.
    """

    def __init__(
        self,
        store: RunStore,
        spec: ColdSpec,
        number: int,
        queue: int,
        entries: Evicted,
        names: tuple[str, ...],
        floor: int,
    ) -> None:
        self._entries = entries
        self._names = names
        self._store = store
        self._spec = spec
        self._number = number
        self._queue = queue
        self._floor = floor
        self.run_made: Run | None = None
        """The new run; None until `run` has ended."""

    def run(self) -> None:
        """Sort and write the entries; to be called in a thread. The result may be discarded."""
        spec, entries = self._spec, self._entries
        order, ids = sorted_by_low(entries.low())
        writer = RunWriter(self._store, spec, self._number, self._queue, ids, self._floor, self._names)
        step = spec.chunk_blocks * spec.block_entries
        words = np.empty((min(step, len(order)), WORDS + len(self._names)), np.uint64)
        for start in range(0, len(order), step):
            part = order[start : start + step]
            entries.write(part, words[: len(part)])
            writer.add(words[: len(part)])
        self.run_made = writer.finish()


# Choice of the runs to merge next.


_MOST_TIMES = 4
"""Largest number of runs merged at once, as a multiple of the fan-out."""


def runs_to_merge(runs: Collection[Run], spec: ColdSpec, floor: int) -> list[Run]:
    """Choose the runs of one queue to be merged; empty if nothing is due.

    A tier of runs of similar size is merged once it has as many as the fan-out, the smallest first. So an
    entry is written once per tier, and a look-up tests few filters. If no tier is full, a run that is half
    dead is rewritten.
    """
    tiers: defaultdict[tuple[int, int], list[tuple[int, Run]]] = defaultdict(list)
    for run in runs:
        alive = run.estimate(floor)
        tiers[_tier(alive, spec), run.manifest.queue].append((alive, run))
    for _, members in sorted(tiers.items()):
        if len(members) < spec.fanout:
            continue
        chosen: list[Run] = []
        total = 0
        for alive, run in sorted(members, key=lambda each: (each[0], each[1].manifest.number)):
            total += alive
            if total > spec.most_entries or len(chosen) == _MOST_TIMES * spec.fanout:
                break
            chosen.append(run)
        if len(chosen) > 1:
            return chosen
    for members in tiers.values():
        for alive, run in members:
            if 2 * alive < run.manifest.count:
                return [run]
    return []


def _tier(alive: int, spec: ColdSpec) -> int:
    tier, size = 0, spec.first_entries * spec.fanout
    while alive >= size:
        tier, size = tier + 1, size * spec.fanout
    return tier


# Merge of several runs into one, without dead entries: planned and finished by the loop, run in a thread.


NOWHERE: Final = -1
"""Position in the new run of an entry that was dead when the merge began."""
_SHARE: Final = 4
"""Divisor of the chunk size for each run, as a merge reads several runs side by side."""


@detached
def merge_entries(words, positions, heads, counts, offsets, start, out, moved):
    """Merge until `out` is full or the entries of a run are used up; return the number of entries written.

    Parameters
    ----------
    words, positions
        uint64 (k, n, words), int64 (k, n): living entries of each run.
    heads, counts
        int64 (k,): first entry not merged yet, and number of entries, 0 for a run that has ended.
    offsets, moved
        int64 (k,), int32 (all entries of all runs,): start of each run in `moved`; new positions, output.
    start
        Position of the first entry in the new run.
    out
        uint64 (n, words), output.
    """
    n = 0
    runs = words.shape[0]
    while n < out.shape[0]:
        best, best_low = -1, np.uint64(0)
        for k in range(runs):
            if counts[k] == 0:
                continue
            if heads[k] == counts[k]:
                return n
            low = words[k, heads[k], 0]
            if best < 0 or low < best_low:
                best, best_low = k, low
        if best < 0:
            return n
        head = heads[best]
        for w in range(out.shape[1]):
            out[n, w] = words[best, head, w]
        moved[offsets[best] + positions[best, head]] = start + n
        heads[best] = head + 1
        n += 1
    return n


class Merge:
    """Merge of runs in their state when it is planned.

    Parameters
    ----------
    store
        Store of their blocks, and of those of the new run.
    spec
        Sizes of blocks and filter.
    number
        Number of the new run.
    runs
        Runs to merge, of one queue.
    side
        Names of the side columns that the new run has.
    floor
        Oldest generation of dedup entries that is not dropped.
    """

    def __init__(
        self,
        store: RunStore,
        spec: ColdSpec,
        number: int,
        runs: list[Run],
        side: tuple[str, ...],
        floor: int,
    ) -> None:
        self._store = store
        self._spec = spec
        self._number = number
        self._floor = floor
        self._side = side
        self.runs = runs
        self._dead = [run.dead.copy() for run in runs]
        self._ids = sum(run.most_ids for run in runs)
        self._offsets = np.cumsum([0, *(run.manifest.count for run in runs)])
        self._moved = np.zeros(0, np.int32)
        self.run_made: Run | None = None
        """The new run; None if no entry is alive, or `run` has not ended yet."""
        self.cancelled = False
        """Set if the result is no longer needed: `run` ends soon, and must not be finished."""

    def run(self) -> None:
        """Read, merge and write; to be called in a thread. The result may be discarded.

        Raises
        ------
        ColdDamaged
            If a block is not what was written.
        """
        spec, runs = self._spec, self.runs
        each = [run.manifest.block_entries for run in runs]
        room = max(*each, spec.chunk_blocks * spec.block_entries // _SHARE)
        self._moved = np.full(int(self._offsets[-1]), NOWHERE, np.int32)
        queue = runs[0].manifest.queue
        writer = RunWriter(self._store, spec, self._number, queue, max(1, self._ids), self._floor, self._side)
        sources = [
            read_living(self._store, run, dead, self._floor, room // block_entries)
            for run, dead, block_entries in zip(runs, self._dead, each, strict=True)
        ]
        width = WORDS + len(self._side)
        words = np.empty((len(runs), room, width), np.uint64)
        positions = np.empty((len(runs), room), np.int64)
        heads, counts = np.zeros(len(runs), np.int64), np.zeros(len(runs), np.int64)
        out = np.empty((spec.chunk_blocks * spec.block_entries, width), np.uint64)
        written = held = 0
        for k, source in enumerate(sources):
            self._refill(source, k, words, positions, heads, counts)
        while counts.any():
            if self.cancelled:
                return
            count: int = merge_entries(
                words, positions, heads, counts, self._offsets, written, out[held:], self._moved
            )
            written += count
            held += count
            if held == len(out):
                writer.add(out)
                held = 0
            for k in np.flatnonzero((heads == counts) & (counts > 0)).tolist():
                self._refill(sources[k], k, words, positions, heads, counts)
        writer.add(out[:held])
        self.run_made = writer.finish()

    @staticmethod
    def _refill(
        source: Iterator[Living],
        k: int,
        words: NDArray[np.uint64],
        positions: NDArray[np.int64],
        heads: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> None:
        heads[k] = counts[k] = 0
        for each in source:
            if len(each.positions):
                counts[k] = len(each.positions)
                words[k, : counts[k]] = each.words
                positions[k, : counts[k]] = each.positions
                return

    def died_since(self) -> Positions:
        """Positions in the new run of entries that died in the old ones since the merge was planned."""
        died: list[NDArray[np.int32]] = []
        for run, before, offset in zip(self.runs, self._dead, self._offsets.tolist(), strict=False):
            fresh = np.unpackbits((run.dead & ~before).view(np.uint8), bitorder="little")
            died.append(self._moved[offset + np.flatnonzero(fresh)])
        positions = np.concatenate(died)
        return positions[positions != NOWHERE].astype(np.uint32)


# Search for the oldest entries of a queue: planned and finished by the loop, run in a thread.
#
# Runs are sorted by digest, not by age, so the search reads every run that may contain some of them
# completely. This pays because it takes many at once: those that are not due yet wait in the table, before
# all others.


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
