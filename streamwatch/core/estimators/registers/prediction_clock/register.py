"""Register of detectors that take outcomes in the order of their predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import isfinite
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.estimators.detectors.kind import AlarmRow
from streamwatch.core.estimators.entries import fingerprint
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.names import Batch, Details, Slice
from streamwatch.core.estimators.registers.alarms import LateAlarm
from streamwatch.core.estimators.registers.prediction_clock.held import (
    HeldOutcomes,
    HeldState,
    ReleasedOutcomes,
)
from streamwatch.core.estimators.registers.prediction_clock.spec import PredictionClockSpec, table_spec
from streamwatch.core.estimators.trace_chunk import Cell, cells
from streamwatch.core.metrics import Metric
from streamwatch.core.metrics.series import Sample
from streamwatch.core.records.events import Name, model_of
from streamwatch.core.specs import DetectorSpec, LandmarkSpec

# Trace of detectors in prediction order: their values after every outcome, in the order of labels.


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
        # Column 0 holds the values before the batch, column k those after k released outcomes; the values
        # after an outcome are in the column of the number released by then.
        seen = np.searchsorted(left.cause, np.arange(len(positions)), side="right")
        rows = np.array([row], np.int64)
        before = table.detectors(rows)
        traced = table.trace(*fed(row, left)) if len(left.miss) else None
        for index in range(len(self._detectors)):
            parts = [[before.statistic[index]], [before.threshold[index]], [before.warned[index]]]
            if traced is not None:
                parts[0].append(traced.statistic[index])
                parts[1].append(traced.threshold[index])
                parts[2].append(traced.warned[index])
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
            columns += [cells(self._statistic[index]), cells(self._threshold[index])]
            columns.append(self._alarms[index].tolist())
            if warns(detector):
                columns.append(self._warned[index].tolist())
        return [*columns, cells(self._settled_ms / 1000.0)]


VERSION: Final = 2
"""Incremented when the meaning of the state changes."""


class _State(msgspec.Struct, array_like=True, frozen=True):
    model: Name
    held: HeldState
    sections: dict[Name, bytes]


METRICS: Final = (
    Metric(
        "prediction_clock_waiting_outcomes",
        "gauge",
        "Outcomes held back from detectors in prediction order until all earlier predictions are settled",
        ("model",),
    ),
    Metric(
        SETTLED_UNTIL,
        "gauge",
        "Time of the newest prediction whose outcome has reached detectors in prediction order",
        ("model",),
    ),
    Metric(
        "prediction_clock_outcomes_total",
        "counter",
        "Outcomes that detectors in prediction order have seen",
        ("model",),
    ),
    Metric(
        "prediction_clock_disordered_total",
        "counter",
        "Outcomes that detectors in prediction order saw after newer ones (late), or too early "
        "because more than monitors.max_unsettled were held back (overflowed)",
        ("model", "reason"),
    ),
)
_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(_State)


@dataclass(slots=True)
class _Model:
    """State of a model: its row in the detectors' table, and the outcomes held."""

    name: str
    row: int
    held: HeldOutcomes


class PredictionClock:
    """Detectors in prediction order for up to `capacity` models.

    An outcome costs an insertion into a sorted array and, once settled, what the detectors cost. While held
    it takes 16 B of memory and 4 B of a snapshot.
    """

    def __init__(self, spec: PredictionClockSpec, capacity: int) -> None:
        self._spec = spec
        self._table = ModelTable(table_spec(spec, capacity))
        self._models: dict[int, _Model] = {}
        self._raised: list[LateAlarm] = []
        self.section = fingerprint("prediction_clock", spec.horizon_ms, None, VERSION)
        self.title = f"outcomes held back for detectors (horizon {spec.horizon_ms / 1000:g} s)"

    @property
    def detectors(self) -> Sequence[str]:
        """Names of the detectors, by the index used in `LateAlarm`."""
        return [detector.name for detector in self._spec.detectors]

    def estimators(self) -> dict[str, str]:
        """Describe the detectors by section name, which changes with a detector's parameters."""
        sections = self._table.sections().items()
        return {
            f"{self.section}/{section}": f"{document} in prediction time"
            for section, document in sections
            if document != LandmarkSpec().name
        }

    @property
    def columns(self) -> Sequence[str]:
        """Names of a trace's columns: the detectors', and the time up to which predictions are settled."""
        return [*clock_columns(self._spec.detectors), SETTLED_UNTIL]

    def trace(self, batch: Batch) -> Sequence[Sequence[Cell]]:
        """Evaluate outcomes as `observe` does.

        Return the values of `columns` after each, None where undefined.

        An alarm is counted in the row of the outcome by whose time it was noticed.
        """
        traced = ClockTrace(len(batch.rows), self._spec.detectors)
        self._observe(batch, traced)
        return traced.cells()

    def observe(self, batch: Batch) -> None:
        """Take in outcomes, and pass those that are settled now to the detectors."""
        self._observe(batch, None)

    def _observe(self, batch: Batch, traced: ClockTrace | None) -> None:
        if not len(batch.rows):
            return
        predicted_ms = batch.event_ms - batch.delay_ms
        miss = (batch.true_class != batch.predicted_class).astype(np.int64)
        order = np.argsort(batch.rows, kind="stable")
        for positions in np.split(order, np.flatnonzero(np.diff(batch.rows[order])) + 1):
            first = int(positions[0])
            model = self._of(int(batch.rows[first]), batch.outcomes[first].model)
            settled_ms = model.held.passed_ms
            left = model.held.take(predicted_ms[positions], miss[positions], batch.event_ms[positions])
            if traced is None:
                found = self._feed(model.row, left)
            else:
                found = traced.feed(self._table, model.row, left, positions, settled_ms)
            self._raised += [
                LateAlarm(
                    int(positions[left.cause[f.position]]),
                    f._replace(row=int(batch.rows[first])),
                    int(left.predicted_ms[f.position]),
                )
                for f in found
            ]

    def raised(self) -> Sequence[LateAlarm]:
        """Alarms since the last call, in their order within a model."""
        raised, self._raised = self._raised, []
        return raised

    def _of(self, row: int, name: str) -> _Model:
        model = self._models.get(row)
        if model is None:
            pattern = model_of(name)
            own = (
                k for k, d in enumerate(self._spec.detectors_by_model, 1) if fnmatchcase(pattern, d.models)
            )
            held = HeldOutcomes(self._spec.horizon_ms, self._spec.max_unsettled)
            model = self._models[row] = _Model(name, self._table.add_model(detectors=next(own, 0)), held)
        return model

    def _feed(self, row: int, left: ReleasedOutcomes) -> Sequence[AlarmRow]:
        return self._table.fold(*fed(row, left)) if len(left.miss) else ()

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        model = self._models.pop(row, None)
        if model is not None:
            self._table.retire(model.row)

    def snapshots(self, rows: NDArray[np.int64]) -> Sequence[bytes]:
        """Encode the states of some rows, empty before the first outcome.

        The same outcomes give the same bytes.
        """
        models = {row: self._models[row] for row in rows.tolist() if row in self._models}
        own = np.array([model.row for model in models.values()], np.int64)
        taken = dict(zip(models, self._table.snapshots(own), strict=True))
        return [
            _ENCODER.encode(_State(models[row].name, models[row].held.state(), taken[row]))
            if row in models
            else b""
            for row in rows.tolist()
        ]

    def restore(self, row: int, state: bytes) -> None:
        """Set a cleared row to a snapshot; raises ValueError for bytes that are not one.

        Detectors whose parameters have changed start empty, with the outcomes still held as their first.
        """
        if not state:
            return
        kept = _DECODER.decode(state)
        model = self._of(row, kept.model)
        model.held.restore(kept.held)
        self._table.restore(model.row, kept.sections)

    def series(self, chosen: Sequence[Slice]) -> Mapping[str, Sequence[Sample]]:
        """Series of some models: of held outcomes, and of detectors under the metrics of all detectors."""
        known = [(one.model, self._models[one.row]) for one in chosen if one.row in self._models]
        rows = np.array([kept.row for _, kept in known], np.int64)
        found: dict[str, list[Sample]] = {metric.name: [] for metric in METRICS}
        evaluated = self._table.outcomes(rows).tolist()
        for (name, model), outcomes in zip(known, evaluated, strict=True):
            waiting, settled_until, seen, disordered = found.values()
            waiting.append(((name,), float(len(model.held))))
            if (passed_ms := model.held.passed_ms) is not None:
                settled_until.append(((name,), passed_ms / 1000.0))
            seen.append(((name,), float(outcomes)))
            disordered += [((name, reason), float(n)) for reason, n in model.held.counts.items()]
        current = self._table.detectors(rows)
        for index, detector in enumerate(self._spec.detectors):
            values: dict[str, NDArray[Any]] = {
                "detector_statistic": current.statistic[index],
                "detector_threshold": current.threshold[index],
                "alarms_total": current.alarms[index],
            }
            if warns(detector):
                values["detector_warning"] = current.warned[index].astype(np.float64)
            for name, of_models in values.items():
                found.setdefault(name, []).extend(
                    ((detector.name, model), value)
                    for (model, _), value in zip(known, of_models.tolist(), strict=True)
                    if isfinite(value)
                )
        return found

    def details(self, chosen: Sequence[Slice]) -> Details:
        """Numbers of outcomes held, late and released early; time up to which predictions are settled."""
        return [self._details(one.row) for one in chosen].__getitem__

    def _details(self, row: int) -> Mapping[str, object]:
        model = self._models.get(row)
        if model is None:
            return {}
        document: dict[str, object] = {
            "detectors": self.detectors,
            "waiting": len(model.held),
            "evaluated": int(self._table.outcomes(np.array([model.row], np.int64))[0]),
            **model.held.counts,
        }
        if (passed_ms := model.held.passed_ms) is not None:
            document["settled_until_timestamp_seconds"] = passed_ms / 1000.0
        return {"prediction_clock": document}
