"""Register of detectors that take outcomes in the order of their predictions, and the buffer that orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import isfinite
from typing import Annotated, Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from streamwatch.core.estimators.detectors import KINDS
from streamwatch.core.estimators.detectors.kind import AlarmRow
from streamwatch.core.estimators.entries import fingerprint
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.names import Batch, Cell, Details, Slice, cells
from streamwatch.core.estimators.registers.kind import LateAlarm
from streamwatch.core.estimators.registers.prediction_clock import (
    METRICS,
    SETTLED_UNTIL,
    PredictionClockSpec,
    table_spec,
)
from streamwatch.core.metrics.series import Sample
from streamwatch.core.ranges import LARGEST, require, require_all
from streamwatch.core.records.events import Name, model_of
from streamwatch.core.specs import DetectorSpec, LandmarkSpec

# Buffer of one model's outcomes, each held until everything predicted before it is settled.


SLACK_MS: Final = 2_000
"""Predictions expire at whole seconds, rounded up, so all are settled this long after the horizon."""
_NAME: Final = "prediction clock"
_NEVER: Final = np.iinfo(np.int64).min // 4
_EIGHTH: Final = 8
AGREEING: Final = 3
"""Number of successive outcomes that must have reached a time before the clock does.

So a single label with a time of its own in the far future does not move the clock.
"""
FEW = 256
"""Number of outcomes that may wait unsorted, beside an eighth of the number of the sorted ones.

So the sorted array is not moved for every new outcome.
"""
_Times = NDArray[np.int64]


class HeldState(msgspec.Struct, array_like=True, frozen=True):
    """State of a buffer; the same outcomes give the same state.

    Attributes
    ----------
    clock_ms, passed_ms
        The clock; the newest prediction time released.
    late, overflowed
        Number of outcomes released after newer predictions; number released early for lack of room.
    first_ms
        Oldest prediction time held; 0 if the buffer is empty.
    wide
        Whether the numbers in `held` have 8 bytes instead of 4.
    held
        2 × (time since the prediction before) + (1 for an error), little-endian, in the order of release.
    recent_ms
        Event times of the last outcomes that may still count towards `AGREEING`.
    """

    clock_ms: int
    passed_ms: int
    late: int
    overflowed: int
    first_ms: int
    wide: bool
    held: bytes
    recent_ms: Annotated[tuple[int, ...], msgspec.Meta(min_length=AGREEING - 1, max_length=AGREEING - 1)]


class ReleasedOutcomes(NamedTuple):
    """Released outcomes: arrays of equal length in the order of release."""

    predicted_ms: _Times
    miss: _Times
    cause: _Times
    """Position, among the outcomes just taken in, of the one that caused the release."""


class HeldOutcomes:
    """Outcomes ordered by the time of their prediction, ties in the order of resolution.

    The clock is the newest time that three successive outcomes of the model had reached. An outcome is
    released when the clock is `horizon_ms` and two seconds past its prediction: then every earlier prediction
    has its label or will get none. If more than `maximum` outcomes are held, the oldest eighth is released at
    once. An outcome that arrives after newer ones have been released (a topic's own times may be out of
    order) is released at its time and counted as late. What is released, and when, depends only on the
    outcomes and their order.
    """

    __slots__ = (
        "_clock_ms",
        "_fresh_miss",
        "_fresh_ms",
        "_horizon_ms",
        "_maximum",
        "_miss",
        "_passed_ms",
        "_predicted_ms",
        "_recent_ms",
        "counts",
    )

    def __init__(self, horizon_ms: int, maximum: int) -> None:
        self._horizon_ms = horizon_ms + SLACK_MS
        self._maximum = maximum
        self._predicted_ms: _Times = np.zeros(0, np.int64)
        self._miss: _Times = np.zeros(0, np.int64)
        self._fresh_ms: _Times = np.zeros(0, np.int64)  # in the order of resolution, not sorted yet
        self._fresh_miss: _Times = np.zeros(0, np.int64)
        self._clock_ms = _NEVER
        self._passed_ms = _NEVER
        self._recent_ms: _Times = np.full(AGREEING - 1, _NEVER, np.int64)
        self.counts = {"late": 0, "overflowed": 0}

    def __len__(self) -> int:
        return len(self._predicted_ms) + len(self._fresh_ms)

    def take(self, predicted_ms: _Times, miss: _Times, event_ms: _Times) -> ReleasedOutcomes:
        """Take in n outcomes, int64 (n,) each, in the order of resolution.

        Return those released, by their times or for lack of room.
        """
        parts: list[ReleasedOutcomes] = []
        start, n = 0, len(predicted_ms)
        while start < n:
            # Few enough that `maximum` can be exceeded only after the last one.
            stop = min(n, start + max(0, self._maximum - len(self)) + 1)
            chosen = slice(start, stop)
            parts.append(self._due(predicted_ms[chosen], miss[chosen], event_ms[chosen], start))
            if len(self) > self._maximum:
                parts.append(self._make_room(stop - 1))
            start = stop
        if len(parts) == 1:
            return parts[0]
        empty = np.zeros(0, np.int64)
        return ReleasedOutcomes(*(np.concatenate([empty, *columns]) for columns in zip(*parts, strict=True)))

    def _due(self, predicted_ms: _Times, miss: _Times, event_ms: _Times, start: int) -> ReleasedOutcomes:
        """Hold outcomes, all of which have room, and release what is due after each."""
        times = np.concatenate([self._recent_ms, event_ms])
        self._recent_ms = times[len(event_ms) :]
        agreed = sliding_window_view(times, AGREEING).min(axis=1)
        clock = np.maximum(np.maximum.accumulate(agreed), self._clock_ms)
        self._clock_ms = int(clock[-1])
        due_ms = self._clock_ms - self._horizon_ms
        came = np.concatenate([np.zeros(len(self._fresh_ms), np.int64), np.arange(len(predicted_ms))])
        fresh_ms = np.concatenate([self._fresh_ms, predicted_ms])
        fresh_miss = np.concatenate([self._fresh_miss, miss])
        goes = fresh_ms <= due_ms
        many = int(np.searchsorted(self._predicted_ms, due_ms, side="right"))
        gone_ms = np.concatenate([self._predicted_ms[:many], fresh_ms[goes]])
        gone_miss = np.concatenate([self._miss[:many], fresh_miss[goes]])
        came = np.concatenate([np.zeros(many, np.int64), came[goes]])
        leaves = np.maximum(came, np.searchsorted(clock, gone_ms + self._horizon_ms))
        order = np.lexsort((gone_ms, leaves))
        self._predicted_ms, self._miss = self._predicted_ms[many:], self._miss[many:]
        self._fresh_ms, self._fresh_miss = fresh_ms[~goes], fresh_miss[~goes]
        if len(self._fresh_ms) > FEW + len(self._predicted_ms) // _EIGHTH:
            self._sort()
        return self._pass(ReleasedOutcomes(gone_ms[order], gone_miss[order], leaves[order] + start))

    def _sort(self) -> None:
        """Sort the unsorted outcomes into the sorted ones."""
        if not len(self._fresh_ms):
            return
        predicted_ms = np.concatenate([self._predicted_ms, self._fresh_ms])
        order = np.argsort(predicted_ms, kind="stable")
        self._predicted_ms = predicted_ms[order]
        self._miss = np.concatenate([self._miss, self._fresh_miss])[order]
        self._fresh_ms = self._fresh_miss = np.zeros(0, np.int64)

    def _make_room(self, cause: int) -> ReleasedOutcomes:
        """Release the oldest eighth, or more if more were held before a restart with a lower `maximum`."""
        self._sort()
        many = max(1, self._maximum // _EIGHTH, len(self) - self._maximum)
        oldest = ReleasedOutcomes(
            self._predicted_ms[:many], self._miss[:many], np.full(many, cause, np.int64)
        )
        self._predicted_ms, self._miss = self._predicted_ms[many:], self._miss[many:]
        self.counts["overflowed"] += many
        return self._pass(oldest)

    def _pass(self, left: ReleasedOutcomes) -> ReleasedOutcomes:
        if len(left.predicted_ms):
            newest = np.maximum(np.maximum.accumulate(left.predicted_ms), self._passed_ms)
            before = np.concatenate([[self._passed_ms], newest[:-1]])
            self.counts["late"] += int(np.count_nonzero(left.predicted_ms < before))
            self._passed_ms = int(newest[-1])
        return left

    @property
    def passed_ms(self) -> int | None:
        """Newest prediction time released; None before the first release."""
        return None if self._passed_ms == _NEVER else self._passed_ms

    def state(self) -> HeldState:
        """State from which `restore` continues."""
        self._sort()
        first_ms = int(self._predicted_ms[0]) if len(self) else 0
        steps = 2 * np.diff(self._predicted_ms, prepend=first_ms) + self._miss
        wide = bool((steps >> 32).any())
        packed: bytes = steps.astype("<u8" if wide else "<u4").tobytes()
        counts = self.counts
        return HeldState(
            self._clock_ms,
            self._passed_ms,
            counts["late"],
            counts["overflowed"],
            first_ms,
            wide,
            packed,
            tuple(self._recent_ms.tolist()),
        )

    def restore(self, state: HeldState) -> None:
        """Continue from a state; raises ValueError if `held` does not hold numbers, or times are none."""
        steps: NDArray[Any] = np.frombuffer(state.held, "<u8" if state.wide else "<u4").astype(np.int64)
        for what, time_ms in (
            ("first time", state.first_ms),
            ("clock", state.clock_ms),
            ("newest time", state.passed_ms),
        ):
            require(_NAME, what, time_ms, _NEVER, LARGEST)
        require_all(_NAME, "time since the one before", steps, 0, LARGEST)
        require_all(_NAME, "time", np.cumsum(steps >> 1, dtype=np.float64), 0, LARGEST - state.first_ms)
        self._predicted_ms = state.first_ms + np.cumsum(steps >> 1)
        self._miss = steps & 1
        self._fresh_ms = self._fresh_miss = np.zeros(0, np.int64)
        self._clock_ms, self._passed_ms = state.clock_ms, state.passed_ms
        self._recent_ms = np.array(state.recent_ms, np.int64)
        self.counts = {"late": state.late, "overflowed": state.overflowed}


# Trace of detectors in prediction order: their values after every outcome, in the order of labels.


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


# Register of detectors that take outcomes in the order of their predictions.


VERSION: Final = 2
"""Incremented when the meaning of the state changes."""


class _State(msgspec.Struct, array_like=True, frozen=True):
    model: Name
    held: HeldState
    sections: dict[Name, bytes]


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
