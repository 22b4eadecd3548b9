"""The oldest entries of a queue, wherever they lie: planned and taken by the loop, sought in a thread.

Runs are sorted by digest, not by age, so a look for the oldest reads every run that has some of them from one
end to the other. It pays by taking many: those that are not due yet wait in the table, before all others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.cold.block import PACKED_ENTRY, WORDS, Words
from streamwatch.core.join.compiled.cold.reading import living
from streamwatch.core.join.compiled.cold.run import Run
from streamwatch.core.join.compiled.cold.spec import ColdSpec
from streamwatch.core.join.compiled.cold.store import RunStore

_BEYOND = 2**63 - 1


class Taking:
    """A search for the `count` oldest entries of a queue, as it is when the search is planned.

    Parameters
    ----------
    store
        Where the blocks are.
    spec
        Sizes.
    queue
        Of all these.
    runs
        All of the queue.
    count
        Entries that are wanted.
    floor
        Oldest generation of dedup entries that counts.
    """

    def __init__(
        self, store: RunStore, spec: ColdSpec, queue: int, runs: list[Run], count: int, floor: int
    ) -> None:
        if count < 1:
            raise ValueError(f"at least one entry must be wanted, got {count}")
        self._store = store
        self._spec = spec
        self.queue = queue
        self.runs = sorted(runs, key=lambda run: run.oldest_arrival)
        self._bounds = [run.oldest_arrival for run in self.runs]
        self._dead = [run.dead.copy() for run in self.runs]
        self._count = count
        self._floor = floor
        self._from = np.empty(0, np.int64)
        self._positions = np.empty(0, np.int64)
        self._words = np.empty((0, WORDS), np.uint64)
        self.limit = -1
        """No entry that is left has a smaller arrival, or an equal one."""

    def run(self) -> None:
        """Read; for a thread. May be given up at any time, by forgetting it.

        Raises
        ------
        ColdDamaged
            If a block is not what was written.
        """
        self.limit = _BEYOND
        for k, (run, bound, dead) in enumerate(zip(self.runs, self._bounds, self._dead, strict=True)):
            if bound > self.limit:
                break
            words, positions, held = [self._words], [self._positions], len(self._words)
            sources = [self._from]
            for each in living(self._store, run, dead, self._floor, self._spec.chunk_blocks):
                chosen = np.flatnonzero(arrivals(each.words) <= self.limit)
                words.append(each.words[chosen])
                positions.append(each.positions[chosen])
                sources.append(np.full(len(chosen), k))
                held += len(chosen)
                if held > 2 * self._count:
                    self._keep(words, positions, sources)
                    words, positions, sources = [self._words], [self._positions], [self._from]
                    held = len(self._words)
            self._keep(words, positions, sources)
        order = np.argsort(arrivals(self._words))
        self._words, self._positions = self._words[order], self._positions[order]
        self._from = self._from[order]

    def _keep(
        self, words: list[Words], positions: list[NDArray[np.int64]], sources: list[NDArray[np.int64]]
    ) -> None:
        """Keep the oldest of what was found so far, and all of the last one's arrival."""
        self._words = np.concatenate(words)
        self._positions, self._from = np.concatenate(positions), np.concatenate(sources)
        if len(self._words) <= self._count:
            return
        found = arrivals(self._words)
        self.limit = int(np.partition(found, self._count - 1)[self._count - 1])
        chosen = np.flatnonzero(found <= self.limit)
        self._words = self._words[chosen]
        self._positions, self._from = self._positions[chosen], self._from[chosen]

    def taken(self) -> NDArray[np.void]:
        """Take those that still live out of their runs, and give them, oldest first."""
        kept = np.ones(len(self._words), np.bool_)
        latest_ms = 0
        if len(self._words):
            latest_ms = int(self._words[-1].view(PACKED_ENTRY)["record_ms"][0])
        for k, run in enumerate(self.runs):
            own = np.flatnonzero(self._from == k)
            positions = self._positions[own]
            kept[own] = (run.dead[positions >> 6] >> (positions & 63).astype(np.uint64)) & np.uint64(1) == 0
            run.kill(positions.astype(np.uint32))
            if self.limit == _BEYOND:
                continue
            run.oldest_arrival = max(run.oldest_arrival, self.limit + 1)
            run.oldest_ms = max(run.oldest_ms, latest_ms)
        return self._words[kept].reshape(-1).view(PACKED_ENTRY)


def arrivals(words: Words) -> NDArray[np.int64]:
    """Arrivals of packed entries, (n,)."""
    return words[:, 4].view(np.int64)
