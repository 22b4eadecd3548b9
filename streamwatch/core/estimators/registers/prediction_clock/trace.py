"""Trace of detectors in prediction order: their values after every outcome, in the order of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.estimators.detectors.alarm import AlarmRow
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.registers.prediction_clock.held import ReleasedOutcomes
from streamwatch.core.estimators.trace_chunk import Cell
from streamwatch.core.specs import DetectorSpec

SETTLED_UNTIL: Final = "prediction_clock_settled_until_timestamp_seconds"
_Floats = NDArray[np.float64]


def warns(detector: DetectorSpec) -> bool:
    """Tell whether a detector has a warning level."""
    return next(kind for kind in KINDS if kind.spec is type(detector)).entry.warns


def clock_columns(detectors: Sequence[DetectorSpec]) -> list[str]:
    """Names of the detectors' columns, in the order of `ClockTrace.cells`."""
    names: list[str] = []
    for each in detectors:
        kinds = ("detector_statistic", "detector_threshold", "alarm", *(("warning",) if warns(each) else ()))
        names += [f"{kind}:{each.name}" for kind in kinds]
    return names


def fed(row: int, left: ReleasedOutcomes) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Rows, true and predicted classes of one model's outcomes, as the table of detectors takes them."""
    truth = np.zeros(len(left.miss), np.int32)
    return np.full(len(truth), row, np.int32), truth, left.miss.astype(np.int32)


class ClockTrace:
    """Values after every outcome of a batch; NaN while undefined.

    Parameters
    ----------
    count
        Number of outcomes.
    detectors
        Specifications of the detectors.
    """

    def __init__(self, count: int, detectors: Sequence[DetectorSpec]) -> None:
        self._detectors = detectors
        self._statistic: _Floats = np.full((len(detectors), count), np.nan)
        self._threshold: _Floats = np.full((len(detectors), count), np.nan)
        self._warned = np.zeros((len(detectors), count), np.int64)
        self._alarms = np.zeros((len(detectors), count), np.int64)
        self._settled_ms: _Floats = np.full(count, np.nan)

    def feed(
        self,
        table: ModelTable,
        row: int,
        left: ReleasedOutcomes,
        positions: NDArray[np.intp],
        settled_ms: int | None,
    ) -> Sequence[AlarmRow]:
        """Pass released outcomes of a model to its detectors, and record their values after each outcome.

        Parameters
        ----------
        table, row
            Table of the detectors, and the row of the model in it.
        left
            Outcomes released by those at `positions` of the batch.
        positions
            Positions of the model's outcomes in the batch, shape (m,).
        settled_ms
            Newest prediction time released before; None if there was none.
        """
        # Column 0 holds the values before the batch; an outcome sees as many more columns as were released by
        # then.
        seen = np.searchsorted(left.cause, np.arange(len(positions)), side="right")
        rows = np.array([row], np.int64)
        before = [table.detector_state(rows, index) for index in range(len(self._detectors))]
        warned = [table.warned(rows, index).astype(np.int64) for index in range(len(self._detectors))]
        traced = table.trace(*fed(row, left)) if len(left.miss) else None
        for index in range(len(self._detectors)):
            parts = [[before[index][0]], [before[index][1]], [warned[index]]]
            if traced is not None:
                parts[0].append(traced.statistic[index])
                parts[1].append(traced.threshold[index])
                parts[2].append(traced.warned[index].astype(np.int64))
                np.add.at(self._alarms[index], positions[left.cause], traced.alarmed[index].astype(np.int64))
            columns = (self._statistic, self._threshold, self._warned)
            for column, values in zip(columns, parts, strict=True):
                column[index, positions] = np.concatenate(values)[seen]
        first = np.nan if settled_ms is None else float(settled_ms)
        passed = np.fmax.accumulate(np.concatenate([[first], left.predicted_ms.astype(np.float64)]))
        self._settled_ms[positions] = passed[seen]
        return () if traced is None else traced.alarms

    def cells(self) -> list[Sequence[Cell]]:
        """Columns of all detectors, then the time in seconds up to which predictions are settled."""
        columns: list[Sequence[Cell]] = []
        for index, detector in enumerate(self._detectors):
            columns += [_cells(self._statistic[index]), _cells(self._threshold[index])]
            columns.append(self._alarms[index].tolist())
            if warns(detector):
                columns.append(self._warned[index].tolist())
        return [*columns, _cells(self._settled_ms / 1000.0)]


def _cells(values: _Floats) -> list[Cell]:
    """Values as Python floats, None where undefined."""
    return [v if v == v else None for v in values.tolist()]  # noqa: PLR0124 - false for NaN
