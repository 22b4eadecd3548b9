"""Significance tests between classifiers, from their accuracies on the same folds (Bifet et al. 2015, §4).

For two classifiers: sign test and Wilcoxon signed-rank test, both exact and two-sided. For more: Friedman's
test, and Nemenyi's critical difference (Demšar 2006). The sampling unit is the fold, not the outcome.
Accuracies are taken at one time under one forgetting mechanism. They count as equal if they agree to 12
decimals, since rounding can break ties. Results are NaN where nothing can be tested.

All functions raise ValueError if an accuracy is not finite or the shapes do not fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from math import comb, nan, sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FoldSpread:
    """Mean and standard deviation of the accuracy over folds."""

    mean: float
    """NaN without folds."""
    deviation: float
    """Standard deviation (with n − 1); NaN below two folds."""
    folds: int


@dataclass(frozen=True, slots=True)
class SignTest:
    """Sign test: numbers of folds on which each classifier is better, and the p-value."""

    wins: int
    losses: int
    p: float
    """Two-sided p-value; NaN if no fold differs."""


@dataclass(frozen=True, slots=True)
class WilcoxonTest:
    """Signed-rank test: rank sums of the differences.

    Ties share their mean rank, zero differences are dropped.
    """

    positive: float
    """W⁺: sum of the ranks where the first classifier is better."""
    negative: float
    """W⁻: sum of the ranks where the second classifier is better."""
    p: float
    """Two-sided p-value; NaN if no fold differs."""


@dataclass(frozen=True, slots=True)
class FriedmanTest:
    """Mean ranks of k classifiers over N folds; rank 1 is the most accurate."""

    ranks: tuple[float, ...]
    statistic: float
    """χ² with k − 1 degrees of freedom, corrected for ties; NaN if all classifiers tie on every fold."""
    p: float
    critical_difference: float
    """Nemenyi's critical difference: classifiers differ if their mean ranks differ by at least this."""


def spread(accuracies: ArrayLike) -> FoldSpread:
    """Mean and standard deviation of accuracies over folds, shape (N,)."""
    values = _checked(accuracies, 1)
    n = len(values)
    deviation = float(values.std(ddof=1)) if n > 1 else nan
    return FoldSpread(float(values.mean()) if n else nan, deviation, n)


def sign_test(first: ArrayLike, second: ArrayLike) -> SignTest:
    """Test whether one classifier is better on more folds than by chance; accuracies of shape (N,) each.

    p = 2·P(Bin(n, ½) ≤ min(wins, losses)), at most 1, over the n folds that differ.
    """
    differences = _differences(first, second)
    wins, losses = int((differences > 0).sum()), int((differences < 0).sum())
    n = wins + losses
    tail = sum(comb(n, k) for k in range(min(wins, losses) + 1))
    return SignTest(wins, losses, min(1.0, 2 * tail / (1 << n)) if n else nan)


def wilcoxon_test(first: ArrayLike, second: ArrayLike) -> WilcoxonTest:
    """Test whether the differences lean to one side (Wilcoxon 1945); accuracies of shape (N,) each.

    Uses the exact distribution over all 2ⁿ signs of the ranks at hand, ties included. W⁺ is counted in units
    of ½, and the number of sign patterns for each value is built up rank by rank.
    p = 2·min(P(W ≤ W⁺), P(W ≥ W⁺)), at most 1.
    """
    from scipy.stats import rankdata  # noqa: PLC0415 - takes .3 s, which starts without folds do not need

    differences = _differences(first, second)
    halves = np.rint(2 * np.asarray(rankdata(np.abs(differences)))).astype(np.int64)
    positive = int(halves[differences > 0].sum())
    total = int(halves.sum())
    if not len(halves):
        return WilcoxonTest(0.0, 0.0, nan)
    patterns = [1]
    for rank in halves.tolist():
        with_rank = [0] * rank + patterns
        patterns = [n + m for n, m in zip_longest(patterns, with_rank, fillvalue=0)]
    tail = min(sum(patterns[: positive + 1]), sum(patterns[positive:]))
    return WilcoxonTest(positive / 2, (total - positive) / 2, min(1.0, 2 * tail / (1 << len(halves))))


def friedman_test(accuracies: ArrayLike, alpha: float = 0.05) -> FriedmanTest:
    """Test whether any of k classifiers differs from the others, and compute the critical difference.

    χ² = 12N/(k(k + 1))·Σ_j (R_j − (k + 1)/2)², divided by 1 − Σ(t³ − t)/(N(k³ − k)) for ties of t on a fold.
    Critical difference q_α·√(k(k + 1)/(6N)), q_α the quantile of the studentised range with infinite degrees
    of freedom divided by √2.

    Parameters
    ----------
    accuracies
        Shape (k, N), k ≥ 2 classifiers on N ≥ 1 folds.
    alpha
        Significance level of the critical difference, in (0, 1).

    Raises
    ------
    ValueError
        If the shape is another, an accuracy is not finite, or `alpha` not in (0, 1).
    """
    from scipy.special import chdtrc  # noqa: PLC0415
    from scipy.stats import rankdata  # noqa: PLC0415

    values = _checked(accuracies, 2)
    k, n = values.shape
    if k < 2 or n < 1:
        raise ValueError(
            f"accuracies must be of 2 or more classifiers on 1 or more folds, got {values.shape}"
        )
    ranks = np.asarray(rankdata(-values, axis=0), np.float64)
    means = ranks.mean(axis=1)
    between = 12.0 * n / (k * (k + 1)) * float(((means - (k + 1) / 2) ** 2).sum())
    sizes = [np.unique(fold, return_counts=True)[1] for fold in values.T]
    untied = 1.0 - sum(float((t**3 - t).sum()) for t in sizes) / (n * (k**3 - k))
    statistic = between / untied if untied > 0.0 else nan
    return FriedmanTest(
        ranks=tuple(means.tolist()),
        statistic=statistic,
        p=float(chdtrc(k - 1, statistic)) if untied > 0.0 else nan,
        critical_difference=critical_difference(k, n, alpha),
    )


def critical_difference(classifiers: int, folds: int, alpha: float = 0.05) -> float:
    """Nemenyi's critical difference of mean ranks (Demšar 2006) for k classifiers on N folds.

    Raises
    ------
    ValueError
        If `alpha` is not in (0, 1).
    """
    from scipy.stats import studentized_range  # noqa: PLC0415

    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must be in (0, 1), got {alpha!r}")
    q = float(studentized_range.ppf(1.0 - alpha, classifiers, np.inf)) / sqrt(2.0)
    return q * sqrt(classifiers * (classifiers + 1) / (6.0 * folds))


def _checked(accuracies: ArrayLike, dimensions: int) -> Floats:
    values = np.asarray(accuracies, np.float64)
    if values.ndim != dimensions:
        raise ValueError(f"accuracies must have {dimensions} dimension(s), got shape {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("accuracies must be finite, got " + repr(float(values[~np.isfinite(values)][0])))
    return np.round(values, 12)


def _differences(first: ArrayLike, second: ArrayLike) -> Floats:
    """Non-zero differences of first − second."""
    one, other = _checked(first, 1), _checked(second, 1)
    if one.shape != other.shape:
        raise ValueError(f"both classifiers need the same folds, got {len(one)} and {len(other)}")
    differences = np.round(one - other, 12)
    return differences[differences != 0.0]
