"""The `monitors` section: what is estimated for every model, and when it raises an alarm."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, ValidationInfo, field_validator, model_validator

from streamwatch.core.estimators.catalogue import DETECTORS, DRIFT_WEIGHTINGS, MEASURES, MECHANISMS
from streamwatch.core.estimators.registers.prediction_clock.spec import PredictionClockSpec
from streamwatch.core.estimators.registers.probabilities.spec import ProbabilitiesSpec
from streamwatch.core.estimators.registers.revisions import RevisionsSpec
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.estimators.verdicts.costs import cost_table
from streamwatch.core.events import VERDICT
from streamwatch.core.predictions.early_hints.spec import EarlyHintsSpec
from streamwatch.core.specs import (
    OPPONENTS,
    DetectorSpec,
    DriftWeightedSpec,
    ForgettingSpec,
    MonitorsSpec,
)
from streamwatch.settings.comparisons import ComparisonSection, comparison_specs
from streamwatch.settings.detectors import ByModel, known, model_detectors
from streamwatch.settings.kinds import OneOf, OneOrMore, Parameters
from streamwatch.settings.numbers import Bounded
from streamwatch.settings.sections import Section

FORGETTING_KINDS = tuple(entry.name for entry in MECHANISMS)
DETECTOR_KINDS = tuple(entry.name for entry in DETECTORS)
_DEFAULT = MonitorsSpec()
_SEGMENTS = SegmentsSpec()
_REVISIONS = RevisionsSpec()
_PROBABILITIES = ProbabilitiesSpec()
_EARLY = EarlyHintsSpec()
_CLOCK = PredictionClockSpec()


class HalfLife(Parameters):
    """Exponential forgetting may be given as `half_life` instead of `alpha`."""

    half_life: Annotated[float, Bounded("half-life in outcomes", above=0)] | None = Field(
        default=None, description="Outcomes after which a weight has halved; instead of `alpha`."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> HalfLife:
        if self.half_life is not None and "alpha" in self.model_fields_set:
            raise ValueError("give alpha or half_life, not both")
        return self

    def values(self) -> dict[str, Any]:
        """Half-life h is alpha = 2^(-1/h)."""
        values = self.model_dump(exclude={"half_life"})
        return values if self.half_life is None else values | {"alpha": 0.5 ** (1.0 / self.half_life)}


FORGETTING = OneOf(MECHANISMS, {"fading": HalfLife})
DETECTOR = OneOf(DETECTORS)
DRIFT_WEIGHTED = OneOrMore(DRIFT_WEIGHTINGS[0])


class CostsSection(Section):
    """Cost of every answer: lower is better, and gains are below zero."""

    costs: dict[str, dict[str, float]]
    """Cost by true class and answer: `{fraud: {legit: 100}, legit: {fraud: 5}}`."""
    other: float | None = None
    """Cost of every pair that is not listed, hits among them; without it every pair must be listed."""

    @model_validator(mode="after")
    def _say_something(self) -> CostsSection:
        cost_table(self.costs, self.other)
        return self


Utility: TypeAlias = Literal["accuracy", "balanced"] | CostsSection


class SegmentsSection(Section):
    """Estimates by segment, where a topic's mapping names segments."""

    alpha: Annotated[float, Bounded("alpha", above=0, below=1)] = _SEGMENTS.alpha
    """Fading factor; an outcome of a segment's value is a step."""
    max_values: Annotated[int, Bounded("max_values", least=1, most=1_000)] = _SEGMENTS.max_values
    """Values of a segment of one model with estimates of their own, the busiest; the others are __other__."""
    measures: tuple[str, ...] = _SEGMENTS.measures
    """Which measures are exported, by the names that `streamwatch catalogue` gives."""
    max_total: Annotated[int, Bounded("max_total", least=1, most=1_000_000)] = _SEGMENTS.max_total
    """Values with estimates of their own of all segments of all models together, with one __other__ each."""

    @field_validator("measures")
    @classmethod
    def _known(cls, measures: tuple[str, ...]) -> tuple[str, ...]:
        names = [measure.name for measure in MEASURES]
        for name in measures:
            if name not in names or measures.count(name) > 1:
                raise ValueError(f"expected different ones of {', '.join(names)}, got {name!r}")
        return measures


class RevisionsSection(Section):
    """First and last predictions of an id compared with its label, with `join.conflicts: both`."""

    alpha: Annotated[float, Bounded("alpha", above=0, most=1)] = _REVISIONS.alpha
    """Fading factor; an outcome of the model is a step, and 1 forgets nothing."""


class ProbabilitiesSection(Section):
    """Measures of the class scores that predictions carry; models without scores have none."""

    auc_outcomes: Annotated[int, Bounded("auc_outcomes", least=10, most=100_000)] = (
        _PROBABILITIES.auc_outcomes
    )
    """Scored outcomes over which the area under the ROC curve is taken."""
    max_auc_classes: Annotated[int, Bounded("max_auc_classes", least=2, most=64)] = (
        _PROBABILITIES.max_auc_classes
    )
    """Classes of a model that have such an area and a threshold curve, those it showed first."""


class EarlyHintsSection(Section):
    """Hints from predictions before their labels come: whether they have changed, what scores expect."""

    predictions: Annotated[int, Bounded("predictions", least=4_096)] = _EARLY.predictions
    """Predictions of a model within which a false hint has probability delta, while nothing changes."""
    delta: Annotated[float, Bounded("delta", above=0, below=1)] = _EARLY.delta
    """Probability of a false hint within `predictions`."""
    reach: Annotated[int, Bounded("reach", least=4_096)] = _EARLY.reach
    """How many predictions earlier those were that the latest are compared with. What comes and goes several
    times within it, as day and night may, is no change: of 20,000 predictions a day, 60,000 or more."""
    max_models: Annotated[int, Bounded("max_models", least=1, most=100_000)] = _EARLY.max_models
    """Models looked at, at most: those that predict first."""
    notify: bool = False
    """Whether receivers are told of a hint when it is given, and when it is over. Rules of `alerts` with
    `detector: early_hint` choose its severity and cooldown."""

    @model_validator(mode="after")
    def _comparable(self) -> Self:
        if self.reach > self.predictions:
            raise ValueError(f"reach: expected at most predictions ({self.predictions}), got {self.reach}")
        return self


class MonitorsSection(Section):
    """Estimators of every model; `streamwatch catalogue` lists all there is."""

    forgetting: tuple[Annotated[ForgettingSpec, FORGETTING], ...] = Field(
        default=_DEFAULT.forgetting,
        min_length=1,
        description=f"Over what past every measure is taken, a series each: {', '.join(FORGETTING_KINDS)}.",
        json_schema_extra={"default": [FORGETTING.shown(spec) for spec in _DEFAULT.forgetting]},
    )
    detectors: tuple[Annotated[DetectorSpec, DETECTOR], ...] = Field(
        default=_DEFAULT.detectors,
        description=f"What raises alarms: {', '.join(DETECTOR_KINDS)}.",
        json_schema_extra={"default": [DETECTOR.shown(spec) for spec in _DEFAULT.detectors]},
    )
    detectors_by_model: ByModel = Field(default_factory=dict)
    """Other parameters of these detectors by pattern of model, the first that matches holds:
    `{"fraud-*": {page_hinkley: {threshold: 200}}}`. Another delta of ADWIN is a window more for all."""
    detector_clocks: dict[str, Literal["label", "prediction"]] = Field(default_factory=dict)
    """By name of a detector, in whose order it sees outcomes: `{adwin: prediction}` is the order of
    predictions, once their labels are in (join.horizon later); that of labels where nothing is said."""
    max_unsettled: Annotated[int, Bounded("max_unsettled", least=1, most=10_000_000)] = _CLOCK.max_unsettled
    """Outcomes of a model held back at most for detectors with the clock of predictions; beyond it the oldest
    leave before their time, counted."""
    drift_weighted: Annotated[tuple[DriftWeightedSpec, ...], DRIFT_WEIGHTED] = Field(
        default=_DEFAULT.drift_weighted,
        json_schema_extra={"default": DRIFT_WEIGHTED.shown(_DEFAULT.drift_weighted)},
    )
    """Drift-weighted accuracy: one mapping, or a list of several; null switches it off."""
    confidence_delta: Annotated[float, Bounded("confidence_delta", above=0, below=1)] = (
        _DEFAULT.confidence_delta
    )
    """Probability with which a bound of the accuracy may be wrong; 0.05 bounds with 95 % confidence."""
    opponents: tuple[
        Literal["persistent", "persistent_at_prediction", "majority", "transition", "temporal_correction"],
        ...,
    ] = OPPONENTS
    """Whom every model is judged against; verdicts on persistent (no change) are told to receivers."""
    utility: Utility = "accuracy"
    """By what a model is judged: accuracy, balanced (classes count alike), or costs by class and answer."""
    utility_by_model: dict[str, Utility] = Field(default_factory=dict)
    """Exceptions by pattern of model, the first that matches holds: `{"fraud-*": balanced}`."""
    verdict_outcomes: Annotated[int, Bounded("verdict_outcomes", least=1_000)] = _DEFAULT.verdict_outcomes
    """Outcomes within which a false verdict has probability confidence_delta, and after which a verdict that
    nothing confirms opens."""
    comparisons: tuple[ComparisonSection, ...] = ()
    """Models compared on the ids that both predicted: `{champion: fraud-v3, challengers: ["fraud-*"]}` or
    `{pairs: [[fraud-v3, fraud-v4]]}`, champions first."""
    max_comparisons: Annotated[int, Bounded("max_comparisons", least=1, most=10_000)] = (
        _DEFAULT.max_comparisons
    )
    """Pairs of models compared at most, those that first meet on an id; pairs of others are counted."""
    history_days: Annotated[int, Bounded("history_days", least=0, most=366)] = _DEFAULT.history_days
    """Days over which outcomes and hits of each hour are kept in the state, for the page and the API (finer
    for the last hours); 0 for none."""
    segments: SegmentsSection = SegmentsSection()
    """How models are evaluated by segment, where mappings name segments."""
    probabilities: ProbabilitiesSection | None = Field(default_factory=ProbabilitiesSection)
    """Log loss, Brier score, calibration, area under the curve of models that send scores; null for none."""
    early_hints: EarlyHintsSection | None = None
    """Hints that predictions have changed before their labels are in, and the accuracy that their scores make
    expect: `{}` for both; null for neither."""
    revisions: RevisionsSection = Field(default_factory=RevisionsSection)
    """How first and last predictions of an id are compared, with `join.conflicts: both`."""
    label_delays: bool = False
    """Whether to keep the share of predictions labelled by age, with those that still wait (Kaplan-Meier)."""
    shadow_max_classes: Annotated[int, Bounded("shadow_max_classes", least=0, most=64)] = (
        _DEFAULT.shadow_max_classes
    )
    """Most classes of a model beside which shadow classifiers run (they keep their cube), whose scores are
    looked at, and whose confusion matrix is kept; 0 for none."""
    per_class: str | None = None
    """The forgetting (its metric label) whose per-class series are exported; the first fading if absent."""
    max_models: Annotated[int, Bounded("max_models", least=1, most=1_000_000)] = 1_000
    """Models watched at most; records of others are counted and left out."""
    max_classes: Annotated[int, Bounded("max_classes", least=2, most=65_000)] = 1_000
    """Classes told apart per model at most; others become __other__."""
    max_series: Annotated[int, Bounded("max_series", least=100)] = 50_000
    """Time series in /metrics at most; above it the least needed families are left out (series_dropped)."""

    @field_validator("comparisons")
    @classmethod
    def _compared_once(cls, comparisons: tuple[ComparisonSection, ...]) -> tuple[ComparisonSection, ...]:
        seen: set[tuple[str, str]] = set()
        for spec in comparison_specs(comparisons):
            for pattern in spec.challengers:
                if (spec.champion, pattern) in seen:
                    raise ValueError(f"{spec.champion} is compared with {pattern} twice")
                if (pattern, spec.champion) in seen:
                    raise ValueError(f"{spec.champion} and {pattern} are each the champion of the other")
                seen.add((spec.champion, pattern))
        return comparisons

    @field_validator("drift_weighted")
    @classmethod
    def _references_are_named(cls, several: tuple[DriftWeightedSpec, ...]) -> tuple[DriftWeightedSpec, ...]:
        for one in several:
            if (one.drift_signal == "reference") != bool(one.reference):
                raise ValueError("drift_signal: reference and the model named by reference go together")
            if several.count(one) > 1:
                raise ValueError(f"{one.name} is listed twice")
        return several

    @field_validator("opponents")
    @classmethod
    def _opponents_differ(cls, opponents: tuple[str, ...]) -> tuple[str, ...]:
        for opponent in opponents:
            if opponents.count(opponent) > 1:
                raise ValueError(f"{opponent} is listed twice")
        return opponents

    @field_validator("detectors")
    @classmethod
    def _names_differ(cls, detectors: tuple[DetectorSpec, ...]) -> tuple[DetectorSpec, ...]:
        names = [detector.name for detector in detectors]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two detectors are named {name!r}; give one of them another name")
            if name == VERDICT:
                raise ValueError(
                    f"a detector may not be named {VERDICT}: that is what alarms of verdicts are named"
                )
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name):
                raise ValueError(f"a detector's name is lower-case letters, digits and _, got {name!r}")
        return detectors

    @field_validator("detectors_by_model")
    @classmethod
    def _of_these_detectors(cls, by_model: ByModel, info: ValidationInfo) -> ByModel:
        if "detectors" in info.data:  # or they are at fault themselves
            model_detectors(info.data["detectors"], by_model)
        return by_model

    @field_validator("detector_clocks")
    @classmethod
    def _clocks_of_these(cls, clocks: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        if "detectors" in info.data:
            known(
                "monitors.detector_clocks", "detector", clocks, [each.name for each in info.data["detectors"]]
            )
        return clocks
