"""Measures of first and last predictions, as the catalogue lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

# Columns of the state of a model's first and last predictions.


WEIGHT, SQUARES, FIRST, GAINED, LOST, REVISED = range(6)
"""Columns of the sums.

Σw; Σw²; weight of outcomes whose first prediction was right; of those where only the last was right; of those
where only the first was right; of those whose last prediction is of another class.
"""
SUMS: Final = 6
ALL_OUTCOMES, ALL_GAINED, ALL_LOST, ALL_REVISED = range(4)
"""Columns of the counts, which do not fade."""
COUNTS: Final = 4


# Comparison of first and last predictions: two accuracies on the same outcomes, and their difference.


LEAST_WEIGHT: Final = 0.05
"""Weight of outcomes below which values are undefined."""
LEAST_OUTCOMES: Final = 30
"""Effective sample size below which a difference has no interval."""
_Z: Final = 1.96


@dataclass(frozen=True, slots=True)
class Comparison:
    """First and last predictions of some outcomes; undefined values are NaN.

    Attributes
    ----------
    weight
        Σw of the outcomes.
    first, last
        Share of the first predictions that were right, and of the last ones.
    revised
        Share of outcomes whose last prediction is of another class than the first.
    n_eff
        (Σw)² / Σw².
    lower, upper
        Interval of 95 % for `gain` at one fixed time for independent outcomes, with half an outcome added to
        each of the four combinations of hit and error (Agresti, Min 2005); undefined below an n_eff of 30.
    """

    weight: float
    first: float
    last: float
    revised: float
    n_eff: float
    lower: float
    upper: float

    @property
    def gain(self) -> float:
        """Accuracy of the last predictions minus that of the first ones."""
        return self.last - self.first


NOTHING: Final = Comparison(0.0, nan, nan, nan, 0.0, nan, nan)


def compared(sums: NDArray[np.float64]) -> Comparison:
    """Compute the comparison from sums of shape (6,)."""
    weight, squares, first, gained, lost, revised = (
        float(sums[column]) for column in (WEIGHT, SQUARES, FIRST, GAINED, LOST, REVISED)
    )
    if weight < LEAST_WEIGHT:
        return NOTHING
    n_eff = weight * weight / squares if squares > 0.0 else inf
    lower = upper = nan
    if LEAST_OUTCOMES <= n_eff < inf:
        lower, upper = _interval(n_eff * gained / weight, n_eff * lost / weight, n_eff)
    last = min(1.0, max(0.0, (first + gained - lost) / weight))  # rounding may leave [0, 1]
    return Comparison(weight, first / weight, last, revised / weight, n_eff, lower, upper)


def _interval(gained: float, lost: float, n: float) -> tuple[float, float]:
    """Limits of (gained − lost) / n, a difference of proportions of the same n outcomes."""
    more = n + 2.0
    middle = (gained - lost) / more
    half = _Z * sqrt(gained + lost + 1.0 - (gained - lost) ** 2 / more) / more
    return max(-1.0, middle - half), min(1.0, middle + half)


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


def _measure(name: str, text: str, formula: str, of: Callable[[Comparison], float]) -> RevisionMeasure:
    return RevisionMeasure(name, text, formula, _SOURCE, _COST, of)


MEASURES: Final[tuple[RevisionMeasure, ...]] = (
    _measure(
        "first_prediction_accuracy_ratio",
        "Accuracy of the first prediction of each id",
        "Σw·[first = label] / Σw",
        lambda comparison: comparison.first,
    ),
    _measure(
        "last_prediction_accuracy_ratio",
        "Accuracy of the last prediction of each id before its label, over the same outcomes",
        "Σw·[last = label] / Σw",
        lambda comparison: comparison.last,
    ),
    _measure(
        "revision_gain",
        "Accuracy of last predictions less that of first ones; above 0 the model is right to revise them",
        "Σw·([last = label] - [first = label]) / Σw",
        lambda comparison: comparison.gain,
    ),
    _measure(
        "outcomes_revised_ratio",
        "Share of outcomes whose last prediction is of another class than the first",
        "Σw·[last ≠ first] / Σw",
        lambda comparison: comparison.revised,
    ),
)
