"""Entries of a compiled join in a store: changes for commits, and the restore.

Besides totals, counters and models (`JoinTotals`), a commit writes what changed of the entries, in values of
thousands of them (`packed`): entries that began or ceased to wait (`waiting_log`), dedup entries
(`dedup_log`), and names that were numbered or released. Values are read only at a start.

Entries outside the table (`outside`) are stored in runs, not in these values. Their number of dedup entries
by generation, and of labels without a match, is a separate value (`OutsideCounts`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.durable.checks import (
    check_counts,
    check_names,
    check_outside,
    has_names,
)
from streamwatch.core.join.compiled.durable.dedup_log import DedupLog
from streamwatch.core.join.compiled.durable.held_log import HeldValues
from streamwatch.core.join.compiled.durable.keys import CLASS, MODEL, OUTSIDE, SEGMENTS, TOPIC, key_of
from streamwatch.core.join.compiled.durable.linking import link
from streamwatch.core.join.compiled.durable.packed import PackedError
from streamwatch.core.join.compiled.durable.restoring import (
    ColumnValues,
    WaitingEntries,
    fill_dedup,
    read_values,
)
from streamwatch.core.join.compiled.durable.totals import (
    JoinTotals,
    restored_generations,
    restored_totals,
)
from streamwatch.core.join.compiled.durable.waiting_log import Changes, WaitingLog
from streamwatch.core.join.compiled.layout import (
    FRONT,
    Arrays,
    allocate_entries,
    allocate_places,
    allocate_slots,
)
from streamwatch.core.join.compiled.names import JoinNames
from streamwatch.core.join.compiled.outside.counts import OutsideCounts
from streamwatch.core.join.compiled.outside.overflow import Overflow
from streamwatch.core.join.compiled.unwritten import DedupMark, unwritten_waiting
from streamwatch.core.join.entry import EARLY, PENDING, RETAINED, UNMATCHED
from streamwatch.core.outcomes import SEGMENTS_FROM

_LEAST_ENTRIES: Final = 1_024


class DurableEntries:
    """Entries of a compiled join in a store.

    Parameters
    ----------
    names
        Names and scores that the join numbers.
    """

    __slots__ = ("_dedup", "_names", "_outside", "_waiting")

    def __init__(self, names: JoinNames) -> None:
        self._names = names
        self._waiting = WaitingLog()
        self._dedup = DedupLog()
        self._outside = OutsideCounts()

    def changes(self, commit: int, arrays: Arrays, overflow: Overflow | None = None) -> Changes:
        """Changes for commit `commit`, which must be committed before the next call."""
        changes: Changes = {}
        came_back = False
        if overflow is not None:
            came_back = overflow.take_came_back()
            if overflow.take_dedup_moved_out():
                self._dedup.remove_all(changes)
            self._write_outside(arrays, overflow, changes)
        fresh = unwritten_waiting(arrays, came_back=came_back)
        self._waiting.write(commit, arrays, fresh, self._names.scores, changes)
        self._dedup.write(arrays, changes)
        for kind, names in (
            (MODEL, self._names.models),
            (CLASS, self._names.classes),
            (SEGMENTS, self._names.segments),
            (TOPIC, self._names.topics),
        ):
            for number, name in names.take_changed().items():
                changes[key_of(kind, number)] = None if name is None else name.encode()
        return changes

    def _write_outside(self, arrays: Arrays, overflow: Overflow, changes: Changes) -> None:
        """Add the counts of entries outside the table to the changes, if they changed."""
        floor = int(arrays.totals["floor"][0])
        settled = {generation: n for generation, n in overflow.settled.items() if generation >= floor}
        now = OutsideCounts(settled, int(arrays.totals["cold_unmatched"][0]))
        if now != self._outside:
            changes[key_of(OUTSIDE, 0)] = msgspec.msgpack.encode(now)
            self._outside = now

    def restore(
        self,
        arrays: Arrays,
        totals: JoinTotals,
        items: Iterable[tuple[bytes, bytes]],
        overflow: Overflow | None = None,
    ) -> tuple[Arrays, OutsideCounts, HeldValues]:
        """Read all values of a store, and build the join's arrays, except for counters and activity.

        Also returns the counts of entries outside the table, and the values of outcomes held for the order of
        predictions, neither of which the arrays contain.

        Raises
        ------
        PackedError
            If the values are not what commits write, or contradict each other or the totals.
        """
        values = read_values(items)
        _restore_names(values, self._names)
        waiting = WaitingEntries(values)
        settled = sum(each.count for pairs in values.dedup.values() for each, _ in pairs)
        count = len(waiting) + settled
        entries = allocate_entries(max(_LEAST_ENTRIES, 1 << (count - 1).bit_length() if count else 0))
        places = allocate_places(len(entries))
        holders = waiting.fill(entries, places)
        ends = fill_dedup(entries, len(waiting), values.dedup)
        check_names(self._names, entries[:count])
        outside = self._outside = values.outside
        cold = (0, 0, 0) if overflow is None else tuple(map(overflow.cold.alive, range(3)))
        check_counts(entries["state"][: len(waiting)], ends, totals, outside, cold)
        if overflow is not None:
            check_outside(self._names, overflow)
        slots = allocate_slots(2 * len(entries))
        shift = np.uint64(65 - len(slots).bit_length())
        states = entries["state"][: len(waiting)]
        fresh = restored_totals(totals, ends, count, int((states == PENDING).sum()) + cold[0])
        came_back = places[: len(waiting)] >= FRONT
        for queue, states_of_queue in enumerate(((PENDING,), (EARLY,), (UNMATCHED, RETAINED))):
            fresh["front"][0, queue] = np.count_nonzero(came_back & np.isin(states, states_of_queue))
        linked = link(slots, entries, fresh, count, shift)
        if linked < count:
            digest = (int(entries["high"][linked]) << 64 | int(entries["low"][linked])).to_bytes(16, "big")
            raise PackedError(f"expected one entry of each id and model, got two of id {digest.hex()}")
        self._restore_carried(entries[: len(waiting)], waiting, holders)
        opened = totals.dedup.opened
        _, end = ends.get(opened.number, (0, 0))
        self._waiting = WaitingLog(waiting.runs, waiting.notes, holders)
        self._dedup = DedupLog(
            {generation: [each for each, _ in pairs] for generation, pairs in values.dedup.items()},
            DedupMark(opened.number, end - 1, opened.count),
        )
        built = arrays._replace(
            entries=entries,
            slots=slots,
            totals=fresh,
            generations=restored_generations(totals.dedup, ends),
            places=places,
            obsolete_places=allocate_places(2 * len(entries)),
        )
        return built, outside, values.held

    def _restore_carried(
        self, entries: NDArray[np.void], waiting: WaitingEntries, holders: NDArray[np.int32]
    ) -> None:
        """Assign their scores and segments to waiting predictions."""
        segments = waiting.segments(holders)
        having = segments >= 0
        if not (has_names(self._names.segments, segments) and (entries["state"][having] == PENDING).all()):
            raise PackedError("expected numbers of the segments of predictions, got others")
        entries["true_or_scores"][having] = segments[having] + SEGMENTS_FROM
        for x, scores in waiting.scores(holders):
            entries["true_or_scores"][x] = self._names.scores.add(scores, int(segments[x]))


def _restore_names(values: ColumnValues, names: JoinNames) -> None:
    try:
        names.topics.restore(values.topics)
        names.segments.restore(values.segments)
        names.models.restore(values.models)
        names.classes.restore(values.classes)
    except ValueError as error:
        raise PackedError(str(error)) from error
