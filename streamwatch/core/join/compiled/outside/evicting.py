"""Eviction of entries from a full table: the oldest of the kind with most entries first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.cold.block import PACKED_ENTRY
from streamwatch.core.join.compiled.cold.run import DEDUP_ENTRIES
from streamwatch.core.join.compiled.layout import GENERATIONS_KEPT, Arrays, Records
from streamwatch.core.join.compiled.outside.contents import OutsideContents
from streamwatch.core.join.compiled.outside.moving import (
    oldest_of,
    pack_chosen,
    pack_settled,
    remove_settled,
    remove_waiting,
)
from streamwatch.core.join.compiled.outside.table import WAITING_QUEUES, Table
from streamwatch.core.join.compiled.outside.work import Work, yield_to_loop
from streamwatch.core.join.compiled.unwritten import find_dedup
from streamwatch.core.join.entry import UNMATCHED

AT_ONCE: Final = 65_536
"""Number of entries moved before other tasks may run."""
_KEPT_SHARE: Final = 0.75
"""Share of a full table that stays in it when entries are evicted."""


class TableEviction:
    """Moves entries from a table to runs.

    Parameters
    ----------
    contents
        Everything outside the table.
    limit
        Number of entries above which the table is full.
    """

    def __init__(self, contents: OutsideContents, limit: int) -> None:
        self._outside = contents
        self._limit = limit
        self._arrival = contents.cold.next_arrival
        self.dedup_moved_out = False
        """Whether all dedup entries were moved out of the table since this was last set to False."""

    def is_full(self, table: Table) -> bool:
        """Tell whether entries have to leave the table."""
        return int(table.arrays.totals["used"][0]) > self._limit

    def evict_if_full(self, table: Table) -> Iterator[Work]:
        """Evict the oldest entries of a full table, from the kind with most entries first."""
        totals = table.arrays.totals[0]
        if not self.is_full(table):
            return
        skipped = set[int]()
        while totals["used"] > _KEPT_SHARE * self._limit:
            sizes = self._sizes(table)
            queue = max(
                (queue for queue in sizes if queue not in skipped), key=sizes.__getitem__, default=None
            )
            if queue is None or not sizes[queue]:
                return
            before = int(totals["used"])
            if queue == DEDUP_ENTRIES:
                yield from self._evict_settled(table)
            else:
                yield from self._evict(table, queue, max(1, min(AT_ONCE, sizes[queue] // 2)))
            if int(totals["used"]) == before:
                skipped.add(queue)

    def _sizes(self, table: Table) -> dict[int, int]:
        """Number of entries in the table that may leave it, by queue."""
        t = table.arrays.totals[0]
        waiting = (t["pending"], t["early"], t["retained"])
        sizes = {
            queue: int(count - t["cold"][queue] - t["front"][queue])
            for queue, count in zip(WAITING_QUEUES, waiting, strict=True)
        }
        sizes[DEDUP_ENTRIES] = self._dedup_entries(table)
        return sizes

    def _dedup_entries(self, table: Table) -> int:
        """Number of dedup entries in the table."""
        t = table.arrays.totals[0]
        self._outside.drop_generations(int(t["floor"]))
        return int(t["closed_entries"] + t["open_entries"]) - sum(self._outside.settled.values())

    def _evict(self, table: Table, queue: int, count: int) -> Iterator[Work]:
        arrays, cold = table.arrays, self._outside.cold
        found = np.empty(count, np.int64)
        chosen = found[: oldest_of(arrays.entries, arrays.totals, arrays.places, queue, found)]
        if not len(chosen):
            return
        packed = self._packed(pack_chosen, arrays, chosen)
        self._outside.scores.put(packed, table.scores, table.segments)
        eviction = cold.plan_eviction(queue, packed)
        yield eviction.run
        cold.finish_eviction(eviction)
        remove_waiting(
            arrays.slots,
            arrays.entries,
            arrays.totals,
            arrays.places,
            arrays.obsolete_places,
            queue,
            chosen,
            table.shift,
        )
        arrays.totals["cold_unmatched"] += int((packed["state"] == UNMATCHED).sum())
        self._outside.update_oldest_ms(table)

    def _evict_settled(self, table: Table) -> Iterator[Work]:
        """Evict all dedup entries; their values in the store hold one generation each, and go as a whole."""
        arrays, cold, settled = table.arrays, self._outside.cold, self._outside.settled
        totals, generations = arrays.totals, arrays.generations
        found = np.empty(self._dedup_entries(table), np.int32)
        ends = np.empty((GENERATIONS_KEPT + 1, 2), np.int64)
        parts: int = find_dedup(arrays.entries, totals, generations, 0, -1, found, ends)
        counts = np.diff(ends[:parts, 1], prepend=0)
        for generation, count in zip(ends[:parts, 0].tolist(), counts.tolist(), strict=True):
            settled[generation] = settled.get(generation, 0) + count
        packed = self._packed(pack_settled, arrays, found)
        eviction = cold.plan_eviction(DEDUP_ENTRIES, packed)
        yield eviction.run
        cold.finish_eviction(eviction)
        for ends_of_list in ("first", "last"):
            generations[ends_of_list] = -1
            totals[f"open_{ends_of_list}"] = -1
        for start in range(0, len(found), AT_ONCE):
            if start:
                yield yield_to_loop
            part = found[start : start + AT_ONCE]
            remove_settled(arrays.slots, arrays.entries, totals, part, table.shift)
        self.dedup_moved_out = True

    def _packed(
        self, write: Callable[..., None], arrays: Arrays, chosen: NDArray[np.int64] | NDArray[np.int32]
    ) -> Records:
        """Pack entries for a run, numbered by arrival."""
        packed = np.empty(len(chosen), PACKED_ENTRY)
        write(arrays.entries, chosen, self._arrival, packed)
        self._arrival += len(chosen)
        return packed
