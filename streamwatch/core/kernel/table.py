"""The table of models: rows of estimators, fed in batches, read on demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.kernel import admission
from streamwatch.core.kernel import fold as kernel
from streamwatch.core.kernel.detectors.alarm import ALARM
from streamwatch.core.kernel.marks import (
    AUGMENTED,
    CORRECTED,
    KNOWN_PAIR,
    KNOWN_REPEAT,
    LOST_TWICE,
    SCORED,
    SHADOWED,
    TRANSITION,
)
from streamwatch.core.kernel.pools import Pools
from streamwatch.core.kernel.records import Records, layout_of
from streamwatch.core.kernel.scores import NO_SCORES, Indices, Scores
from streamwatch.core.kernel.snapshot import apply_snapshot, section_names, take_snapshot
from streamwatch.core.kernel.totals import HITS, MARKED, PAIRS, REPEATS, SUMS, N
from streamwatch.core.kernel.weighting import NOBODY, leave_reference
from streamwatch.core.measures import Totals
from streamwatch.core.specs import MonitorsSpec

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


class TableFull(Exception):  # noqa: N818  (a bound was reached, and the caller counts it; nothing went wrong)
    """No row is free: `max_models` models are watched."""


class AlarmRow(NamedTuple):
    """A detector of the model in `row` alarmed at the outcome at `position` of the batch."""

    position: int
    row: int
    detector: int
    """Index in the specification's detectors."""
    ordinal: int
    """1 for the first alarm of this (model, detector)."""
    outcome: int
    """1-based index among the model's outcomes."""
    statistic: float
    threshold: float
    before: float
    after: float
    n_eff: float


class _Batch(NamedTuple):
    """Outcomes in the kernel's types."""

    rows: Indices
    truth: Indices
    predicted: Indices
    known: Indices
    scores: Scores


@dataclass(frozen=True, slots=True)
class Trace:
    """A folded batch of n outcomes, and what its model's estimators said after each of them."""

    alarms: list[AlarmRow]
    totals: tuple[Totals, ...]
    """Per configured forgetting mechanism, over the n outcomes instead of over models."""
    statistic: Floats
    """(detectors, n), NaN where undefined."""
    threshold: Floats
    alarmed: NDArray[np.bool_]
    """(detectors, n)."""
    warned: NDArray[np.bool_]
    """(detectors, n): below an alarm, above the warning level; never for what has none."""
    weighted: Floats
    """(weightings, n): drift-weighted accuracy."""
    weighted_n_eff: Floats


class ModelTable:
    """The estimators of up to `max_models` models.

    Rows are indices below `max_models`; classes are local indices of each model, 0 … max_classes + 1, densely
    given out by the caller. Batches may mix models; the order within a model is what counts.
    """

    def __init__(self, spec: MonitorsSpec) -> None:
        self._spec = spec
        self._layout = layout_of(spec)
        self._pools = Pools(self._layout, spec.max_models)
        self._alarms: Records = np.zeros(0, ALARM)
        self._free: list[int] = []
        self._used = 0

    def add_model(self) -> int:
        """Row of a new model, empty. Rows of retired models are given out again.

        Raises
        ------
        TableFull
            When `max_models` models are watched.
        """
        if self._free:
            row = self._free.pop()
        elif self._used < self._spec.max_models:
            row = self._used
            self._used += 1
            self._pools.reserve_rows(self._used)
        else:
            raise TableFull(f"{self._spec.max_models} models are watched, the most configured")
        self._pools.spans[row] = 0
        self._pools.models["fading"]["unit"][row] = 1.0
        if self._layout.shadow_classes:
            self._pools.shadow_spans[row] = 0
            self._pools.models["shadow"]["unit"][row] = 1.0
        return row

    def retire(self, row: int) -> None:
        """Forget a model and everything it held."""
        self._require_live(np.array([row], np.int64))
        followed = self._layout.parameters["weighting"]["reference"][0]
        for weighting in np.flatnonzero(followed == row).tolist():
            states = self._pools.models["weighting"][:, weighting]
            leave_reference(states, int(states["drifts"][row]))
            followed[weighting] = NOBODY
        self._pools.release(row)
        self._free.append(row)

    def fold(
        self,
        rows: Indices,
        truth: Indices,
        predicted: Indices,
        known: Indices | None = None,
        scores: Scores = NO_SCORES,
    ) -> list[AlarmRow]:
        """Feed outcomes to the estimators of their models, in order; gives the alarms, in order.

        Parameters
        ----------
        rows, truth, predicted
            int32 (n,): the model's row, its local index of the true and of the predicted class.
        known
            int32 (n,): the last label known when the prediction was made; -1, the default, without one.
        scores
            Class scores of outcomes, for Temporal Correction.

        Raises
        ------
        ValueError
            If an index is out of range; nothing was folded then.
        """
        batch = self._reserve(rows, truth, predicted, known, scores)
        while True:
            pools = self._pools
            verdict, count = kernel.fold(
                pools.models,
                pools.spans,
                pools.cells,
                pools.cell_room,
                pools.rings,
                pools.blocks,
                pools.block_room,
                pools.shadow_spans,
                pools.shadows,
                pools.shadow_room,
                self._layout.parameters,
                self._layout.max_classes,
                batch.rows,
                batch.truth,
                batch.predicted,
                batch.known,
                *batch.scores,
                self._alarms,
            )
            if verdict == admission.ADMITTED:
                return self._alarm_rows(int(count))
            self._resolve(verdict, int(count), batch)

    def outcomes(self, rows: Integers) -> Integers:
        """Outcomes folded into each model, int64 (m,)."""
        return self._pools.models["outcomes"][self._require_live(rows)]

    def errors(self, rows: Integers) -> Integers:
        """Wrong predictions of each model, int64 (m,)."""
        return self._pools.models["errors"][self._require_live(rows)]

    def totals(self, rows: Integers, forgetting: int) -> Totals:
        """Agreement totals of m models under one configured forgetting mechanism, in units of outcomes.

        Dense, padded to the most classes among the models asked for.
        """
        rows = self._require_live(rows)
        pools = self._pools
        classes = int(pools.models["classes"][rows].max(initial=0))
        sums = np.zeros((SUMS + 1, len(rows)))
        counts = np.zeros((3, len(rows), classes))
        column = self._layout.column_of[forgetting]
        kernel.collect(
            pools.models, pools.cells, pools.rings, self._layout.parameters, rows, column, sums, counts
        )
        return _totals(sums, counts)

    def detector_state(self, rows: Integers, detector: int) -> tuple[Floats, Floats, Integers]:
        """Statistic and threshold (NaN where undefined) and number of alarms of one detector, each (m,)."""
        return self._detector_state(rows, detector)[:3]

    def warned(self, rows: Integers, detector: int) -> NDArray[np.bool_]:
        """Whether one detector was warning at each model's last outcome, bool (m,)."""
        return self._detector_state(rows, detector)[3]

    def _detector_state(
        self, rows: Integers, detector: int
    ) -> tuple[Floats, Floats, Integers, NDArray[np.bool_]]:
        rows = self._require_live(rows)
        shape = (len(self._spec.detectors), len(rows))
        statistic, threshold = np.full(shape, np.nan), np.full(shape, np.nan)
        alarms, warned = np.zeros(shape, np.int64), np.zeros(shape, np.bool_)
        kernel.show(self._pools.models, self._layout.parameters, rows, statistic, threshold, alarms, warned)
        return statistic[detector], threshold[detector], alarms[detector], warned[detector]

    def adwin_width(self, rows: Integers, forgetting: int) -> Integers:
        """Outcomes in each model's ADWIN window, int64 (m,)."""
        column = self._layout.column_of[forgetting]
        return self._pools.models["totals"][self._require_live(rows), N, column].astype(np.int64)

    def weighted(self, rows: Integers, weighting: int) -> tuple[Floats, Floats]:
        """Drift-weighted accuracy (NaN before the first outcome) and its n_eff, each (m,)."""
        state = self._pools.models["weighting"][self._require_live(rows), weighting]
        seen = state["weight"] > 0.0
        accuracy, n_eff = np.full(len(state), np.nan), np.zeros(len(state))
        np.divide(state["hits"], state["weight"], out=accuracy, where=seen)
        np.divide(state["weight"] ** 2, state["squares"], out=n_eff, where=seen)
        return accuracy, n_eff

    def follow(self, weighting: int, row: int) -> None:
        """Let a weighting by reference take the drifts of this model, from now on and until it retires.

        Every other model learns of a drift at its own next outcome.
        """
        self._require_live(np.array([row], np.int64))
        if self._spec.weighting[weighting].drift_signal != "reference":
            raise ValueError(f"only a weighting by reference follows a model, got weighting {weighting}")
        self._layout.parameters["weighting"]["reference"][0, weighting] = row

    def sections(self) -> dict[str, str]:
        """What each section of a snapshot holds, in words."""
        return section_names(self._spec, self._layout)

    def snapshot(self, row: int) -> dict[str, bytes]:
        """Everything a model's estimators hold, one section each, wherever the model stands in the table."""
        self._require_live(np.array([row], np.int64))
        pools = self._pools
        kernel.prepare_snapshot(pools.models, pools.cells, pools.rings, self._layout.parameters, row)
        return take_snapshot(self._spec, self._layout, self._pools, row)

    def restore(self, row: int, sections: Mapping[str, bytes]) -> None:
        """Resume the estimators whose sections are there; the others of this (new) model start empty.

        Raises
        ------
        ValueError
            If the model has outcomes already, or has more classes than `max_classes` allows.
        """
        if self.outcomes(np.array([row], np.int64))[0]:
            raise ValueError(f"a snapshot must be restored into a new model, row {row} has outcomes")
        apply_snapshot(self._spec, self._layout, self._pools, row, sections)

    def trace(
        self,
        rows: Indices,
        truth: Indices,
        predicted: Indices,
        known: Indices | None = None,
        scores: Scores = NO_SCORES,
    ) -> Trace:
        """Fold a batch, and tell what its model's estimators said after every outcome.

        Raises
        ------
        ValueError
            If an index is out of range; nothing was folded then.
        """
        batch = self._reserve(rows, truth, predicted, known, scores)
        pools, n, most = self._pools, len(batch.rows), self._layout.max_classes
        while True:
            verdict, position = pools.make_room(batch.rows, batch.truth, batch.predicted, batch.scores, most)
            if verdict == admission.ADMITTED:
                break
            self._resolve(verdict, position, batch)
        classes = int(pools.spans[batch.rows].max(initial=0))
        sums = np.zeros((self._layout.columns, SUMS + 1, n))
        counts = np.zeros((self._layout.columns, 3, n, classes))
        shape = (len(self._spec.detectors), n)
        statistic, threshold = np.full(shape, np.nan), np.full(shape, np.nan)
        warned = np.zeros(shape, np.bool_)
        weighted = np.zeros((2, len(self._spec.weighting), n))
        count = kernel.trace(
            pools.models,
            pools.cells,
            pools.rings,
            pools.blocks,
            pools.block_room,
            pools.shadows,
            pools.shadow_room,
            self._layout.parameters,
            batch.rows,
            batch.truth,
            batch.predicted,
            batch.known,
            *batch.scores,
            self._alarms,
            sums,
            counts,
            statistic,
            threshold,
            np.zeros(shape, np.int64),
            warned,
            weighted,
        )
        alarms = self._alarm_rows(int(count))
        alarmed = np.zeros(shape, np.bool_)
        for alarm in alarms:
            alarmed[alarm.detector, alarm.position] = True
        classes = int(pools.models["classes"][batch.rows].max(initial=0))
        totals = tuple(_totals(sums[c], counts[c, :, :, :classes]) for c in self._layout.column_of)
        return Trace(alarms, totals, statistic, threshold, alarmed, warned, weighted[0], weighted[1])

    def footprint(self, row: int) -> int:
        """Bytes a model occupies: its record, ring, class rows, blocks and shadow counts."""
        return self._pools.footprint(row)

    def _reserve(
        self, rows: Indices, truth: Indices, predicted: Indices, known: Indices | None, scores: Scores
    ) -> _Batch:
        """Bring a batch to the kernel's types, with room for its blocks and alarms."""
        if known is None:
            known = np.full(len(rows), -1, np.int32)
        rows, truth = np.ascontiguousarray(rows, np.int32), np.ascontiguousarray(truth, np.int32)
        predicted, known = np.ascontiguousarray(predicted, np.int32), np.ascontiguousarray(known, np.int32)
        if not len(rows) == len(truth) == len(predicted) == len(known):
            lengths = (len(rows), len(truth), len(predicted), len(known))
            raise ValueError(f"rows, truth, predicted and known must be equally long, got {lengths}")
        if len(scores.offsets):
            scores = _checked(scores, len(rows))
        self._pools.reserve_batch(len(rows), self._used)
        most = len(rows) * len(self._spec.detectors)
        if len(self._alarms) < most:
            self._alarms = np.zeros(most, ALARM)
        return _Batch(rows, truth, predicted, known, scores)

    def _resolve(self, verdict: int, position: int, batch: _Batch) -> None:
        """After a batch was not admitted: enlarge the pool that was full, or refuse."""
        if verdict != admission.INVALID:
            self._pools.enlarge(verdict)
            return
        got = tuple(int(column[position]) for column in (batch.rows, batch.truth, batch.predicted))
        raise ValueError(
            f"outcome {position} of a batch must have a live row and classes (of scores, too) below "
            f"{self._layout.max_classes}, got (row, truth, predicted) = {got}"
        )

    def _alarm_rows(self, count: int) -> list[AlarmRow]:
        found = [AlarmRow(*row) for row in self._alarms[:count].tolist()]
        return sorted(found, key=lambda alarm: (alarm.position, alarm.detector))

    def _require_live(self, rows: Integers) -> Integers:
        rows = np.ascontiguousarray(rows, np.int64)
        known = (rows >= 0) & (rows < self._used)
        if not (known.all() and (self._pools.spans[rows] >= 0).all()):
            raise ValueError(f"rows must be of models in the table, got {rows.tolist()}")
        return rows


def _checked(scores: Scores, outcomes: int) -> Scores:
    """Scores of so many outcomes in the kernel's types, once their offsets make sense."""
    offsets = np.ascontiguousarray(scores.offsets, np.int64)
    classes = np.ascontiguousarray(scores.classes, np.int32)
    values = np.ascontiguousarray(scores.values, np.float64)
    if not (
        len(offsets) == outcomes + 1
        and offsets[0] == 0
        and (np.diff(offsets) >= 0).all()
        and offsets[-1] == len(classes) == len(values)
    ):
        raise ValueError(f"scores must have {outcomes + 1} ascending offsets from 0 to the number of values")
    return Scores(offsets, classes, values)


def _totals(sums: Floats, counts: Floats) -> Totals:
    """Totals of what `gather` wrote; two shadow classifiers predict the same outcomes: one weight."""
    truth, predicted, agreed = counts
    marks = sums[MARKED:]
    return Totals(
        n=sums[N],
        hits=sums[HITS],
        repeats=sums[REPEATS],
        pairs=sums[PAIRS],
        n_eff=sums[SUMS],
        truth=truth,
        predicted=predicted,
        agreed=agreed,
        lost_twice=marks[LOST_TWICE],
        known_repeats=marks[KNOWN_REPEAT],
        known_pairs=marks[KNOWN_PAIR],
        corrected=marks[CORRECTED],
        scored=marks[SCORED],
        augmented=marks[AUGMENTED],
        augmented_n=marks[SHADOWED],
        transition=marks[TRANSITION],
        transition_n=marks[SHADOWED],
    )
