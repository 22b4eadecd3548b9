"""Overflow of a compiled join: entries leave the table when it is full, and come back when needed.

Reading and writing of runs is returned as work for a thread (`Work`); the join must not be used until it is
done.
"""

from __future__ import annotations

from collections.abc import Iterator

from streamwatch.core.join.compiled.cold.entries import ColdEntries
from streamwatch.core.join.compiled.cold.store import ColdChanges, RunStore
from streamwatch.core.join.compiled.layout import PREDICTIONS, Records
from streamwatch.core.join.compiled.outside.contents import OutsideContents
from streamwatch.core.join.compiled.outside.due import due_predictions
from streamwatch.core.join.compiled.outside.evicting import TableEviction
from streamwatch.core.join.compiled.outside.guests import Guests
from streamwatch.core.join.compiled.outside.loading import load_oldest
from streamwatch.core.join.compiled.outside.spec import OverflowSpec
from streamwatch.core.join.compiled.outside.table import WAITING_QUEUES, Table
from streamwatch.core.join.compiled.outside.work import Work


class Overflow:
    """Entries outside the table.

    Parameters
    ----------
    store
        Store of the runs.
    spec
        Limits and sizes.
    clean
        Whether to remove what was never committed.

    Raises
    ------
    ColdDamaged
        If the store's contents are not what was written.
    """

    def __init__(self, store: RunStore, spec: OverflowSpec, *, clean: bool = True) -> None:
        self._spec = spec
        self._contents = OutsideContents(store, spec.cold, clean=clean)
        self._eviction = TableEviction(self._contents, spec.entries)
        self._guests = Guests(self._contents)
        self._came_back = False

    @property
    def cold(self) -> ColdEntries:
        """Entries in runs."""
        return self._contents.cold

    @property
    def settled(self) -> dict[int, int]:
        """Number of dedup entries outside the table by generation."""
        return self._contents.settled

    def begin(self, table: Table, settled: dict[int, int], unmatched: int) -> None:
        """Continue after a start, with the counts of entries outside from the last commit."""
        totals = table.arrays.totals
        self._contents.settled = dict(settled)
        self.cold.floor = int(totals["floor"][0])
        for queue in WAITING_QUEUES:
            totals["cold"][0, queue] = self.cold.alive(queue)
        totals["cold_unmatched"] = unmatched
        self._contents.update_oldest_ms(table)

    def changes(self) -> ColdChanges:
        """Changes of runs and scores for a commit."""
        return self._contents.changes()

    def take_came_back(self) -> bool:
        """Tell whether entries have come back into the table since the last call."""
        came_back, self._came_back = self._came_back, False
        return came_back

    def take_dedup_moved_out(self) -> bool:
        """Tell whether all dedup entries were moved out of the table since the last call."""
        moved_out, self._eviction.dedup_moved_out = self._eviction.dedup_moved_out, False
        return moved_out

    def is_needed(self, table: Table) -> bool:
        """Tell whether entries are outside the table, or have to leave it."""
        return self.cold.runs > 0 or self._eviction.is_full(table)

    def entries(self, table: Table) -> int:
        """Number of entries outside the table, to be asked between two batches; changes nothing."""
        totals = table.arrays.totals[0]
        floor = int(totals["floor"])
        settled = sum(count for generation, count in self.settled.items() if generation >= floor)
        return int(totals["cold"].sum()) + settled

    def evict_if_full(self, table: Table) -> Iterator[Work]:
        """Evict the oldest entries of a full table, from the kind with most entries first."""
        return self._eviction.evict_if_full(table)

    def load_oldest(self, table: Table, queue: int) -> Iterator[Work]:
        """Load the oldest entries of a queue back into the table; no guests may be in it."""
        yield from load_oldest(self._contents, table, queue, self._spec.loaded_at_once)
        self._came_back = True

    def load_oldest_prediction(self, table: Table) -> Iterator[Work]:
        """Load the oldest pending prediction into the table, so that its age is known."""
        t = table.arrays.totals[0]
        if t["cold"][PREDICTIONS] > 0 and t["front"][PREDICTIONS] == 0:
            yield from self.load_oldest(table, PREDICTIONS)

    def load_guests(self, table: Table, rows: Records) -> Iterator[Work]:
        """Load all entries of the ids of these rows into the table, as guests.

        Also those of the ids that fall due meanwhile, if what expires may have pairs.
        """
        due = due_predictions(table, rows, self._spec.loaded_at_once)
        return self._guests.load(table, rows, due)

    def record_guest_changes(self, table: Table) -> None:
        """Record in the runs which guests are gone, and which labels were matched."""
        self._guests.record_changes(table)

    def unload_guests(self, table: Table) -> None:
        """Remove the guests from the table."""
        self._guests.unload(table)
