"""Losses that depend on those before: their correlation by formula, and what corrections leave of it."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from streamwatch.papers import dependent_losses as streams
from streamwatch.papers.dependent_losses import LONGEST, correlation, redrawn, spacing, thinned
from streamwatch.papers.detection.streams import together


def chain(rho, error, n, seed):
    return together("", np.full(n, error), rho, ()).draw(np.random.default_rng(seed))


@pytest.mark.parametrize("errors", [(0.05, 0.45), (0.45, 0.05), (0.3, 0.3), (0.0, 0.2)])
@pytest.mark.parametrize("repeat", [0.0, 0.5, 0.8])
def test_the_correlation_by_class_is_that_of_a_sum_over_all_pairs(errors, repeat):
    """In fractions: P(l_t = 1, l_{t−1} = 1) over the four pairs of labels."""
    priors = (Fraction(9, 10), Fraction(1, 10))
    e, r = [Fraction(str(value)) for value in errors], Fraction(str(repeat))
    both = sum(
        priors[i] * (r * (i == j) + (1 - r) * priors[j]) * e[i] * e[j] for i, j in product((0, 1), repeat=2)
    )
    p = sum(priors[i] * e[i] for i in (0, 1))
    expected = float((both - p * p) / (p * (1 - p)))
    assert streams.by_class(errors, repeat, (0.9, 0.1)) == pytest.approx(expected, abs=1e-12)


def test_an_error_that_is_never_or_always_made_has_no_correlation():
    assert math.isnan(streams.by_class((0.0, 0.0), 0.5, (0.6, 0.4)))
    assert math.isnan(correlation(np.zeros(10, np.bool_)))


@pytest.mark.parametrize("kind", streams.KINDS, ids=lambda kind: kind.name)
def test_streams_have_the_error_and_the_correlation_that_they_say(kind):
    drawn = kind.drawn(np.full(200_000, streams.LOW), np.random.default_rng(1))
    assert drawn.mean() == pytest.approx(streams.LOW, abs=0.012)
    assert correlation(drawn) == pytest.approx(kind.correlation, abs=0.025)
    stepped = kind.drawn(np.repeat([streams.LOW, streams.HIGH], 100_000), np.random.default_rng(2))
    assert stepped[100_000:].mean() == pytest.approx(streams.HIGH, abs=0.015)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_redrawn_losses_have_the_same_error_and_hardly_depend_on_those_before(rho):
    given = np.stack([chain(rho, 0.2, 20_000, seed) for seed in range(4)])
    found = np.stack([redrawn(run, np.random.default_rng(9)) for run in given])[:, 2_000:]
    assert found.mean() == pytest.approx(given[:, 2_000:].mean(), abs=0.012)
    assert np.mean([correlation(run) for run in found]) == pytest.approx(0.0, abs=0.02)
    sums = found.reshape(-1, 50).sum(axis=1)
    assert sums.var() / (50 * 0.2 * 0.8) < 1.4  # of independent losses 1, of the given (1 + ρ)/(1 − ρ)


def test_redrawn_losses_follow_an_error_that_rises():
    given = together("", np.repeat([0.2, 0.4], 10_000), 0.5, ()).draw(np.random.default_rng(4))
    found = redrawn(given, np.random.default_rng(5))
    assert found[2_000:10_000].mean() == pytest.approx(0.2, abs=0.03)
    assert found[14_000:].mean() == pytest.approx(0.4, abs=0.03)


def test_a_redrawn_loss_does_not_depend_on_what_comes_after_it():
    given = chain(0.5, 0.3, 400, 6)
    whole = redrawn(given, np.random.default_rng(7))
    other = np.concatenate([given[:200], ~given[200:]])
    np.testing.assert_array_equal(redrawn(other, np.random.default_rng(7))[:200], whole[:200])


def test_the_first_losses_are_redrawn_as_by_hand():
    """Without any count P(1) and P(1|0) are 1/2: the first stays. After a loss of 1 that came from 0, P(1|1)
    is 1/2 still, but P(1) is (1 + 1)/(1 + 2) = 2/3, so that a 0 becomes 1 where v/2 > 1/3.
    """
    for v_second, expected in ((0.6, False), (0.7, True)):

        class Given:
            def __init__(self, second):
                self.second = second

            def random(self, _n):
                return np.array([0.5, self.second])

        found = redrawn(np.array([True, False]), Given(v_second), alpha=1.0)
        assert found.tolist() == [True, expected]


@pytest.mark.parametrize("alpha", [0.0, 1.1])
def test_a_factor_that_cannot_be_is_refused(alpha):
    with pytest.raises(ValueError, match=r"must be in \(0, 1\]"):
        redrawn(np.zeros(3, np.bool_), np.random.default_rng(1), alpha)


def test_losses_are_spaced_by_the_first_lag_that_hardly_correlates():
    assert np.mean([spacing(chain(0.0, 0.2, 1_000, seed)) for seed in range(30)]) < 1.3
    # .5^4 = .0625 is the first below 2/√1000 = .063, .8^13 = .055 too.
    assert np.median([spacing(chain(0.5, 0.3, 1_000, seed)) for seed in range(30)]) == pytest.approx(4, abs=1)
    assert np.median([spacing(chain(0.8, 0.3, 1_000, seed)) for seed in range(30)]) == pytest.approx(
        12, abs=3
    )
    assert spacing(np.zeros(1_000, np.bool_)) == 1
    assert spacing(np.repeat([False, True], 500)) == LONGEST


def test_of_thinned_losses_the_kth_is_that_of_outcome_k_times_the_spacing():
    given = np.arange(1, 12) % 3 == 0
    assert thinned(given, 3).tolist() == [True, True, True]
    assert thinned(given, 1).tolist() == given.tolist()
    with pytest.raises(ValueError, match="got 0"):
        thinned(given, 0)
