"""Outcomes held for the order of predictions, as commits write them.

A commit writes a run of the outcomes that began to be held and are still held. A run is deleted when all of
its outcomes were released. Which of them were released is not stored, but follows from `OrderTotals`: those
that were held when the clock last moved, and whose prediction is not newer than the newest one released
then; and those held since, up to the newest one released because too many were held. When the runs contain
more than twice as many outcomes as are held, those of the oldest runs are written again.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.join.durable.columns import (
    COLUMNS,
    HIGH,
    LOW,
    RESOLVED,
    SEGMENTS,
    PackedError,
    columns_of,
    outcomes_of,
    pack_columns,
    pack_table,
    unpack_columns,
)
from streamwatch.core.join.durable.entry_logs import Changes
from streamwatch.core.join.durable.packed import (
    HELD,
    HELD_PAIRS,
    HELD_SCORES,
    has_names,
    key_of,
)
from streamwatch.core.join.durable.packed_scores import pack_scores, unpack_scores
from streamwatch.core.join.names import JoinNames
from streamwatch.core.join.prediction_order import (
    HeldRows,
    OrderTotals,
    PredictionOrder,
    joined_rows,
)
from streamwatch.core.records.outcomes import NO_PAIRS, OUTCOME, PAIR_COLUMNS, SEGMENTS_FROM, Pairs
from streamwatch.core.records.scores import NO_LISTS, joined_lists

RUN_ROWS: Final = 8_192
"""Largest number of outcomes of one run."""
SLACK_ROWS: Final = 65_536
"""Number of outcomes in runs below which none is written again."""
_MORE: Final = 3
"""Number of columns after those of outcomes: prediction time, time of opening (of the window), sequence."""
_MOST_NUMBER: Final = 2**31 - 1
_NEVER: Final = OrderTotals().overflow


@dataclass(slots=True)
class StoredRun:
    """Run in the store: numbers of its outcomes and of those still held; whether it has scores and pairs."""

    written: int
    held: int
    scored: bool
    paired: bool


@dataclass(slots=True)
class HeldValues:
    """Values of a store: runs, their scores and their pairs, by number."""

    runs: dict[int, bytes] = field(default_factory=dict[int, bytes])
    scores: dict[int, bytes] = field(default_factory=dict[int, bytes])
    pairs: dict[int, bytes] = field(default_factory=dict[int, bytes])


class HeldLog:
    """Runs of held outcomes in the store."""

    __slots__ = ("_next", "_runs")

    def __init__(self) -> None:
        self._runs: dict[int, StoredRun] = {}
        self._next = 0

    def note_released(self, runs: NDArray[np.int64]) -> None:
        """Note that an outcome of each of these runs was released; -1 stands for none."""
        if not self._runs:
            return
        first = min(self._runs)  # counts begin with the oldest run, so that there are few
        counts = np.bincount(np.maximum(runs - (first - 1), 0))
        numbers = np.flatnonzero(counts[1:]) + 1
        for number, count in zip(numbers.tolist(), counts[numbers].tolist(), strict=True):
            self._runs[first - 1 + number].held -= count

    def write(self, order: PredictionOrder, changes: Changes) -> None:
        """Add to the changes what a commit writes of the outcomes held."""
        fresh = [order.take_fresh()]
        stored = sum(run.written for run in self._runs.values())
        for number, run in list(self._runs.items()):
            if run.held:
                if stored <= 2 * len(order) + SLACK_ROWS:
                    continue
                fresh.append(order.slots_of(number))
            stored -= run.written
            self._remove(number, changes)
        slots, rows = order.rows(np.concatenate(fresh))
        for start in range(0, len(slots), RUN_ROWS):
            part = rows.at(np.arange(start, min(start + RUN_ROWS, len(slots))))
            segments, scored, scores = order.carried(part.outcomes)
            number, self._next = self._next, self._next + 1
            changes[key_of(HELD, number)] = _packed(part, segments)
            if len(scored):
                changes[key_of(HELD_SCORES, number)] = pack_scores(scored, scores)
            paired = len(part.pairs) > 0
            if paired:
                changes[key_of(HELD_PAIRS, number)] = pack_columns([*part.pairs.astype(np.int64).T])
            order.set_run(slots[start : start + RUN_ROWS], number)
            self._runs[number] = StoredRun(len(part.sequence), len(part.sequence), len(scored) > 0, paired)

    def _remove(self, number: int, changes: Changes) -> None:
        run = self._runs.pop(number)
        changes[key_of(HELD, number)] = None
        if run.scored:
            changes[key_of(HELD_SCORES, number)] = None
        if run.paired:
            changes[key_of(HELD_PAIRS, number)] = None

    def restore(
        self, values: HeldValues, totals: OrderTotals, names: JoinNames, order: PredictionOrder
    ) -> None:
        """Continue from the values of a store, and hold in `order` what it held.

        Raises
        ------
        PackedError
            If the values are not what commits write.
        """
        if values.scores.keys() - values.runs.keys():
            raise PackedError("expected scores of runs of held outcomes, got some of no run")
        if values.pairs.keys() - values.runs.keys():
            raise PackedError("expected pairs of runs of held outcomes, got some of no run")
        parts: list[HeldRows] = []
        scored, scores = [np.zeros(0, np.int64)], [NO_LISTS]
        count = 0
        self._runs = {}
        self._next = max(values.runs, default=-1) + 1
        for number, value in values.runs.items():
            part = _unpacked(value, number)
            if number in values.pairs:
                part = part._replace(pairs=_unpacked_pairs(values.pairs[number], len(part.sequence)))
            alive = np.flatnonzero(_is_held(part, totals))
            if number in values.scores:
                positions, of_run = unpack_scores(values.scores[number], len(part.sequence))
                _, at, of_alive = np.intersect1d(positions, alive, assume_unique=True, return_indices=True)
                scored.append(count + of_alive)
                scores.append(of_run.only(at))
            parts.append(part.at(alive))
            stored = number in values.scores, number in values.pairs
            self._runs[number] = StoredRun(len(part.sequence), len(alive), *stored)
            count += len(alive)
        rows = joined_rows(parts or [_NO_ROWS])
        _check_names(rows, names)
        by_sequence = np.argsort(rows.sequence)
        if (np.diff(rows.sequence[by_sequence]) <= 0).any() or (rows.sequence >= totals.sequence).any():
            raise PackedError(f"expected different sequences below {totals.sequence} of held outcomes")
        rows, with_scores = rows.at(by_sequence), np.argsort(by_sequence)[np.concatenate(scored)]
        held = joined_lists(scores)
        if not has_names(names.classes, held.classes):
            raise PackedError(
                "expected numbers of classes in scores of held outcomes, got one without a name"
            )
        segments = np.maximum(rows.outcomes["scores"][with_scores] - SEGMENTS_FROM, -1)
        order.restore(totals, rows, with_scores, replace(held, beside=segments))
        if totals.overflow != _NEVER:
            # Which were released because too many were held is only known under the settings of that time.
            self._make_whole(order)

    def _make_whole(self, order: PredictionOrder) -> None:
        """Make the next commit write again, of runs of which some outcomes were released, those held."""
        for number, run in self._runs.items():
            if run.held < run.written:
                order.forget_run(number)
                run.held = 0


_NO_ROWS: Final = HeldRows(
    np.zeros(0, OUTCOME),
    NO_PAIRS,
    *(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)),
)


def _packed(rows: HeldRows, segments: NDArray[np.int64]) -> bytes:
    columns = columns_of([rows.outcomes], _MORE)
    columns[SEGMENTS] = segments
    columns[COLUMNS:] = rows.prediction_ms, rows.opened_ms - columns[RESOLVED], rows.sequence
    return pack_table(columns, (LOW, HIGH))


def _unpacked(value: bytes, number: int) -> HeldRows:
    columns = unpack_columns(value, COLUMNS + _MORE)
    outcomes = outcomes_of(columns, _MOST_NUMBER, _MOST_NUMBER, SEGMENTS_FROM)
    prediction_ms, after_resolution, sequence = (column.astype(np.int64) for column in columns[COLUMNS:])
    opened_ms = outcomes["resolved_ms"] + after_resolution
    runs = np.full(len(outcomes), number, np.int64)
    return HeldRows(outcomes, _NO_ROWS.pairs, prediction_ms, opened_ms, sequence, runs)


def _unpacked_pairs(value: bytes, outcomes: int) -> Pairs:
    pairs = np.stack(unpack_columns(value, PAIR_COLUMNS), axis=1).astype(np.int64)
    position = pairs[:, 0]
    if not len(pairs) or (np.diff(position) < 0).any() or position[0] < 0 or position[-1] >= outcomes:
        raise PackedError(f"expected pairs of {outcomes} held outcomes in their order")
    if int(pairs[:, :3].min()) < 0 or int(np.abs(pairs).max()) > _MOST_NUMBER + 1:
        raise PackedError("expected numbers of models and classes in the pairs of held outcomes")
    return pairs.astype(np.int32)


def _is_held(rows: HeldRows, totals: OrderTotals) -> NDArray[np.bool_]:
    """Return which outcomes of a run have not been released."""
    at, sequence = rows.prediction_ms, rows.sequence

    def is_after(ms: int, other: int) -> NDArray[np.bool_]:
        return (at > ms) | ((at == ms) & (sequence > other))

    return np.where(sequence < totals.held_since, is_after(*totals.bound), is_after(*totals.overflow))


def _check_names(rows: HeldRows, names: JoinNames) -> None:
    """Raise PackedError if outcomes or their pairs use numbers without a name."""
    outcomes = rows.outcomes
    segments = outcomes["scores"] - np.int64(SEGMENTS_FROM)
    of_classes = ("true_class", "predicted_class", "label_at_prediction")
    columns = [(names.models, outcomes["model"]), (names.segments, segments)]
    columns += [(names.classes, outcomes[name]) for name in of_classes]
    columns += [(names.models, rows.pairs[:, 1]), (names.classes, rows.pairs[:, 2])]
    columns.append((names.classes, outcomes["last_class"] - 1))
    least = (
        min((int(outcomes[name].min()) for name in ("model", *of_classes[:2])), default=0)
        if len(outcomes)
        else 0
    )
    if least < 0 or not all(has_names(named, numbers) for named, numbers in columns):
        raise PackedError("expected numbers of names in held outcomes, got one without a name")
