"""What may be promised of a history, and whether promises are kept."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from streamwatch.lab.tuning.promise import CONFIDENCE, CannotPromise, check_history, rate_intervals
from streamwatch.lab.tuning.resampling import lasting_block
from tests.lab.tuning.promises import KINDS, promises


def drawn(n, p=0.2, seed=1):
    return (np.random.default_rng(seed).random(n) < p).astype(np.int8)


@pytest.mark.parametrize(
    ("losses", "promise", "why"),
    [
        pytest.param(drawn(999), 1e4, "has 999 outcomes; at least 1,000", id="short"),
        pytest.param(drawn(5_000, 0.002), 1e4, "errors; at least 50 are needed", id="few errors"),
        pytest.param(drawn(5_000, 0.998), 1e4, "hits; at least 50 are needed", id="few hits"),
        pytest.param(drawn(5_000), 600_000, "at most 500,000 can be", id="more than it knows"),
        pytest.param(drawn(5_000), 500, "promise at most one in 1,000", id="less than a promise"),
        pytest.param(
            np.repeat(drawn(100, 0.5), 50), 1e4, "independent stretches; at least 100", id="goes together"
        ),
        pytest.param(
            np.concatenate([drawn(8_000, 0.1), drawn(2_000, 0.2)]), 1e4, "the history changes", id="changes"
        ),
    ],
)
def test_what_a_history_does_not_support_is_refused_with_the_reason(losses, promise, why) -> None:
    with pytest.raises(CannotPromise, match=why):
        check_history(losses, promise)


def test_histories_without_a_change_are_hardly_ever_taken_for_changing() -> None:
    refused = 0
    for seed in range(200):
        try:
            check_history(drawn(5_000, seed=seed), 10_000)
        except CannotPromise:
            refused += 1
    assert refused <= 2


def test_a_history_is_resampled_in_the_blocks_it_asks_for() -> None:
    losses = drawn(5_000)
    assert check_history(losses, 10_000) == lasting_block(losses)


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


@pytest.mark.slow
@pytest.mark.parametrize("process", ["independent, error .2", "correlated .5, error .1"])
def test_promises_are_kept(process) -> None:
    """The short form: 6 histories, of which one may fall out (a fair share is one in 20)."""
    found = promises("page_hinkley", process, 6, length=8_000_000)
    assert found.kept >= 5 / 6
    assert found.loosest < 1.5


@pytest.mark.long
@pytest.mark.parametrize("process", KINDS)
@pytest.mark.parametrize("kind", ["page_hinkley", "ewma"])
def test_promises_are_kept_over_two_hundred_histories(kind, process) -> None:
    """Of a cycle, streams drawn in blocks begin anywhere, so that they alarm more often than it does."""
    found = promises(kind, process, 200)
    if "2,000" in process:  # thirty cycles are recorded
        assert found.refused >= 190
        return
    assert found.refused <= 10
    assert found.kept >= 0.97
    assert found.covered >= 0.8 or process.startswith("cycle")
