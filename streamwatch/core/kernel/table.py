"""The table of models: rows of estimators, fed in batches, read on demand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.kernel import admission
from streamwatch.core.kernel import fold as kernel
from streamwatch.core.kernel.batch import Batch, batch_of
from streamwatch.core.kernel.detectors.alarm import ALARM, AlarmRow, alarm_rows
from streamwatch.core.kernel.pools import Pools
from streamwatch.core.kernel.reading import (
    Detectors,
    Floats,
    Integers,
    read_detectors,
    read_totals,
    read_weighted,
)
from streamwatch.core.kernel.records import Records, layout_of
from streamwatch.core.kernel.rows import Rows
from streamwatch.core.kernel.scores import NO_SCORES, Indices, Scores
from streamwatch.core.kernel.snapshot import apply_snapshot, section_names, take_snapshot
from streamwatch.core.kernel.totals import N
from streamwatch.core.kernel.tracing import Trace, traced
from streamwatch.core.measures import Totals
from streamwatch.core.specs import MonitorsSpec


class ModelTable:
    """The estimators of up to `max_models` models.

    Rows are indices below `max_models`; classes are local indices of each model, 0 … max_classes + 1, densely
    given out by the caller. Batches may mix models; the order within a model is what counts.
    """

    def __init__(self, spec: MonitorsSpec) -> None:
        self._spec = spec
        self._layout = layout_of(spec)
        self._pools = Pools(self._layout, spec.max_models)
        self._rows = Rows(self._layout, self._pools, spec.max_models)
        self._alarms: Records = np.zeros(0, ALARM)

    def add_model(self) -> int:
        """Row of a new model, empty. Rows of retired models are given out again.

        Raises
        ------
        TableFull
            When `max_models` models are watched.
        """
        return self._rows.add()

    def retire(self, row: int) -> None:
        """Forget a model and everything it held."""
        self._rows.retire(row)

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
                return alarm_rows(self._alarms, int(count))
            self._resolve(verdict, int(count), batch)

    def outcomes(self, rows: Integers) -> Integers:
        """Outcomes folded into each model, int64 (m,)."""
        return self._pools.models["outcomes"][self._rows.live(rows)]

    def errors(self, rows: Integers) -> Integers:
        """Wrong predictions of each model, int64 (m,)."""
        return self._pools.models["errors"][self._rows.live(rows)]

    def totals(self, rows: Integers, forgetting: int) -> Totals:
        """Agreement totals of m models under one configured forgetting mechanism, in units of outcomes.

        Dense, padded to the most classes among the models asked for.
        """
        column = self._layout.column_of[forgetting]
        return read_totals(self._pools, self._layout, self._rows.live(rows), column)

    def detector_state(self, rows: Integers, detector: int) -> tuple[Floats, Floats, Integers]:
        """Statistic and threshold (NaN where undefined) and number of alarms of one detector, each (m,)."""
        said = self._detectors(rows)
        return said.statistic[detector], said.threshold[detector], said.alarms[detector]

    def warned(self, rows: Integers, detector: int) -> NDArray[np.bool_]:
        """Whether one detector was warning at each model's last outcome, bool (m,)."""
        return self._detectors(rows).warned[detector]

    def adwin_width(self, rows: Integers, forgetting: int) -> Integers:
        """Outcomes in each model's ADWIN window, int64 (m,)."""
        column = self._layout.column_of[forgetting]
        return self._pools.models["totals"][self._rows.live(rows), N, column].astype(np.int64)

    def weighted(self, rows: Integers, weighting: int) -> tuple[Floats, Floats]:
        """Drift-weighted accuracy (NaN before the first outcome) and its n_eff, each (m,)."""
        return read_weighted(self._pools, self._rows.live(rows), weighting)

    def follow(self, weighting: int, row: int) -> None:
        """Let a weighting by reference take the drifts of this model, from now on and until it retires.

        Every other model learns of a drift at its own next outcome.
        """
        self._rows.live_one(row)
        if self._spec.weighting[weighting].drift_signal != "reference":
            raise ValueError(f"only a weighting by reference follows a model, got weighting {weighting}")
        self._layout.parameters["weighting"]["reference"][0, weighting] = row

    def sections(self) -> dict[str, str]:
        """What each section of a snapshot holds, in words."""
        return section_names(self._spec, self._layout)

    def snapshot(self, row: int) -> dict[str, bytes]:
        """Everything a model's estimators hold, one section each, wherever the model stands in the table."""
        self._rows.live_one(row)
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
        pools, most = self._pools, self._layout.max_classes
        while True:
            verdict, position = pools.make_room(batch.rows, batch.truth, batch.predicted, batch.scores, most)
            if verdict == admission.ADMITTED:
                return traced(self._spec, self._layout, pools, batch, self._alarms)
            self._resolve(verdict, position, batch)

    def footprint(self, row: int) -> int:
        """Bytes a model occupies: its record, ring, class rows, blocks and shadow counts."""
        return self._pools.footprint(row)

    def _reserve(
        self, rows: Indices, truth: Indices, predicted: Indices, known: Indices | None, scores: Scores
    ) -> Batch:
        """Bring a batch to the kernel's types, with room for its blocks and alarms."""
        batch = batch_of(rows, truth, predicted, known, scores)
        self._pools.reserve_batch(len(batch.rows), self._rows.used)
        most = len(batch.rows) * len(self._spec.detectors)
        if len(self._alarms) < most:
            self._alarms = np.zeros(most, ALARM)
        return batch

    def _resolve(self, verdict: int, position: int, batch: Batch) -> None:
        """After a batch was not admitted: enlarge the pool that was full, or refuse."""
        if verdict != admission.INVALID:
            self._pools.enlarge(verdict)
            return
        got = tuple(int(column[position]) for column in (batch.rows, batch.truth, batch.predicted))
        raise ValueError(
            f"outcome {position} of a batch must have a live row and classes (of scores, too) below "
            f"{self._layout.max_classes}, got (row, truth, predicted) = {got}"
        )

    def _detectors(self, rows: Integers) -> Detectors:
        return read_detectors(self._pools, self._layout, self._rows.live(rows), len(self._spec.detectors))
