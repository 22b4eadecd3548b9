"""`PredictionOrder`: puts outcomes back into the order of their predictions (`join.order: prediction_time`).

Numbers that depend on order (κ_per, every detector) live in the order in which outcomes are evaluated. A
label dump sorted by class turns the order of resolution into nonsense; predictions come in the order in which
the model worked.

An outcome opens a window of `join.reorder_window` when it is resolved. When the clock reaches the end of the
window, the outcome is released together with everything held whose prediction is not newer. So nothing waits
longer than its window, and what is resolved within one window leaves in the order of predictions, ties in the
order of resolution. One that is resolved after newer ones have left goes when the clock next moves. Beyond
`join.max_reordered` the outcomes of the oldest predictions leave at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.compiled.holding import (
    LAST,
    MS,
    NEVER,
    SEQUENCE,
    TOTALS,
    Held,
    hold_again,
    put_in_order,
    release_any,
)
from streamwatch.core.join.compiled.layout import Records
from streamwatch.core.join.compiled.lazy_zeros import lazy_zeros
from streamwatch.core.join.compiled.names import HeldScores
from streamwatch.core.outcomes import OUTCOME, SEGMENTS_FROM, OutcomeBatch
from streamwatch.core.words import copied, joined, taken

ROOM: Final = 4_096
"""Largest number of outcomes released at a time."""
_FIRST_SLOTS: Final = 1_024


class OrderTotals(msgspec.Struct, array_like=True, frozen=True):
    """State of the order besides what is held, as a commit contains it; see `TOTALS`."""

    sequence: int = 0
    bound: tuple[int, int] = (NEVER, 0)
    clock_ms: int = NEVER
    held_since: int = 0
    overflow: tuple[int, int] = (NEVER, 0)


class HeldRows(NamedTuple):
    """Outcomes that a state holds, shape (n,) each, in the order of `sequence`."""

    outcomes: Records
    prediction_ms: NDArray[np.int64]
    opened_ms: NDArray[np.int64]
    sequence: NDArray[np.int64]
    run: NDArray[np.int64]

    def at(self, chosen: NDArray[np.int64]) -> HeldRows:
        """Rows at these positions."""
        return HeldRows(
            taken(self.outcomes, chosen),
            self.prediction_ms[chosen],
            self.opened_ms[chosen],
            self.sequence[chosen],
            self.run[chosen],
        )


def joined_rows(parts: Sequence[HeldRows]) -> HeldRows:
    """Rows of all parts, one after another; at least one part."""
    return HeldRows(
        joined([part.outcomes for part in parts]),
        np.concatenate([part.prediction_ms for part in parts]),
        np.concatenate([part.opened_ms for part in parts]),
        np.concatenate([part.sequence for part in parts]),
        np.concatenate([part.run for part in parts]),
    )


class PredictionOrder:
    """Holds outcomes until it is their turn in the order of predictions.

    Parameters
    ----------
    window_ms
        `join.reorder_window` in milliseconds.
    maximum
        `join.max_reordered`: largest number of outcomes held.
    """

    __slots__ = ("_held", "_maximum", "_released", "_runs", "_scores", "_window_ms")

    def __init__(self, window_ms: int, maximum: int) -> None:
        self._window_ms = window_ms
        self._maximum = maximum
        self._held = _held(_FIRST_SLOTS, OrderTotals())
        self._scores = HeldScores()
        self._released = np.empty(ROOM, OUTCOME)
        self._runs = np.empty(ROOM, np.int64)

    def __len__(self) -> int:
        return int(self._held.totals["count"][0])

    @property
    def assumed(self) -> int:
        """Number of those held that were assumed at expiry."""
        return int(self._held.totals["assumed"][0])

    def put(
        self, outcomes: OutcomeBatch, timing: Records, clock_ms: int
    ) -> Iterator[tuple[OutcomeBatch, NDArray[np.int64]]]:
        """Hold outcomes, and release those whose turn it is until the clock after them.

        Exhaust the iterator before anything else is done with the order.

        Parameters
        ----------
        outcomes
            Outcomes in the order in which they were resolved.
        timing
            Records `TIMING` of the outcomes, (n,).
        clock_ms
            Clock at their end.

        Yields
        ------
        tuple[OutcomeBatch, NDArray[np.int64]]
            At most `ROOM` outcomes in order, and the number of the stored run of each, -1 for none.
        """
        records = self._with_own_scores(outcomes)
        self._make_room(len(records))
        at = 0
        while at <= len(records):
            window = self._window_ms, self._maximum
            at, count = put_in_order(
                self._held, records, timing, at, clock_ms, *window, self._released, self._runs
            )
            if count:
                yield self._take(outcomes, count)

    def release_all(self, names: OutcomeBatch) -> Iterator[tuple[OutcomeBatch, NDArray[np.int64]]]:
        """Release everything in order, as `put` does; `names` is a batch with the names of now."""
        while len(self):
            yield self._take(names, release_any(self._held, self._released, self._runs))

    def _take(self, names: OutcomeBatch, count: int) -> tuple[OutcomeBatch, NDArray[np.int64]]:
        records = copied(self._released[:count])
        numbers = records["scores"]
        scored: list[int] = numbers[(numbers >= 0) & (numbers < SEGMENTS_FROM)].tolist()
        held = self._scores
        segments = {number: held.segments.get(number, -1) for number in scored} if held.segments else {}
        scores = held.take(scored) if scored else {}
        batch = OutcomeBatch(records, names.models, names.classes, scores, names.segments, segments)
        return batch, self._runs[:count].copy()

    def _with_own_scores(self, outcomes: OutcomeBatch) -> Records:
        """Records whose scores have the numbers that they have here."""
        records = outcomes.records
        numbers = records["scores"]
        scored = np.flatnonzero((numbers >= 0) & (numbers < SEGMENTS_FROM))
        if len(scored):
            records = copied(records)
            records["scores"][scored] = [
                self._scores.add(outcomes.scores[number], outcomes.scored_segments.get(number, -1))
                for number in numbers[scored].tolist()
            ]
        return records

    def take_early(self) -> int:
        """Return how many outcomes left because there were too many, since the last call."""
        early = int(self._held.totals["early"][0])
        self._held.totals["early"] = 0
        return early

    def held_by_model(self, models: int) -> NDArray[np.int64]:
        """Count the outcomes held by model number, shape (models,)."""
        return np.bincount(self.records()["model"], minlength=models)

    def records(self) -> Records:
        """Outcomes held, in no order; the numbers of their scores are those of this order."""
        return taken(self._held.outcomes, self._slots())

    def segments(self) -> NDArray[np.int32]:
        """Numbers of the segments of outcomes held, negative for none."""
        plain = self.records()["scores"] - SEGMENTS_FROM
        return np.concatenate([plain, np.array(list(self._scores.segments.values()), np.int32)])

    def _slots(self) -> NDArray[np.int64]:
        return self._held.heap[: len(self), LAST]

    def rows(self, chosen: NDArray[np.bool_]) -> tuple[NDArray[np.int64], HeldRows]:
        """Slots and rows of chosen outcomes, by mask over the heap, in the order of their sequence."""
        at = np.flatnonzero(chosen)
        heap = self._held.heap[at]
        heap = heap[np.argsort(heap[:, SEQUENCE])]
        slots = heap[:, LAST]
        held = self._held
        outcomes, opened_ms = taken(held.outcomes, slots), held.opened_ms[slots]
        return slots, HeldRows(outcomes, heap[:, MS], opened_ms, heap[:, SEQUENCE], held.run[slots])

    def runs(self) -> NDArray[np.int64]:
        """Number of the stored run of each outcome in the heap, -1 for none, shape (held,)."""
        return self._held.run[self._slots()]

    def set_run(self, slots: NDArray[np.int64], number: int) -> None:
        """Note the stored run that contains these outcomes."""
        self._held.run[slots] = number

    def carried(self, outcomes: Records) -> tuple[dict[int, dict[str, float]], NDArray[np.int64]]:
        """Scores by position, and the number of the segments of each, -1 for none, of outcomes held."""
        numbers = outcomes["scores"]
        segments = np.where(numbers >= SEGMENTS_FROM, numbers - SEGMENTS_FROM, -1).astype(np.int64)
        scores: dict[int, dict[str, float]] = {}
        for position in np.flatnonzero((numbers >= 0) & (numbers < SEGMENTS_FROM)).tolist():
            number = int(numbers[position])
            scores[position] = self._scores[number]
            segments[position] = self._scores.segments.get(number, -1)
        return scores, segments

    def totals(self) -> OrderTotals:
        """State besides what is held."""
        t = self._held.totals[0]
        bound, overflow = (int(t["bound_ms"]), int(t["bound_sequence"])), NEVER
        if t["overflow_ms"] != NEVER:
            overflow = int(t["overflow_ms"])
        return OrderTotals(
            int(t["sequence"]),
            bound,
            int(t["clock_ms"]),
            int(t["held_since"]),
            (overflow, 0 if overflow == NEVER else int(t["overflow_sequence"])),
        )

    def restore(self, totals: OrderTotals, rows: HeldRows, scores: Mapping[int, dict[str, float]]) -> None:
        """Continue from a state.

        Parameters
        ----------
        totals
            State besides what is held.
        rows
            What is held; the column `scores` of the outcomes holds `SEGMENTS_FROM` plus the number of
            segments, -1 without any.
        scores
            Scores by position in the rows.
        """
        self._scores = HeldScores()
        outcomes = copied(rows.outcomes)
        for position, each in scores.items():
            segments = max(-1, int(outcomes["scores"][position]) - SEGMENTS_FROM)
            outcomes["scores"][position] = self._scores.add(each, segments)
        slots = max(_FIRST_SLOTS, 1 << (len(outcomes) - 1).bit_length() if len(outcomes) else 0)
        self._held = _held(slots, totals)
        arrays = rows.prediction_ms, rows.opened_ms, rows.sequence, rows.run
        hold_again(self._held, outcomes, *arrays, self._window_ms)

    def _make_room(self, coming: int) -> None:
        """Double the slots until there is room for further outcomes."""
        held, count = self._held, len(self)
        slots = len(held.opened_ms)
        while count + coming > slots:
            slots *= 2
        if slots == len(held.opened_ms):
            return
        larger = _held(slots, OrderTotals())
        top = int(held.totals["top"][0])
        for name in ("outcomes", "opened_ms", "run", "heap"):
            getattr(larger, name)[:top] = getattr(held, name)[:top]
        first, windows = int(held.totals["first_window"][0]), int(held.totals["windows"][0])
        larger.windows[:windows] = np.roll(held.windows, -first, axis=0)[:windows]
        held.totals["first_window"] = 0
        self._held = larger._replace(totals=held.totals)


def _held(slots: int, totals: OrderTotals) -> Held:
    """Arrays with so many free slots."""
    record = np.zeros(1, TOTALS)
    record["free"] = -1
    record["sequence"], record["clock_ms"] = totals.sequence, totals.clock_ms
    record["bound_ms"], record["bound_sequence"] = totals.bound
    record["held_since"] = totals.held_since
    record["overflow_ms"], record["overflow_sequence"] = totals.overflow
    return Held(
        lazy_zeros(slots, OUTCOME),
        np.zeros(slots, np.int64),
        np.zeros(slots, np.int64),
        np.zeros((slots, 3), np.int64),
        np.zeros((slots, 3), np.int64),
        record,
    )
