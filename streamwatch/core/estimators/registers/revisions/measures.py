"""Measures of first and last predictions, as the catalogue lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from streamwatch.core.estimators.registers.revisions.comparison import Comparison

_SOURCE: Final = "Grzenda, Gomes, Bifet 2020: initial and final predictions under delayed labels"
_COST: Final = "O(1) time; six sums for each of 23 waiting times, together for all measures of revisions"


@dataclass(frozen=True, slots=True)
class RevisionMeasure:
    """A measure of first and last predictions of the same outcomes."""

    name: str
    """Name of its series."""
    help: str
    formula: str
    source: str
    cost: str
    of: Callable[[Comparison], float]
    """Value of the measure; NaN where undefined."""


def _measure(name: str, said: str, formula: str, of: Callable[[Comparison], float]) -> RevisionMeasure:
    return RevisionMeasure(name, said, formula, _SOURCE, _COST, of)


MEASURES: Final[tuple[RevisionMeasure, ...]] = (
    _measure(
        "first_prediction_accuracy_ratio",
        "Accuracy of the first prediction of each id",
        "Σw·[first = label] / Σw",
        lambda said: said.first,
    ),
    _measure(
        "last_prediction_accuracy_ratio",
        "Accuracy of the last prediction of each id before its label, over the same outcomes",
        "Σw·[last = label] / Σw",
        lambda said: said.last,
    ),
    _measure(
        "revision_gain",
        "Accuracy of last predictions less that of first ones; above 0 the model is right to revise them",
        "Σw·([last = label] - [first = label]) / Σw",
        lambda said: said.gain,
    ),
    _measure(
        "outcomes_revised_ratio",
        "Share of outcomes whose last prediction is of another class than the first",
        "Σw·[last ≠ first] / Σw",
        lambda said: said.revised,
    ),
)
