"""The change of the error by prediction time is that of the best of all partitions, tried one by one."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.stats import binom, chi2_contingency

from streamwatch.core.estimators.registers.late_labels.accuracy import CRITICAL, PRICE, latest_change
from streamwatch.core.estimators.registers.late_labels.observe import geometry_of
from tests.tiers import by_tier

GEOMETRY = geometry_of(100_000)
WIDTH = GEOMETRY.width_ms
BUCKETS = 12


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


def pearson(errors, outcomes, splits, block) -> tuple[float, int]:
    """Chi-square of blocks within their stretches, by scipy's test of a table of errors and hits."""
    squares, freedom = 0.0, -len(splits)
    for a, b in pairwise([0, *splits, len(errors)]):
        tables = []
        for end in range(b, a + block - 1, -block):
            wrong, n = int(errors[end - block : end].sum()), int(outcomes[end - block : end].sum())
            if n:
                tables.append((wrong, n - wrong))
        table = np.array(tables)
        if len(table) > 1 and (table.sum(axis=0) > 0).all():
            tested = chi2_contingency(table, correction=False)
            squares, freedom = squares + tested.statistic, freedom + tested.dof
    return squares, freedom


def spread_of(errors, outcomes, splits, blocks, otherwise) -> float:
    found = [pearson(errors, outcomes, splits, block) for block in blocks]
    return max([max(1.0, x / f) for x, f in found if f >= 8], default=otherwise)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(by_tier(fast=6, default=15, everything=200)))
def test_the_change_is_the_last_split_of_the_best_partition(seed) -> None:
    rng = np.random.default_rng(seed)
    outcomes = rng.integers(0, 90, BUCKETS)
    rates = np.repeat(rng.choice([0.1, 0.3, 0.6, 0.8], 4), 3)
    noise = rng.choice([0.0, 0.1])  # errors that vary more than binomials
    errors = rng.binomial(outcomes, np.clip(rates + rng.normal(0.0, noise, BUCKETS), 0.02, 0.98))
    of_stretch = {
        (a, b): log_likelihood(errors[a:b], outcomes[a:b]) for a, b in combinations(range(BUCKETS + 1), 2)
    }
    likelihoods = {
        splits: sum(of_stretch[edges] for edges in pairwise((0, *splits, BUCKETS)))
        for splits in partitions(BUCKETS)
    }
    best, spread = None, spread_of(errors, outcomes, (), (1,), 1.0)
    for _ in range(11):
        values = {splits: of - PRICE * spread * len(splits) for splits, of in likelihoods.items()}
        last, best = best, max(values, key=lambda splits: (values[splits], -len(splits)))
        if best in (last, ()):
            break
        spread = spread_of(errors, outcomes, best, (1, 2, 4), spread)
    found = latest_change(errors.astype(float), outcomes.astype(float), 7, GEOMETRY)
    if not best:
        assert found is None
        return
    assert found is not None
    assert found.since_ms == (7 + best[-1]) * WIDTH
    start = best[-2] if len(best) > 1 else 0
    accepted = [
        s
        for s in range(start + 1, BUCKETS)
        if 2 * (likelihoods[best] - likelihoods[*best[:-1], s]) <= CRITICAL * spread
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
