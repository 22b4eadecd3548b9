"""Models that predict in folds: their series, significance tests between them, and the diagram of ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import combinations, zip_longest
from math import comb, nan, sqrt
from statistics import fmean, stdev
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamwatch.core.estimators.measures.measures import Totals
from streamwatch.core.estimators.names import Key, joined_confusion
from streamwatch.core.metrics import Metric
from streamwatch.core.metrics.series import Histogram, Sample
from streamwatch.core.records.events import SEPARATOR, fold_of, model_of

# Series of models that predict in folds, joined from those of their folds.
#
# A model's estimate is the mean over its folds (Bifet et al. 2015, §3). n_eff and limits are means, too: a
# mean of estimates is at least as certain as a single one, however the folds depend on one another. Counters
# and histograms are added up, of timestamps the latest is taken, and a model is recovering while any of its
# folds is. A detector's statistic and a verdict by cohorts belong to one fold and are not reported for the
# model.


Samples: TypeAlias = dict[str, list[Sample]]

OF_ONE_FOLD: Final = frozenset(
    {
        "detector_statistic",
        "detector_threshold",
        "detector_warning",
        "cohort_verdict",
        "cohort_verdict_since_timestamp_seconds",
        "cohort_verdict_confirmed",
        "cohort_verdict_evidence",
    }
)
"""Metrics that have no meaning for several folds together."""
_WITHOUT_STREAM: Final = (
    "label_at_prediction_repeats", "label_at_prediction_pairs", "corrected", "scored", "augmented",
    "augmented_n", "transition", "transition_n", "lost_twice",
)  # fmt: skip


def of_stream(totals: Totals, folds: NDArray[np.bool_]) -> Totals:
    """Replace the previous label of the chosen models by that of their stream over all folds.

    If folds test only some ids, their outcomes carry the stream's previous label in the field of the label
    known at prediction. Sums that need successive outcomes of the stream are NaN for them.

    Parameters
    ----------
    totals
        Totals of m models.
    folds
        bool (m,): models to which this applies.
    """
    if not folds.any():
        return totals
    absent = {name: np.where(folds, np.nan, getattr(totals, name)) for name in _WITHOUT_STREAM}
    return replace(
        totals,
        repeats=np.where(folds, totals.label_at_prediction_repeats, totals.repeats),
        pairs=np.where(folds, totals.label_at_prediction_pairs, totals.pairs),
        **absent,
    )


def join_folds(samples: Samples, metrics: Sequence[Metric], prefixed: Mapping[str, int]) -> None:
    """Replace series of folds by those of their models, in place, and add the series about folds themselves.

    A series that a model has beside those of its folds stays as it is.

    Parameters
    ----------
    samples
        Samples by metric name.
    metrics
        Metrics of models.
    prefixed
        Number of label values that precede those listed by the metric, by metric name.
    """
    for metric in metrics:
        if "model" not in metric.labels or "class" in metric.labels:  # per class: `ClassSamples`
            continue
        at = metric.labels.index("model") + prefixed.get(metric.name, 0)
        own = [sample for sample in samples[metric.name] if SEPARATOR not in sample[0][at]]
        folds = [sample for sample in samples[metric.name] if SEPARATOR in sample[0][at]]
        if not folds:
            continue
        samples[metric.name] = own
        if metric.name in OF_ONE_FOLD:
            continue
        by_model: dict[Key, list[tuple[str, float | Histogram]]] = {}
        for key, value in folds:
            by_model.setdefault((*key[:at], model_of(key[at]), *key[at + 1 :]), []).append((key[at], value))
        _add_series_of_folds(samples, metric.name, by_model)
        taken = {key for key, _ in own}
        samples[metric.name] = own + [
            (key, _joined(metric, [value for _, value in values]))
            for key, values in by_model.items()
            if key not in taken
        ]


def _add_series_of_folds(
    samples: Samples, name: str, by_model: Mapping[Key, Sequence[tuple[str, float | Histogram]]]
) -> None:
    """Add accuracy and outcomes of every fold, the deviation of accuracies, and the number of folds."""
    if name == "outcomes_total":
        for (model,), values in by_model.items():
            samples["folds_evaluated"].append(((model,), float(len(values))))
            samples["fold_outcomes_total"] += [((_number(fold), model), value) for fold, value in values]
    elif name == "accuracy_ratio":
        for (forgetting, model), values in by_model.items():
            numbers = [value for _, value in values if not isinstance(value, Histogram)]
            if len(numbers) > 1:
                samples["fold_accuracy_deviation"].append(((forgetting, model), stdev(numbers)))
            samples["fold_accuracy_ratio"] += [
                ((_number(fold), forgetting, model), value) for fold, value in values
            ]


def _joined(metric: Metric, values: Sequence[float | Histogram]) -> float | Histogram:
    histograms = [value for value in values if isinstance(value, Histogram)]
    if histograms:
        counts = zip(*(h.counts for h in histograms), strict=True)
        return Histogram(tuple(map(sum, counts)), sum(h.total for h in histograms))
    numbers = [value for value in values if not isinstance(value, Histogram)]
    if metric.kind == "counter":
        return sum(numbers)
    latest = metric.name.endswith("_timestamp_seconds")
    return max(numbers) if latest or metric.name == "recovering" else fmean(numbers)


def _number(name: str) -> str:
    return str(fold_of(name))


def joined_details(folds: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """Join the details of a model from those of its folds, given in the order of their numbers.

    These are its classes, the time of its first outcome, and, if every fold has one, its confusion matrix.
    """
    details: dict[str, object] = {
        "classes": list(dict.fromkeys(name for fold in folds for name in fold["classes"])),
        "first_seen_timestamp_seconds": min(fold["first_seen_timestamp_seconds"] for fold in folds),
    }
    documents = [fold["confusion"] for fold in folds if "confusion" in fold]
    if len(documents) == len(folds):
        details["confusion"] = joined_confusion(documents)
    return details


# Comparison of models by the accuracies of their folds, at one time under one forgetting mechanism.


Accuracies: TypeAlias = Mapping[str, Mapping[str, float]]
"""Accuracy by model and fold."""
LEAST_FOLDS: Final = 2
MOST_COMPARED: Final = 20
"""Most models compared; the number of pairs grows with the square."""
ALPHA: Final = 0.05
"""Significance level of the critical difference."""


def compared(accuracies: Accuracies) -> dict[str, object]:
    """Compare models over the folds they share; of many, the first `MOST_COMPARED` by name.

    Returns
    -------
    dict
        `models`: number of folds, mean and standard deviation of each, compared or not; `pairs`: sign test
        and Wilcoxon signed-rank test of every two models with at least `LEAST_FOLDS` folds in common;
        `ranks`: Friedman's test and Nemenyi's critical difference over three or more models with at least
        `LEAST_FOLDS` folds in common, otherwise null; `left_out`: number of models not compared. Undefined
        values are absent.
    """
    chosen = sorted(accuracies)[:MOST_COMPARED]
    return {
        "models": {model: _spread(accuracies[model]) for model in sorted(accuracies)},
        "pairs": [pair for two in combinations(chosen, 2) if (pair := _pair(accuracies, *two)) is not None],
        "ranks": _ranks(accuracies, chosen),
        "left_out": len(accuracies) - len(chosen),
    }


def _common(accuracies: Accuracies, models: Sequence[str]) -> list[str]:
    """Numbers of the folds that all these models have, in order."""
    if not models:
        return []
    return sorted(set.intersection(*(set(accuracies[model]) for model in models)), key=int)


def _spread(folds: Mapping[str, float]) -> dict[str, object]:
    found = spread(list(folds.values()))
    return {"folds": found.folds, **_defined(mean=found.mean, deviation=found.deviation)}


def _pair(accuracies: Accuracies, first: str, second: str) -> dict[str, object] | None:
    folds = _common(accuracies, (first, second))
    if len(folds) < LEAST_FOLDS:
        return None
    one = [accuracies[first][fold] for fold in folds]
    other = [accuracies[second][fold] for fold in folds]
    signs, ranks = sign_test(one, other), wilcoxon_test(one, other)
    return {
        "first": first,
        "second": second,
        "folds": len(folds),
        "difference": float(np.mean(one) - np.mean(other)),
        "sign": {"wins": signs.wins, "losses": signs.losses, **_defined(p=signs.p)},
        "wilcoxon": {"positive": ranks.positive, "negative": ranks.negative, **_defined(p=ranks.p)},
    }


def _ranks(accuracies: Accuracies, chosen: Sequence[str]) -> dict[str, object] | None:
    folds = _common(accuracies, chosen)
    if len(chosen) < 3 or len(folds) < LEAST_FOLDS:
        return None
    test = friedman_test([[accuracies[model][fold] for fold in folds] for model in chosen], ALPHA)
    ranks = dict(zip(chosen, test.ranks, strict=True))
    return {
        "folds": len(folds),
        "mean_ranks": ranks,
        **_defined(statistic=test.statistic, p=test.p),
        "alpha": ALPHA,
        "critical_difference": test.critical_difference,
        "diagram": rank_diagram(ranks, test.critical_difference),
    }


def _defined(**values: float) -> dict[str, float]:
    return {name: value for name, value in values.items() if math.isfinite(value)}


# Significance tests between classifiers, from their accuracies on the same folds (Bifet et al. 2015, §4).
#
# For two classifiers: sign test and Wilcoxon signed-rank test, both exact and two-sided. For more:
# Friedman's test, and Nemenyi's critical difference (Demšar 2006). The sampling unit is the fold, not the
# outcome. Accuracies are taken at one time under one forgetting mechanism. They count as equal if they agree
# to 12 decimals, since rounding can break ties. Results are NaN where nothing can be tested.
#
# All functions raise ValueError if an accuracy is not finite or the shapes do not fit.


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


# Critical difference diagram (Demšar 2006, figure 1): mean ranks on an axis, as SVG.
#
# Lower ranks, to the left, are better. A bar joins classifiers whose mean ranks differ by less than the
# critical difference; every bar is as long as possible. Colours are inherited from the surrounding text.


WIDTH: Final = 760
_LEFT, _RIGHT = 200, WIDTH - 200
_TOP, _LINE = 62, 22
_LONGEST: Final = 26


def groups(ranks: Sequence[float], critical_difference: float) -> list[tuple[int, int]]:
    """Find the maximal runs of classifiers that do not differ significantly, as (first, last) index.

    `ranks` must ascend.
    """
    found: list[tuple[int, int]] = []
    for first, rank in enumerate(ranks):
        last = max(i for i, other in enumerate(ranks) if i == first or other - rank < critical_difference)
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def rank_diagram(ranks: Mapping[str, float], critical_difference: float) -> str:
    """Draw mean ranks by name as SVG.

    Raises
    ------
    ValueError
        If there are fewer than two names.
    """
    if len(ranks) < 2:
        raise ValueError(f"a diagram of ranks needs 2 or more names, got {len(ranks)}")
    named = sorted(ranks.items(), key=lambda item: (item[1], item[0]))
    values = [rank for _, rank in named]
    bars = groups(values, critical_difference)
    half = (len(named) + 1) // 2
    below = _TOP + 16 + 8 * len(bars)
    height = below + _LINE * half + 16
    shapes = [_axis(len(named)), _scale(critical_difference, len(named))]
    for level, (first, last) in enumerate(bars):
        y = _TOP + 10 + 8 * level
        left, right = _x(values[first], len(named)) - 4, _x(values[last], len(named)) + 4
        shapes.append(_line(left, y, right, y, 4))
    for i, (name, rank) in enumerate(named):
        better = i < half
        y = below + _LINE * (i if better else len(named) - 1 - i) + 8
        shapes.append(_pointer(name, rank, _x(rank, len(named)), y, left=better))
    caption = ", ".join(f"{name} {rank:.2f}" for name, rank in named)
    title = f"Mean ranks: {caption}; critical difference {critical_difference:.2f}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="sans-serif" font-size="13" fill="currentColor" stroke="none">'
        f"<title>{escape(title)}</title>{''.join(shapes)}</svg>"
    )


def _x(rank: float, classifiers: int) -> float:
    return round(_LEFT + (rank - 1) / (classifiers - 1) * (_RIGHT - _LEFT), 2)


def _axis(classifiers: int) -> str:
    ticks = [
        _line(_x(rank, classifiers), _TOP - 6, _x(rank, classifiers), _TOP, 1)
        + _text(str(rank), _x(rank, classifiers), _TOP - 10, "middle")
        for rank in range(1, classifiers + 1)
    ]
    return _line(_LEFT, _TOP, _RIGHT, _TOP, 1) + "".join(ticks)


def _scale(critical_difference: float, classifiers: int) -> str:
    """Draw the critical difference as a length, cut at the end of the axis."""
    right = _x(min(1 + critical_difference, classifiers), classifiers)
    ends = _line(_LEFT, 18, _LEFT, 26, 1) + _line(right, 18, right, 26, 1)
    beyond = " (beyond the axis)" if 1 + critical_difference > classifiers else ""
    text = _text(f"critical difference {critical_difference:.2f}{beyond}", _LEFT, 13, "start")
    return text + ends + _line(_LEFT, 22, right, 22, 2)


def _pointer(name: str, rank: float, x: float, y: float, *, left: bool) -> str:
    end = _LEFT - 10 if left else _RIGHT + 10
    short = name if len(name) <= _LONGEST else name[: _LONGEST - 1] + "…"
    line = f'<path d="M{x} {_TOP}V{y}H{end}" fill="none" stroke="currentColor" stroke-width="1"/>'
    words = f"{short} {rank:.2f}" if left else f"{rank:.2f} {short}"
    text = _text(words, end - 4 if left else end + 4, y + 4, "end" if left else "start")
    return f"<g><title>{escape(name)}</title>{line}{text}</g>"


def _line(x1: float, y1: float, x2: float, y2: float, width: int) -> str:
    return f'<path d="M{x1} {y1}L{x2} {y2}" stroke="currentColor" stroke-width="{width}"/>'


def _text(words: str, x: float, y: float, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'
