"""Estimators of all models by name: takes outcomes, returns alarms and series.

`models.index` maps names to rows and local class indices, the kernel updates the `state`, and `series`,
`details` and `snapshots` read it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping, Sequence
from typing import Final, TypeVar

import numpy as np

from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.estimators.details import details_in_slices
from streamwatch.core.estimators.models.column_index import ColumnIndex
from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.notifying.alarm_naming import AlarmNaming, NamedAlarm
from streamwatch.core.estimators.notifying.model_facts import ModelFacts
from streamwatch.core.estimators.registers.alarms import ExplainsAlarms, RaisesAlarms
from streamwatch.core.estimators.series.slices import families_in_slices
from streamwatch.core.estimators.series.trace import TraceColumns
from streamwatch.core.estimators.snapshots import Snapshots
from streamwatch.core.estimators.state import EstimatorState
from streamwatch.core.estimators.trace_chunk import Cell, TraceChunk
from streamwatch.core.events import Alarm, Outcome
from streamwatch.core.fold_names import model_of
from streamwatch.core.outcomes import OutcomeBatch
from streamwatch.core.past import PastView
from streamwatch.core.series import Family
from streamwatch.core.specs import MonitorsSpec

_TRACE_CELLS: Final = 1_000_000
_Result = TypeVar("_Result")


class EstimatorSet:
    """Estimators of up to `spec.max_models` models with one configuration."""

    def __init__(self, spec: MonitorsSpec) -> None:
        self._spec = spec
        self._state = state = EstimatorState(spec)
        self._table, self._index = state.table, state.index
        explaining = [each for each in state.registers if isinstance(each, ExplainsAlarms)]
        self._naming = AlarmNaming(spec, state.table, state.index, state.raising, explaining)
        self.facts = ModelFacts(spec, state.table, state.index, explaining)
        """Facts about models that notifications report."""
        self._columns = ColumnIndex(state.index, spec.max_classes)
        self._snapshots = Snapshots(state)
        self.comparisons = ComparisonSet(spec) if spec.comparisons else None
        """Comparisons of models with each other; None if none are configured."""

    @property
    def recent_alarms(self) -> deque[Alarm]:
        """Latest alarms of all models, oldest first."""
        return self._state.alarms.recent

    @property
    def records_over_limit(self) -> Mapping[str, int]:
        """Outcomes with a class beyond `max_classes`, and outcomes or pairs without a free row, by limit."""
        if self.comparisons is None:
            return self._index.over_limit
        return {**self._index.over_limit, "comparisons": self.comparisons.over_limit}

    @property
    def history_days(self) -> int:
        """Number of days of history kept per model; 0 for none."""
        return self._spec.history_days

    def models(self) -> list[str]:
        """List the names of the current models, in the order in which they appeared."""
        return list(self._index.models)

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
            batch = self._index.indexed(list(outcomes))
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
        of_registers = [name for register in self._state.raising for name in register.columns]
        columns = TraceColumns(self._spec, self._table.opponents, of_registers)
        rows: list[list[Cell]] = []
        alarms: list[Alarm] = []
        width = self._spec.max_classes + 2
        step = max(1, _TRACE_CELLS // width)
        for start in range(0, len(outcomes), step):
            batch = self._index.indexed(list(outcomes[start : start + step]))
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
        self._index.retire(model)
        if self.comparisons is not None:
            self.comparisons.retire(model)

    def families(self) -> list[Family]:
        """Collect all series of all models."""
        return _last(self.families_in_slices())

    def families_in_slices(self) -> Generator[None, None, list[Family]]:
        """Collect the series as `families` does, yielding between slices of models.

        Models that retire in the meantime are left out.
        """
        families = yield from families_in_slices(self._state)
        return families if self.comparisons is None else families + self.comparisons.families()

    def details(self) -> dict[str, dict[str, object]]:
        """Collect details of models that are not series: classes, time of first outcome, confusion matrix."""
        return _last(self.details_in_slices())

    def details_in_slices(self) -> Generator[None, None, dict[str, dict[str, object]]]:
        """Collect details as `details` does, yielding between slices of models.

        Models that retire in the meantime are left out.
        """
        return details_in_slices(self._state)

    def pasts(self) -> dict[str, tuple[PastView, ...]]:
        """History of every model: one view, or one per fold; empty if no history is kept."""
        if not self._spec.history_days:
            return {}
        views: dict[str, tuple[PastView, ...]] = {}
        for name, slot in self._index.models.items():
            model = model_of(name)
            views[model] = (*views.get(model, ()), self._state.pasts.view(slot.row))
        return views

    def snapshot(self, model: str) -> bytes:
        """Encode the whole state of a model; equal states give equal bytes."""
        return self._snapshots.take(model)

    def restore(self, snapshot: bytes) -> str:
        """Restore a model from a snapshot, replacing one of the same name, and return its name.

        Raises
        ------
        ValueError
            If the snapshot was taken under another `max_classes`, which changes the meaning of class indices.
        TableFull
            If no row is free.
        """
        return self._snapshots.restore(snapshot)

    def estimators(self) -> dict[str, str]:
        """Describe the estimator behind each section of a snapshot, by section name.

        The name changes with the estimator's parameters; a section whose name is not listed cannot be
        continued.
        """
        of_models = self._snapshots.estimators()
        return of_models if self.comparisons is None else of_models | self.comparisons.estimators()

    def totals(self) -> bytes:
        """Encode the totals over all models: counters of limits, and recent alarms."""
        return self._snapshots.totals()

    def restore_totals(self, totals: bytes) -> None:
        """Continue from what `totals` returned."""
        self._snapshots.restore_totals(totals)

    def _observe_labels(self, batch: Batch, *, tracing: bool = False) -> list[Sequence[Cell]]:
        """Feed a batch to histories and registers, and the delays of labels that came (not of assumed ones).

        Returns the columns that registers add to a trace; empty unless `tracing`.
        """
        state, columns = self._state, list[Sequence[Cell]]()
        state.pasts.observe(batch)
        for register in state.registers:
            if tracing and isinstance(register, RaisesAlarms):
                columns += register.trace(batch)
            else:
                register.observe(batch)
        observed = batch.only(~batch.assumed)
        state.delays.observe(observed.rows, observed.delay_ms, observed.event_ms)
        return columns

    def _recorded(self, named: Sequence[NamedAlarm]) -> list[Alarm]:
        for _, row, detector, alarm in named:
            self._state.alarms.record(row, detector, alarm)
        return [alarm for *_, alarm in named]


def _last(slices: Generator[None, None, _Result]) -> _Result:
    """Run the generator to its end and return its result."""
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return end.value
