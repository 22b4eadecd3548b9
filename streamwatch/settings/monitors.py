"""The `monitors` section: estimators, detectors and comparisons of models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal, Self, TypeAlias

from pydantic import (
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)

from streamwatch.core.estimators.entries import LEAST_ALPHA
from streamwatch.core.estimators.registers.prediction_clock import PredictionClockSpec
from streamwatch.core.estimators.registers.probabilities import ProbabilitiesSpec
from streamwatch.core.estimators.registers.revisions import RevisionsSpec
from streamwatch.core.estimators.registers.segments import AVAILABLE as SEGMENT_MEASURES
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.estimators.verdicts.costs import cost_table
from streamwatch.core.predictions.early_hints.observe import EarlyHintsSpec
from streamwatch.core.records.events import VERDICT
from streamwatch.core.specs import (
    OPPONENTS,
    ComparisonSpec,
    DetectorSpec,
    DriftWeightedSpec,
    ForgettingSpec,
    MonitorsSpec,
)
from streamwatch.settings.estimators import (
    DETECTOR,
    DETECTOR_KINDS,
    DRIFT_WEIGHTED_SPECS,
    FORGETTING,
    FORGETTING_KINDS,
    ByModel,
    known,
    model_detectors,
)
from streamwatch.settings.sections import Section
from streamwatch.settings.values import Bounded


class ComparisonSection(Section):
    """Models to compare: a champion with its challengers, or pairs."""

    champion: str | None = None
    """Model that the others are compared with."""
    challengers: tuple[str, ...] = ()
    """Patterns of the challengers, such as fraud-*. The champion itself is left out."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Instead, pairs of models by name, with the champion first: `[[fraud-v3, fraud-v4]]`."""

    @model_validator(mode="after")
    def _in_one_form(self) -> ComparisonSection:
        if bool(self.pairs) == bool(self.champion or self.challengers):
            raise ValueError("expected champion and challengers, or pairs")
        if not self.pairs and not (self.champion and all(self.challengers) and self.challengers):
            raise ValueError("champion needs challengers and vice versa, and none of them may be empty")
        for one, other in self.pairs:
            if not one or not other or one == other:
                raise ValueError(f"expected a pair of two different models, got {[one, other]!r}")
        return self


def comparison_specs(comparisons: Sequence[ComparisonSection]) -> tuple[ComparisonSpec, ...]:
    """Convert the section to specs, in which the names of pairs are patterns that match only them."""
    specs: list[ComparisonSpec] = []
    for comparison in comparisons:
        if comparison.champion is not None:
            specs.append(ComparisonSpec(comparison.champion, comparison.challengers))
        specs += [ComparisonSpec(one, (_literal(other),)) for one, other in comparison.pairs]
    return tuple(specs)


def _literal(name: str) -> str:
    """Return a pattern that matches this name only, with special characters escaped."""
    return re.sub(r"([*?[])", r"[\1]", name)


_SEGMENTS = SegmentsSpec()
_REVISIONS = RevisionsSpec()
_PROBABILITIES = ProbabilitiesSpec()
_EARLY = EarlyHintsSpec()


class SegmentsSection(Section):
    """Evaluation by segment, if the mapping of a topic names segments."""

    alpha: Annotated[float, Bounded("alpha", least=LEAST_ALPHA, below=1)] = _SEGMENTS.alpha
    """Fading factor per outcome of a segment's value."""
    max_values: Annotated[int, Bounded("max_values", least=1, most=1_000)] = _SEGMENTS.max_values
    """Maximum number of values per segment and model that have estimates of their own; the busiest are
    chosen, the others count as __other__."""
    measures: tuple[str, ...] = _SEGMENTS.measures
    """Measures to export, by the names that `streamwatch catalogue` lists, without
    kappa_majority_prequential."""
    max_total: Annotated[int, Bounded("max_total", least=1, most=1_000_000)] = _SEGMENTS.max_total
    """Maximum number of values with estimates of their own over all segments and models, including one
    __other__ per segment."""

    @field_validator("measures")
    @classmethod
    def _known(cls, measures: tuple[str, ...]) -> tuple[str, ...]:
        names = [measure.name for measure in SEGMENT_MEASURES]
        for name in measures:
            if name not in names or measures.count(name) > 1:
                raise ValueError(f"expected some of {', '.join(names)}, each once, got {name!r}")
        return measures


class RevisionsSection(Section):
    """Comparison of the first and the last prediction of an id, with `join.conflicts: both`."""

    alpha: Annotated[float, Bounded("alpha", above=0, most=1)] = _REVISIONS.alpha
    """Fading factor per outcome of the model; 1 forgets nothing."""


class ProbabilitiesSection(Section):
    """Measures of the class scores that predictions carry.

    Models without scores have none, nor have those with more classes than `shadow_max_classes`.
    """

    auc_outcomes: Annotated[int, Bounded("auc_outcomes", least=10, most=100_000)] = (
        _PROBABILITIES.auc_outcomes
    )
    """Number of latest scored outcomes over which the area under the ROC curve is computed."""
    max_auc_classes: Annotated[int, Bounded("max_auc_classes", least=2, most=64)] = (
        _PROBABILITIES.max_auc_classes
    )
    """Maximum number of classes per model with such an area and a threshold curve; the first ones seen."""


class EarlyHintsSection(Section):
    """Hints from predictions alone, before labels arrive."""

    predictions: Annotated[int, Bounded("predictions", least=4_096)] = _EARLY.predictions
    """Number of predictions of a model within which a false hint has probability `delta`, as long as nothing
    changes."""
    delta: Annotated[float, Bounded("delta", above=0, below=1)] = _EARLY.delta
    """Probability of a false hint within `predictions`."""
    reach: Annotated[int, Bounded("reach", least=4_096)] = _EARLY.reach
    """How many predictions back the latest ones are compared with, rounded up to a multiple of 4,096. A
    pattern that repeats several times within it, such as day and night, is not a change: with 20,000
    predictions a day, use 60,000 or more."""
    max_models: Annotated[int, Bounded("max_models", least=1, most=100_000)] = _EARLY.max_models
    """Maximum number of models to watch for hints; the first ones to predict."""
    notify: bool = False
    """Send receivers a notification when a hint begins and when it ends. Rules of `alerts` with `detector:
    early_hint` set its severity and cooldown."""

    @model_validator(mode="after")
    def _comparable(self) -> Self:
        if self.reach > self.predictions:
            raise ValueError(f"reach: expected at most predictions ({self.predictions}), got {self.reach}")
        return self


class CostsSection(Section):
    """Cost of every answer: lower is better, and gains are negative."""

    costs: dict[str, dict[str, float]]
    """Cost by true class and predicted class: `{fraud: {legit: 100}, legit: {fraud: 5}}`."""
    other: float | None = None
    """Cost of every pair that is not listed, including correct predictions. If not set, every pair must be
    listed."""

    @model_validator(mode="after")
    def _say_something(self) -> CostsSection:
        cost_table(self.costs, self.other)
        return self


BY_NAME, BY_COSTS = "utility by name", "utility by costs"
"""Tags of the two forms of a utility, so that pydantic reports faults of the written form only."""


def _form_of_utility(value: object) -> str:
    return BY_COSTS if isinstance(value, dict | CostsSection) else BY_NAME


Utility: TypeAlias = Annotated[
    Annotated[Literal["accuracy", "balanced"], Tag(BY_NAME)] | Annotated[CostsSection, Tag(BY_COSTS)],
    Discriminator(_form_of_utility),
]


_DEFAULT = MonitorsSpec()
_CLOCK = PredictionClockSpec()


class MonitorsSection(Section):
    """Estimators of every model. `streamwatch catalogue` lists all that are available."""

    forgetting: tuple[Annotated[ForgettingSpec, FORGETTING], ...] = Field(
        default=_DEFAULT.forgetting,
        min_length=1,
        description="How estimates forget; each entry gives one series of every measure. Kinds: "
        f"{', '.join(FORGETTING_KINDS)}.",
        json_schema_extra={"default": [FORGETTING.shown(spec) for spec in _DEFAULT.forgetting]},
    )
    detectors: tuple[Annotated[DetectorSpec, DETECTOR], ...] = Field(
        default=_DEFAULT.detectors,
        description=f"Drift detectors, which raise alarms. Kinds: {', '.join(DETECTOR_KINDS)}.",
        json_schema_extra={"default": [DETECTOR.shown(spec) for spec in _DEFAULT.detectors]},
    )
    detectors_by_model: ByModel = Field(default_factory=dict)
    """Parameters of these detectors for some models, by pattern of model; the first match applies:
    `{"fraud-*": {page_hinkley: {threshold: 200}}}`. Each further delta of ADWIN adds a window for all
    models."""
    detector_clocks: dict[str, Literal["label", "prediction"]] = Field(default_factory=dict)
    """Order in which a detector sees outcomes, by name of the detector: label (the default) or prediction.
    `{adwin: prediction}` shows ADWIN the outcomes in the order of their predictions, which takes until their
    labels are in (`join.horizon` later)."""
    max_unsettled: Annotated[int, Bounded("max_unsettled", least=1, most=10_000_000)] = _CLOCK.max_unsettled
    """Maximum number of outcomes of a model that are held back for detectors in the order of predictions.
    Beyond it, the oldest are released early and counted."""
    drift_weighted: Annotated[tuple[DriftWeightedSpec, ...], DRIFT_WEIGHTED_SPECS] = Field(
        default=_DEFAULT.drift_weighted,
        json_schema_extra={"default": DRIFT_WEIGHTED_SPECS.shown(_DEFAULT.drift_weighted)},
    )
    """Drift-weighted accuracy: one mapping, or a list of several. Set to null to switch it off."""
    confidence_delta: Annotated[float, Bounded("confidence_delta", above=0, below=1)] = (
        _DEFAULT.confidence_delta
    )
    """Error probability of the bounds of the accuracy: 0.05 gives 95 % confidence."""
    opponents: tuple[
        Literal["persistent", "persistent_at_prediction", "majority", "transition", "temporal_correction"],
        ...,
    ] = OPPONENTS
    """Baselines against which every model is judged in the order of labels. A change of the verdict on
    persistent (no change) notifies receivers until the model is judged by cohorts (`cohort_verdicts`), whose
    verdicts then do."""
    utility: Utility = "accuracy"
    """Criterion by which models are judged: accuracy, balanced (every class counts alike), or costs by true
    and predicted class."""
    utility_by_model: dict[str, Utility] = Field(default_factory=dict)
    """Criterion for some models, by pattern of model; the first match applies: `{"fraud-*": balanced}`."""
    verdict_outcomes: Annotated[int, Bounded("verdict_outcomes", least=1_000)] = _DEFAULT.verdict_outcomes
    """Number of outcomes within which a false verdict on one model and opponent has probability
    `confidence_delta`, if losses do not depend on earlier ones, and after which a verdict that nothing
    confirms becomes open."""
    comparisons: tuple[ComparisonSection, ...] = ()
    """Models to compare on the ids that both predicted: `{champion: fraud-v3, challengers: ["fraud-*"]}`, or
    `{pairs: [[fraud-v3, fraud-v4]]}` with the champion first."""
    max_comparisons: Annotated[int, Bounded("max_comparisons", least=1, most=10_000)] = (
        _DEFAULT.max_comparisons
    )
    """Maximum number of compared pairs of models; the first ones to share an id. Further pairs are counted
    only."""
    history_days: Annotated[int, Bounded("history_days", least=0, most=366)] = _DEFAULT.history_days
    """Number of days for which hourly outcomes and hits are kept in the state, for the page and the API
    (finer for the latest hours); 0 for none."""
    segments: SegmentsSection = SegmentsSection()
    """Evaluation by segment, if mappings name segments."""
    probabilities: ProbabilitiesSection | None = Field(default_factory=ProbabilitiesSection)
    """Log loss, Brier score, calibration and area under the ROC curve of models that send scores, of at most
    `shadow_max_classes` classes. Set to null to switch them off."""
    early_hints: EarlyHintsSection | None = None
    """Hints that predictions have changed before their labels are in, and the accuracy that scores suggest.
    Set to `{}` to switch both on; null for neither."""
    revisions: RevisionsSection = Field(default_factory=RevisionsSection)
    """Comparison of the first and the last prediction of an id, with `join.conflicts: both`."""
    label_delays: bool = False
    """Estimate the share of predictions that are labelled by age, counting those that still wait as censored
    (Kaplan-Meier)."""
    cohort_verdicts: bool = True
    """Judge every model by cohorts of prediction time, too. These verdicts hold when labels are late in a
    biased way, and are shown first of a model."""
    shadow_max_classes: Annotated[int, Bounded("shadow_max_classes", least=0, most=64)] = (
        _DEFAULT.shadow_max_classes
    )
    """Maximum number of classes of a model for which shadow classifiers run (they need memory for the cube of
    that number), scores are evaluated and the confusion matrix is kept; 0 for none."""
    per_class: str | None = None
    """Forgetting whose per-class series are exported, by its metric label such as fading:0.999; an empty text
    for none. If not set, the first fading one, or the first one if none fades."""
    max_models: Annotated[int, Bounded("max_models", least=1, most=1_000_000)] = 1_000
    """Maximum number of models. Records of further models are counted but not evaluated."""
    max_classes: Annotated[int, Bounded("max_classes", least=2, most=65_000)] = 1_000
    """Maximum number of classes per model. Further classes count as __other__."""
    series: Literal["standard", "all"] = "standard"
    """Series in /metrics: standard (what rules, dashboards and most questions need) or all (measures under
    every forgetting, every opponent, every measure by class). The API always has all."""
    max_series: Annotated[int, Bounded("max_series", least=100)] = 200_000
    """Maximum number of time series in /metrics, enough for 1,000 models of 20 classes, or 500 with `series:
    all`; a scrape of so many has 20 MB. Beyond it, the least needed series of each model are left out, rare
    classes first (`series_dropped`); what rules and dashboards read stays."""

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
                raise ValueError(
                    "drift_signal: reference needs the name of a model in reference, and vice versa"
                )
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
                    f"a detector must not be named {VERDICT}, which is the name of alarms of verdicts"
                )
            if not re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name):
                raise ValueError(
                    f"expected a detector name of lower-case letters, digits and _, got {name!r}"
                )
        return detectors

    @field_validator("detectors_by_model")
    @classmethod
    def _of_these_detectors(cls, by_model: ByModel, info: ValidationInfo) -> ByModel:
        if "detectors" in info.data:  # missing if the detectors themselves are faulty
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
