"""Estimators of all models by name: takes outcomes, returns alarms and series.

`index` maps names to rows and local class indices, the kernel updates the `state`, and `report` reads it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Final, TypeVar, cast

import msgspec
import numpy as np

from streamwatch.core.estimators import catalogue
from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.estimators.index import ColumnIndex
from streamwatch.core.estimators.kernel.table import Trace
from streamwatch.core.estimators.names import Batch, Cell, TraceChunk, cells
from streamwatch.core.estimators.notifying.alarm_naming import AlarmNaming, NamedAlarm
from streamwatch.core.estimators.notifying.model_facts import ModelFacts
from streamwatch.core.estimators.past import PastSnapshot, PastView
from streamwatch.core.estimators.recovery import read_recoveries, watched_of
from streamwatch.core.estimators.registers.kind import FollowsLabels, RaisesAlarms
from streamwatch.core.estimators.report import details_in_slices, families_in_slices
from streamwatch.core.estimators.state import EstimatorState
from streamwatch.core.estimators.verdicts.readout import Verdicts
from streamwatch.core.metrics.series import Family
from streamwatch.core.records.events import Alarm, Name, Outcome, shown_name
from streamwatch.core.records.outcome_objects import in_columns
from streamwatch.core.specs import AdwinSpec, MonitorsSpec

# Trace: values of all estimators after every outcome, one row per outcome, columns fixed by the spec.
#
# A column has the name of its metric, followed by the values of the metric's labels without `model`, in
# alphabetical order of the label names: `accuracy_ratio:fading:0.999`,
# `baseline_accuracy_ratio:persistent:landmark`. Two further columns of a detector tell, as 1 or 0, whether
# it raised an alarm (`alarm:adwin`) or warned. There are no per-class columns. Undefined values are None.


VERDICTS = (
    "verdict",
    "verdict_since_timestamp_seconds",
    "verdict_since_outcome",
    "lead",
    "lead_lower",
    "lead_upper",
    "verdict_evidence:better",
    "verdict_evidence:worse",
    "lead_dispersion",
)
"""Columns of each opponent, in the order of the fields of `Verdicts`."""


RECOVERIES = ("recovering", "recovery_depth", "recovery_outcomes")
"""Columns of recovery, where there is a fading factor."""


class TraceColumns:
    """Columns of a trace for a spec, and their values for a traced batch.

    `others` are columns of registers, which come last.
    """

    def __init__(self, spec: MonitorsSpec, opponents: Sequence[str], others: Sequence[str] = ()) -> None:
        self._spec = spec
        self._opponents = opponents
        self.names: list[str] = ["model", "outcome", "y_true", "y_pred"]
        for forgetting in spec.forgetting:
            label = forgetting.name
            self.names += [f"{m.name}:{label}" for m in catalogue.MEASURES]
            self.names += [f"effective_sample_size:{label}"]
            self.names += [f"accuracy_bound_ratio:{b.name}:{label}" for b in catalogue.BOUNDS]
            self.names += [f"baseline_accuracy_ratio:{b.name}:{label}" for b in catalogue.BASELINES]
            if isinstance(forgetting, AdwinSpec):
                self.names.append(f"adwin_window_outcomes:{label}")
        for drift_weighted in spec.drift_weighted:
            after = f":{drift_weighted.name}" if len(spec.drift_weighted) > 1 else ""
            self.names.append(f"drift_weighted_accuracy_ratio{after}")
            self.names.append(f"drift_weighted_effective_sample_size{after}")
        for detector in spec.detectors:
            self.names.append(f"detector_statistic:{detector.name}")
            self.names.append(f"detector_threshold:{detector.name}")
            self.names.append(f"alarm:{detector.name}")
            if catalogue.entry(detector).warns:
                self.names.append(f"warning:{detector.name}")
        if watched_of(spec) is not None:
            self.names += RECOVERIES
        for opponent in opponents:
            named = (name.partition(":") for name in VERDICTS)
            self.names += [f"{name}:{opponent}{colon}{side}" for name, colon, side in named]
        self.names += others

    def rows(
        self,
        outcomes: Sequence[Outcome],
        ordinals: Sequence[int],
        traced: Trace,
        judged: Verdicts,
        others: Sequence[Sequence[Cell]],
    ) -> list[list[Cell]]:
        """Build one row per outcome, in order.

        `ordinals` are the outcomes' 1-based numbers within their model, `others` the values of the registers'
        columns.
        """
        columns: list[Sequence[Cell]] = [
            [shown_name(o.model) for o in outcomes],
            ordinals,
            [o.true_class for o in outcomes],
            [o.predicted_class for o in outcomes],
        ]
        for forgetting, totals in zip(self._spec.forgetting, traced.totals, strict=True):
            columns += [cells(m.of(totals)) for m in catalogue.MEASURES]
            columns.append(cells(totals.n_eff))
            columns += [cells(b.of(totals, self._spec.confidence_delta)) for b in catalogue.BOUNDS]
            columns += [cells(b.of(totals)) for b in catalogue.BASELINES]
            if isinstance(forgetting, AdwinSpec):
                columns.append(totals.n.astype(np.int64).tolist())
        for index in range(len(self._spec.drift_weighted)):
            columns += [cells(traced.weighted[index]), cells(traced.weighted_n_eff[index])]
        for index, detector in enumerate(self._spec.detectors):
            columns += [cells(traced.statistic[index]), cells(traced.threshold[index])]
            columns.append(traced.alarmed[index].astype(np.int64).tolist())
            if catalogue.entry(detector).warns:
                columns.append(traced.warned[index].astype(np.int64).tolist())
        if len(traced.recovery):
            recovered = read_recoveries(traced.recovery)
            columns += [
                cells(recovered.recovering),
                cells(recovered.depth),
                cells(recovered.outcomes),
            ]
        for index in range(len(self._opponents)):
            columns += [cells(values[index]) for values in judged]
        columns += others
        return [list(row) for row in zip(*columns, strict=True)]


# Snapshot of one model as bytes; equal states give equal bytes, however they were reached.


VERSION = 1


class ModelSnapshot(msgspec.Struct, frozen=True):
    """Snapshot of a model: names, registers and estimators; the sections are opaque here."""

    model: Name
    classes: list[Name]
    """Class names in order of appearance; the position is the local class index."""
    max_classes: int
    first_ms: int
    """Event time of the first outcome."""
    delays: tuple[list[int], int, int]
    """Number of labels per delay bucket, sum of delays, time of the latest label (both in milliseconds)."""
    last_alarms_ms: dict[Name, int]
    """Event time of the latest alarm by detector."""
    sections: dict[Name, bytes]
    """State of each estimator by section name."""
    version: int = VERSION
    past: PastSnapshot | None = None
    """History; None if none is kept."""


_ORDERED_ENCODER = msgspec.msgpack.Encoder(order="deterministic")
_DECODER = msgspec.msgpack.Decoder(ModelSnapshot)


def without(snapshot: bytes, sections: Collection[str]) -> bytes:
    """Remove sections from an encoded snapshot, by name."""
    if not sections:
        return snapshot
    decoded = decode(snapshot)
    kept = {name: body for name, body in decoded.sections.items() if name not in sections}
    return encode(msgspec.structs.replace(decoded, sections=kept))


def encode(snapshot: ModelSnapshot) -> bytes:
    """Encode a snapshot."""
    return _ORDERED_ENCODER.encode(snapshot)


def decode(snapshot: bytes) -> ModelSnapshot:
    """Decode a snapshot; raises ValueError if the version differs or the bytes are not a snapshot."""
    state = _DECODER.decode(snapshot)
    if state.version != VERSION:
        raise ValueError(f"model snapshot must be of version {VERSION}, got {state.version}")
    return state


_ENCODER = msgspec.msgpack.Encoder()
_TOTALS = msgspec.msgpack.Decoder(tuple[dict[Name, int], list[Alarm]])
_TRACE_CELLS: Final = 1_000_000
_SNAPSHOTS: Final = 200
"""Number of models whose snapshots are taken at once, of some tens of kilobytes each."""
_Result = TypeVar("_Result")


class EstimatorSet:
    """Estimators of up to `spec.max_models` models with one configuration."""

    def __init__(self, spec: MonitorsSpec) -> None:
        self._spec = spec
        self._state = state = EstimatorState(spec)
        self._table, self._index = state.table, state.index
        self._naming = AlarmNaming(state)
        self.facts = ModelFacts(state)
        """Facts about models that notifications report."""
        self._columns = ColumnIndex(state.index, spec.max_classes)
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

    def outcomes_of(self, model: str) -> int:
        """Number of outcomes evaluated of a current model."""
        row = self._index.models[model].row
        return int(self._table.outcomes(np.array([row], np.int64))[0])

    def drifts_of_references(self) -> dict[str, tuple[int, ...]]:
        """Number of drifts that restarted each weighting of the models that others follow, by name."""
        slots = self._index.models
        named = (each.reference for each in self._spec.drift_weighted if each.drift_signal == "reference")
        return {name: self._table.drifts(slots[name].row) for name in named if name in slots}

    def fold(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        """Evaluate outcomes and their pairs in order, and return the alarms in the same order."""
        batch = in_columns(outcomes)
        if self.comparisons is not None:
            self.comparisons.fold(batch)
        return self.fold_models(batch)

    def fold_models(self, outcomes: Sequence[Outcome]) -> list[Alarm]:
        """Evaluate outcomes in order, without their pairs, and return the alarms in the same order."""
        batch = self._columns.indexed(in_columns(outcomes))
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
        self._observe_batch(batch)
        return self._recorded(self._naming.named(batch, found, changes))

    def trace(self, outcomes: Sequence[Outcome]) -> TraceChunk:
        """Evaluate outcomes as `fold` does, and return all values of their model after each."""
        batch = in_columns(outcomes)
        if self.comparisons is not None:
            self.comparisons.fold(batch)
        return self.trace_models(batch)

    def trace_models(self, outcomes: Sequence[Outcome]) -> TraceChunk:
        """Evaluate outcomes as `fold_models` does, and return all values of their model after each."""
        of_registers = [name for register in self._state.raising for name in register.columns]
        columns = TraceColumns(self._spec, self._table.layout.opponents, of_registers)
        rows: list[list[Cell]] = []
        alarms: list[Alarm] = []
        width = self._spec.max_classes + 2
        step = max(1, _TRACE_CELLS // width)
        batches = in_columns(outcomes)
        for start in range(0, len(outcomes), step):
            batch = self._columns.indexed(batches[start : start + step])
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
            late = self._observe_batch(batch, tracing=True)
            alarms += self._recorded(self._naming.named(batch, traced.alarms, changes))
            verdicts = self._table.verdicts_traced(traced)
            rows += columns.rows(list(batch.outcomes), batch.ordinals(counted), traced, verdicts, late)
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
        """Collect the series as `families` does, yielding between slices of models, and within them.

        Models that retire before their slice begins are left out; those of the slice at hand may not change.
        """
        families = yield from families_in_slices(self._state)
        return families if self.comparisons is None else families + self.comparisons.families()

    def details(self) -> Mapping[str, Mapping[str, object]]:
        """Collect details of models that are not series: classes, time of first outcome, confusion matrix.

        They are as of now; a model's document is built when it is looked up.
        """
        return _last(self.details_in_slices())

    def details_in_slices(self) -> Generator[None, None, Mapping[str, Mapping[str, object]]]:
        """Collect details as `details` does, yielding between slices of models.

        Models that retire in the meantime are left out.
        """
        return details_in_slices(self._state)

    def pasts(self) -> Mapping[str, Sequence[PastView]]:
        """History of every model: one view, or one per fold; empty if no history is kept."""
        if not self._spec.history_days:
            return {}
        return self._state.pasts.views(self._index.rows_by_model())

    def snapshot(self, model: str) -> bytes:
        """Encode the whole state of a model; equal states give equal bytes."""
        return self._encoded([model])[0]

    def snapshots(self, models: Sequence[str]) -> Iterator[bytes]:
        """Encode the whole states of some models, as `snapshot` does, many at once."""
        starts = range(0, len(models), _SNAPSHOTS)
        parts = (self._encoded(models[start : start + _SNAPSHOTS]) for start in starts)
        return chain.from_iterable(parts)

    def _encoded(self, models: Sequence[str]) -> list[bytes]:
        """Encode the whole states of some models at once.

        Steps that cannot take all models at once use `map`, which is faster than a Python loop.
        """
        state = self._state
        slots = [state.index.models[model] for model in models]
        rows = np.array([slot.row for slot in slots], np.int64)
        sections = state.table.snapshots(rows)
        for register in state.registers:
            name = register.section
            for own, taken in zip(sections, register.snapshots(rows), strict=True):
                own[name] = taken
        found = map(
            ModelSnapshot,
            models,
            map(list, [slot.classes for slot in slots]),
            repeat(self._spec.max_classes),
            [slot.first_ms for slot in slots],
            state.delays.snapshots(rows),
            state.alarms.snapshots(rows),
            sections,
            repeat(VERSION),
            cast("Sequence[PastSnapshot | None]", state.pasts.snapshots(rows)),
        )
        return list(map(_ORDERED_ENCODER.encode, found))

    def restore(self, snapshot: bytes) -> str:
        """Restore a model from a snapshot, replacing one of the same name, and return its name.

        Raises
        ------
        ValueError
            If the bytes are not a snapshot of this version, and if it was taken under a larger `max_classes`,
            or under a smaller one that the model had reached: then some class indices have another meaning.
        TableFull
            If no row is free.
        """
        state, saved = self._state, decode(snapshot)
        most = self._spec.max_classes
        if saved.max_classes > most:
            raise ValueError(
                f"max_classes must be at least {saved.max_classes} as in the snapshot of model "
                f"{saved.model!r}, got {most}"
            )
        if saved.max_classes < most and len(saved.classes) == saved.max_classes:
            raise ValueError(
                f"max_classes must be {saved.max_classes} as in the snapshot of model {saved.model!r}, whose "
                f"further classes were counted as one, got {most}"
            )
        followers = None
        if (present := state.index.models.get(saved.model)) is not None:
            followers = state.table.followers(present.row)
            state.index.retire(saved.model)
        slot = state.index.enter(saved.model, saved.first_ms)
        row = slot.row
        for name in saved.classes:
            slot.classes[name] = len(slot.classes)
        state.index.name_classes([row])
        state.table.restore(row, saved.sections)
        if followers is not None:
            state.table.keep_followers(followers, row)
        last_label = state.table.last_label(row)
        state.delays.restore(row, saved.delays)
        state.alarms.restore(row, saved.last_alarms_ms)
        state.pasts.restore(row, saved.past)
        for register in state.registers:
            if register.section in saved.sections:
                register.restore(row, saved.sections[register.section])
            elif isinstance(register, FollowsLabels) and last_label is not None:
                register.begin_after(row, last_label)
        return saved.model

    def estimators(self) -> dict[str, str]:
        """Describe the estimator behind each section of a snapshot, by section name.

        The name changes with the estimator's parameters; a section whose name is not listed cannot be
        continued.
        """
        state = self._state
        described = state.table.sections() | {r.section: r.title for r in state.registers}
        for register in state.raising:
            described |= register.estimators()
        return described if self.comparisons is None else described | self.comparisons.estimators()

    def totals(self) -> bytes:
        """Encode the totals over all models: counters of limits, and recent alarms."""
        return _ENCODER.encode((self._index.over_limit, list(self.recent_alarms)))

    def restore_totals(self, totals: bytes) -> None:
        """Continue from what `totals` returned."""
        over_limit, recent = _TOTALS.decode(totals)
        self._index.over_limit |= over_limit
        alarms = self._state.alarms
        alarms.recent = deque(recent, maxlen=alarms.recent.maxlen)

    def _observe_batch(self, batch: Batch, *, tracing: bool = False) -> list[Sequence[Cell]]:
        """Feed a batch to histories, registers and label delays (assumed labels have none).

        Returns the columns that registers add to a trace; empty unless `tracing`.
        """
        state, columns = self._state, list[Sequence[Cell]]()
        state.pasts.observe(batch)
        for register in state.registers:
            if tracing and isinstance(register, RaisesAlarms):
                columns += register.trace(batch)
            else:
                register.observe(batch)
        state.delays.observe(batch)
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
