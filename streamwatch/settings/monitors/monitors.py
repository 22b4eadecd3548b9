"""The `monitors` section: what is estimated for every model, and when it raises an alarm."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator

from streamwatch.core.estimators.registers.prediction_clock.spec import PredictionClockSpec
from streamwatch.core.events import VERDICT
from streamwatch.core.specs import (
    OPPONENTS,
    DetectorSpec,
    DriftWeightedSpec,
    ForgettingSpec,
    MonitorsSpec,
)
from streamwatch.settings.monitors.comparisons import ComparisonSection, comparison_specs
from streamwatch.settings.monitors.detectors import ByModel, known, model_detectors
from streamwatch.settings.monitors.estimator_kinds import (
    DETECTOR,
    DETECTOR_KINDS,
    DRIFT_WEIGHTED,
    FORGETTING,
    FORGETTING_KINDS,
)
from streamwatch.settings.monitors.registers import (
    EarlyHintsSection,
    ProbabilitiesSection,
    RevisionsSection,
    SegmentsSection,
)
from streamwatch.settings.monitors.utility import Utility
from streamwatch.settings.numbers import Bounded
from streamwatch.settings.sections import Section

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
    drift_weighted: Annotated[tuple[DriftWeightedSpec, ...], DRIFT_WEIGHTED] = Field(
        default=_DEFAULT.drift_weighted,
        json_schema_extra={"default": DRIFT_WEIGHTED.shown(_DEFAULT.drift_weighted)},
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
    """Baselines against which every model is judged. A change of the verdict on persistent (no change)
    notifies receivers."""
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
    """Log loss, Brier score, calibration and area under the ROC curve of models that send scores. Set to null
    to switch them off."""
    early_hints: EarlyHintsSection | None = None
    """Hints that predictions have changed before their labels are in, and the accuracy that scores suggest.
    Set to `{}` to switch both on; null for neither."""
    revisions: RevisionsSection = Field(default_factory=RevisionsSection)
    """Comparison of the first and the last prediction of an id, with `join.conflicts: both`."""
    label_delays: bool = False
    """Estimate the share of predictions that are labelled by age, counting those that still wait as censored
    (Kaplan-Meier)."""
    shadow_max_classes: Annotated[int, Bounded("shadow_max_classes", least=0, most=64)] = (
        _DEFAULT.shadow_max_classes
    )
    """Maximum number of classes of a model for which shadow classifiers run (they need memory for the cube of
    that number), scores are evaluated and the confusion matrix is kept; 0 for none."""
    per_class: str | None = None
    """Forgetting whose per-class series are exported, by its metric label such as fading:0.999. If not set,
    the first fading one."""
    max_models: Annotated[int, Bounded("max_models", least=1, most=1_000_000)] = 1_000
    """Maximum number of models. Records of further models are counted but not evaluated."""
    max_classes: Annotated[int, Bounded("max_classes", least=2, most=65_000)] = 1_000
    """Maximum number of classes per model. Further classes count as __other__."""
    max_series: Annotated[int, Bounded("max_series", least=100)] = 200_000
    """Maximum number of time series in /metrics, enough for 500 models of 20 classes (20 MB a scrape). Beyond
    it, the least needed series of each model are left out, rare classes first (`series_dropped`); what rules
    and dashboards read stays."""

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
