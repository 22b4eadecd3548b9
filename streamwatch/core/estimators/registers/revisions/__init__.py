"""Revisions: a model's first and last predictions of an id, both against the label (`join.conflicts: both`).

Grzenda, Gomes and Bifet (2020) evaluate the initial and the final prediction of an instance whose label is
delayed, and those between in bins of waiting time. Here the waiting time is the time from the first
prediction to the label, which is the outcome's delay and the time a model had to revise its prediction.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.kind import RegisterKind
from streamwatch.core.metrics.metric import gauge
from streamwatch.core.specs import DAY_MS

if TYPE_CHECKING:
    from streamwatch.core.estimators.registers.revisions.register import Revisions

# Measures of first and last predictions, as the catalogue lists them.


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


METRICS: Final = tuple(gauge(m.name, f"{m.help} ({m.formula})", "model") for m in MEASURES)

REVISIONS_BYTES: Final = 1_500
"""Largest number of bytes of one model: its sums and counts, 1.1 kB; its snapshot is no larger."""


@dataclass(frozen=True, slots=True)
class RevisionsSpec:
    """Parameters of the comparison of first and last predictions.

    Attributes
    ----------
    horizon_ms
        Longest time that a label may take, at least a second (`JoinSpec.horizon_ms`).
    alpha
        Fading factor in (0, 1] of all sums, per outcome of the model.
    """

    horizon_ms: int = 14 * DAY_MS
    alpha: float = 0.999


def _build(spec: RevisionsSpec, capacity: int) -> Revisions:
    """Build an empty register; compiled code is imported only here."""
    from streamwatch.core.estimators.registers.revisions.register import Revisions  # noqa: PLC0415

    return Revisions(spec, capacity)


REVISIONS: Final = RegisterKind("revisions", RevisionsSpec, METRICS, _build)
