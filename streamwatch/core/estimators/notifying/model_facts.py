"""Current state of models, and what changed, as notifications report it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import compress
from math import isnan
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.index import ModelSlot, detectors_of, utility_of
from streamwatch.core.estimators.measures.measures import (
    Flags,
    Totals,
    accuracy,
    hoeffding_half_width,
    kappa_zscore,
    loss_autocorrelation,
    p_majority,
)
from streamwatch.core.estimators.notifying.class_shift import ClassShift, shift_between, shift_over_folds
from streamwatch.core.estimators.notifying.false_alarms import monthly
from streamwatch.core.estimators.registers.fleet import WorseList
from streamwatch.core.estimators.registers.kind import ComparesDelays, JudgesModels
from streamwatch.core.estimators.registers.segments import SegmentChange
from streamwatch.core.estimators.state import EstimatorState
from streamwatch.core.records.events import SEPARATOR, Alarm, Confirmation, DelayKind, model_of
from streamwatch.core.specs import (
    HEADLINE,
    AdwinSpec,
    FadingSpec,
    ForgettingSpec,
    LandmarkSpec,
    MonitorsSpec,
    SlidingSpec,
)

# Detection of models for which accuracy misleads: one class dominates, and kappa is clearly positive.
#
# Of 99 legitimate payments and one fraud, always saying "legitimate" is right 99 % of the time. A model
# that finds most frauds at the price of a few false alarms is right less often, but useful.


MAJORITY: Final = 0.9
"""Share of the largest class of labels from which on accuracy misleads."""
SURE: Final = 3.0
"""Standard errors by which kappa must exceed 0; by chance, one in 740 useless models does."""


def accuracy_misleads(totals: Totals) -> Flags:
    """Mark the models for which accuracy misleads, shape (m,).

    True if the largest class has at least 90 % of the labels and kappa is significantly above 0; false if
    either is undefined.
    """
    return (p_majority(totals) >= MAJORITY) & (kappa_zscore(totals) >= SURE)


# Current error rate of models, used to decide whether a drift is over.


class Level(NamedTuple):
    """Recent error of one model, under a mechanism that forgets."""

    error: float
    """Weighted mean of the loss."""
    bound: float
    """Half-width of Hoeffding's bound around it."""
    n_eff: float
    outcomes: int
    """Number of outcomes ever evaluated, as counted in `Alarm.outcome`."""
    errors: int | None = None
    """Errors among them; None for a model that predicts in folds."""


def recent_of(spec: MonitorsSpec) -> int | None:
    """Index of the mechanism for recent values: the first fading, or else sliding one.

    None without either.
    """
    fading = [i for i, f in enumerate(spec.forgetting) if isinstance(f, FadingSpec)]
    sliding = [i for i, f in enumerate(spec.forgetting) if isinstance(f, SlidingSpec)]
    return next(iter((*fading, *sliding)), None)


def levels_of(
    models: Sequence[str],
    totals: Totals,
    outcomes: NDArray[np.int64],
    errors: NDArray[np.int64],
    delta: float,
) -> dict[str, Level]:
    """Level of each model that has outcomes, by name; arrays are in the order of `models`."""
    error, bound = 1.0 - accuracy(totals), hoeffding_half_width(totals, delta)
    wrong = [
        None if SEPARATOR in model else count for model, count in zip(models, errors.tolist(), strict=True)
    ]
    columns = (error.tolist(), bound.tolist(), totals.n_eff.tolist(), outcomes.tolist(), wrong)
    found = zip(models, map(Level, *columns), strict=True)
    return dict(compress(found, (~np.isnan(bound)).tolist()))


def joined_levels(levels: Mapping[str, Level]) -> dict[str, Level]:
    """Join levels by model: for several folds, means over them, the most outcomes of any fold, no errors."""
    if not any(SEPARATOR in name for name in levels):
        return dict(levels)
    by_model: dict[str, list[Level]] = {}
    for name, level in levels.items():
        by_model.setdefault(model_of(name), []).append(level)
    return {
        model: Level(
            fmean(level.error for level in folds),
            fmean(level.bound for level in folds),
            fmean(level.n_eff for level in folds),
            max(level.outcomes for level in folds),
        )
        if len(folds) > 1
        else folds[0]
        for model, folds in by_model.items()
    }


class ModelFacts:
    """Facts about models by name, from the `state` of an `EstimatorSet`."""

    def __init__(self, state: EstimatorState) -> None:
        self._spec = state.spec
        self._table = state.table
        self._index = state.index
        self._explaining = state.explaining
        self._judging = state.judging

    def headlines(self, models: Sequence[str]) -> dict[str, int]:
        """Current headlines by model: 1 better, −1 worse, 0 open; models that have none are left out.

        They are read at once: reading those of one model takes nearly as long as those of a hundred.
        """
        slots = self._index.models
        whole = {
            model: slots[model].row
            for model in models
            if self._index.names_of(model) == [model] and model in slots
        }
        found: dict[str, int] = {}
        if self._judging is not None:
            judged = [model for model in whole if self._judging.gives_headline(model)]
            verdicts = self._judging.headline_verdicts([whole[model] for model in judged])
            found = {
                model: verdict for model, verdict in zip(judged, verdicts, strict=True) if verdict is not None
            }
        if HEADLINE not in self._table.layout.opponents:
            return found
        at = self._table.layout.opponents.index(HEADLINE)
        others = [model for model in whole if model not in found]
        latest = self._table.verdicts(np.array([whole[model] for model in others], np.int64)).verdict[at]
        by_labels = dict(zip(others, latest.tolist(), strict=True))
        for model in models:
            folds = [slots[name].row for name in self._index.names_of(model) if name in slots]
            if folds and model not in whole:
                by_labels[model] = float(self._table.fold_verdicts(folds).verdict[at, 0])
        # NaN before the first answer of the opponent
        return found | {model: int(verdict) for model, verdict in by_labels.items() if not isnan(verdict)}

    def confirmation_expected_ms(self, model: str, at_ms: int) -> int | None:
        """Find the clock from which cohorts may confirm an alarm, raised at clock `at_ms`, that found a rise.

        None if alarms of this model are not confirmed: it is not judged by cohorts, too few cohorts have been
        judged, or its labels come within a minute.
        """
        row = self._judged_row(model)
        return None if row is None else row[1].confirmation_expected_ms(row[0], at_ms)

    def confirmation(self, model: str, at_ms: int, rise: float) -> Confirmation | None:
        """Judge an alarm at a clock that found a `rise` of the error; None while undecided."""
        row = self._judged_row(model)
        return None if row is None else row[1].confirmation(row[0], at_ms, rise)

    def worse(self, share: float, withheld: Collection[str] = ()) -> WorseList:
        """List the models that are worse than an opponent; as `GET /api/v1/worse` does at this moment.

        Of the pairs listed, at most `share` are expected to have never been worse (`registers.fleet`). Folds
        of models are not judged by cohorts; without a register of cohorts the list is empty. Models whose
        verdicts are `withheld` are neither listed nor counted.
        """
        judging = self._judging
        if judging is None:
            return WorseList(0, ())
        judged = [
            (one.model, one.row)
            for one in self._index.slices()
            if SEPARATOR not in one.model and one.model not in withheld and judging.gives_headline(one.model)
        ]
        return judging.worse(judged, share)

    def _judged_row(self, model: str) -> tuple[int, JudgesModels] | None:
        """Row of a model whose headline is by cohorts, and the register of cohorts; None for any other."""
        slot = self._index.models.get(model)
        if slot is None or self._judging is None or not self._judging.gives_headline(model):
            return None
        return slot.row, self._judging

    def first_ms(self, model: str) -> int:
        """Event time of a model's first outcome; 0 if the model does not exist (any more)."""
        slots = [self._index.models.get(name) for name in self._index.names_of(model)]
        return min((slot.first_ms for slot in slots if slot is not None), default=0)

    def levels(self, models: Sequence[str]) -> dict[str, Level]:
        """Recent error rates of these models, under the first fading, or else first sliding mechanism.

        Models that do not exist are left out; so are all models if no such mechanism is configured.
        """
        recent, slots = recent_of(self._spec), self._index.models
        names = models
        if self._index.folds:
            names = [name for model in models for name in self._index.names_of(model)]
        watched = [name for name in names if name in slots]
        if recent is None or not watched:
            return {}
        rows = np.array([slots[name].row for name in watched], np.int64)
        totals, outcomes = self._table.totals(rows, recent), self._table.outcomes(rows)
        errors = self._table.errors(rows)
        return joined_levels(levels_of(watched, totals, outcomes, errors, self._spec.confidence_delta))

    def class_shift(self, model: str, level: float) -> ClassShift | None:
        """Estimate whether a changed error is due to the shares of the classes or to the model.

        `level` is the mean loss before the change as a detector estimated it, or NaN. For a model that
        predicts in folds, the estimate is over all of them. None if the model does not exist, has too few
        outcomes, or if settings have no landmark beside a sliding or ADWIN window.
        """
        names = [name for name in self._index.names_of(model) if name in self._index.models]
        kinds = [type(forgetting) for forgetting in self._spec.forgetting]
        if not names or LandmarkSpec not in kinds:
            return None
        delta = self._spec.confidence_delta
        parts = [self._parts(self._index.models[name], kinds) for name in names]
        if names == [model]:
            return shift_between(*parts[0], delta, level)
        return shift_over_folds(parts, delta, level)

    def segment_change(self, model: str) -> SegmentChange | None:
        """Find the segment value with most of a model's additional errors; None if none stands out.

        None also if the model does not exist or predicts in folds, and if predictions have no segments.
        """
        slot = self._index.models.get(model)
        if slot is None:
            return None
        found = (register.change_of(slot.row) for register in self._explaining)
        return next((change for change in found if change is not None), None)

    def delays_moved(self, model: str) -> tuple[DelayKind, ...]:
        """Find the kinds of labels of a model whose delays differ between neighbouring halves of a horizon.

        Empty if the model does not exist or predicts in folds, or if no register compares delays.
        """
        slot = self._index.models.get(model)
        comparing = [each for each in self._explaining if isinstance(each, ComparesDelays)]
        return () if slot is None or not comparing else comparing[0].delays_moved(slot.row)

    def accuracy_misleads(self, model: str) -> bool:
        """Tell whether a model is judged by accuracy although it misleads (`accuracy_misleads` above).

        False if the model does not exist or predicts in folds, and if no recent mechanism is configured
        (`recent_of`).
        """
        slot, recent = self._index.models.get(model), recent_of(self._spec)
        if slot is None or recent is None or utility_of(self._spec, model).kind != "accuracy":
            return False
        return bool(accuracy_misleads(self._table.totals(np.array([slot.row], np.int64), recent))[0])

    def false_alarms_monthly(self, alarm: Alarm) -> float | None:
        """Estimate the false alarms that the detector of an alarm raises in 30 days at its model.

        From the rate of the model's outcomes up to the alarm, the error before it, and the correlation of a
        loss with the one before over all outcomes (`notifying.false_alarms`). None for a verdict, a detector
        in prediction time, a model in folds, a detector whose rate is not known, without a landmark
        mechanism, and within the first hour of a model.
        """
        slot = self._index.models.get(alarm.model)
        past = next((i for i, f in enumerate(self._spec.forgetting) if isinstance(f, LandmarkSpec)), None)
        if slot is None or past is None or alarm.judgement is not None or alarm.predicted_ms is not None:
            return None
        group = detectors_of(self._spec, alarm.model)
        detectors = self._spec.detectors_by_model[group - 1].detectors if group else self._spec.detectors
        spec = next((each for each in detectors if each.name == alarm.detector), None)
        if spec is None:
            return None
        totals = self._table.totals(np.array([slot.row], np.int64), past)
        correlation = float(loss_autocorrelation(totals)[0])
        span_ms = alarm.event_ms - slot.first_ms
        return monthly(spec, alarm.before, correlation, alarm.outcome, span_ms)

    def _parts(
        self, slot: ModelSlot, kinds: Sequence[type[ForgettingSpec]]
    ) -> tuple[Totals, Sequence[Totals], Sequence[str]]:
        """Totals of a model or fold without forgetting and over windows, and the names of its classes."""
        rows = np.array([slot.row], np.int64)
        past = self._table.totals(rows, kinds.index(LandmarkSpec))
        windows = [self._table.totals(rows, i) for i, k in enumerate(kinds) if k in (SlidingSpec, AdwinSpec)]
        return past, windows, slot.classes.names(folded=past.true_class.shape[1] > slot.classes.limit)
