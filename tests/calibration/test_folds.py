"""Tests over folds: their level where folds are independent, and what two models of one algorithm do."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from streamwatch.core.estimators.folds import sign_test, wilcoxon_test
from streamwatch.folds import Scheme
from streamwatch.papers.validation import STREAMS, TESTS_OF_FOLDS, evaluate, noisy, rejections
from tests.tiers import by_tier

RUNS = by_tier(fast=10, default=12, everything=50)
OUTCOMES = by_tier(fast=600, default=1_000, everything=3_000)


@pytest.mark.parametrize("ties", [False, True])
def test_of_independent_folds_both_tests_reject_at_most_as_often_as_they_say(*, ties: bool) -> None:
    rng = np.random.default_rng(1)
    runs = by_tier(fast=400, default=2_000, everything=20_000)
    rejected = np.zeros(2)
    for _ in range(runs):
        first, second = rng.normal(0.8, 0.02, 10), rng.normal(0.8, 0.02, 10)
        if ties:
            first, second = np.round(first, 2), np.round(second, 2)
        rejected += sign_test(first, second).p < 0.05, wilcoxon_test(first, second).p < 0.05
    assert (rejected <= binom.isf(1e-4, runs, 0.05)).all()
    assert rejected[1] > 0.02 * runs


@pytest.mark.parametrize("scheme", [Scheme("bootstrap", 10), Scheme("cross-validation", 10)], ids=str)
def test_mcnemar_calls_models_of_one_algorithm_different_more_often_than_tests_over_folds(
    scheme: Scheme,
) -> None:
    """Bifet et al. 2015, Table 2: .77 and .80 where Wilcoxon has .11 and .10."""
    runs = [evaluate(stream, scheme, RUNS, OUTCOMES, seed) for seed, stream in enumerate(STREAMS.values())]
    equal = dict(zip(TESTS_OF_FOLDS, np.mean([rejections(each) for each in runs], axis=0), strict=True))
    worse = dict(
        zip(TESTS_OF_FOLDS, np.mean([rejections(noisy(r, 0.1, 1)) for r in runs], axis=0), strict=True)
    )
    assert equal["McNemar"] >= 0.4
    assert equal["sign"] <= equal["sign, 8 of 10"]
    assert worse["Wilcoxon"] >= 0.7
    assert worse["McNemar"] >= worse["Wilcoxon"] - 0.1
