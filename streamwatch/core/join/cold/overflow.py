"""Overflow of a compiled join: entries are evicted from a full table, and loaded again when needed.

Reading and writing of runs is returned as work for a thread (`Work`); the join must not be used until it is
done.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry
from streamwatch.core.join.cold.block import PACKED_ENTRY, Words
from streamwatch.core.join.cold.contents import OutsideContents, StoredScores, with_numbers
from streamwatch.core.join.cold.finding import FoundEntries, joined_found
from streamwatch.core.join.cold.merging import PackedEntries
from streamwatch.core.join.cold.moving import (
    WAITING_QUEUES,
    Table,
    add_guests,
    bring_to_front,
    low_of_chosen,
    oldest_of,
    pack_chosen,
    pack_settled,
    remove_guests,
    remove_settled,
    remove_waiting,
)
from streamwatch.core.join.cold.run import DEDUP_ENTRIES
from streamwatch.core.join.cold.store import ColdSpec, RunStore
from streamwatch.core.join.counters import PENDING, RETAINED, UNMATCHED
from streamwatch.core.join.layout import (
    GONE,
    MATCH_STORED,
    MATCHED,
    NEVER_MS,
    NOTHING,
    PREDICTIONS,
    RETAINED_LABELS,
    REVISED,
    Records,
)
from streamwatch.core.join.table import DedupMark, deadline, unwritten_dedup
from streamwatch.core.records.outcomes import SEGMENTS_FROM

# Distinct ids of rows.


@entry
def write_first(lows, highs, order, first):
    """Write where each distinct id is first, in the order `order`, which is by `lows`; return how many."""
    n = 0
    for k in order:
        m = n - 1
        while m >= 0 and lows[first[m]] == lows[k] and highs[first[m]] != highs[k]:
            m -= 1
        if m >= 0 and lows[first[m]] == lows[k]:
            first[m] = min(first[m], k)
        else:
            first[n] = k
            n += 1
    return n


def first_of_each(lows: NDArray[np.uint64], highs: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Indices at which the distinct ones of these digests appear first, ascending."""
    first = np.empty(len(lows), np.int64)
    count: int = write_first(lows, highs, np.argsort(lows), first)
    return np.sort(first[:count])


# Work that a join leaves to its caller, for any thread.


Work: TypeAlias = Callable[[], None]
"""Function to be called once, in any thread."""


def yield_to_loop() -> None:
    """Do nothing, so that other tasks may run."""


class Guests:
    """Loads guests into a table, records in the runs which were removed or changed, and unloads them.

    Parameters
    ----------
    contents
        Everything outside the table.
    at_once
        Number of entries above which no further ids are looked up for the same load.
    """

    def __init__(self, contents: OutsideContents, at_once: int) -> None:
        self._outside = contents
        self._at_once = at_once
        self._per_id = 0.0
        """Mean number of entries of the ids looked up last; 0 before the first."""
        self._found: FoundEntries | None = None
        self._entries = np.zeros(0, np.int64)
        """Entry of each guest in the table; -1 once it is gone."""
        self._found_scores: list[StoredScores] = []
        self._scored = False
        """Whether a guest has scores outside the table."""

    def load(self, table: Table, rows: Records, due: Records) -> Generator[Work, None, int]:
        """Load all entries with the ids of the entries `due`, and of the first of `rows`, into the table.

        Return the number of these rows, at least one if there are any: all of them, unless these ids have
        more entries than are loaded at once. An id may have thousands, as many as there are models.
        """
        cold = self._outside.cold
        if not cold.runs:
            return len(rows)
        self._outside.drop_generations(int(table.arrays.totals["floor"][0]))
        lows = np.concatenate([due["low"], rows["low"]])
        highs = np.concatenate([due["high"], rows["high"]])
        may_be_there = cold.may_have(lows, highs)
        may_be_there[len(due) :] &= rows["side"] < NOTHING
        asked = np.flatnonzero(may_be_there)
        if not len(asked):
            return len(rows)
        ids = asked[first_of_each(lows[asked], highs[asked])]
        looked_up = yield from self._look_up(table, lows[ids], highs[ids], int(np.sum(ids < len(due))))
        covered = len(rows) if looked_up == len(ids) else int(ids[looked_up]) - len(due)
        if self._found is None:
            return covered
        packed, scores = self._found.entries, self._found_scores
        self._scored = bool(scores)
        if self._scored:
            packed = packed.copy()
            with_numbers(packed, scores, table)
        self._entries = np.full(len(packed), -1, np.int64)
        table.arrays = table.arrays._replace(guests=np.zeros(len(packed), np.int8))
        start = 0
        while start < len(packed):
            start = add_guests(table.arrays, packed, self._found.side, start, self._entries, table.shift)
            if start < len(packed):
                table.grow()
        return covered

    def _look_up(
        self, table: Table, low: NDArray[np.uint64], high: NDArray[np.uint64], needed: int
    ) -> Generator[Work, None, int]:
        """Look up ids in this order until half as many entries as are loaded at once, or more, are found.

        Return how many ids were looked up.

        These are at least the `needed` first ones, and one more. How many are looked up together depends on
        how many entries the ids before had, at first on the number of models.
        """
        cold, outside = self._outside.cold, self._outside
        parts: list[tuple[FoundEntries, list[StoredScores]]] = []
        found = start = 0
        per_id = self._per_id or float(max(len(table.names.models.names), 1))
        while start < len(low) and (start <= needed or found < self._at_once / 2):
            some = ceil((self._at_once - found) / max(per_id, 1.0))
            stop = min(len(low), max(start + some, needed + 1))
            part = slice(start, stop)

            def look_up(part: slice = part) -> None:
                in_runs = cold.look_up(low[part], high[part])
                parts.append((in_runs, outside.scores.read(in_runs.entries)))

            yield look_up
            found += len(parts[-1][0].entries)
            start = stop
            per_id = found / start
        self._per_id = per_id
        self._found = joined_found([each for each, _ in parts]) if found else None
        self._found_scores = [score for _, scores in parts for score in scores]
        return start

    def record_changes(self, table: Table) -> None:
        """Record in the runs which guests are gone, and which labels were matched."""
        found, guests, cold = self._found, table.arrays.guests, self._outside.cold
        if found is None:
            return
        gone = np.flatnonzero((guests == GONE) & (self._entries >= 0))
        if len(gone):
            cold.mark_dead(found.runs[gone], found.positions[gone])
            if self._scored:
                self._outside.scores.drop(found.entries[gone])
            self._entries[gone] = -1
        matched = np.flatnonzero(guests == MATCHED)
        if len(matched):
            cold.mark_dead(found.runs[matched], found.positions[matched])
            changed = found.entries[matched]
            changed["state"] = RETAINED
            cold.evict(RETAINED_LABELS, changed)
            guests[matched] = MATCH_STORED
            self._outside.update_oldest_ms(table)

    def are_revised(self, table: Table) -> bool:
        """Return whether a prediction was revised of which the runs still have the former values."""
        return self._found is not None and bool((table.arrays.guests == REVISED).any())

    def unload(self, table: Table) -> None:
        """Remove the guests from the table."""
        if self._found is None:
            return
        self.record_changes(table)
        arrays = table.arrays
        there = self._entries >= 0
        revised = there & (arrays.guests == REVISED)
        if self._scored:
            unchanged = arrays.entries[self._entries[there & ~revised]]
            numbers = unchanged["true_or_scores"][unchanged["state"] == PENDING]
            table.names.scores.free(numbers[(numbers >= 0) & (numbers < SEGMENTS_FROM)])
        if revised.any():
            self._store_anew(table, np.flatnonzero(revised))
        remove_guests(arrays, self._entries, table.shift)
        self._found = None

    def _store_anew(self, table: Table, revised: NDArray[np.intp]) -> None:
        """Replace revised predictions in the runs by their present values, with the same arrival."""
        found, outside, arrays = self._found, self._outside, table.arrays
        assert found is not None  # noqa: S101 - they are among what was found
        outside.cold.mark_dead(found.runs[revised], found.positions[revised])
        at = self._entries[revised]
        packed = np.empty(len(revised), PACKED_ENTRY)
        pack_chosen(arrays.entries, at, 0, packed)
        packed["arrival"] = found.entries["arrival"][revised]
        outside.scores.replace(found.entries[revised], packed, table)
        side = arrays.side[at] if arrays.side.shape[1] else None
        outside.cold.evict(PREDICTIONS, packed, side)
        outside.update_oldest_ms(table)


# Sizes of a compiled join's table and of what is outside.


@dataclass(frozen=True, slots=True)
class OverflowSpec:
    """Limits of the table, and sizes of the runs outside."""

    entries: int
    """Number of entries in the table, between two batches, above which the oldest are evicted."""
    loaded_at_once: int = 65_536
    """Number of entries that are loaded at once: of the oldest, which are about to fall due, and of the ids
    of rows, of which it may be exceeded by those looked up last."""
    cold: ColdSpec = ColdSpec()  # noqa: RUF009 - it is frozen


# Predictions that fall due while rows are joined, and whose partners must be in the table then.


@entry
def find_due(entries, totals, horizon_ms, limit_s, found):
    """Find the first predictions of the queue that are due by `limit_s`; return their number."""
    x = np.int64(totals[0]["first"][PREDICTIONS])
    n = 0
    while x >= 0 and n < found.shape[0] and deadline(entries[x]["record_ms"], horizon_ms) <= limit_s:
        found[n] = x
        n += 1
        x = np.int64(entries[x]["later"])
    return n


def due_predictions(table: Table, rows: Records, most: int) -> Records:
    """Return entries that fall due while these rows are joined, at most about `most`.

    The table's `partners_ms` is set to the time up to which all of them are returned. None are returned if
    expired predictions make no pairs.
    """
    arrays = table.arrays
    totals, limits = arrays.totals, arrays.limits[0]
    totals["partners_ms"] = NEVER_MS
    if not (limits["compares"] and limits["assume"] >= 0 and len(rows)):
        return arrays.entries[:0]
    limit_s = int(rows["record_ms"][-1]) // 1000
    while True:
        found = np.empty(most, np.int64)
        due = found[: find_due(arrays.entries, totals, limits["horizon_ms"], limit_s, found)]
        entries = arrays.entries[due]
        if len(due) < most:
            return entries
        if entries["record_ms"][-1] > entries["record_ms"][0]:
            totals["partners_ms"] = entries["record_ms"][-1] - 1  # more may have the last time
            return entries
        most *= 2


# Loading of the oldest entries back into the table, before they fall due.


def load_oldest(contents: OutsideContents, table: Table, queue: int, most: int) -> Iterator[Work]:
    """Load the oldest entries of a queue, at most `most`, into a table without guests."""
    search = contents.cold.plan_oldest_search(queue, most)
    yield search.run
    packed, side = contents.cold.finish_oldest_search(search)
    if queue == PREDICTIONS and packed["true_or_scores"].max(initial=-1) >= 0:
        scores: list[StoredScores] = []
        yield lambda: scores.extend(contents.scores.read(packed))
        contents.scores.drop(packed)
        with_numbers(packed, scores, table)
    totals = table.arrays.totals
    totals["cold_unmatched"] -= int((packed["state"] == UNMATCHED).sum())
    start = 0
    while start < len(packed):
        start = bring_to_front(table.arrays, packed, side, start, queue, table.shift)
        if start < len(packed):
            table.grow()
    contents.update_oldest_ms(table)


# Eviction of entries from a full table: the oldest of the kind with most entries first.


AT_ONCE: Final = 65_536
"""Number of entries moved before other tasks may run."""
_KEPT_SHARE: Final = 0.75
"""Share of a full table that stays in it when entries are evicted."""


class Settled:
    """Dedup entries of the table, in the order in which they settled.

    They are packed a chunk at a time, in the order of the run: to pack all of them at once and to sort a copy
    took 128 bytes an entry, and three times as long.

    Parameters
    ----------
    entries
        Entries of the table.
    found
        int32 (n,): indices of the dedup entries.
    arrival
        Arrival of the first.
    """

    def __init__(self, entries: Records, found: NDArray[np.int32], arrival: int) -> None:
        self._entries = entries
        self._found = found
        self._arrival = arrival

    def low(self) -> NDArray[np.uint64]:
        """Lower halves of their digests, (n,)."""
        low = np.empty(len(self._found), np.uint64)
        low_of_chosen(self._entries, self._found, low)
        return low

    def write(self, order: NDArray[np.int32], words: Words) -> None:
        """Write the entries with the indices `order` to rows of words."""
        packed = words.reshape(-1).view(PACKED_ENTRY)
        pack_settled(self._entries, self._found, order, self._arrival, packed)


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
        """Return whether entries have to be evicted."""
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
        """Count the entries in the table that may be evicted, by queue."""
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
        chosen = found[: oldest_of(arrays.entries, arrays.totals, arrays.log_positions, queue, found)]
        if not len(chosen):
            return
        packed = np.empty(len(chosen), PACKED_ENTRY)
        pack_chosen(arrays.entries, chosen, self._arrival, packed)
        self._arrival += len(chosen)
        self._outside.scores.put(packed, table)
        columns = arrays.side.shape[1] if queue == PREDICTIONS else 0
        side = arrays.side[chosen] if columns else np.empty((len(chosen), 0), np.int32)
        eviction = cold.plan_eviction(queue, PackedEntries(packed, side))
        yield eviction.run
        cold.finish_eviction(eviction)
        remove_waiting(arrays, queue, chosen, table.shift)
        arrays.totals["cold_unmatched"] += int((packed["state"] == UNMATCHED).sum())
        self._outside.update_oldest_ms(table)

    def _evict_settled(self, table: Table) -> Iterator[Work]:
        """Evict all dedup entries: a stored value holds those of one generation, and is removed whole."""
        arrays, cold, settled = table.arrays, self._outside.cold, self._outside.settled
        totals, generations = arrays.totals, arrays.generations
        parts: list[tuple[int, NDArray[np.int32]]] = []
        yield lambda: parts.extend(unwritten_dedup(arrays, DedupMark())[0])  # all: a cache miss for each
        found = np.concatenate([part for _, part in parts])
        for generation, part in parts:
            settled[generation] = settled.get(generation, 0) + len(part)
        eviction = cold.plan_eviction(DEDUP_ENTRIES, Settled(arrays.entries, found, self._arrival))
        self._arrival += len(found)
        yield eviction.run
        cold.finish_eviction(eviction)
        for ends_of_list in ("first", "last"):
            generations[ends_of_list] = -1
            totals[f"open_{ends_of_list}"] = -1
        for start in range(0, len(found), AT_ONCE):
            if start:
                yield yield_to_loop
            part = found[start : start + AT_ONCE]
            remove_settled(arrays, part, table.shift)
        self.dedup_moved_out = True


class Overflow:
    """Entries outside the table.

    Parameters
    ----------
    store
        Store of the runs.
    spec
        Limits and sizes.
    clean
        Whether to remove values that no commit refers to.

    Raises
    ------
    ColdDamaged
        If the store's contents are not what was written.
    """

    def __init__(self, store: RunStore, spec: OverflowSpec, *, clean: bool = True) -> None:
        self._spec = spec
        self.contents = OutsideContents(store, spec.cold, clean=clean)
        self.eviction = TableEviction(self.contents, spec.entries)
        self.guests = Guests(self.contents, spec.loaded_at_once)
        self._came_back = False

    def begin(self, table: Table, settled: dict[int, int], unmatched: int) -> None:
        """Continue after a start, with the counts of entries outside from the last commit."""
        totals = table.arrays.totals
        self.contents.settled = dict(settled)
        self.contents.cold.floor = int(totals["floor"][0])
        for queue in WAITING_QUEUES:
            totals["cold"][0, queue] = self.contents.cold.alive(queue)
        totals["cold_unmatched"] = unmatched
        self.contents.update_oldest_ms(table)

    def take_came_back(self) -> bool:
        """Return whether entries were loaded to the front of a queue since the last call."""
        came_back, self._came_back = self._came_back, False
        return came_back

    def take_dedup_moved_out(self) -> bool:
        """Return whether all dedup entries were moved out of the table since the last call."""
        moved_out, self.eviction.dedup_moved_out = self.eviction.dedup_moved_out, False
        return moved_out

    def is_needed(self, table: Table) -> bool:
        """Return whether entries are outside the table, or have to be evicted."""
        return self.contents.cold.runs > 0 or self.eviction.is_full(table)

    def entries(self, table: Table) -> int:
        """Number of entries outside the table, to be asked between two batches; changes nothing."""
        totals = table.arrays.totals[0]
        floor = int(totals["floor"])
        settled = sum(count for generation, count in self.contents.settled.items() if generation >= floor)
        return int(totals["cold"].sum()) + settled

    def load_oldest(self, table: Table, queue: int) -> Iterator[Work]:
        """Load the oldest entries of a queue back into the table; no guests may be in it."""
        yield from load_oldest(self.contents, table, queue, self._spec.loaded_at_once)
        self._came_back = True

    def load_oldest_prediction(self, table: Table) -> Iterator[Work]:
        """Load the oldest pending prediction into the table, so that its age is known."""
        t = table.arrays.totals[0]
        if t["cold"][PREDICTIONS] > 0 and t["front"][PREDICTIONS] == 0:
            yield from self.load_oldest(table, PREDICTIONS)

    def load_guests(self, table: Table, rows: Records) -> Generator[Work, None, int]:
        """Load all entries of the ids of the first of these rows into the table, as guests.

        Return how many rows these are, see `Guests.load`. Entries of the predictions that fall due meanwhile
        are loaded as well, if expired predictions may make pairs.
        """
        due = due_predictions(table, rows, self._spec.loaded_at_once)
        return self.guests.load(table, rows, due)


# Counts of entries outside the table that commits write in addition to the runs.


class OutsideCounts(msgspec.Struct, frozen=True):
    """Counts of entries outside the table that are stored nowhere else."""

    settled: dict[int, int] = {}
    """Number of dedup entries by generation."""
    unmatched: int = 0
    """Number of labels without a model that have met no prediction."""
