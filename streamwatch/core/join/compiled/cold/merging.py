"""Merge of several runs into one, without dead entries: planned and finished by the loop, run in a thread."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import detached
from streamwatch.core.join.compiled.cold.block import WORDS
from streamwatch.core.join.compiled.cold.building import RunWriter
from streamwatch.core.join.compiled.cold.reading import Living, read_living
from streamwatch.core.join.compiled.cold.run import Positions, Run
from streamwatch.core.join.compiled.cold.spec import ColdSpec
from streamwatch.core.join.compiled.cold.store import RunStore

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
        uint64 (k, n, 8), int64 (k, n): living entries of each run.
    heads, counts
        int64 (k,): first entry not merged yet, and number of entries, 0 for a run that has ended.
    offsets, moved
        int64 (k,), int32 (all entries of all runs,): start of each run in `moved`; new positions, output.
    start
        Position of the first entry in the new run.
    out
        uint64 (n, 8), output.
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
        for w in range(WORDS):
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
    floor
        Oldest generation of dedup entries that is not dropped.
    """

    def __init__(self, store: RunStore, spec: ColdSpec, number: int, runs: list[Run], floor: int) -> None:
        self._store = store
        self._spec = spec
        self._number = number
        self._floor = floor
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
        writer = RunWriter(self._store, spec, self._number, queue, max(1, self._ids), self._floor)
        sources = [
            read_living(self._store, run, dead, self._floor, room // block_entries)
            for run, dead, block_entries in zip(runs, self._dead, each, strict=True)
        ]
        words = np.empty((len(runs), room, WORDS), np.uint64)
        positions = np.empty((len(runs), room), np.int64)
        heads, counts = np.zeros(len(runs), np.int64), np.zeros(len(runs), np.int64)
        out = np.empty((spec.chunk_blocks * spec.block_entries, WORDS), np.uint64)
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
