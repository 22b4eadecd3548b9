"""Estimators of all models by name: takes outcomes, returns alarms and series.

`models.index` maps names to rows and local class indices, the kernel updates the state, and `series.report`
and `series.trace` read it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from typing import TypeVar

import msgspec
import numpy as np

from streamwatch.core.estimators.alarms import Alarms
from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.estimators.confusion import confusion_document
from streamwatch.core.estimators.folds.report import joined_details
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.label_delays import LabelDelays
from streamwatch.core.estimators.measures.measures import accuracy
from streamwatch.core.estimators.models.column_index import ColumnIndex
from streamwatch.core.estimators.models.index import ModelIndex, ModelSlot
from streamwatch.core.estimators.models.snapshot import ModelSnapshot, decode, encode
from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.notifying.alarm_naming import AlarmNaming, NamedAlarm
from streamwatch.core.estimators.notifying.model_facts import ModelFacts
from streamwatch.core.estimators.pasts import Pasts
from streamwatch.core.estimators.registers import registers_of
from streamwatch.core.estimators.registers.alarms import ExplainsAlarms, RaisesAlarms
from streamwatch.core.estimators.samples import Slice
from streamwatch.core.estimators.series.report import SeriesReport
from streamwatch.core.estimators.series.trace import TraceColumns
from streamwatch.core.estimators.trace_chunk import Cell, TraceChunk
from streamwatch.core.events import VERDICT, Alarm, Outcome
from streamwatch.core.fold_names import fold_of, model_of
from streamwatch.core.outcomes import OutcomeBatch
from streamwatch.core.past import PastView
from streamwatch.core.series import Family
from streamwatch.core.specs import (
    MonitorsSpec,
)

_SLICE_MODELS = 100
_SLICE_CELLS = 60_000
_TRACE_CELLS = 1_000_000
_ENCODER = msgspec.msgpack.Encoder()
_Result = TypeVar("_Result")
_TOTALS = msgspec.msgpack.Decoder(tuple[dict[str, int], list[Alarm]])


class EstimatorSet:
    """Estimators of up to `spec.max_models` models with one configuration."""

    def __init__(self, spec: MonitorsSpec) -> None:
        self._spec = spec
        self._table = ModelTable(spec)
        self._delays = LabelDelays(spec.max_models)
        self._pasts = Pasts(spec.max_models, spec.history_days)
        self._registers = registers_of(spec)
        self._raising = [each for each in self._registers if isinstance(each, RaisesAlarms)]
        late = [name for register in self._raising for name in register.detectors]
        self._alarms = Alarms(spec.max_models, [*(d.name for d in spec.detectors), VERDICT, *late])
        explaining = [each for each in self._registers if isinstance(each, ExplainsAlarms)]
        own = (self._delays, self._alarms, self._pasts, *self._registers)
        self._watched = ModelIndex(spec, self._table, own)
        self._naming = AlarmNaming(spec, self._table, self._watched, self._raising, explaining)
        self.facts = ModelFacts(spec, self._table, self._watched, explaining)
        """Facts about models that notifications report."""
        self._columns = ColumnIndex(self._watched, spec.max_classes)
        self.comparisons = ComparisonSet(spec) if spec.comparisons else None
        """Comparisons of models with each other; None if none are configured."""

    @property
    def recent_alarms(self) -> deque[Alarm]:
        """Latest alarms of all models, oldest first."""
        return self._alarms.recent

    @property
    def records_over_limit(self) -> Mapping[str, int]:
        """Outcomes with a class beyond `max_classes`, and outcomes or pairs without a free row, by limit."""
        if self.comparisons is None:
            return self._watched.over_limit
        return {**self._watched.over_limit, "comparisons": self.comparisons.over_limit}

    @property
    def history_days(self) -> int:
        """Number of days of history kept per model; 0 for none."""
        return self._spec.history_days

    def models(self) -> list[str]:
        """List the names of the current models, in the order in which they appeared."""
        return list(self._watched.models)

    def fold(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        """Evaluate outcomes and their pairs in order, and return the alarms in the same order."""
        if self.comparisons is not None:
            self.comparisons.fold(outcomes)
        return self.fold_models(outcomes)

    def fold_models(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        """Evaluate outcomes in order, without their pairs, and return the alarms in the same order."""
        if isinstance(outcomes, OutcomeBatch) and outcomes.in_columns:
            batch = self._columns.indexed(outcomes)
        else:
            batch = self._watched.indexed(list(outcomes))
        if not batch.outcomes:
            return []
        found = self._table.fold(
            batch.rows,
            batch.true_class,
            batch.predicted_class,
            batch.label_at_prediction,
            batch.scores,
            batch.event_ms,
        )
        changes = self._naming.changes(batch, found)
        self._observe_labels(batch)
        return self._recorded(self._naming.named(batch, found, changes))

    def trace(self, outcomes: Sequence[Outcome]) -> TraceChunk:
        """Evaluate outcomes as `fold` does, and return all values of their model after each."""
        if self.comparisons is not None:
            self.comparisons.fold(outcomes)
        return self.trace_models(outcomes)

    def trace_models(self, outcomes: Sequence[Outcome]) -> TraceChunk:
        """Evaluate outcomes as `fold_models` does, and return all values of their model after each."""
        of_registers = [name for register in self._raising for name in register.columns]
        columns = TraceColumns(self._spec, self._table.opponents, of_registers)
        rows: list[list[Cell]] = []
        alarms: list[Alarm] = []
        width = self._spec.max_classes + 2
        step = max(1, _TRACE_CELLS // width)
        for start in range(0, len(outcomes), step):
            batch = self._watched.indexed(list(outcomes[start : start + step]))
            if not batch.outcomes:
                continue
            counted = self._table.outcomes(batch.rows.astype(np.int64)).tolist()
            traced = self._table.trace(
                batch.rows,
                batch.true_class,
                batch.predicted_class,
                batch.label_at_prediction,
                batch.scores,
                batch.event_ms,
            )
            changes = self._naming.changes(batch, traced.alarms)
            late = self._observe_labels(batch, tracing=True)
            alarms += self._recorded(self._naming.named(batch, traced.alarms, changes))
            said = self._table.verdicts_traced(traced)
            rows += columns.rows(batch.outcomes, batch.ordinals(counted), traced, said, late)
        return TraceChunk(columns.names, rows, alarms)

    def retire(self, model: str) -> None:
        """Remove a model: free its row, and end its series and comparisons."""
        self._watched.retire(model)
        if self.comparisons is not None:
            self.comparisons.retire(model)

    def families(self) -> list[Family]:
        """Collect all series of all models."""
        return _last(self.families_in_slices())

    def families_in_slices(self) -> Generator[None, None, list[Family]]:
        """Collect the series as `families` does, yielding between slices of models.

        Models that retire in the meantime are left out.
        """
        report = SeriesReport(self._spec)
        folds = sorted(self._watched.folds)
        names = sorted(self._watched.models)
        while names:
            chosen, names = self._next_slice(names)
            if chosen:
                report.add(chosen, self._table, self._delays, self._alarms)
                report.add_registers(chosen, self._registers)
                first = len(self._spec.detectors) + 1
                for register in self._raising:
                    report.add_alarm_times(chosen, register.detectors, self._alarms, first)
                    first += len(register.detectors)
            yield
        for model in folds:
            if model in self._watched.folds:
                report.add_folds(model, self._watched.rows_of_folds(model), self._table)
        families = report.families()
        return families if self.comparisons is None else families + self.comparisons.families()

    def details(self) -> dict[str, dict[str, object]]:
        """Collect details of models that are not series: classes, time of first outcome, confusion matrix."""
        return _last(self.details_in_slices())

    def details_in_slices(self) -> Generator[None, None, dict[str, dict[str, object]]]:
        """Collect details as `details` does, yielding between slices of models.

        Models that retire in the meantime are left out.
        """
        details: dict[str, dict[str, object]] = {}
        for number, name in enumerate(sorted(self._watched.models), 1):
            if (model := self._watched.models.get(name)) is not None and fold_of(name) is None:
                details[name] = self._details(model)
            if number % _SLICE_MODELS == 0:
                yield
        for name in sorted(self._watched.folds):
            of_folds = [self._watched.models[fold] for fold in self._watched.folds.get(name, ())]
            if of_folds:
                joined = joined_details([self._details(slot) for slot in of_folds])
                details[name] = {**joined, **details.get(name, {}), "folds": self._fold_accuracies(name)}
            yield
        return details

    def pasts(self) -> dict[str, tuple[PastView, ...]]:
        """History of every model: one view, or one per fold; empty if no history is kept."""
        if not self._spec.history_days:
            return {}
        views: dict[str, tuple[PastView, ...]] = {}
        for name, slot in self._watched.models.items():
            model = model_of(name)
            views[model] = (*views.get(model, ()), self._pasts.view(slot.row))
        return views

    def snapshot(self, model: str) -> bytes:
        """Encode the whole state of a model; equal states give equal bytes."""
        slot = self._watched.models[model]
        return encode(
            ModelSnapshot(
                model=model,
                classes=list(slot.classes),
                max_classes=self._spec.max_classes,
                first_ms=slot.first_ms,
                delays=self._delays.snapshot(slot.row),
                last_alarms_ms=self._alarms.snapshot(slot.row),
                sections=self._table.snapshot(slot.row)
                | {register.section: register.snapshot(slot.row) for register in self._registers},
                past=self._pasts.snapshot(slot.row),
            )
        )

    def restore(self, snapshot: bytes) -> str:
        """Restore a model from a snapshot, replacing one of the same name, and return its name.

        Raises
        ------
        ValueError
            If the snapshot was taken under another `max_classes`, which changes the meaning of class indices.
        TableFull
            If no row is free.
        """
        state = decode(snapshot)
        if state.max_classes != self._spec.max_classes:
            raise ValueError(
                f"max_classes must be {state.max_classes} as in the snapshot of model {state.model!r}, "
                f"got {self._spec.max_classes}"
            )
        if state.model in self._watched.models:
            self._watched.retire(state.model)
        row, classes = self._watched.enter(state.model, state.first_ms)
        for name in state.classes:
            classes[name] = len(classes)
        self._watched.name_classes([row])
        self._table.restore(row, state.sections)
        self._delays.restore(row, state.delays)
        self._alarms.restore(row, state.last_alarms_ms)
        self._pasts.restore(row, state.past)
        for register in self._registers:
            if register.section in state.sections:
                register.restore(row, state.sections[register.section])
        return state.model

    def estimators(self) -> dict[str, str]:
        """Describe the estimator behind each section of a snapshot, by section name.

        The name changes with the estimator's parameters; a section whose name is not listed cannot be
        continued.
        """
        of_models = self._table.sections() | {r.section: r.title for r in self._registers}
        for register in self._raising:
            of_models |= register.estimators()
        return of_models if self.comparisons is None else of_models | self.comparisons.estimators()

    def earlier_sections(self) -> dict[str, str]:
        """Names of the sections that continue those of an earlier version, by the earlier name."""
        return self._table.earlier_sections()

    def converts(self, snapshot: bytes) -> bool:
        """Tell whether a snapshot has sections of an earlier version, so that `restore` changes its bytes."""
        return not decode(snapshot).sections.keys().isdisjoint(self.earlier_sections())

    def totals(self) -> bytes:
        """Encode the totals over all models: counters of limits, and recent alarms."""
        return _ENCODER.encode((self._watched.over_limit, list(self._alarms.recent)))

    def restore_totals(self, totals: bytes) -> None:
        """Continue from what `totals` returned."""
        over_limit, recent = _TOTALS.decode(totals)
        self._watched.over_limit |= over_limit
        self._alarms.recent = deque(recent, maxlen=self._alarms.recent.maxlen)

    def _fold_accuracies(self, model: str) -> dict[str, dict[str, float]]:
        """Accuracy of each fold of a model now, by mechanism name and fold number."""
        rows = np.array(self._watched.rows_of_folds(model), np.int64)
        numbers = [str(fold_of(name)) for name in self._watched.folds[model]]
        found: dict[str, dict[str, float]] = {}
        for index, forgetting in enumerate(self._spec.forgetting):
            values = accuracy(self._table.totals(rows, index)).tolist()
            found[forgetting.name] = {
                number: value for number, value in zip(numbers, values, strict=True) if math.isfinite(value)
            }
        return found

    def _details(self, model: ModelSlot) -> dict[str, object]:
        details: dict[str, object] = {
            "classes": list(model.classes),
            "first_seen_timestamp_seconds": model.first_ms / 1000.0,
        }
        if (counts := self._table.confusion(model.row)) is not None:
            details["confusion"] = confusion_document(counts, model.classes)
        if (recovery := self._table.recovery_document(model.row)) is not None:
            details["recovery"] = recovery
        for register in self._registers:
            details |= register.details(model.row, model.classes)
        return details

    def _observe_labels(self, batch: Batch, *, tracing: bool = False) -> list[Sequence[Cell]]:
        """Feed a batch to histories and registers, and the delays of labels that came (not of assumed ones).

        Returns the columns that registers add to a trace; empty unless `tracing`.
        """
        columns: list[Sequence[Cell]] = []
        self._pasts.observe(batch)
        for register in self._registers:
            if tracing and isinstance(register, RaisesAlarms):
                columns += register.trace(batch)
            else:
                register.observe(batch)
        observed = batch.only(~batch.assumed)
        self._delays.observe(observed.rows, observed.delay_ms, observed.event_ms)
        return columns

    def _recorded(self, named: Sequence[NamedAlarm]) -> list[Alarm]:
        for _, row, detector, alarm in named:
            self._alarms.record(row, detector, alarm)
        return [alarm for *_, alarm in named]

    def _next_slice(self, names: list[str]) -> tuple[list[Slice], list[str]]:
        """Choose the next models to report, few enough not to block the event loop for long.

        Also return the remaining names.
        """
        chosen: list[Slice] = []
        widest = 1
        for taken, name in enumerate(names):
            slot = self._watched.models.get(name)
            if slot is None:
                continue
            widest = max(widest, len(slot.classes))
            if chosen and (len(chosen) >= _SLICE_MODELS or (len(chosen) + 1) * widest > _SLICE_CELLS):
                return chosen, names[taken:]
            chosen.append(Slice(name, slot.row, slot.classes))
        return chosen, []


def _last(slices: Generator[None, None, _Result]) -> _Result:
    """Run the generator to its end and return its result."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return end.value
