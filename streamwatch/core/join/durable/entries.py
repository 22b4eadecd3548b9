"""Entries of a compiled join in a store: changes for commits, and the restore.

Besides totals, counters and models (`JoinTotals`), a commit writes the changes of entries, thousands in one
value (`packed`): entries that began or stopped waiting, and new dedup entries (`entry_logs`). It also writes
names that were numbered or released. Values are read only at a start.

Entries outside the table (`join.cold`) are stored in runs, not in these values. How many of them are dedup
entries, by generation, and labels without a match, is a separate value (`OutsideCounts`).
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry
from streamwatch.core.join.cold.overflow import OutsideCounts, Overflow
from streamwatch.core.join.counters import EARLY, PENDING, RESOLVED, RETAINED, UNMATCHED
from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.durable.entry_logs import Changes, DedupLog, WaitingLog
from streamwatch.core.join.durable.held_log import HeldValues
from streamwatch.core.join.durable.packed import CLASS, MODEL, OUTSIDE, SEGMENTS, TOPIC, has_names, key_of
from streamwatch.core.join.durable.restoring import (
    ColumnValues,
    WaitingEntries,
    check_counts,
    check_generations,
    check_names,
    check_outside,
    fill_dedup,
    read_values,
)
from streamwatch.core.join.durable.totals import (
    JoinTotals,
    restored_generations,
    restored_totals,
)
from streamwatch.core.join.layout import (
    CHANGED,
    EARLY_LABELS,
    FRONT,
    OF_CLASSES,
    PREDICTIONS,
    REPLACES_CLASS,
    RETAINED_LABELS,
    UNUSED,
    Arrays,
    allocate_entries,
    allocate_log_positions,
    allocate_numbers,
    allocate_side,
    allocate_slots,
    renamed,
    side_columns,
)
from streamwatch.core.join.names import JoinNames
from streamwatch.core.join.table import DedupMark, append, enqueue, find_slot, first_of, unwritten_waiting
from streamwatch.core.records.events import CARRIED
from streamwatch.core.records.outcomes import SEGMENTS_FROM
from streamwatch.core.specs import JoinSpec

# Rebuilding of chains and queues of entries that were read back.


@entry
def link(slots: Any, entries: Any, totals: Any, count: int, shift: Any) -> int:
    """Add entries to the chains of their ids, and waiting ones to their queues, in order.

    Parameters
    ----------
    slots, entries, totals
        Fields of `Arrays`; the slots are empty, and enough.
    count
        Number of entries.
    shift
        See `loop.join_rows`.

    Returns
    -------
    int
        `count`, or the first entry whose id and model an earlier entry has, both labels or both predictions.
    """
    t = totals[0]
    for x in range(count):
        e = entries[x]
        i = find_slot(slots, entries, e.low, e.high, shift)
        last = -1
        other = first_of(slots[i])
        while other >= 0:
            waits = EARLY <= entries[other]["state"] < RESOLVED
            if entries[other]["model"] == e.model and waits == (EARLY <= e.state < RESOLVED):
                return x
            last = other
            other = entries[other]["next"] + 0
        append(slots, entries, t, i, last, x)
        if e.state == PENDING:
            enqueue(entries, t, PREDICTIONS, x)
        elif e.state == EARLY:
            enqueue(entries, t, EARLY_LABELS, x)
        elif e.state < RESOLVED:
            enqueue(entries, t, RETAINED_LABELS, x)
    return count


_LEAST_ENTRIES: Final = 1_024


class DurableEntries:
    """Entries of a compiled join in a store.

    Parameters
    ----------
    names
        Names and scores that the join numbers.
    spec
        Rules of the join, which determine the side columns.
    """

    __slots__ = ("_columns", "_dedup", "_names", "_outside", "_spec", "_waiting")

    def __init__(self, names: JoinNames, spec: JoinSpec) -> None:
        self._names = names
        self._spec = spec
        self._columns = side_columns(spec)
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
        self._waiting.write(commit, arrays, fresh, self._names.scores, self._columns, changes)
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
        settled = {
            generation: n for generation, n in overflow.contents.settled.items() if generation >= floor
        }
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
        check_generations(totals.dedup)
        values = read_values(items)
        _restore_names(values, self._names)
        waiting = WaitingEntries(values)
        settled = sum(each.count for pairs in values.dedup.values() for each, _ in pairs)
        count = len(waiting) + settled
        entries = allocate_entries(max(_LEAST_ENTRIES, 1 << (count - 1).bit_length() if count else 0))
        log_positions = allocate_log_positions(len(entries))
        holders = waiting.fill(entries, log_positions)
        ends = fill_dedup(entries, len(waiting), values.dedup)
        check_names(self._names, entries[:count])
        outside = self._outside = values.outside
        cold = (0, 0, 0) if overflow is None else tuple(map(overflow.contents.cold.alive, range(3)))
        check_counts(entries["state"][: len(waiting)], ends, totals, outside, cold)
        if overflow is not None:
            check_outside(self._names, overflow)
        slots = allocate_slots(2 * len(entries))
        shift = np.uint64(65 - len(slots).bit_length())
        states = entries["state"][: len(waiting)]
        fresh = restored_totals(totals, ends, count, int((states == PENDING).sum()) + cold[0])
        came_back = log_positions[: len(waiting)] >= FRONT
        for queue, states_of_queue in enumerate(((PENDING,), (EARLY,), (UNMATCHED, RETAINED))):
            fresh["front"][0, queue] = np.count_nonzero(came_back & np.isin(states, states_of_queue))
        linked = link(slots, entries, fresh, count, shift)
        if linked < count:
            digest = (int(entries["high"][linked]) << 64 | int(entries["low"][linked])).to_bytes(16, "big")
            raise PackedError(f"expected one entry of each id and model, got two of id {digest.hex()}")
        self._restore_carried(entries[: len(waiting)], waiting, holders)
        side = allocate_side(len(entries), len(self._columns))
        changed = self._restore_side(entries[: len(waiting)], side, waiting.side(holders))
        noted = allocate_numbers(len(entries))
        noted[: len(changed)] = changed
        fresh["changed"] = len(changed)
        log_positions[changed] |= CHANGED
        opened = totals.dedup.opened
        _, end = ends.get(opened.number, (0, 0))
        self._waiting = WaitingLog(waiting.runs, waiting.notes, holders)
        self._dedup = DedupLog(
            {generation: [each for each, _ in pairs] for generation, pairs in values.dedup.items()},
            DedupMark(opened.number, end - 1),
        )
        built = arrays._replace(
            entries=entries,
            side=side,
            slots=slots,
            totals=fresh,
            generations=restored_generations(totals.dedup, ends),
            log_positions=log_positions,
            obsolete_positions=allocate_log_positions(2 * len(entries)),
            changed=noted,
        )
        return built, outside, values.held

    def _restore_side(
        self, entries: NDArray[np.void], side: NDArray[np.int32], stored: dict[str, NDArray[np.int64]]
    ) -> NDArray[np.intp]:
        """Write stored side columns to waiting predictions; return the indices of predictions it changed.

        Columns that are not used any more are applied to the predictions, or dropped (`layout.renamed`).
        """
        changed = np.zeros(len(entries), np.bool_)
        for name, now in zip(stored, renamed(tuple(stored), self._spec), strict=True):
            values = stored[name]
            having = values > 0
            if (entries["state"][having] != PENDING).any():
                raise PackedError(f"expected values of predictions in side column {name}, got some of others")
            if name in OF_CLASSES and not has_names(self._names.classes, values - 1):
                raise PackedError(f"expected numbers of classes in side column {name}, got others")
            number = next((each for each in CARRIED if each.name == name), None)
            if number is not None and not number.is_valid(values):
                raise PackedError(f"expected {number.meaning} in side column {name}, got others")
            if now in self._columns:
                side[: len(entries), self._columns.index(now)] = values
                continue
            changed |= having
            if now == REPLACES_CLASS:
                entries["predicted_class"][having] = values[having] - 1
            else:
                assert now == UNUSED  # noqa: S101 - there is no other
        return np.flatnonzero(changed)

    def _restore_carried(
        self, entries: NDArray[np.void], waiting: WaitingEntries, holders: NDArray[np.int32]
    ) -> None:
        """Write stored scores and segments to waiting predictions."""
        segments = waiting.segments(holders)
        having = segments >= 0
        if not (has_names(self._names.segments, segments) and (entries["state"][having] == PENDING).all()):
            raise PackedError("expected numbers of the segments of predictions, got others")
        entries["true_or_scores"][having] = segments[having] + SEGMENTS_FROM
        scored, scores = waiting.scores(holders)
        if not (
            has_names(self._names.classes, scores.classes) and (entries["state"][scored] == PENDING).all()
        ):
            raise PackedError("expected numbers of the classes of predictions' scores, got others")
        scores = replace(scores, beside=segments[scored].astype(np.int32))
        entries["true_or_scores"][scored] = self._names.scores.add(scores)


def _restore_names(values: ColumnValues, names: JoinNames) -> None:
    try:
        names.topics.restore(values.topics)
        names.segments.restore(values.segments)
        names.models.restore(values.models)
        names.classes.restore(values.classes)
    except ValueError as error:
        raise PackedError(str(error)) from error
