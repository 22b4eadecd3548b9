"""Kinds of forgetting, detectors and drift weighting, as the settings list them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from streamwatch.core.estimators.catalogue import DETECTORS, DRIFT_WEIGHTINGS, MECHANISMS
from streamwatch.core.estimators.parameters import LEAST_ALPHA
from streamwatch.settings.kinds import OneOf, OneOrMore, Parameters
from streamwatch.settings.numbers import Bounded

FORGETTING_KINDS = tuple(entry.name for entry in MECHANISMS)
DETECTOR_KINDS = tuple(entry.name for entry in DETECTORS)


class HalfLife(Parameters):
    """Exponential forgetting may be given as `half_life` instead of `alpha`."""

    half_life: Annotated[float, Bounded("half-life in outcomes", above=0)] | None = Field(
        default=None, description="Number of outcomes after which a weight has halved, instead of `alpha`."
    )

    @model_validator(mode="after")
    def _one_of_both(self) -> HalfLife:
        if self.half_life is not None and "alpha" in self.model_fields_set:
            raise ValueError("give alpha or half_life, not both")
        return self

    @field_validator("half_life")
    @classmethod
    def _gives_a_factor(cls, half_life: float | None) -> float | None:
        if half_life is not None and not LEAST_ALPHA <= _alpha_of(half_life) < 1.0:
            raise ValueError(
                f"half-life in outcomes must give a fading factor 2^(-1/half_life) in [{LEAST_ALPHA}, 1), "
                f"got {half_life!r}"
            )
        return half_life

    def values(self) -> dict[str, Any]:
        """Half-life h is alpha = 2^(-1/h)."""
        values = self.model_dump(exclude={"half_life"})
        return values if self.half_life is None else values | {"alpha": _alpha_of(self.half_life)}


def _alpha_of(half_life: float) -> float:
    return 0.5 ** (1.0 / half_life)


FORGETTING = OneOf(MECHANISMS, {"fading": HalfLife})
DETECTOR = OneOf(DETECTORS)
DRIFT_WEIGHTED = OneOrMore(DRIFT_WEIGHTINGS[0])
