"""What a store has of a compiled join, and a compiled join of what a store has.

A commit writes, beside totals, counters and models (`JoinTotals`), what changed of the entries, in values of
thousands of them (`packed`): what began to wait and what left (`waiting_log`), dedup entries (`dedup_log`),
and names that were given or released. Nothing is lent: values go out, and come back at a start.

Entries outside the table (`outside`) are in runs, and not in these values; how many dedup entries of each
generation are there, and how many labels that nobody has met, is a value of its own (`Outside`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.durable.dedup_log import DedupLog
from streamwatch.core.join.compiled.durable.keys import CLASS, MODEL, OUTSIDE, SEGMENTS, TOPIC, key_of
from streamwatch.core.join.compiled.durable.linking import link
from streamwatch.core.join.compiled.durable.packed import PackedError
from streamwatch.core.join.compiled.durable.restoring import (
    ColumnValues,
    WaitingEntries,
    fill_dedup,
    values_of,
)
from streamwatch.core.join.compiled.durable.waiting_log import Changes, WaitingLog
from streamwatch.core.join.compiled.layout import (
    FRONT,
    GENERATION,
    GENERATIONS_KEPT,
    NO_TIME,
    PREDICTIONS,
    TOTALS,
    Arrays,
    entries_of,
    one,
    places_of,
    slots_of,
)
from streamwatch.core.join.compiled.names import (
    HeldScores,
    NumberedNames,
    NumberedSegments,
    NumberedTopics,
)
from streamwatch.core.join.compiled.outside.counts import Outside
from streamwatch.core.join.compiled.outside.overflow import Overflow
from streamwatch.core.join.compiled.unwritten import DedupMark, unwritten_waiting
from streamwatch.core.join.counters import JoinCounters
from streamwatch.core.join.dedup import DedupState, Generation
from streamwatch.core.join.entry import EARLY, PENDING, RETAINED, UNMATCHED
from streamwatch.core.join.models import JoinModelsState
from streamwatch.core.outcomes import SEGMENTS_FROM

_LEAST_ENTRIES: Final = 1_024


@dataclass(frozen=True, slots=True)
class JoinTotals:
    """A compiled join without its entries."""

    passed_ms: int
    counters: JoinCounters
    join_models: JoinModelsState
    dedup: DedupState
    early: int
    unmatched: int
    retained: int
    start_ms: int | None
    oldest_pending_ms: int | None


class DurableEntries:
    """Entries of a compiled join in a store.

    Parameters
    ----------
    scores, models, classes, segments, topics
        Those of the join.
    """

    __slots__ = ("_classes", "_dedup", "_models", "_outside", "_scores", "_segments", "_topics", "_waiting")

    def __init__(
        self,
        scores: HeldScores,
        models: NumberedNames,
        classes: NumberedNames,
        segments: NumberedSegments,
        topics: NumberedTopics,
    ) -> None:
        self._scores = scores
        self._models = models
        self._classes = classes
        self._segments = segments
        self._topics = topics
        self._waiting = WaitingLog()
        self._dedup = DedupLog()
        self._outside = Outside()

    def changes(self, commit: int, arrays: Arrays, overflow: Overflow | None = None) -> Changes:
        """Compute what commit `commit` writes; the join is told that it is written."""
        changes: Changes = {}
        came_back = False
        if overflow is not None:
            came_back, overflow.came_back = overflow.came_back, False
            if overflow.dedup_left:
                overflow.dedup_left = False
                self._dedup.forget(changes)
            self._write_outside(arrays, overflow, changes)
        fresh = unwritten_waiting(arrays, came_back=came_back)
        self._waiting.write(commit, arrays, fresh, self._scores, changes)
        self._dedup.write(arrays, changes)
        for kind, names in (
            (MODEL, self._models),
            (CLASS, self._classes),
            (SEGMENTS, self._segments),
            (TOPIC, self._topics),
        ):
            for number, name in names.take_changed().items():
                changes[key_of(kind, number)] = None if name is None else name.encode()
        return changes

    def _write_outside(self, arrays: Arrays, overflow: Overflow, changes: Changes) -> None:
        """Add what is to be known of the entries outside the table, if it is news."""
        floor = int(arrays.totals["floor"][0])
        settled = {generation: n for generation, n in overflow.settled.items() if generation >= floor}
        now = Outside(settled, int(arrays.totals["cold_unmatched"][0]))
        if now != self._outside:
            changes[key_of(OUTSIDE, 0)] = msgspec.msgpack.encode(now)
            self._outside = now

    def restore(
        self,
        arrays: Arrays,
        totals: JoinTotals,
        items: Iterable[tuple[bytes, bytes]],
        overflow: Overflow | None = None,
    ) -> tuple[Arrays, Outside]:
        """Read all values of a store; the arrays of a join with them, but for counters and activity.

        Also what they say of the entries outside the table, which the arrays do not know yet.

        Raises
        ------
        PackedError
            If the values are not what a commit writes, or contradict each other or the totals.
        """
        values = values_of(items)
        _restore_names(values, self._models, self._classes, self._segments, self._topics)
        waiting = WaitingEntries(values)
        settled = sum(each.count for several in values.dedup.values() for each, _ in several)
        count = len(waiting) + settled
        entries = entries_of(max(_LEAST_ENTRIES, 1 << (count - 1).bit_length() if count else 0))
        places = places_of(len(entries))
        holders = waiting.fill(entries, places)
        ends = fill_dedup(entries, len(waiting), values.dedup)
        self._check_names(entries[:count])
        outside = self._outside = values.outside
        cold = (0, 0, 0) if overflow is None else tuple(map(overflow.cold.alive, range(3)))
        _check_counts(entries["state"][: len(waiting)], ends, totals, outside, cold)
        if overflow is not None:
            self._check_outside(overflow)
        slots = slots_of(2 * len(entries))
        shift = np.uint64(65 - len(slots).bit_length())
        states = entries["state"][: len(waiting)]
        fresh = _totals_of(totals, ends, count, int((states == PENDING).sum()) + cold[0])
        back = places[: len(waiting)] >= FRONT
        for queue, several in enumerate(((PENDING,), (EARLY,), (UNMATCHED, RETAINED))):
            fresh["front"][0, queue] = np.count_nonzero(back & np.isin(states, several))
        linked = link(slots, entries, fresh, count, shift)
        if linked < count:
            digest = (int(entries["high"][linked]) << 64 | int(entries["low"][linked])).to_bytes(16, "big")
            raise PackedError(f"expected one entry of each id and model, got two of id {digest.hex()}")
        self._restore_carried(entries[: len(waiting)], waiting, holders)
        opened = totals.dedup.opened
        _, end = ends.get(opened.number, (0, 0))
        self._waiting = WaitingLog(waiting.runs, waiting.notes, holders)
        self._dedup = DedupLog(
            {generation: [each for each, _ in several] for generation, several in values.dedup.items()},
            DedupMark(opened.number, end - 1, opened.count),
        )
        return arrays._replace(
            entries=entries,
            slots=slots,
            totals=fresh,
            generations=_generations_of(totals.dedup, ends),
            places=places,
            left=places_of(2 * len(entries)),
        ), outside

    def _restore_carried(
        self, entries: NDArray[np.void], waiting: WaitingEntries, holders: NDArray[np.int32]
    ) -> None:
        """Give predictions that wait their scores and segments."""
        segments = waiting.segments()
        having = segments >= 0
        if not (_has_names(self._segments, segments) and (entries["state"][having] == PENDING).all()):
            raise PackedError("expected numbers of the segments of predictions, got others")
        entries["true_or_scores"][having] = segments[having] + SEGMENTS_FROM
        for x, scores in waiting.scores(holders):
            entries["true_or_scores"][x] = self._scores.add(scores, int(segments[x]))

    def _check_outside(self, overflow: Overflow) -> None:
        """Refuse entries outside the table that refer to what has no name."""
        for names, used in (
            (self._models, overflow.cold.models()),
            (self._classes, overflow.cold.classes()),
            (self._segments, overflow.cold.segments()),
        ):
            for numbers in used:
                if not _has_names(names, numbers):
                    raise PackedError(
                        "expected numbers of names in the runs of cold entries, got one released"
                    )

    def _check_names(self, entries: NDArray[np.void]) -> None:
        """Refuse numbers that have no name."""
        pending = entries["state"] == PENDING
        for names, columns in (
            (self._models, (entries["model"],)),
            (
                self._classes,
                (entries["predicted_class"], entries["true_or_scores"], entries["label_at_prediction"]),
            ),
        ):
            named = np.zeros(len(names.names) + 1, np.bool_)
            named[list(names.values())] = True
            named[-1] = True  # -1 stands for no name
            for column in columns:
                if len(column) and not (int(column.min()) >= -1 and int(column.max()) < len(names.names)):
                    raise PackedError(f"expected numbers of {len(names.names)} names, got {column.max()}")
                if not named[column].all():
                    raise PackedError("expected numbers of names, got one that was released")
        if len(entries) and int(entries["topic"].max()) >= len(self._topics.names):
            raise PackedError(
                f"expected numbers of {len(self._topics.names)} topics, got {entries['topic'].max()}"
            )
        if (entries["model"][pending] < 0).any():
            raise PackedError("expected the model of every prediction, got none of one")


def _has_names(names: NumberedNames, numbers: NDArray[np.int32] | NDArray[np.int64]) -> bool:
    """Tell whether every number is that of a name; negative ones stand for none."""
    return set(names.values()).issuperset(np.unique(numbers[numbers >= 0]).tolist())


def totals_of(arrays: Arrays, join_models: JoinModelsState, counters: JoinCounters) -> JoinTotals:
    """Totals, counters and models that a commit writes beside the entries."""
    t = arrays.totals[0]
    oldest, start_ms = int(t["first"][PREDICTIONS]), int(arrays.limits["start_ms"][0])
    closed = [
        Generation(int(g["number"]), int(g["count"]), int(g["newest_ms"]))
        for g in (
            arrays.generations[(int(t["closed_start"]) + k) % GENERATIONS_KEPT]
            for k in range(int(t["closed"]))
        )
    ]
    opened = Generation(int(t["generation"]), int(t["open_entries"]), int(t["open_newest_ms"]))
    return JoinTotals(
        int(t["passed_ms"]),
        counters,
        join_models,
        DedupState(closed, opened, int(t["opened_ms"]), int(t["dedup_clock_ms"]), int(t["floor"])),
        int(t["early"]),
        int(t["unmatched"]),
        int(t["retained"]),
        None if start_ms == NO_TIME else start_ms,
        None if oldest < 0 else int(arrays.entries["record_ms"][oldest]),
    )


def _restore_names(
    values: ColumnValues,
    models: NumberedNames,
    classes: NumberedNames,
    segments: NumberedSegments,
    topics: NumberedTopics,
) -> None:
    try:
        topics.restore(values.topics)
        segments.restore(values.segments)
        models.restore(values.models)
        classes.restore(values.classes)
    except ValueError as error:
        raise PackedError(str(error)) from error


def _check_counts(
    states: NDArray[np.int16],
    ends: dict[int, tuple[int, int]],
    totals: JoinTotals,
    outside: Outside,
    cold: tuple[int, ...],
) -> None:
    """Refuse entries that are not as many as the totals say, with those outside the table."""
    pending = sum(model.pending for model in totals.join_models.models)
    unmatched, retained = int((states == UNMATCHED).sum()), int((states == RETAINED).sum())
    said = (pending, totals.early, totals.unmatched, totals.retained)
    found = (
        int((states == PENDING).sum()) + cold[0],
        int((states == EARLY).sum()) + cold[1],
        unmatched + outside.unmatched,
        unmatched + retained + cold[2],
    )
    if said != found:
        raise PackedError(f"expected {said} predictions and labels of each kind that wait, got {found}")
    dedup = {each.number: each.count for each in (*totals.dedup.closed, totals.dedup.opened) if each.count}
    written = Counter({generation: end - first for generation, (first, end) in ends.items() if end > first})
    written.update(outside.settled)
    if dedup != written:
        raise PackedError(f"expected dedup entries {dedup} by generation, got {written}")


def _totals_of(
    totals: JoinTotals, ends: dict[int, tuple[int, int]], count: int, pending: int
) -> NDArray[np.void]:
    """`TOTALS` of a join whose entries are yet to be linked."""
    dedup = totals.dedup
    first, end = ends.get(dedup.opened.number, (-1, 0))
    return one(
        TOTALS,
        free=-1,
        top=count,
        pending=pending,
        early=totals.early,
        unmatched=totals.unmatched,
        retained=totals.retained,
        first=-1,
        last=-1,
        generation=dedup.opened.number,
        floor=dedup.floor,
        open_entries=dedup.opened.count,
        open_newest_ms=dedup.opened.newest_ms,
        open_first=first,
        open_last=end - 1,
        opened_ms=dedup.opened_ms,
        dedup_clock_ms=dedup.clock_ms,
        closed=len(dedup.closed),
        closed_entries=sum(each.count for each in dedup.closed),
        dead_first=-1,
        dead_last=-1,
        passed_ms=totals.passed_ms,
        used=count,
    )


def _generations_of(dedup: DedupState, ends: dict[int, tuple[int, int]]) -> NDArray[np.void]:
    generations = np.zeros(GENERATIONS_KEPT, GENERATION)
    for g, each in zip(generations, dedup.closed, strict=False):
        first, end = ends.get(each.number, (-1, 0))
        g["number"], g["count"], g["newest_ms"] = each.number, each.count, each.newest_ms
        g["first"], g["last"] = first, end - 1
    return generations
