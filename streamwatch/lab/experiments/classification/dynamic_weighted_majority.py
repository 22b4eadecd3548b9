"""Dynamic Weighted Majority (Kolter, Maloof 2007, figure 1): experts that lose weight, go, and are added.

At every `PERIOD`-th instance, and only there, the weight of each expert that was wrong is multiplied by β;
weights are divided by the largest, experts below θ go, and where the whole was wrong a new expert of weight
1 comes, which has learned nothing. Every expert learns every instance. As everywhere here, an instance is
answered before its class is looked at: in the figure the weights that vote are already reduced where an
expert is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from streamwatch.lab.experiments.classification.experts import Classes, Expert
from streamwatch.lab.experiments.result import Floats

PERIOD: Final = 50
"""p, instances between two changes of weights; MOA's default."""
FACTOR: Final = 0.5
"""β."""
LEAST: Final = 0.01
"""θ, weight below which an expert goes."""


def dynamic_weighted_majority(
    x: Floats, true_class: Classes, expert: Callable[[], Expert], period: int = PERIOD
) -> Classes:
    """Answers of the weighted majority of experts, (n,); the lower class where votes are equal.

    Parameters
    ----------
    x
        Attributes, (n, d).
    true_class
        Classes 0 and 1, (n,).
    expert
        Makes an expert that has learned nothing.
    period
        p, at least 1.

    Raises
    ------
    ValueError
        If the period is shorter than 1.
    """
    if period < 1:
        raise ValueError(f"weights change every instance at most, got a period of {period}")
    experts, weights = [expert()], [1.0]
    found = np.empty(len(x), np.int64)
    for at, (attributes, truth) in enumerate(zip(x.tolist(), true_class.tolist(), strict=True), 1):
        answers = [each.answer(attributes) for each in experts]
        for_one = sum(weight for answer, weight in zip(answers, weights, strict=True) if answer)
        answer = int(for_one > sum(weights) - for_one)
        found[at - 1] = answer
        if at % period == 0:
            weights = [
                weight if said == truth else FACTOR * weight
                for said, weight in zip(answers, weights, strict=True)
            ]
            largest = max(weights)
            kept = [
                (one, weight / largest)
                for one, weight in zip(experts, weights, strict=True)
                if weight / largest >= LEAST
            ]
            experts, weights = [one for one, _ in kept], [weight for _, weight in kept]
            if answer != truth:
                experts.append(expert())
                weights.append(1.0)
        for each in experts:
            each.learn(attributes, truth)
    return found
