"""Comparison of first and last predictions: two accuracies on the same outcomes, and their difference."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, nan, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.revisions.sums import (
    FIRST,
    GAINED,
    LOST,
    REVISED,
    SQUARES,
    WEIGHT,
)

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
        each of hit and error of both (Agresti, Min 2005); undefined below an n_eff of 30.
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
