"""Eviction of entries to a new run: planned and finished by the loop, built in a thread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.cold.building import NO_ID, RunWriter, count_ids, sorted_entries
from streamwatch.core.join.compiled.cold.run import Run
from streamwatch.core.join.compiled.cold.spec import ColdSpec
from streamwatch.core.join.compiled.cold.store import RunStore


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
        `PACKED_ENTRY` (n,), in any order, at least one.
    floor
        Oldest generation of dedup entries that is not dropped.
    """

    def __init__(
        self,
        store: RunStore,
        spec: ColdSpec,
        number: int,
        queue: int,
        entries: NDArray[np.void],
        floor: int,
    ) -> None:
        self._entries = entries
        self._store = store
        self._spec = spec
        self._number = number
        self._queue = queue
        self._floor = floor
        self.run_made: Run | None = None
        """The new run; None until `run` has ended."""

    def run(self) -> None:
        """Sort and write the entries; to be called in a thread. The result may be discarded."""
        words = sorted_entries(self._entries)
        ids = max(1, int(count_ids(words, *NO_ID)))
        writer = RunWriter(self._store, self._spec, self._number, self._queue, ids, self._floor)
        writer.add(words)
        self.run_made = writer.finish()
