"""Sections of what is estimated beside accuracy: segments, revisions, probabilities, early hints."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import field_validator, model_validator

from streamwatch.core.estimators.catalogue import MEASURES
from streamwatch.core.estimators.parameters import LEAST_ALPHA
from streamwatch.core.estimators.registers.probabilities.spec import ProbabilitiesSpec
from streamwatch.core.estimators.registers.revisions import RevisionsSpec
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.predictions.early_hints.spec import EarlyHintsSpec
from streamwatch.settings.numbers import Bounded
from streamwatch.settings.sections import Section

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
    """Measures to export, by the names that `streamwatch catalogue` lists."""
    max_total: Annotated[int, Bounded("max_total", least=1, most=1_000_000)] = _SEGMENTS.max_total
    """Maximum number of values with estimates of their own over all segments and models, including one
    __other__ per segment."""

    @field_validator("measures")
    @classmethod
    def _known(cls, measures: tuple[str, ...]) -> tuple[str, ...]:
        names = [measure.name for measure in MEASURES]
        for name in measures:
            if name not in names or measures.count(name) > 1:
                raise ValueError(f"expected different ones of {', '.join(names)}, got {name!r}")
        return measures


class RevisionsSection(Section):
    """Comparison of the first and the last prediction of an id, with `join.conflicts: both`."""

    alpha: Annotated[float, Bounded("alpha", above=0, most=1)] = _REVISIONS.alpha
    """Fading factor per outcome of the model; 1 forgets nothing."""


class ProbabilitiesSection(Section):
    """Measures of the class scores that predictions carry. Models without scores have none."""

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
    """How many predictions back the latest ones are compared with. A pattern that repeats several times
    within it, such as day and night, is not a change: with 20,000 predictions a day, use 60,000 or more."""
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
