"""Intervals of rates of false alarms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from streamwatch.history.tuning.promise import CONFIDENCE, rate_intervals


@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0])
def test_intervals_of_rates_hold_what_a_history_drawn_like_the_others_has(spread) -> None:
    """Rates of histories vary by a gamma law of that relative deviation, counts around them by Poisson's."""
    rng = np.random.default_rng(5)
    runs, histories, mean, length = 400, 48, 20.0, 1_000
    inside = 0
    for _ in range(runs):
        shape = 1 / spread**2 if spread else math.inf
        rates = rng.gamma(shape, mean / shape, histories + 1) if spread else np.full(histories + 1, mean)
        counts = rng.poisson(rates[:-1])[None]
        rate, low, high = rate_intervals(counts, length)
        assert rate[0] == pytest.approx(counts.mean() / length)
        inside += low[0] <= rates[-1] / length <= high[0]
    assert inside / runs >= 0.86


def test_without_an_alarm_the_upper_end_is_that_of_poissons_law() -> None:
    rate, low, high = rate_intervals(np.zeros((1, 48), np.int64), 1_000)
    assert rate[0] == low[0] == 0.0
    assert stats.poisson(high[0] * 48_000).pmf(0) == pytest.approx((1.0 - CONFIDENCE) / 2.0)
