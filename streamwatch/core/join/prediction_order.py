"""`PredictionOrder`: puts outcomes back into the order of their predictions (`join.order: prediction_time`).

κ_per and every detector depend on the order in which outcomes are evaluated. The order of resolution means
nothing if labels are written in bulk, sorted by class; predictions come in the order in which they were made.

Until when an outcome is held is decided in `join.reorder_windows`; slots and their queue are in
`join.held_outcomes`.

Pairs are made when an outcome is resolved, and are held and released with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.held_outcomes import (
    BUCKETS,
    BUCKETS_PER_MARK,
    BUCKETS_PER_WINDOW,
    NEVER,
    NO_RUN,
    SLOT,
    TOTALS,
    UNLISTED,
    Held,
    count_pairs,
    free_pairs,
    read_pairs,
)
from streamwatch.core.join.held_scores import Carried, HeldScores, taken_scores
from streamwatch.core.join.layout import Records, lazy_zeros, room_for_pairs
from streamwatch.core.join.reorder_windows import (
    Released,
    hold_again,
    open_again,
    put_in_order,
    release_any,
)
from streamwatch.core.records.batch import copied, joined, taken, words_of_array
from streamwatch.core.records.outcomes import (
    NO_PAIRS,
    OUTCOME,
    PAIR_COLUMNS,
    SEGMENTS_FROM,
    OutcomeBatch,
    Pairs,
    moved,
    pairs_at,
)
from streamwatch.core.records.scores import ScoreLists

ROOM: Final = 8_192
"""Largest number of outcomes released at a time."""
_FIRST_SLOTS: Final = 1_024


class OrderTotals(msgspec.Struct, array_like=True, frozen=True):
    """State of the order without the outcomes held, as a commit contains it; see `TOTALS`."""

    sequence: int = 0
    bound: tuple[int, int] = (NEVER, 0)
    clock_ms: int = NEVER
    held_since: int = 0
    overflow: tuple[int, int] = (NEVER, 0)


class HeldRows(NamedTuple):
    """Outcomes that a state holds, shape (n,) each, in the order of `sequence`, and their pairs."""

    outcomes: Records
    pairs: Pairs
    prediction_ms: NDArray[np.int64]
    opened_ms: NDArray[np.int64]
    sequence: NDArray[np.int64]
    run: NDArray[np.int64]

    def at(self, chosen: NDArray[np.int64]) -> HeldRows:
        """Rows at these positions."""
        return HeldRows(
            taken(self.outcomes, chosen),
            pairs_at(self.pairs, chosen, len(self.outcomes)),
            *(column[chosen] for column in self[2:]),
        )


def joined_rows(parts: Sequence[HeldRows]) -> HeldRows:
    """Rows of all parts, one after another; at least one part."""
    starts = np.cumsum([0, *(len(part.outcomes) for part in parts)]).tolist()
    return HeldRows(
        joined([part.outcomes for part in parts]),
        np.concatenate([moved(part.pairs, start) for start, part in zip(starts, parts, strict=False)]),
        *(np.concatenate(columns) for columns in zip(*(part[2:] for part in parts), strict=True)),
    )


class Leaving(NamedTuple):
    """Outcomes released in order, at most `ROOM`."""

    outcomes: OutcomeBatch
    runs: NDArray[np.int64]
    """Number of the stored run of each, -1 for none."""
    early: NDArray[np.bool_]
    """Whether each was released because too many were held."""


class PredictionOrder:
    """Holds outcomes until it is their turn in the order of predictions.

    Parameters
    ----------
    window_ms
        `join.reorder_window` in milliseconds.
    maximum
        `join.max_reordered`: largest number of outcomes held.
    """

    __slots__ = ("_by_model", "_held", "_maximum", "_released", "_scores", "_window_ms")

    def __init__(self, window_ms: int, maximum: int) -> None:
        self._window_ms = window_ms
        self._maximum = maximum
        self._held = _held(_FIRST_SLOTS, OrderTotals(), window_ms)
        self._by_model = np.zeros(0, np.int64)
        self._scores = HeldScores()
        released = np.empty(ROOM, OUTCOME)
        self._released = Released(
            released,
            words_of_array(released),
            np.empty(ROOM, np.int64),
            np.empty(ROOM, np.int32),
            np.empty(ROOM, np.bool_),
        )

    def __len__(self) -> int:
        return int(self._held.totals["count"][0])

    @property
    def assumed(self) -> int:
        """Number of outcomes held that were assumed at expiry."""
        return int(self._held.totals["assumed"][0])

    def put(self, outcomes: OutcomeBatch, timing: Records, clock_ms: int) -> Iterator[Leaving]:
        """Hold outcomes, and release outcomes that are due, up to the clock after them.

        Exhaust the iterator before anything else is done with the order.

        Parameters
        ----------
        outcomes
            Outcomes in the order in which they were resolved. Those with model -1 are held elsewhere, and
            only open their windows.
        timing
            Records `TIMING` of the outcomes, (n,).
        clock_ms
            Clock after the outcomes.

        Yields
        ------
        Leaving
            Outcomes released.
        """
        records = self._with_own_scores(outcomes)
        words = words_of_array(records)
        pairs = NO_PAIRS if outcomes.pairs is None else outcomes.pairs
        self._make_room(len(records), len(pairs))
        self._count_models(records, 1)
        at = 0
        while at <= len(records):
            window = self._window_ms, self._maximum
            coming = pairs[np.searchsorted(pairs[:, 0], at) :]
            at, count = put_in_order(
                self._held, records, words, timing, coming, at, clock_ms, *window, self._released
            )
            if count:
                yield self._take(outcomes, count)

    def release_all(self, names: OutcomeBatch) -> Iterator[Leaving]:
        """Release everything in order, as `put` does; `names` is a batch with the present names by number."""
        while len(self):
            yield self._take(names, release_any(self._held, self._released))

    def _take(self, names: OutcomeBatch, count: int) -> Leaving:
        released = self._released
        records = copied(released.outcomes[:count])
        self._count_models(records, -1)
        scores = taken_scores(records, self._scores)
        pairs = self._pairs_of(released.pair[:count])
        free_pairs(self._held, released.pair[:count])
        batch = OutcomeBatch(records, names.models, names.classes, scores, names.segments, pairs)
        return Leaving(batch, released.runs[:count].copy(), released.early[:count].copy())

    def _pairs_of(self, first: NDArray[np.int32]) -> Pairs:
        """Pairs in the chains that begin at these rows of the pool, -1 for none, by chain."""
        if not self._held.totals["pairs"][0]:
            return NO_PAIRS
        pairs = np.empty((count_pairs(self._held, first), PAIR_COLUMNS), np.int32)
        read_pairs(self._held, first, pairs)
        return pairs

    def _with_own_scores(self, outcomes: OutcomeBatch) -> Records:
        """Hold the scores of outcomes here; return the records with the numbers that the scores have here."""
        records = outcomes.records
        scored, lists = outcomes.own_scores()
        if len(scored):
            records = copied(records)
            records["scores"][scored] = self._scores.add(lists)
        return records

    def take_early(self) -> int:
        """Return how many outcomes were released because too many were held, since the last call."""
        early = int(self._held.totals["early"][0])
        self._held.totals["early"] = 0
        return early

    def held_by_model(self, models: int) -> NDArray[np.int64]:
        """Count the outcomes held by model number, shape (models,) or longer."""
        counts = np.zeros(max(models, len(self._by_model)), np.int64)
        counts[: len(self._by_model)] = self._by_model
        return counts

    def _count_models(self, records: Records, sign: int) -> None:
        """Add outcomes to the numbers held by model, or with `sign` -1 subtract them."""
        numbers = records["model"]
        counts = np.bincount(numbers[numbers >= 0], minlength=len(self._by_model))
        counts[: len(self._by_model)] = self._by_model + sign * counts[: len(self._by_model)]
        self._by_model = counts

    def records(self) -> Records:
        """Outcomes held, in no order; the numbers of their scores are those of this order."""
        return self._outcomes_at(self._slots())

    def _outcomes_at(self, slots: NDArray[np.int64]) -> Records:
        """Copy the outcomes in these slots."""
        return self._held.slots["outcome"][slots].reshape(-1).view(OUTCOME)

    def pairs(self) -> Pairs:
        """Pairs of the outcomes held, by their indices in `records`."""
        return self._pairs_of(self._held.slots["pair"][self._slots()])

    def carried_names(self, classes: int, segments: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the numbers of the classes of scores, and of the segments, of outcomes held.

        All are below `classes` and `segments`; negative ones stand for none.
        """
        of_scores, beside = self._scores.used(classes, segments)
        return of_scores, np.concatenate([self.records()["scores"] - SEGMENTS_FROM, beside])

    def _slots(self) -> NDArray[np.int64]:
        """Slots of the outcomes held, ascending."""
        held = self._held
        return np.flatnonzero(held.slots["sequence"][: int(held.totals["top"][0])] >= 0)

    def take_fresh(self) -> NDArray[np.int64]:
        """Return the slots of the outcomes that no stored run contains; the caller must set their run."""
        held, totals = self._held, self._held.totals
        listed = held.fresh[: int(totals["fresh"][0])].astype(np.int64)
        totals["fresh"] = 0
        is_held = held.slots["sequence"][listed] >= 0
        held.slots["run"][listed[~is_held]] = UNLISTED
        return listed[is_held]

    def slots_of(self, run: int) -> NDArray[np.int64]:
        """Return the slots of the outcomes of a stored run that are still held."""
        slots = self._slots()
        return slots[self._held.slots["run"][slots] == run]

    def rows(self, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], HeldRows]:
        """Return slots of outcomes held, sorted by sequence, and their rows."""
        slots = slots[np.argsort(self._held.slots["sequence"][slots])]
        about = taken(self._held.slots, slots)
        outcomes = about["outcome"].copy().reshape(-1).view(OUTCOME)
        times = (about[name].copy() for name in ("prediction_ms", "opened_ms", "sequence", "run"))
        return slots, HeldRows(outcomes, self._pairs_of(about["pair"].copy()), *times)

    def set_run(self, slots: NDArray[np.int64], number: int) -> None:
        """Note the stored run that contains these outcomes."""
        self._held.slots["run"][slots] = number

    def forget_run(self, run: int) -> None:
        """Note that no stored run contains the outcomes of this run that are still held."""
        slots, totals = self.slots_of(run), self._held.totals
        self.set_run(slots, NO_RUN)
        listed = int(totals["fresh"][0])
        self._held.fresh[listed : listed + len(slots)] = slots
        totals["fresh"] += len(slots)

    def forget_runs(self) -> None:
        """Note that no stored run contains any outcome."""
        top = int(self._held.totals["top"][0])
        self._held.slots["run"][:top] = NO_RUN
        self._held.fresh[:top] = np.arange(top)
        self._held.totals["fresh"] = top

    def windows(self) -> NDArray[np.int64]:
        """Return the open windows: prediction time, sequence and time of opening, int64 (n, 3), ascending."""
        t, ring = self._held.totals[0], self._held.windows
        at = (int(t["first_window"]) + np.arange(int(t["windows"]))) % len(ring)
        return ring[at] - (0, 0, self._window_ms)

    def open_windows(self, windows: NDArray[np.int64]) -> None:
        """Replace the open windows by these, which must include those of all outcomes held."""
        self._make_room(len(windows), 0)
        open_again(self._held, windows, self._window_ms)

    def carried(self, outcomes: Records) -> Carried:
        """Scores and segments of outcomes that are held."""
        return self._scores.carried(outcomes["scores"])

    def totals(self) -> OrderTotals:
        """Return the state of the order without the outcomes held."""
        t = self._held.totals[0]
        overflow_ms = int(t["overflow_ms"])
        return OrderTotals(
            int(t["sequence"]),
            (int(t["bound_ms"]), int(t["bound_sequence"])),
            int(t["clock_ms"]),
            int(t["held_since"]),
            (overflow_ms, 0 if overflow_ms == NEVER else int(t["overflow_sequence"])),
        )

    def restore(
        self, totals: OrderTotals, rows: HeldRows, scored: NDArray[np.int64], scores: ScoreLists
    ) -> None:
        """Continue from a state.

        Parameters
        ----------
        totals
            State without the outcomes held.
        rows
            Outcomes held; their column `scores` holds `SEGMENTS_FROM` plus the number of segments, -1 without
            any.
        scored, scores
            Positions of the rows with scores, and these scores, with the numbers of segments beside them.
        """
        self._scores = HeldScores()
        outcomes = copied(rows.outcomes)
        outcomes["scores"][scored] = self._scores.add(scores)
        slots = max(_FIRST_SLOTS, 1 << (len(outcomes) - 1).bit_length() if len(outcomes) else 0)
        self._held = _held(slots, totals, self._window_ms)
        self._by_model = np.zeros(0, np.int64)
        self._count_models(outcomes, 1)
        self._make_room(0, len(rows.pairs))
        arrays = rows.prediction_ms, rows.opened_ms, rows.sequence, rows.run
        words = words_of_array(outcomes)
        hold_again(self._held, outcomes, words, rows.pairs, *arrays, self._window_ms)

    def _make_room(self, coming: int, pairs: int) -> None:
        """Double the slots, and the room for pairs, until there is room for so many more."""
        held, count = self._held, max(len(self), int(self._held.totals["windows"][0]))
        needed = int(held.totals["pairs"][0]) + pairs
        if needed > len(held.pairs):
            pool = room_for_pairs(max(_FIRST_SLOTS, 1 << (needed - 1).bit_length()))
            pool[: len(held.pairs)] = held.pairs
            self._held = held = held._replace(pairs=pool)
        slots = len(held.slots)
        while count + coming > slots:
            slots *= 2
        if slots == len(held.slots):
            return
        larger = _held(slots, OrderTotals(), self._window_ms)
        used = held.totals[0]
        for name, top in (
            ("slots", used["top"]),
            ("fresh", used["fresh"]),
            ("heap", used["in_heap"]),
            ("distant", used["in_distant"]),
        ):
            getattr(larger, name)[:top] = getattr(held, name)[:top]
        first, windows = int(held.totals["first_window"][0]), int(held.totals["windows"][0])
        larger.windows[:windows] = np.roll(held.windows, -first, axis=0)[:windows]
        held.totals["first_window"] = 0
        kept = {"buckets": held.buckets, "marks": held.marks, "pairs": held.pairs, "totals": held.totals}
        self._held = larger._replace(**kept)


def _held(slots: int, totals: OrderTotals, window_ms: int) -> Held:
    """Build the arrays of an order that holds nothing and has `slots` free slots."""
    record = np.zeros(1, TOTALS)
    record["width_bits"] = (window_ms // BUCKETS_PER_WINDOW).bit_length()
    record["free"] = record["pairs_free"] = -1
    record["sequence"], record["clock_ms"] = totals.sequence, totals.clock_ms
    record["bound_ms"], record["bound_sequence"] = totals.bound
    record["held_since"] = totals.held_since
    record["overflow_ms"], record["overflow_sequence"] = totals.overflow
    return Held(
        lazy_zeros(slots, SLOT),
        np.zeros((slots, 3), np.int64),
        np.zeros((slots, 3), np.int64),
        lazy_zeros(BUCKETS, np.dtype(np.int32)),
        np.zeros(BUCKETS // BUCKETS_PER_MARK, np.uint64),
        np.zeros(slots, np.int32),
        np.zeros((slots, 3), np.int64),
        NO_PAIRS,
        record,
    )
