"""The stationary bootstrap: blocks as long as they should be, and streams like their history."""

from __future__ import annotations

import numpy as np
import pytest

from streamwatch.history.tuning.history import autocorrelation, lasting_block, mean_block, resampled
from tests.calibration.monte_carlo import correlated
from tests.history.tuning.promises import cycle


def markov(rho, n, seed, p=0.2):
    return correlated(np.random.default_rng(seed), p, rho, 1, n)[0].astype(np.int8)


def test_autocorrelations_are_those_counted_pair_by_pair() -> None:
    losses = markov(0.4, 500, 1)
    x = losses - losses.mean()
    expected = [(x[k:] * x[:-k]).sum() / (x * x).sum() for k in range(1, 6)]
    np.testing.assert_allclose(autocorrelation(losses, 5), expected, atol=1e-12)


def test_autocorrelations_of_losses_that_are_all_alike_are_undefined() -> None:
    assert np.isnan(autocorrelation(np.zeros(100, np.int8), 3)).all()


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.8])
def test_blocks_are_as_long_as_a_markov_chain_asks_for(rho) -> None:
    """R(k) = ρ^k: G/g(0) = 2ρ/(1-ρ²), so b = (2ρ/(1-ρ²))^{2/3} n^{1/3}."""
    n = 20_000
    found = np.median([mean_block(markov(rho, n, seed)) for seed in range(11)])
    assert found == pytest.approx((2 * rho / (1 - rho**2)) ** (2 / 3) * n ** (1 / 3), rel=0.25)


def test_blocks_of_independent_losses_are_short() -> None:
    assert np.median([mean_block(markov(0.0, 20_000, seed)) for seed in range(11)]) < 5.0


def test_blocks_are_geometrically_long_and_wrap_around() -> None:
    history = np.arange(1_000, dtype=np.int64)
    stream = resampled(history, 20.0, 200_000, np.random.default_rng(1))
    goes_on = (np.diff(stream) % 1_000) == 1
    assert goes_on.mean() == pytest.approx(1 - 1 / 20, abs=4 * np.sqrt(0.05 * 0.95 / 200_000))
    ends = np.flatnonzero(~goes_on)
    lengths = np.diff(ends)
    assert lengths.std() == pytest.approx(np.sqrt(20 * 19), rel=0.05)  # of a geometric law with mean 20
    assert (stream[1:][(stream[:-1] == 999) & goes_on] == 0).all()


def test_streams_have_the_error_and_the_correlation_of_their_history() -> None:
    history = markov(0.5, 20_000, 3)
    stream = resampled(history, mean_block(history), 400_000, np.random.default_rng(2))
    assert stream.mean() == pytest.approx(history.mean(), abs=0.01)
    assert autocorrelation(stream, 1)[0] == pytest.approx(autocorrelation(history, 1)[0], abs=0.03)


@pytest.mark.parametrize("period", [200, 2_000])
def test_blocks_outlast_a_cycle_whose_single_correlations_are_noise(period) -> None:
    """Errors between .05 and .15: every correlation is below .014, the noise of 60,000 outcomes .018."""
    draw = cycle(period, 0.05)
    found = [lasting_block(draw(np.random.default_rng(seed), 60_000).astype(np.int8)) for seed in range(11)]
    assert min(found) > period / 10
    assert np.median(found) >= period / 4  # half of the way up


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.8])
def test_blocks_of_losses_whose_dependence_ends_early_stay_as_they_are(rho) -> None:
    histories = [markov(rho, 20_000, seed) for seed in range(11)]
    assert [lasting_block(each) for each in histories] == [mean_block(each) for each in histories]
