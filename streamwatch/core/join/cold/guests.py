"""Guests: entries from outside the table that are in it while a batch with their ids is joined."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry
from streamwatch.core.join.cold.block import PACKED_ENTRY
from streamwatch.core.join.cold.contents import OutsideContents, StoredScores, with_numbers
from streamwatch.core.join.cold.finding import FoundEntries
from streamwatch.core.join.cold.moving import Table, add_guests, pack_chosen, remove_guests
from streamwatch.core.join.counters import PENDING, RETAINED
from streamwatch.core.join.layout import (
    GONE,
    MATCH_STORED,
    MATCHED,
    NOTHING,
    PREDICTIONS,
    RETAINED_LABELS,
    REVISED,
    Records,
)
from streamwatch.core.records.outcomes import SEGMENTS_FROM

# Distinct ids of rows.


@entry
def write_distinct(lows, highs, order, low, high):
    """Write the distinct ids in the order `order`, which is by `low`; return their number."""
    n = 0
    for k in order:
        known = False
        m = n - 1
        while m >= 0 and low[m] == lows[k] and not known:
            known = high[m] == highs[k]
            m -= 1
        if not known:
            low[n] = lows[k]
            high[n] = highs[k]
            n += 1
    return n


def distinct_ids(
    lows: NDArray[np.uint64], highs: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Halves of the distinct ones of these digests, (n,), ordered by `low`."""
    low, high = np.empty_like(lows), np.empty_like(highs)
    count: int = write_distinct(lows, highs, np.argsort(lows), low, high)
    return low[:count], high[:count]


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
    """

    def __init__(self, contents: OutsideContents) -> None:
        self._outside = contents
        self._found: FoundEntries | None = None
        self._entries = np.zeros(0, np.int64)
        """Entry of each guest in the table; -1 once it is gone."""
        self._scored = False
        """Whether a guest has scores outside the table."""

    def load(self, table: Table, rows: Records, due: Records) -> Iterator[Work]:
        """Load all entries with the ids of `rows`, and of the entries `due`, into the table."""
        cold = self._outside.cold
        if not cold.runs:
            return
        self._outside.drop_generations(int(table.arrays.totals["floor"][0]))
        lows = np.concatenate([rows["low"], due["low"]])
        highs = np.concatenate([rows["high"], due["high"]])
        asked = cold.may_have(lows, highs)
        asked[: len(rows)] &= rows["side"] < NOTHING
        if not asked.any():
            return
        low, high = distinct_ids(lows[asked], highs[asked])

        found: list[tuple[FoundEntries, list[StoredScores]]] = []

        def look_up() -> None:
            in_runs = cold.look_up(low, high)
            found.append((in_runs, self._outside.scores.read(in_runs.entries)))

        yield look_up
        (self._found, scores) = found.pop()
        if not len(self._found.entries):
            self._found = None
            return
        packed = self._found.entries
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
