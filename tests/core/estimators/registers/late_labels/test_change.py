"""The change of the error by prediction time is that of the best of all partitions, tried one by one."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.stats import binom

from streamwatch.core.estimators.registers.late_labels.change import CRITICAL, PRICE, latest_change
from streamwatch.core.estimators.registers.late_labels.geometry import geometry_of
from tests.tiers import by_tier

GEOMETRY = geometry_of(100_000)
WIDTH = GEOMETRY.width_ms


def log_likelihood(errors, outcomes) -> float:
    """Of buckets as binomials of one probability, less what does not depend on it."""
    e, n = int(errors.sum()), int(outcomes.sum())
    if n == 0:
        return 0.0
    free = binom.logpmf(errors, outcomes, 0.5).sum() - n * np.log(0.5)
    return float(binom.logpmf(errors, outcomes, e / n).sum() - free)


def partitions(n: int):
    for splits in range(n):
        yield from combinations(range(1, n), splits)


def worth(errors, outcomes, splits) -> float:
    edges = [0, *splits, len(errors)]
    return sum(log_likelihood(errors[a:b], outcomes[a:b]) for a, b in pairwise(edges)) - PRICE * len(splits)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(by_tier(fast=6, default=15, everything=200)))
def test_the_change_is_the_last_split_of_the_best_partition(seed) -> None:
    rng = np.random.default_rng(seed)
    outcomes = rng.integers(0, 90, 9)
    rates = np.repeat(rng.choice([0.1, 0.3, 0.6, 0.8], 3), 3)
    errors = rng.binomial(outcomes, rates)
    values = {splits: worth(errors, outcomes, splits) for splits in partitions(9)}
    best = max(values, key=lambda splits: (values[splits], -len(splits)))
    found = latest_change(errors.astype(float), outcomes.astype(float), 7, GEOMETRY)
    if not best:
        assert found is None
        return
    assert found is not None
    assert found.since_ms == (7 + best[-1]) * WIDTH
    start = best[-2] if len(best) > 1 else 0
    accepted = [
        s
        for s in range(start + 1, 9)
        if 2 * (values[best] - worth(errors, outcomes, (*best[:-1], s))) <= CRITICAL
    ]
    assert found.earliest_ms == (7 + accepted[0] - 1) * WIDTH
    assert found.latest_ms == (7 + accepted[-1] + 1) * WIDTH
    last = best[-1]
    assert found.before == pytest.approx(errors[start:last].sum() / outcomes[start:last].sum())
    assert found.after == pytest.approx(errors[last:].sum() / outcomes[last:].sum())


def test_no_outcomes_and_no_errors_show_no_change() -> None:
    nothing = np.zeros(64)
    assert latest_change(nothing, nothing, 0, GEOMETRY) is None
    assert latest_change(nothing, nothing + 50.0, 0, GEOMETRY) is None
    assert latest_change(nothing + 50.0, nothing + 50.0, 0, GEOMETRY) is None
