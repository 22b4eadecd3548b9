"""Comparison of models by the accuracies of their folds, at one time under one forgetting mechanism."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final, TypeAlias

import numpy as np

from streamwatch.core.estimators.folds.rank_diagram import rank_diagram
from streamwatch.core.estimators.folds.significance import friedman_test, sign_test, spread, wilcoxon_test

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
        `models`: number of folds, mean and standard deviation of each; `pairs`: sign test and Wilcoxon
        signed-rank test of every two models with at least `LEAST_FOLDS` folds in common; `ranks`: Friedman's
        test and Nemenyi's critical difference over three or more models with at least `LEAST_FOLDS` folds in
        common, otherwise null; `left_out`: number of models not compared. Undefined values are absent.
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
