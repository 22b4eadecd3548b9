"""Compilation of the functions for cold entries, or their loading, before they are needed."""

from __future__ import annotations

import numpy as np

from streamwatch.core.join.compiled.cold.block import PACKED_ENTRY
from streamwatch.core.join.compiled.cold.entries import ColdEntries
from streamwatch.core.join.compiled.cold.memory import MemoryRuns
from streamwatch.core.join.compiled.cold.spec import ColdSpec
from streamwatch.core.join.compiled.layout import PREDICTIONS

_COUNT = 8


def warm_up_cold_entries() -> None:
    """Evict, look up, take out, merge, open again and take the oldest, so that every function is called."""
    store = MemoryRuns()
    spec = ColdSpec(fanout=2)
    cold = ColdEntries(store, spec)
    entries = np.zeros(_COUNT, PACKED_ENTRY)
    entries["low"] = np.arange(_COUNT) * 2**61
    for evicted in range(2):
        entries["arrival"] = evicted * _COUNT + np.arange(_COUNT)
        cold.evict(PREDICTIONS, entries)
    found = cold.look_up(entries["low"].copy(), entries["high"].copy())
    cold.mark_dead(found.runs[:1], found.positions[:1])
    merge = cold.plan_merge()
    assert merge is not None  # noqa: S101 - there are two runs of a size
    merge.run()
    cold.finish_merge(merge)
    store.commit(cold.changes())
    cold = ColdEntries(store, spec)
    cold.look_up(entries["low"].copy(), entries["high"].copy())
    search = cold.plan_oldest_search(PREDICTIONS, 1)
    search.run()
    cold.finish_oldest_search(search)
