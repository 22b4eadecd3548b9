"""Measures that compare two models on the same ids, as functions of sums over pairs of outcomes.

Each sum is taken under a forgetting mechanism: S_A, S_B of the losses of champion and challenger, n01 of the
pairs that only the champion got wrong, n10 of those that only the challenger got wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]

LEAST_DISCORDANT = 0.05
LEAST_VARIANCE = 5.0
CRITICAL = 6.635
"""The 99 % quantile of χ²(1), for a McNemar statistic that is read at one time only."""


class Sums(NamedTuple):
    """Sums of m comparisons under one mechanism, each (m,)."""

    weight: Floats
    """Σw of the pairs."""
    n_eff: Floats
    """(Σw)²/Σw²; NaN without pairs."""
    champion: Floats
    challenger: Floats
    n01: Floats
    n10: Floats
    variance: Floats
    """Σw² of the discordant pairs: one model right, the other wrong."""


@dataclass(frozen=True, slots=True)
class ComparisonMeasure:
    """Measure of a comparison, computed under every mechanism, as the catalogue lists it."""

    name: str
    """Name of its series."""
    help: str
    formula: str
    source: str
    cost: str
    of: Callable[[Sums], Floats]


def q_statistic(sums: Sums) -> Floats:
    """Q = ln(S_A/S_B): negative while the champion errs less, positive while the challenger does.

    Gama, Sebastião, Rodrigues 2009, §3.3. NaN until both models have erred.
    """
    both = (sums.champion > 0) & (sums.challenger > 0)
    ratio = np.divide(sums.champion, sums.challenger, out=np.full(len(both), np.nan), where=both)
    return np.log(ratio)


def mcnemar(sums: Sums) -> Floats:
    """M = sign(n01 − n10)·(n01 − n10)²/(n01 + n10), with the sign of Q; NaN while n01 + n10 < .05.

    Under fading its expectation for equal models is 1/(1 + α), not 1; see `mcnemar_calibrated`.
    """
    difference, discordant = sums.n01 - sums.n10, sums.n01 + sums.n10
    return _signed(difference, np.where(discordant >= LEAST_DISCORDANT, discordant, np.nan))


def mcnemar_calibrated(sums: Sums) -> Floats:
    """sign(D)·D²/V with D = n01 − n10 and V ← α²V + 1[discordant]; χ²(1) for equal models.

    NaN while V < 5. Without fading it equals McNemar's statistic.
    """
    return _signed(sums.n01 - sums.n10, np.where(sums.variance >= LEAST_VARIANCE, sums.variance, np.nan))


def champion_error(sums: Sums) -> Floats:
    """Error of the champion, S_A/Σw; NaN without pairs."""
    return sums.champion / np.where(sums.weight > 0, sums.weight, np.nan)


def challenger_error(sums: Sums) -> Floats:
    """Error of the challenger, S_B/Σw; NaN without pairs."""
    return sums.challenger / np.where(sums.weight > 0, sums.weight, np.nan)


def _signed(difference: Floats, variance: Floats) -> Floats:
    return np.sign(difference) * difference * difference / variance


def champion_right_alone(sums: Sums) -> Floats:
    """Pairs that only the champion got right, n10."""
    return sums.n10


def challenger_right_alone(sums: Sums) -> Floats:
    """Pairs that only the challenger got right, n01."""
    return sums.n01


_GAMA = "Gama, Sebastião, Rodrigues 2009, §3.3"
_PAIR = "O(1) a pair"
MEASURES: tuple[ComparisonMeasure, ...] = (
    ComparisonMeasure(
        "comparison_q",
        "Logarithm of the champion's losses over the challenger's: positive if the champion errs more.",
        "ln(S_A/S_B)",
        _GAMA,
        _PAIR,
        q_statistic,
    ),
    ComparisonMeasure(
        "comparison_mcnemar",
        "McNemar's statistic, positive if the challenger errs less; descriptive under continuous watching.",
        "sign(n01 - n10)(n01 - n10)²/(n01 + n10)",
        _GAMA,
        _PAIR,
        mcnemar,
    ),
    ComparisonMeasure(
        "comparison_mcnemar_calibrated",
        "McNemar's statistic with the variance that fading leaves: χ²(1) at one time if models are equal.",
        "sign(D)D²/V, V ← α²V + 1[discordant]",
        "the square of a mean beside its variance",
        _PAIR,
        mcnemar_calibrated,
    ),
    ComparisonMeasure(
        "comparison_champion_error_ratio",
        "Error of the champion on the ids of the comparison.",
        "S_A/Σw",
        _GAMA,
        _PAIR,
        champion_error,
    ),
    ComparisonMeasure(
        "comparison_challenger_error_ratio",
        "Error of the challenger on the ids of the comparison.",
        "S_B/Σw",
        _GAMA,
        _PAIR,
        challenger_error,
    ),
    ComparisonMeasure(
        "comparison_champion_right_alone",
        "Pairs that the champion alone got right.",
        "n10",
        _GAMA,
        _PAIR,
        champion_right_alone,
    ),
    ComparisonMeasure(
        "comparison_challenger_right_alone",
        "Pairs that the challenger alone got right.",
        "n01",
        _GAMA,
        _PAIR,
        challenger_right_alone,
    ),
)
