"""Attribution of a changed error to the shares of the classes or to the model.

If only the shares of the true classes change (prior shift), the model's recall of each class stays the same;
if the model no longer fits, recalls change. With shares s_k of the true classes and errors e_k = 1 − recall_k
within them, before (b) and recently (r), the change of the error is, exactly (Kitagawa 1955, Components of a
difference between two rates),

    E_r − E_b = Σ (s_rk − s_bk)·(e_rk + e_bk)/2  +  Σ (s_rk + s_bk)/2·(e_rk − e_bk)
                by the classes                      by the model

*Recently* is a window, *before* is everything earlier. Outcomes in the window that precede the change
therefore shrink both parts alike. The result is "classes" if their part is larger in size, |classes| −
|model| > z·√(v_c + v_m), "model" if its part is larger by as much, otherwise "unclear". z is the normal
quantile at 1 − δ/2; v_c is the variance of the first part for multinomial shares, v_m that of the second for
binomial errors. In v_m, (wrong + 1)/(n + 2) stands for e, so that a class without errors does not get
variance 0. Each variance is multiplied by (1 + ρ)/(1 − ρ) for the lag-1 correlation ρ ≥ 0 of labels, and of
losses, in the window. If a class occurred less than five times, its e is unknown, and the largest possible
effect on the difference of the parts is added to the uncertainty.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from statistics import NormalDist, fmean
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.measures.measures import Totals, loss_autocorrelation
from streamwatch.core.records.events import Name

Floats: TypeAlias = NDArray[np.float64]

LEAST = 100.0
"""Least number of outcomes before, and recently, for a result."""
LEAST_OF_CLASS = 5.0
"""Least number of outcomes of a class on either side for its error to be known."""


class Moved(msgspec.Struct, frozen=True):
    """Class whose share grew most, or whose recall accounts for most of the model's part."""

    name: Name
    before: float
    after: float


class ClassShift(msgspec.Struct, frozen=True):
    """Parts of a change of the error; all numbers are shares of outcomes."""

    looks_like: Literal["classes", "model", "unclear"]
    change: float
    """Recent error minus the error before."""
    by_classes: float
    by_model: float
    uncertainty: float
    """Half-width of the interval of |by_classes| − |by_model|."""
    share: Moved
    recall: Moved | None
    """None if no class occurred often enough on both sides."""
    past_differs: bool = False
    """Whether the past compared with is not representative; the result is then "unclear".

    True if the level before the change, as the detector estimated it, differs from the error of *before* by
    more than half of the change.
    """


def class_shift(
    before: tuple[Floats, Floats],
    recent: tuple[Floats, Floats],
    names: Sequence[str],
    z: float,
    correlation: tuple[float, float] = (0.0, 0.0),
    level: float = nan,
) -> ClassShift | None:
    """Split the change of the error.

    Parameters
    ----------
    before, recent
        Outcomes and hits of each true class, float64 (K,) each.
    names
        Names of the K classes.
    z
        Normal quantile for the uncertainty.
    correlation
        Lag-1 correlation of labels and of losses; negative and undefined ones count as 0.
    level
        Mean loss before the change as a detector estimated it; NaN without one.

    Returns
    -------
    ClassShift | None
        None below `LEAST` outcomes on either side.
    """
    n_b, n_r = float(before[0].sum()), float(recent[0].sum())
    if n_b < LEAST or n_r < LEAST:
        return None
    share_b, share_r = before[0] / n_b, recent[0] / n_r
    known = (before[0] >= LEAST_OF_CLASS) & (recent[0] >= LEAST_OF_CLASS)
    error_b, error_r = _errors(before, recent), _errors(recent, before)
    by_classes = (share_r - share_b) * (error_r + error_b) / 2.0
    by_model = (share_r + share_b) / 2.0 * (error_r - error_b)
    labels, losses = (_inflation(rho) for rho in correlation)
    weights = np.where(known, (error_r + error_b) / 2.0, 0.0)
    v_classes = labels * (_multinomial(share_b, weights, n_b) + _multinomial(share_r, weights, n_r))
    halves = np.where(known, (share_r + share_b) / 2.0, 0.0)
    v_model = losses * float((halves**2 * (_binomial(*before) + _binomial(*recent))).sum())
    unknown = float((np.abs(share_r - share_b) / 2.0 + (share_r + share_b) / 2.0)[~known].sum())
    parts = float(by_classes.sum()), float(by_model.sum())
    width = z * float(np.sqrt(v_classes + v_model)) + unknown
    lead = abs(parts[0]) - abs(parts[1])
    past_differs = abs(float((share_b * error_b).sum()) - level) > abs(sum(parts)) / 2.0
    looks_like = "classes" if lead > width else "model" if -lead > width else "unclear"
    return ClassShift(
        looks_like="unclear" if past_differs else looks_like,
        change=sum(parts),
        by_classes=parts[0],
        by_model=parts[1],
        uncertainty=width,
        share=_most(names, share_b, share_r, share_r - share_b),
        recall=_most(names, 1.0 - error_b, 1.0 - error_r, np.abs(by_model) * known) if known.any() else None,
        past_differs=past_differs,
    )


def shift_between(
    past: Totals, windows: Sequence[Totals], names: Sequence[str], delta: float, level: float
) -> ClassShift | None:
    """Split the change of one model's error between a window and everything before it.

    Uses the shortest window with at least `LEAST` outcomes, since it contains least from before the change.
    An ADWIN window that was cut begins near the change. None without a window.

    Parameters
    ----------
    past
        Totals of one model without forgetting.
    windows
        Its totals over windows of the last outcomes.
    names
        Names of its classes.
    delta
        δ in (0, 1); the confidence is 1 − δ.
    level
        As for `class_shift`.
    """
    found = _sides(past, windows)
    if found is None:
        return None
    z = NormalDist().inv_cdf(1.0 - delta / 2.0)
    return class_shift(found.before, found.recent, names, z, found.correlation, level)


def shift_over_folds(
    folds: Sequence[tuple[Totals, Sequence[Totals], Sequence[str]]], delta: float, level: float
) -> ClassShift | None:
    """Split the change of the error of a model that predicts in folds, as `shift_between` does for one.

    Counts are means over the folds that have a window, so shares and errors are those of all folds together,
    and the result is no more certain than that of one fold: every fold may test every id, so folds can depend
    on one another in any way.

    Parameters
    ----------
    folds
        `past`, `windows` and `names` of each fold, as for `shift_between`; each fold has its own order of
        names.
    delta, level
        As for `shift_between`.
    """
    shifts = [
        (found, names) for past, windows, names in folds if (found := _sides(past, windows)) is not None
    ]
    if not shifts:
        return None
    union = list(dict.fromkeys(name for _, names in shifts for name in names))
    counts = np.zeros((2, 2, len(union)))
    for found, names in shifts:
        at = np.array([union.index(name) for name in names], np.int64)
        for which, (n, hits) in enumerate((found.before, found.recent)):
            counts[which, 0, at] += n[: len(at)] / len(shifts)
            counts[which, 1, at] += hits[: len(at)] / len(shifts)
    labels, losses = (
        fmean(max(0.0, rho) if rho == rho else 0.0 for rho in each)  # noqa: PLR0124 - not NaN
        for each in zip(*(found.correlation for found, _ in shifts), strict=True)
    )
    z = NormalDist().inv_cdf(1.0 - delta / 2.0)
    before, recent = ((side[0], side[1]) for side in counts)
    return class_shift(before, recent, union, z, (labels, losses), level)


class _Sides(NamedTuple):
    before: tuple[Floats, Floats]
    recent: tuple[Floats, Floats]
    correlation: tuple[float, float]
    """Lag-1 correlation of labels and of losses in the window."""


def _sides(past: Totals, windows: Sequence[Totals]) -> _Sides | None:
    """Outcomes and hits by class before and in the shortest window of at least `LEAST` outcomes."""
    wide = [totals for totals in windows if totals.n[0] >= LEAST]
    if not wide:
        return None
    recent = min(wide, key=lambda totals: float(totals.n[0]))
    n, hits = recent.true_class[0], recent.agreed[0]
    share = n / max(float(n.sum()), 1.0)
    labels = label_correlation(share, float(recent.repeats[0]), float(recent.pairs[0]))
    before = past.true_class[0] - n, past.agreed[0] - hits
    return _Sides(before, (n, hits), (labels, float(loss_autocorrelation(recent)[0])))


def label_correlation(share: Floats, repeats: float, pairs: float) -> float:
    """Lag-1 correlation of labels: (p_persistent − Σ s²)/(1 − Σ s²); NaN where undefined."""
    same = float((share**2).sum())
    return (repeats / pairs - same) / (1.0 - same) if pairs > 0 and same < 1.0 else float("nan")


def _errors(side: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> Floats:
    """Error within each class.

    A class that never occurred gets the error of the other side, which leaves E as it is.
    """
    n, hits = (np.where(side[0] > 0, mine, theirs) for mine, theirs in zip(side, other, strict=True))
    return 1.0 - np.divide(hits, n, out=np.ones_like(n), where=n > 0)


def _multinomial(share: Floats, weights: Floats, n: float) -> float:
    """Variance of Σ s_k·w_k for shares of n outcomes."""
    return float((share * weights**2).sum() - (share * weights).sum() ** 2) / n


def _binomial(n: Floats, hits: Floats) -> Floats:
    """Variance of each class's error; 0 if the class never occurred."""
    smoothed = (n - hits + 1.0) / (n + 2.0)
    return np.divide(smoothed * (1.0 - smoothed), n, out=np.zeros_like(n), where=n > 0)


def _inflation(rho: float) -> float:
    """Variance inflation (1 + ρ)/(1 − ρ), at most 1,000; 1 for negative or undefined ρ."""
    return (1.0 + rho) / max(1.0 - rho, 2e-3) if rho > 0 else 1.0


def _most(names: Sequence[str], before: Floats, after: Floats, moved: Floats) -> Moved:
    at = int(np.argmax(moved))
    return Moved(names[at], float(before[at]), float(after[at]))
