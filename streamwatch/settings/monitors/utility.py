"""Criterion by which models are judged: its name, or costs by true and predicted class."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Discriminator, Tag, model_validator

from streamwatch.core.estimators.verdicts.costs import cost_table
from streamwatch.settings.sections import Section


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
"""Tags of the two forms of a utility: with them a fault is told of the form that was written, once."""


def _form_of_utility(value: object) -> str:
    return BY_COSTS if isinstance(value, dict | CostsSection) else BY_NAME


Utility: TypeAlias = Annotated[
    Annotated[Literal["accuracy", "balanced"], Tag(BY_NAME)] | Annotated[CostsSection, Tag(BY_COSTS)],
    Discriminator(_form_of_utility),
]
