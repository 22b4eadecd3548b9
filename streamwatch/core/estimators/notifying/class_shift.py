"""Which it looks like when the error of a model changed: the shares of the classes, or the model.

If only the shares of the true classes change (prior shift: what a class looks like stays), the model's recall
of each class stays; if the model no longer fits, recalls change. With shares s_k of the true classes and
errors e_k = 1 − recall_k within them, before (b) and recently (r), the change of the error is, exactly
(Kitagawa 1955, Components of a difference between two rates),

    E_r − E_b = Σ (s_rk − s_bk)·(e_rk + e_bk)/2  +  Σ (s_rk + s_bk)/2·(e_rk − e_bk)
                by the classes                      by the model

*Recently* is a window, *before* everything earlier, so outcomes of before the change within the window make
both parts smaller alike. It looks like the classes if their part is larger in size,
|classes| − |model| > z·√(v_c + v_m), like the model if its part is larger by as much, else it is unclear.
z is the normal quantile at 1 − δ/2; v_c is the variance of the first part for multinomial shares, v_m that of
the second for binomial errors ((wrong + 1)/(n + 2) stands for e, lest none seen meant none possible), each
times (1 + ρ)/(1 − ρ) for the lag-1 correlation ρ ≥ 0 of labels, and of losses, in the window. Where a class
was seen less than five times its e is not known: what its parts could differ by is added to the uncertainty.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from statistics import NormalDist, fmean
from typing import Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.agreement import Totals
from streamwatch.core.estimators.measures.uncertainty import loss_autocorrelation

Floats: TypeAlias = NDArray[np.float64]

LEAST = 100.0
"""Outcomes before, and recently, without which nothing is said."""
LEAST_OF_CLASS = 5.0
"""Outcomes of a class on either side without which its error is not known there."""


class Moved(msgspec.Struct, frozen=True):
    """The class whose share grew most, or whose recall tells most of the model's part."""

    name: str
    before: float
    after: float


class ClassShift(msgspec.Struct, frozen=True):
    """Parts of a change of the error; all numbers are shares of outcomes."""

    looks_like: Literal["classes", "model", "unclear"]
    change: float
    """Recent error less the error before."""
    by_classes: float
    by_model: float
    uncertainty: float
    """Half-width of the interval of |by_classes| − |by_model|."""
    share: Moved
    recall: Moved | None
    """None where no class was seen often enough on both sides."""
    past_differs: bool = False
    """Whether the level before the change, as the detector found it, is off that of the past compared with by
    more than half of the change: then it is unclear whatever the parts are."""


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
        Normal quantile: how sure to be.
    correlation
        Lag-1 correlation of labels and of losses; negative and undefined ones count as 0.
    level
        Mean loss before the change, as a detector found it; NaN if none did.

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
    """Split the change of one model's error between everything before a window and the window.

    The window is the shortest of at least `LEAST` outcomes: the less of it is of before the change, the more
    it tells. ADWIN's, once it has been cut, begins near the change. None without a window.

    Parameters
    ----------
    past
        Totals of one model without forgetting.
    windows
        Its totals over windows of the last outcomes.
    names
        Its classes, one more than it has counted or fewer included.
    delta
        δ in (0, 1): how sure to be is 1 − δ.
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

    Counts are means over those folds that have a window: shares and errors are then the folds' together, and
    it is no surer than one fold, however folds depend on one another (every fold may test every id).

    Parameters
    ----------
    folds
        Of each fold: `past`, `windows` and `names` as for `shift_between`, the names in an order of its own.
    delta, level
        As for `shift_between`.
    """
    told = [(found, names) for past, windows, names in folds if (found := _sides(past, windows)) is not None]
    if not told:
        return None
    union = list(dict.fromkeys(name for _, names in told for name in names))
    counts = np.zeros((2, 2, len(union)))
    for found, names in told:
        at = np.array([union.index(name) for name in names], np.int64)
        for which, (n, hits) in enumerate((found.before, found.recent)):
            counts[which, 0, at] += n[: len(at)] / len(told)
            counts[which, 1, at] += hits[: len(at)] / len(told)
    labels, losses = (
        fmean(max(0.0, rho) if rho == rho else 0.0 for rho in each)  # noqa: PLR0124 - not NaN
        for each in zip(*(found.correlation for found, _ in told), strict=True)
    )
    z = NormalDist().inv_cdf(1.0 - delta / 2.0)
    before, recent = ((side[0], side[1]) for side in counts)
    return class_shift(before, recent, union, z, (labels, losses), level)


class _Sides(NamedTuple):
    before: tuple[Floats, Floats]
    recent: tuple[Floats, Floats]
    correlation: tuple[float, float]
    """Lag-1, of labels and of losses, in the window."""


def _sides(past: Totals, windows: Sequence[Totals]) -> _Sides | None:
    """Outcomes and hits of each class before the shortest window of at least `LEAST` outcomes, and in it."""
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
    """Errors within each class; of one never seen that of the other side, which makes no difference to E."""
    n, hits = (np.where(side[0] > 0, mine, theirs) for mine, theirs in zip(side, other, strict=True))
    return 1.0 - np.divide(hits, n, out=np.ones_like(n), where=n > 0)


def _multinomial(share: Floats, weights: Floats, n: float) -> float:
    """Variance of Σ s_k·w_k for shares of n outcomes."""
    return float((share * weights**2).sum() - (share * weights).sum() ** 2) / n


def _binomial(n: Floats, hits: Floats) -> Floats:
    """Variance of each class's error; 0 where it was never seen."""
    smoothed = (n - hits + 1.0) / (n + 2.0)
    return np.divide(smoothed * (1.0 - smoothed), n, out=np.zeros_like(n), where=n > 0)


def _inflation(rho: float) -> float:
    """(1 + ρ)/(1 − ρ), at most 1,000; 1 for what is negative or undefined."""
    return (1.0 + rho) / max(1.0 - rho, 2e-3) if rho > 0 else 1.0


def _most(names: Sequence[str], before: Floats, after: Floats, moved: Floats) -> Moved:
    at = int(np.argmax(moved))
    return Moved(names[at], float(before[at]), float(after[at]))
