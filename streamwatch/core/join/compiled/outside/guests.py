"""Guests: entries of the ids of a batch that are outside the table, and in it while the batch is joined."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from streamwatch.core.join.compiled.cold.finding import FoundEntries
from streamwatch.core.join.compiled.layout import (
    GONE,
    MATCH_STORED,
    MATCHED,
    NOTHING,
    RETAINED_LABELS,
    Records,
)
from streamwatch.core.join.compiled.outside.contents import OutsideContents
from streamwatch.core.join.compiled.outside.distinct import distinct_ids
from streamwatch.core.join.compiled.outside.moving import add_guests, remove_guests
from streamwatch.core.join.compiled.outside.scores import StoredScores, with_numbers
from streamwatch.core.join.compiled.outside.table import Table
from streamwatch.core.join.compiled.outside.work import Work
from streamwatch.core.join.entry import PENDING, RETAINED
from streamwatch.core.outcomes import SEGMENTS_FROM


class Guests:
    """Loads guests into a table, records what became of them, and unloads them.

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
        """Whether a guest has scores."""
        self._score_numbers = np.zeros(0, np.int32)

    def load(self, table: Table, rows: Records, due: Records) -> Iterator[Work]:
        """Load all entries of the ids of these rows, and of these entries, into the table."""
        cold = self._outside.cold
        if not cold.runs:
            return
        self._outside.drop_generations(int(table.arrays.totals["floor"][0]))
        taken = rows[rows["side"] < NOTHING]
        lows = np.concatenate([taken["low"], due["low"]])
        low, high = distinct_ids(lows, np.concatenate([taken["high"], due["high"]]))
        if not len(low):
            return

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
            with_numbers(packed, scores, table.scores, table.segments)
        self._score_numbers = packed["true_or_scores"]
        self._entries = np.full(len(packed), -1, np.int64)
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
                self._entries,
                table.shift,
            )
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

    def unload(self, table: Table) -> None:
        """Remove the guests from the table."""
        if self._found is None:
            return
        self.record_changes(table)
        arrays = table.arrays
        if self._scored:
            scored = (self._entries >= 0) & (self._found.entries["state"] == PENDING)
            scored &= (self._score_numbers >= 0) & (self._score_numbers < SEGMENTS_FROM)
            table.scores.take(self._score_numbers[scored].tolist())
        remove_guests(arrays.slots, arrays.entries, arrays.totals, arrays.places, self._entries, table.shift)
        self._found = None
