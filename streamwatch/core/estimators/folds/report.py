"""Series of models that predict in folds, joined from those of their folds.

A model's estimate is the mean over its folds (Bifet et al. 2015, §3). n_eff and limits are means, too: a mean
of estimates is at least as certain as a single one, however the folds depend on one another. Counters and
histograms are added up, of timestamps the latest is taken, and a model is recovering while any of its folds
is. A detector's statistic belongs to one fold and is not reported for the model.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from statistics import fmean, stdev
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.folds.rank_diagram import rank_diagram
from streamwatch.core.estimators.folds.significance import friedman_test, sign_test, spread, wilcoxon_test
from streamwatch.core.estimators.measures.measures import Totals
from streamwatch.core.estimators.names import Key, joined_confusion
from streamwatch.core.metrics import Metric
from streamwatch.core.metrics.series import Histogram, Sample
from streamwatch.core.records.events import SEPARATOR, fold_of, model_of

Samples: TypeAlias = dict[str, list[Sample]]

OF_ONE_FOLD: Final = frozenset({"detector_statistic", "detector_threshold", "detector_warning"})
"""Metrics that have no meaning for several folds together."""
LARGEST: Final = frozenset({"last_alarm_timestamp_seconds", "last_label_timestamp_seconds", "recovering"})
"""Gauges of which the largest over the folds is taken: timestamps, and whether a fold is recovering."""
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
    return max(numbers) if metric.name in LARGEST else fmean(numbers)


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
