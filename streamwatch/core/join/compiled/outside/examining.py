"""Reading of all entries outside the table, for the inspection of a state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from streamwatch.core.join.compiled.cold.block import PACKED_ENTRY
from streamwatch.core.join.compiled.cold.entries import ColdEntries
from streamwatch.core.join.compiled.cold.run import DEDUP_ENTRIES
from streamwatch.core.join.compiled.cold.store import RunStore
from streamwatch.core.join.compiled.layout import PREDICTIONS, RETAINED_LABELS, Records
from streamwatch.core.join.compiled.outside.scores import OutsideScores
from streamwatch.core.join.entry import UNMATCHED


def entries_outside(store: RunStore, floor: int) -> Iterator[tuple[int, Records]]:
    """Iterate over queue and living entries, `PACKED_ENTRY` (n,), run by run, some thousands at a time.

    Parameters
    ----------
    store
        Store of the runs; nothing is written to it.
    floor
        Oldest generation of dedup entries that is not dropped.

    Raises
    ------
    ColdDamaged
        If a run is not what was written.
    """
    cold = ColdEntries(store, clean=False)
    cold.floor = floor
    return cold.all_living()


@dataclass(slots=True)
class Examined:
    """Counts of the entries read, and the faults found."""

    by_queue: Counter[int] = field(default_factory=Counter[int])
    unmatched: int = 0
    settled: Counter[int] = field(default_factory=Counter[int])
    """Number of dedup entries by generation."""
    faults: list[str] = field(default_factory=list[str])


def examine(store: RunStore, floor: int) -> Examined:
    """Read every living entry, and check that its id finds it and that its scores exist.

    Raises
    ------
    ColdDamaged
        If a run is not what was written.
    """
    found = Examined()
    cold = ColdEntries(store, clean=False)
    cold.floor = floor
    scores = OutsideScores(store)
    for queue, entries in cold.all_living():
        found.by_queue[queue] += len(entries)
        if queue == RETAINED_LABELS:
            found.unmatched += int((entries["state"] == UNMATCHED).sum())
        elif queue == DEDUP_ENTRIES:
            generations, counts = np.unique(entries["generation"], return_counts=True)
            found.settled.update(dict(zip(generations.tolist(), counts.tolist(), strict=True)))
        elif queue == PREDICTIONS:
            scores.read(entries)
        ids = np.unique(entries[["low", "high"]])
        low, high = ids["low"].copy(), ids["high"].copy()
        looked_up = cold.look_up(low, high).entries
        missing = ~np.isin(_as_bytes(entries), _as_bytes(looked_up))
        for entry in entries[missing][:1]:
            digest = int(entry["high"]).to_bytes(8, "big") + int(entry["low"]).to_bytes(8, "big")
            found.faults.append(f"a look-up of id {digest.hex()} does not find its cold entry")
    return found


def _as_bytes(entries: Records) -> Records:
    return np.ascontiguousarray(entries).view(f"V{PACKED_ENTRY.itemsize}")
