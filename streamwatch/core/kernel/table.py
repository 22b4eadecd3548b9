"""The table of models: rows of estimators, fed in batches, read on demand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.kernel import fold as kernel
from streamwatch.core.kernel.detectors.alarm import ALARM
from streamwatch.core.kernel.pools import Pools
from streamwatch.core.kernel.records import Records, layout_of
from streamwatch.core.kernel.snapshot import apply_snapshot, take_snapshot
from streamwatch.core.kernel.totals import N
from streamwatch.core.measures import Totals
from streamwatch.core.specs import MonitorsSpec

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
Indices: TypeAlias = NDArray[np.int32]

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
        model = self._pools.models[row : row + 1]
        model["live"] = 1
        model["units"] = 1.0
        return row

    def retire(self, row: int) -> None:
        """Forget a model and everything it held."""
        self._require_live(np.array([row], np.int64))
        self._pools.release(row)
        self._free.append(row)

    def fold(self, rows: Indices, truth: Indices, predicted: Indices) -> list[AlarmRow]:
        """Feed outcomes to the estimators of their models, in order; gives the alarms, in order.

        Parameters
        ----------
        rows, truth, predicted
            int32 (n,): the model's row, its local index of the true and of the predicted class.

        Raises
        ------
        ValueError
            If an index is out of range; nothing was folded then.
        """
        rows, truth, predicted = self._reserve(rows, truth, predicted)
        while True:
            pools = self._pools
            verdict, count = kernel.fold(
                pools.models,
                pools.cells,
                pools.cell_room,
                pools.rings,
                pools.blocks,
                pools.block_room,
                self._layout.parameters,
                self._layout.max_classes,
                rows,
                truth,
                predicted,
                self._alarms,
            )
            if verdict == kernel.ADMITTED:
                return self._alarm_rows(count)
            self._resolve(verdict, count, rows, truth, predicted)

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
        sums = np.zeros((5, len(rows)))
        counts = np.zeros((3, len(rows), classes))
        kernel.collect(pools.models, pools.cells, rows, self._layout.column_of[forgetting], sums, counts)
        return _totals(sums, counts)

    def detector_state(self, rows: Integers, detector: int) -> tuple[Floats, Floats, Integers]:
        """Statistic and threshold (NaN where undefined) and number of alarms of one detector, each (m,)."""
        rows = self._require_live(rows)
        shape = (len(self._spec.detectors), len(rows))
        statistic, threshold = np.full(shape, np.nan), np.full(shape, np.nan)
        alarms = np.zeros(shape, np.int64)
        kernel.show(self._pools.models, self._layout.parameters, rows, statistic, threshold, alarms)
        return statistic[detector], threshold[detector], alarms[detector]

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

    def snapshot(self, row: int) -> dict[str, bytes]:
        """Everything a model's estimators hold, one section each, wherever the model stands in the table."""
        self._require_live(np.array([row], np.int64))
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

    def trace(self, rows: Indices, truth: Indices, predicted: Indices) -> Trace:
        """Fold a batch, and tell what its model's estimators said after every outcome.

        Raises
        ------
        ValueError
            If an index is out of range; nothing was folded then.
        """
        rows, truth, predicted = self._reserve(rows, truth, predicted)
        pools, n, most = self._pools, len(rows), self._layout.max_classes
        while True:
            verdict, position = kernel.make_room(
                pools.models, pools.cells, pools.cell_room, rows, truth, predicted, most
            )
            if verdict == kernel.ADMITTED:
                break
            self._resolve(verdict, position, rows, truth, predicted)
        classes = int(max(pools.models["classes"][rows].max(initial=0), truth.max(initial=-1) + 1,
                          predicted.max(initial=-1) + 1))
        sums = np.zeros((self._layout.columns, 5, n))
        counts = np.zeros((self._layout.columns, 3, n, classes))
        shape = (len(self._spec.detectors), n)
        statistic, threshold = np.full(shape, np.nan), np.full(shape, np.nan)
        weighted = np.zeros((2, len(self._spec.weighting), n))
        count = kernel.trace(
            pools.models,
            pools.cells,
            pools.rings,
            pools.blocks,
            pools.block_room,
            self._layout.parameters,
            rows,
            truth,
            predicted,
            self._alarms,
            sums,
            counts,
            statistic,
            threshold,
            np.zeros(shape, np.int64),
            weighted,
        )
        alarms = self._alarm_rows(count)
        alarmed = np.zeros(shape, np.bool_)
        for alarm in alarms:
            alarmed[alarm.detector, alarm.position] = True
        totals = tuple(_totals(sums[column], counts[column]) for column in self._layout.column_of)
        return Trace(alarms, totals, statistic, threshold, alarmed, weighted[0], weighted[1])

    def footprint(self, row: int) -> int:
        """Bytes a model occupies: its record, ring, class rows and blocks."""
        return self._pools.footprint(row)

    def _reserve(self, rows: Indices, truth: Indices, predicted: Indices) -> tuple[Indices, Indices, Indices]:
        """Bring a batch to the kernel's types, with room for its blocks and alarms."""
        rows = np.ascontiguousarray(rows, np.int32)
        truth = np.ascontiguousarray(truth, np.int32)
        predicted = np.ascontiguousarray(predicted, np.int32)
        if not len(rows) == len(truth) == len(predicted):
            lengths = (len(rows), len(truth), len(predicted))
            raise ValueError(f"rows, truth and predicted must be equally long, got {lengths}")
        self._pools.reserve_batch(len(rows), self._used)
        most = len(rows) * len(self._spec.detectors)
        if len(self._alarms) < most:
            self._alarms = np.zeros(most, ALARM)
        return rows, truth, predicted

    def _resolve(self, verdict: int, position: int, rows: Indices, truth: Indices, predicted: Indices) -> None:
        """After a batch was not admitted: enlarge the pool that was full, or refuse."""
        if verdict == kernel.FULL:
            self._pools.enlarge_cells()
            return
        got = (int(rows[position]), int(truth[position]), int(predicted[position]))
        raise ValueError(
            f"outcome {position} of a batch must have a live row and classes below "
            f"{self._layout.max_classes}, got (row, truth, predicted) = {got}"
        )

    def _alarm_rows(self, count: int) -> list[AlarmRow]:
        found = [AlarmRow(*row) for row in self._alarms[:count].tolist()]
        return sorted(found, key=lambda alarm: (alarm.position, alarm.detector))

    def _require_live(self, rows: Integers) -> Integers:
        rows = np.ascontiguousarray(rows, np.int64)
        known = (rows >= 0) & (rows < self._used)
        if not (known.all() and self._pools.models["live"][rows].all()):
            raise ValueError(f"rows must be of models in the table, got {rows.tolist()}")
        return rows


def _totals(sums: Floats, counts: Floats) -> Totals:
    n, hits, repeats, pairs, n_eff = sums
    truth, predicted, agreed = counts
    return Totals(n, hits, repeats, pairs, n_eff, truth, predicted, agreed)
