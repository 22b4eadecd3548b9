"""Report of all estimators: series of every measure under every mechanism, and details that are no number."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import compress, repeat
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators import catalogue
from streamwatch.core.estimators.folds import join_folds, joined_details, of_stream
from streamwatch.core.estimators.index import utility_of
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.measures.measures import Totals, accuracy
from streamwatch.core.estimators.names import Details, ReportKeys, Slice, SliceKeys, confusion_document
from streamwatch.core.estimators.notifying.model_facts import accuracy_misleads, recent_of
from streamwatch.core.estimators.recovery import read_histograms, read_recoveries
from streamwatch.core.estimators.registers import names_of
from streamwatch.core.estimators.registers.kind import Register
from streamwatch.core.estimators.state import Alarms, EstimatorState, Integers, LabelDelays
from streamwatch.core.estimators.verdicts.readout import Verdicts
from streamwatch.core.metrics.series import (
    ClassNames,
    ClassSamples,
    Columns,
    DetailsInParts,
    Family,
    ModelKeys,
    Sample,
)
from streamwatch.core.records.events import SEPARATOR, fold_of
from streamwatch.core.specs import AdwinSpec, MonitorsSpec

# Report of all estimators as series: every measure under every mechanism, read in slices of models.
#
# Undefined values (NaN) give no sample. A report is whole, whatever `max_series` is: what a scrape leaves
# out is chosen when it is rendered (`metrics.series_budget`).


class SeriesReport:
    """Collects the series of models slice by slice.

    Parameters
    ----------
    spec
        Estimators.
    keys
        Label values, kept from report to report.
    """

    def __init__(self, spec: MonitorsSpec, keys: ReportKeys) -> None:
        self._spec = spec
        self._keys = keys
        keys.begin()
        self._samples: dict[str, Columns] = {m.name: Columns() for m in catalogue.metrics()}
        self._folds = False
        self._plain: set[str] = set()
        names = [f.name for f in spec.forgetting]
        # `forgetting` may be configured without adapting `per_class`, which then falls back to the first
        # mechanism.
        self._per_class = spec.per_class if spec.per_class in names or not spec.per_class else names[0]
        self._of_classes = {measure.name: ClassSamples(self._per_class) for measure in catalogue.PER_CLASS}

    def add_registers(self, chosen: Sequence[Slice], registers: Iterable[Register]) -> Generator[None]:
        """Add the series of registers (state outside the kernel's table) for some models, one by one."""
        for register in registers:
            for name, samples in register.series(chosen).items():
                self._samples[name].extend(samples)
            yield

    def add_alarm_times(
        self, chosen: Sequence[Slice], detectors: Sequence[str], alarms: Alarms, first: int
    ) -> None:
        """Add the latest alarm times of a register's detectors; `first` is the index of the first of them."""
        rows = np.array([c.row for c in chosen], np.int64)
        of_slice = self._keys.of([c.model for c in chosen])
        for index, name in enumerate(detectors, first):
            keys = of_slice.of(name)
            self._put("last_alarm_timestamp_seconds", keys, alarms.latest_seconds(rows, index))

    def add(
        self, chosen: Sequence[Slice], table: ModelTable, delays: LabelDelays, alarms: Alarms
    ) -> Generator[None]:
        """Add the series of some models, yielding after each mechanism and each kind of further series.

        The models must not change then.
        """
        models = self._keys.of([c.model for c in chosen])
        folds = np.array([SEPARATOR in model for model in models.models], np.bool_)
        self._folds = self._folds or bool(folds.any())
        shared = folds & self._spec.folds_share_stream
        self._plain.update(models.models)
        plain = models.of()
        rows = np.array([c.row for c in chosen], np.int64)
        self._put("outcomes_total", plain, table.outcomes(rows))
        self._put("errors_total", plain, table.errors(rows))
        for index, forgetting in enumerate(self._spec.forgetting):
            totals = of_stream(table.totals(rows, index), shared)
            keys = self._add_measures(forgetting.name, models, totals)
            if forgetting.name == self._per_class:
                self._add_per_class(chosen, totals)
            if isinstance(forgetting, AdwinSpec):
                self._put("adwin_window_outcomes", keys, table.adwin_width(rows, index))
            yield
        self._add_imbalance(models, shared, rows, table)
        self._add_weighted(models, rows, table)
        yield
        self._add_detectors(models, rows, table, alarms)
        yield
        self._add_recoveries(models, rows, table)
        yield
        unfolded = np.flatnonzero(~folds).tolist()
        judged = self._keys.of([models.models[i] for i in unfolded])
        self._add_verdicts(judged, table.verdicts(rows[~folds]), table.layout.opponents)
        self._put("last_label_timestamp_seconds", plain, delays.latest_seconds(rows))
        self._samples["label_delay_seconds"].add_part(delays.histograms(rows, plain))

    def families(self) -> list[Family]:
        """Build the report."""
        found: Mapping[str, Sequence[Sample]] = self._samples
        if self._folds:
            several = len(self._spec.drift_weighted) > 1
            prefixed = {name: int(several and name.startswith("drift_weighted")) for name in self._samples}
            joined = {name: list(samples) for name, samples in self._samples.items()}
            join_folds(joined, catalogue.metrics(), prefixed)
            found = joined
            for samples in self._of_classes.values():
                samples.join_folds()
        weighted = ("drift_weighted",) if len(self._spec.drift_weighted) > 1 else ()
        return [
            Family(
                name=m.name,
                kind=m.kind,
                help=m.help,
                labels=(*(weighted if m.name.startswith("drift_weighted") else ()), *m.labels),
                samples=self._of_classes.get(m.name, found[m.name]),
                bounds=m.bounds,
            )
            for m in catalogue.metrics()
        ]

    def _put(self, name: str, keys: ModelKeys, values: NDArray[np.generic]) -> None:
        """Add a sample for each key whose value is defined."""
        self._samples[name].add(keys, values)

    def _add_measures(self, forgetting: str, models: SliceKeys, totals: Totals) -> ModelKeys:
        """Add all measures and baselines under one mechanism, and return the keys of their series."""
        keys = models.of(forgetting)
        for measure in catalogue.MEASURES:
            self._put(measure.name, keys, measure.of(totals))
        self._put("effective_sample_size", keys, totals.n_eff)
        for bound in catalogue.BOUNDS:
            named = models.of(bound.name, forgetting)
            self._put("accuracy_bound_ratio", named, bound.of(totals, self._spec.confidence_delta))
        for baseline in catalogue.BASELINES:
            named = models.of(baseline.name, forgetting)
            self._put("baseline_accuracy_ratio", named, baseline.of(totals))
        return keys

    def _add_per_class(self, chosen: Sequence[Slice], totals: Totals) -> None:
        """Add the series of all classes.

        A class known from scores only has not been counted and may be beyond the end of its row.
        """
        models = [each.model for each in chosen]
        shown: list[ClassNames] = []
        for measure in catalogue.PER_CLASS:
            values = measure.of(totals)
            width = values.shape[1]
            shown = shown or self._class_names(chosen, width)
            self._of_classes[measure.name].add_all(models, shown, values)

    def _class_names(self, chosen: Sequence[Slice], width: int) -> list[ClassNames]:
        """Names of the classes of some models, rebuilt only if their classes have changed since."""
        keys = self._keys.of([each.model for each in chosen])
        classes = [each.classes for each in chosen]
        folded = width > self._spec.max_classes
        depends_on = folded, list(map(id, classes)), list(map(len, classes))
        if keys.classes is None or keys.classes[0] != depends_on:
            keys.classes = depends_on, [ClassNames(each.names(folded=folded), each) for each in classes]
        return keys.classes[1]

    def _add_imbalance(
        self, models: SliceKeys, shared: NDArray[np.bool_], rows: Integers, table: ModelTable
    ) -> None:
        """Add the models judged by accuracy although it misleads, under the mechanism for recent values."""
        recent = recent_of(self._spec)
        if recent is None:
            return
        flags = accuracy_misleads(of_stream(table.totals(rows, recent), shared)).tolist()
        self._samples["accuracy_misleads"].extend(
            [
                ((model,), 1.0)
                for model in compress(models.models, flags)
                if SEPARATOR not in model and utility_of(self._spec, model).kind == "accuracy"
            ]
        )

    def _add_weighted(self, models: SliceKeys, rows: Integers, table: ModelTable) -> None:
        several = len(self._spec.drift_weighted) > 1
        for index, drift_weighted in enumerate(self._spec.drift_weighted):
            keys = models.of(drift_weighted.name) if several else models.of()
            accuracy, n_eff = table.weighted(rows, index)
            self._put("drift_weighted_accuracy_ratio", keys, accuracy)
            self._put("drift_weighted_effective_sample_size", keys, n_eff)

    def _add_detectors(self, models: SliceKeys, rows: Integers, table: ModelTable, alarms: Alarms) -> None:
        found = table.detectors(rows)
        for index, detector in enumerate(self._spec.detectors):
            keys = models.of(detector.name)
            self._put("detector_statistic", keys, found.statistic[index])
            self._put("detector_threshold", keys, found.threshold[index])
            if catalogue.entry(detector).warns:
                self._put("detector_warning", keys, found.warned[index])
            self._put("alarms_total", keys, found.alarms[index])
            self._put("last_alarm_timestamp_seconds", keys, alarms.latest_seconds(rows, index))

    def _add_recoveries(self, models: SliceKeys, rows: Integers, table: ModelTable) -> None:
        """Add drifts and how they ended, and histograms for models that have had any."""
        records = table.recoveries(rows)
        if not len(records):
            return
        found = read_recoveries(records)
        for stage, counts in (
            ("begun", found.begun),
            ("recovered", found.recovered),
            ("not_recovered", found.not_recovered),
        ):
            self._put("drifts_total", models.of(after=(stage,)), counts)
        keys = models.of()
        self._put("recovering", keys, found.recovering)
        self._put("recovery_depth", keys, found.depth)
        self._put("recovery_outcomes", keys, found.outcomes)
        drifted = np.flatnonzero(found.begun > 0)
        depths, lengths = read_histograms(records[drifted])
        drifted_keys = [(models.models[i],) for i in drifted.tolist()]
        self._samples["drift_depth"].extend(list(zip(drifted_keys, depths, strict=True)))
        self._samples["drift_outcomes"].extend(list(zip(drifted_keys, lengths, strict=True)))

    def add_folds(self, model: str, rows: Sequence[int], table: ModelTable) -> None:
        """Add the verdict on a model that predicts in folds.

        Its other series are joined from those of the folds.
        """
        if model not in self._plain:
            self._add_verdicts(self._keys.of([model]), table.fold_verdicts(rows), table.layout.opponents)

    def _add_verdicts(self, models: SliceKeys, found: Verdicts, opponents: Sequence[str]) -> None:
        for index, opponent in enumerate(opponents):
            keys = models.of(after=(opponent,))
            self._put("verdict", keys, found.verdict[index])
            self._put("verdict_since_timestamp_seconds", keys, found.since_seconds[index])
            self._put("verdict_since_outcome", keys, found.since[index])
            self._put("lead", keys, found.lead[index])
            self._put("lead_lower", keys, found.lower[index])
            self._put("lead_upper", keys, found.upper[index])
            self._put("lead_dispersion", keys, found.dispersion[index])
            for side, values in (("better", found.better), ("worse", found.worse)):
                self._put("verdict_evidence", models.of(after=(opponent, side)), values[index])


# Report of all models in slices, each small enough not to block an event loop for long.


_MODELS: Final = 500
"""Number of models in a slice, at most: the fewer slices, the less often numpy is called."""
_CELLS: Final = 10_000
"""Number of models in a slice times their largest number of classes, at most."""


def families_in_slices(state: EstimatorState) -> Generator[None, None, list[Family]]:
    """Collect the series of all models, yielding between slices of models, and within them.

    Models that retire before their slice begins are left out; those of the current one must not retire.
    """
    report, index = SeriesReport(state.spec, state.report_keys), state.index
    folds = sorted(index.folds)
    left = index.slices()
    all_models = left
    while left:
        chosen, left = _next_slice(left)
        if index.slices() is not all_models:
            chosen = [one for one in chosen if index.has(one)]
        if chosen:
            yield from report.add(chosen, state.table, state.delays, state.alarms)
            yield
            yield from report.add_registers(chosen, state.registers)
            first = len(state.spec.detectors) + 1
            for register in state.raising:
                report.add_alarm_times(chosen, register.detectors, state.alarms, first)
                first += len(register.detectors)
        yield
    for model in folds:
        if model in index.folds:
            report.add_folds(model, index.rows_of_folds(model), state.table)
    return report.families()


def _next_slice(models: Sequence[Slice]) -> tuple[Sequence[Slice], Sequence[Slice]]:
    """Divide the models to report into the next ones and the others."""
    sizes = list(map(len, [one.classes for one in models[:_MODELS]]))
    cells = np.maximum.accumulate(np.maximum(sizes, 1)) * np.arange(1, len(sizes) + 1)
    number = max(1, int(np.searchsorted(cells, _CELLS, "right")))
    return models[:number], models[number:]


# Details of models for the API that are not series: classes, time of the first outcome, confusion, folds.
#
# The state of all models is read when a report is built, and a model's document is built from it when the
# document is requested: a report is built every second, and hardly anybody ever requests all models.


_Read: TypeAlias = Callable[[int, Collection[str] | None], Mapping[str, object]]
"""Function from a model's index among some models, and the parts that are needed, to its details."""


class ModelDetails(DetailsInParts):
    """Details by model; each document is built when it is looked up."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[_Read, int]] = {}

    def add(self, models: Sequence[str], read: _Read) -> None:
        """Add details of some models, as `_read` returned them."""
        self._read.update(zip(models, zip(repeat(read), range(len(models))), strict=True))

    def with_parts(self, model: str, parts: Collection[str] | None) -> Mapping[str, object]:
        """Build the details of a model; those of a model that predicts in folds always have all parts."""
        read, index = self._read[model]
        return read(index, parts)

    def __contains__(self, model: object) -> bool:
        return model in self._read  # without making a document

    def __iter__(self) -> Iterator[str]:
        return iter(self._read)

    def __len__(self) -> int:
        return len(self._read)


def details_in_slices(state: EstimatorState) -> Generator[None, None, ModelDetails]:
    """Collect the details of all models, yielding between slices of models.

    Models that retire in the meantime are left out.
    """
    details = ModelDetails()
    index = state.index
    all_models = index.slices()
    models = [one for one in all_models if SEPARATOR not in one.model]
    for start in range(0, len(models), _MODELS):
        chosen = models[start : start + _MODELS]
        if index.slices() is not all_models:
            chosen = [one for one in chosen if index.has(one)]
        if chosen:
            read = yield from _read(state, chosen, headlines=True)
            details.add([one.model for one in chosen], read)
        yield
    for name in sorted(index.folds):
        slots = [(fold, index.models[fold]) for fold in index.folds.get(name, ())]
        if slots:
            chosen = [Slice(fold, slot.row, slot.classes) for fold, slot in slots]
            of_folds = yield from _read(state, chosen, headlines=False)
            joined = joined_details([of_folds(number, None) for number in range(len(chosen))])
            document = {**joined, **details.get(name, {}), "folds": _fold_accuracies(state, name)}
            document |= _judged_by(state, name)
            details.add([name], partial(_whole, document))
        yield
    return details


def _whole(document: Mapping[str, object], index: int, parts: Collection[str] | None) -> Mapping[str, object]:
    """Return a document that has been built."""
    del index, parts
    return document


def _read(state: EstimatorState, chosen: Sequence[Slice], *, headlines: bool) -> Generator[None, None, _Read]:
    """Read the state from which the documents of some models are made, yielding between its parts.

    The models must not change then.
    """
    rows = np.array([one.row for one in chosen], np.int64)
    sizes = list(map(len, [one.classes for one in chosen]))
    first_ms = [state.index.models[one.model].first_ms for one in chosen]
    confusions = state.table.confusions(rows)
    yield
    recoveries = state.table.recovery_documents(rows)
    of_registers: list[tuple[str, Details]] = []
    for name, register in zip(names_of(state.spec), state.registers, strict=True):
        yield
        of_registers.append((name, register.details(chosen)))
    judging = state.judging if headlines else None
    headline_at = None if judging is None else judging.headlines(rows.tolist())

    def document(index: int, parts: Collection[str] | None) -> dict[str, object]:
        one = chosen[index]
        found: dict[str, object] = {
            "classes": one.classes.names(folded=False)[: sizes[index]],
            "first_seen_timestamp_seconds": first_ms[index] / 1000.0,
        }
        if (parts is None or "confusion" in parts) and (counts := confusions[index]) is not None:
            found["confusion"] = confusion_document(counts, one.classes)
        if recoveries is not None and (parts is None or "recovery" in parts):
            found["recovery"] = recoveries(index)
        for name, details in of_registers:
            if parts is None or name in parts:
                found |= details(index)
        if judging is not None and headline_at is not None and judging.gives_headline(one.model):
            # Models whose headline is always the verdict in the order of labels have no such document.
            found["headline"] = headline_at(index) or {"basis": "labels"}
        return found | (_judged_by(state, one.model) if headlines else {})

    return document


def _judged_by(state: EstimatorState, model: str) -> dict[str, object]:
    """Utility that a model is judged by; empty where that is accuracy."""
    kind = utility_of(state.spec, model).kind
    return {} if kind == "accuracy" else {"utility": kind}


def _fold_accuracies(state: EstimatorState, model: str) -> dict[str, dict[str, float]]:
    """Accuracy of each fold of a model now, by mechanism name and fold number."""
    rows = np.array(state.index.rows_of_folds(model), np.int64)
    numbers = [str(fold_of(name)) for name in state.index.folds[model]]
    found: dict[str, dict[str, float]] = {}
    for index, forgetting in enumerate(state.spec.forgetting):
        values = accuracy(state.table.totals(rows, index)).tolist()
        found[forgetting.name] = {
            number: value for number, value in zip(numbers, values, strict=True) if math.isfinite(value)
        }
    return found
