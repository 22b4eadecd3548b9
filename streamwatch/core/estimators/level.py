"""How often a model errs now, for telling whether a drift is over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.agreement import Totals
from streamwatch.core.estimators.measures.measures import accuracy
from streamwatch.core.estimators.measures.uncertainty import hoeffding_half_width


@dataclass(frozen=True, slots=True)
class Level:
    """The recent error of one model, under a mechanism that forgets."""

    error: float
    """Weighted mean of the loss."""
    bound: float
    """Half-width of Hoeffding's bound around it."""
    n_eff: float
    outcomes: int
    """All that were ever evaluated, as `Alarm.outcome` counts them."""


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
        if bound[i] == bound[i]  # NaN is not itself
    }
