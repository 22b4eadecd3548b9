"""Current error rate of models, used to tell whether a drift is over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.agreement import Totals
from streamwatch.core.estimators.measures.measures import accuracy
from streamwatch.core.estimators.measures.uncertainty import hoeffding_half_width
from streamwatch.core.fold_names import model_of
from streamwatch.core.specs import FadingSpec, MonitorsSpec, SlidingSpec


@dataclass(frozen=True, slots=True)
class Level:
    """Recent error of one model, under a mechanism that forgets."""

    error: float
    """Weighted mean of the loss."""
    bound: float
    """Half-width of Hoeffding's bound around it."""
    n_eff: float
    outcomes: int
    """Number of outcomes ever evaluated, as counted in `Alarm.outcome`."""


def recent_of(spec: MonitorsSpec) -> int | None:
    """Index of the mechanism for recent values: the first fading, or else sliding one.

    None without either.
    """
    fading = [i for i, f in enumerate(spec.forgetting) if isinstance(f, FadingSpec)]
    sliding = [i for i, f in enumerate(spec.forgetting) if isinstance(f, SlidingSpec)]
    return next(iter((*fading, *sliding)), None)


def levels_of(
    models: Sequence[str], totals: Totals, outcomes: NDArray[np.int64], delta: float
) -> dict[str, Level]:
    """Level of each model that has outcomes, by name; arrays are in the order of `models`."""
    error = (1.0 - accuracy(totals)).tolist()
    bound = hoeffding_half_width(totals, delta).tolist()
    n_eff = totals.n_eff.tolist()
    seen = outcomes.tolist()
    return {
        model: Level(error[i], bound[i], n_eff[i], seen[i])
        for i, model in enumerate(models)
        if bound[i] == bound[i]  # false for NaN
    }


def joined_levels(levels: Mapping[str, Level]) -> dict[str, Level]:
    """Join levels by model: for a model with several folds, the mean over them."""
    by_model: dict[str, list[Level]] = {}
    for name, level in levels.items():
        by_model.setdefault(model_of(name), []).append(level)
    return {
        model: Level(
            fmean(level.error for level in folds),
            fmean(level.bound for level in folds),
            fmean(level.n_eff for level in folds),
            max(level.outcomes for level in folds),
        )
        if len(folds) > 1
        else folds[0]
        for model, folds in by_model.items()
    }
