"""Overflow of a compiled join: entries leave the table when it is full, and come back when needed.

Reading and writing of runs is returned as work for a thread (`Work`); the join must not be used until it is
done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.cold.block import PACKED_ENTRY
from streamwatch.core.join.compiled.cold.entries import ColdEntries
from streamwatch.core.join.compiled.cold.finding import FoundEntries
from streamwatch.core.join.compiled.cold.run import DEDUP_ENTRIES
from streamwatch.core.join.compiled.cold.store import ColdChanges, RunStore
from streamwatch.core.join.compiled.layout import (
    EARLY_LABELS,
    GENERATIONS_KEPT,
    GONE,
    MATCH_STORED,
    MATCHED,
    NOTHING,
    PREDICTIONS,
    RETAINED_LABELS,
    Arrays,
    Records,
)
from streamwatch.core.join.compiled.names import HeldScores, NumberedSegments
from streamwatch.core.join.compiled.outside.distinct import distinct_ids
from streamwatch.core.join.compiled.outside.moving import (
    add_guests,
    bring_to_front,
    oldest_of,
    pack_chosen,
    pack_settled,
    remove_guests,
    remove_settled,
    remove_waiting,
)
from streamwatch.core.join.compiled.outside.scores import OutsideScores, StoredScores, with_numbers
from streamwatch.core.join.compiled.outside.spec import OverflowSpec
from streamwatch.core.join.compiled.unwritten import find_dedup
from streamwatch.core.join.entry import PENDING, RETAINED, UNMATCHED
from streamwatch.core.outcomes import SEGMENTS_FROM

Work: TypeAlias = Callable[[], None]
"""Function to be called once, in any thread."""
WAITING_QUEUES: Final = (PREDICTIONS, EARLY_LABELS, RETAINED_LABELS)
AT_ONCE: Final = 65_536
"""Number of entries moved before other tasks may run."""
_NEVER_MS: Final = 2**62
_KEPT_SHARE: Final = 0.75
"""Share of a full table that stays in it when entries are evicted."""


class Table(Protocol):
    """Interface of the join that its overflow uses."""

    @property
    def arrays(self) -> Arrays:
        """Arrays that the loop reads and changes."""
        ...

    @arrays.setter
    def arrays(self, arrays: Arrays) -> None: ...

    @property
    def scores(self) -> HeldScores:
        """Scores of the predictions in the table."""
        ...

    @property
    def segments(self) -> NumberedSegments:
        """Numbers of the predictions' segments."""
        ...

    @property
    def shift(self) -> np.uint64:
        """64 minus the binary logarithm of the number of slots."""
        ...

    def grow(self) -> None:
        """Make room for more entries."""
        ...


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
        self.cold = ColdEntries(store, spec.cold, clean=clean)
        self._spec = spec
        self._arrival = self.cold.next_arrival
        self._found: FoundEntries | None = None
        self._guest_entries = np.zeros(0, np.int64)
        """Entry of each guest in the table; -1 once it is gone."""
        self._scored = False
        """Whether a guest has scores."""
        self._score_numbers = np.zeros(0, np.int32)
        self._scores = OutsideScores(store)
        self.settled: dict[int, int] = {}
        """Number of dedup entries outside the table by generation."""
        self.dedup_moved_out = False
        """Whether all dedup entries were moved out of the table since this was last set to False."""
        self.came_back = False
        """Whether entries have come back since this was last set to False."""

    def begin(self, table: Table, settled: dict[int, int], unmatched: int) -> None:
        """Continue after a start, with the counts of entries outside from the last commit."""
        totals = table.arrays.totals
        self.settled = dict(settled)
        self.cold.floor = int(totals["floor"][0])
        for queue in WAITING_QUEUES:
            totals["cold"][0, queue] = self.cold.alive(queue)
        totals["cold_unmatched"] = unmatched
        self._update_oldest_ms(table)

    def changes(self) -> ColdChanges:
        """Changes of runs and scores for a commit."""
        changes = self.cold.changes()
        self._scores.add_changes(changes)
        return changes

    def is_needed(self, table: Table) -> bool:
        """Tell whether entries are outside the table, or have to leave it."""
        return self.cold.runs > 0 or int(table.arrays.totals["used"][0]) > self._spec.entries

    def evict_if_full(self, table: Table) -> Iterator[Work]:
        """Evict the oldest entries of a full table, from the kind with most entries first."""
        totals = table.arrays.totals[0]
        if totals["used"] <= self._spec.entries:
            return
        skipped = set[int]()
        while totals["used"] > _KEPT_SHARE * self._spec.entries:
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
        sizes[DEDUP_ENTRIES] = self.dedup_entries(table)
        return sizes

    def dedup_entries(self, table: Table) -> int:
        """Number of dedup entries in the table."""
        t = table.arrays.totals[0]
        self._drop_generations(int(t["floor"]))
        return int(t["closed_entries"] + t["open_entries"]) - sum(self.settled.values())

    def entries(self, table: Table) -> int:
        """Number of entries outside the table, to be asked between two batches; changes nothing."""
        totals = table.arrays.totals[0]
        floor = int(totals["floor"])
        settled = sum(count for generation, count in self.settled.items() if generation >= floor)
        return int(totals["cold"].sum()) + settled

    def _drop_generations(self, floor: int) -> None:
        self.cold.floor = floor
        for generation in [generation for generation in self.settled if generation < floor]:
            del self.settled[generation]

    def _evict(self, table: Table, queue: int, count: int) -> Iterator[Work]:
        arrays = table.arrays
        found = np.empty(count, np.int64)
        chosen = found[: oldest_of(arrays.entries, arrays.totals, arrays.places, queue, found)]
        if not len(chosen):
            return
        packed = self._packed(pack_chosen, arrays, chosen)
        self._scores.put(packed, table.scores, table.segments)
        eviction = self.cold.plan_eviction(queue, packed)
        yield eviction.run
        self.cold.finish_eviction(eviction)
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
        self._update_oldest_ms(table)

    def _evict_settled(self, table: Table) -> Iterator[Work]:
        """Evict all dedup entries; their values in the store hold one generation each, and go as a whole."""
        arrays = table.arrays
        totals, generations = arrays.totals, arrays.generations
        found = np.empty(self.dedup_entries(table), np.int32)
        ends = np.empty((GENERATIONS_KEPT + 1, 2), np.int64)
        parts: int = find_dedup(arrays.entries, totals, generations, 0, -1, found, ends)
        counts = np.diff(ends[:parts, 1], prepend=0)
        for generation, count in zip(ends[:parts, 0].tolist(), counts.tolist(), strict=True):
            self.settled[generation] = self.settled.get(generation, 0) + count
        packed = self._packed(pack_settled, arrays, found)
        eviction = self.cold.plan_eviction(DEDUP_ENTRIES, packed)
        yield eviction.run
        self.cold.finish_eviction(eviction)
        for ends_of_list in ("first", "last"):
            generations[ends_of_list] = -1
            totals[f"open_{ends_of_list}"] = -1
        for start in range(0, len(found), AT_ONCE):
            if start:
                yield _yield_to_loop
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

    def load_oldest(self, table: Table, queue: int) -> Iterator[Work]:
        """Load the oldest entries of a queue back into the table; no guests may be in it."""
        search = self.cold.plan_oldest_search(queue, self._spec.loaded_at_once)
        yield search.run
        packed = self.cold.finish_oldest_search(search)
        if queue == PREDICTIONS and packed["true_or_scores"].max(initial=-1) >= 0:
            scores: list[StoredScores] = []
            yield lambda: scores.extend(self._scores.read(packed))
            self._scores.drop(packed)
            with_numbers(packed, scores, table.scores, table.segments)
        totals = table.arrays.totals
        totals["cold_unmatched"] -= int((packed["state"] == UNMATCHED).sum())
        start = 0
        while start < len(packed):
            arrays = table.arrays
            start = bring_to_front(
                arrays.slots,
                arrays.entries,
                totals,
                arrays.places,
                packed,
                start,
                queue,
                table.shift,
            )
            if start < len(packed):
                table.grow()
        self.came_back = True
        self._update_oldest_ms(table)

    def load_oldest_prediction(self, table: Table) -> Iterator[Work]:
        """Load the oldest pending prediction into the table, so that its age is known."""
        t = table.arrays.totals[0]
        if t["cold"][PREDICTIONS] > 0 and t["front"][PREDICTIONS] == 0:
            yield from self.load_oldest(table, PREDICTIONS)

    def load_guests(self, table: Table, rows: Records) -> Iterator[Work]:
        """Load all entries of the ids of these rows into the table, as guests."""
        if not self.cold.runs:
            return
        self._drop_generations(int(table.arrays.totals["floor"][0]))
        low, high = distinct_ids(rows[rows["side"] < NOTHING])
        if not len(low):
            return

        found: list[tuple[FoundEntries, list[StoredScores]]] = []

        def look_up() -> None:
            in_runs = self.cold.look_up(low, high)
            found.append((in_runs, self._scores.read(in_runs.entries)))

        yield look_up
        (self._found, scores) = found.pop()
        if not len(self._found.entries):
            self._found = None
            return
        packed = self._found.entries
        self._scored = bool(scores)
        if self._scored:
            packed = packed.copy()
            with_numbers(packed, scores, table.scores, table.segments)
        self._score_numbers = packed["true_or_scores"]
        self._guest_entries = np.full(len(packed), -1, np.int64)
        table.arrays = table.arrays._replace(guests=np.zeros(len(packed), np.int8))
        start = 0
        while start < len(packed):
            arrays = table.arrays
            start = add_guests(
                arrays.slots,
                arrays.entries,
                arrays.totals,
                arrays.places,
                packed,
                start,
                self._guest_entries,
                table.shift,
            )
            if start < len(packed):
                table.grow()

    def record_guest_changes(self, table: Table) -> None:
        """Record in the runs which guests are gone, and which labels were matched."""
        found, guests = self._found, table.arrays.guests
        if found is None:
            return
        gone = np.flatnonzero((guests == GONE) & (self._guest_entries >= 0))
        if len(gone):
            self.cold.mark_dead(found.runs[gone], found.positions[gone])
            if self._scored:
                self._scores.drop(found.entries[gone])
            self._guest_entries[gone] = -1
        matched = np.flatnonzero(guests == MATCHED)
        if len(matched):
            self.cold.mark_dead(found.runs[matched], found.positions[matched])
            changed = found.entries[matched]
            changed["state"] = RETAINED
            self.cold.evict(RETAINED_LABELS, changed)
            guests[matched] = MATCH_STORED
            self._update_oldest_ms(table)

    def unload_guests(self, table: Table) -> None:
        """Remove the guests from the table."""
        if self._found is None:
            return
        self.record_guest_changes(table)
        arrays = table.arrays
        if self._scored:
            scored = (self._guest_entries >= 0) & (self._found.entries["state"] == PENDING)
            scored &= (self._score_numbers >= 0) & (self._score_numbers < SEGMENTS_FROM)
            table.scores.take(self._score_numbers[scored].tolist())
        remove_guests(
            arrays.slots, arrays.entries, arrays.totals, arrays.places, self._guest_entries, table.shift
        )
        self._found = None

    def _update_oldest_ms(self, table: Table) -> None:
        cold_ms = table.arrays.totals["cold_ms"][0]
        for queue in WAITING_QUEUES:
            oldest_ms = self.cold.oldest_ms(queue)
            cold_ms[queue] = _NEVER_MS if oldest_ms is None else oldest_ms


def _yield_to_loop() -> None:
    """Do nothing, so that other tasks may run."""
