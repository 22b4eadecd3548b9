"""Do the bounds of the accuracy hold as often as they say?

A bound at level 1-δ covers the weighted mean of the true accuracy over what is remembered, Σwμ/Σw, for
independent losses, at one fixed time. Each case is 3,000 independent repetitions of 1,500 outcomes; δ =
.05. Hoeffding's and Chernoff's bounds are conservative, so the share covered must be at least the level
itself: no tolerance is given. (The least margin seen is .99 for Hoeffding at p = .5, where the normal law
leaves .9934.)
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import binom

from streamwatch.core.estimators.measures import measures
from streamwatch.core.estimators.measures.measures import Totals
from streamwatch.core.specs import AdwinSpec, FadingSpec, LandmarkSpec, SlidingSpec
from tests.calibration.monte_carlo import binomial_error, correlated, totals_after

DELTA = 0.05
LEVEL = 1.0 - DELTA
MODELS = 3_000
LENGTH = 1_500
MECHANISMS = (LandmarkSpec(), FadingSpec(0.99), FadingSpec(0.999), SlidingSpec(100), AdwinSpec())
AGE = np.arange(LENGTH)
TRUE_ERROR = {
    "one half": np.full(LENGTH, 0.5),
    "a tenth": np.full(LENGTH, 0.1),
    "a jump": np.where(AGE < 1_000, 0.1, 0.6),
    "learning": 0.1 + 0.4 * np.exp(-AGE / 400),
}
BOUNDS = {
    "hoeffding": (measures.hoeffding_lower, measures.hoeffding_upper),
    "chernoff": (measures.chernoff_lower, measures.chernoff_upper),
}


@cache
def remembered(case):
    """Totals of all repetitions under each mechanism."""
    rng = np.random.default_rng(list(TRUE_ERROR).index(case))
    return totals_after(rng.random((MODELS, LENGTH), np.float32) < TRUE_ERROR[case], MECHANISMS)


def true_accuracy(mechanism, error, totals: Totals):
    """Σw(1-μ)/Σw over what each model remembers."""
    if isinstance(mechanism, FadingSpec):
        weights = mechanism.alpha ** np.arange(LENGTH - 1, -1, -1.0)
        return np.full(MODELS, 1.0 - (weights * error).sum() / weights.sum())
    sums = np.concatenate([[0.0], np.cumsum(error)])
    width = totals.n.astype(int)
    return 1.0 - (sums[LENGTH] - sums[LENGTH - width]) / width


def covered(bound, totals, true_class):
    """Share of repetitions whose interval holds the truth."""
    lower, upper = (limit(totals, DELTA) for limit in BOUNDS[bound])
    return ((lower <= true_class) & (true_class <= upper)).mean()


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("case", TRUE_ERROR)
@pytest.mark.parametrize("index", range(len(MECHANISMS)), ids=[m.name for m in MECHANISMS])
def test_a_bound_covers_the_weighted_true_accuracy_at_least_at_its_level(bound, case, index) -> None:
    totals = remembered(case)[index]
    true_class = true_accuracy(MECHANISMS[index], TRUE_ERROR[case], totals)
    assert covered(bound, totals, true_class) >= LEVEL


def test_no_bound_of_what_is_remembered_holds_for_this_moment_right_after_a_jump() -> None:
    """500 outcomes after a jump from .1 to .6 the landmark still remembers 1,000 before it: coverage 0."""
    now = np.full(MODELS, 1.0 - TRUE_ERROR["a jump"][-1])
    assert covered("hoeffding", remembered("a jump")[0], now) == 0.0
    assert covered("hoeffding", remembered("a jump")[1], now) >= LEVEL  # 500 outcomes are 5 times 1/(1-α)


def test_effective_outcomes_make_fading_as_uncertain_as_it_is() -> None:
    """The variance of a faded error is p(1-p)/n_eff, within 4 standard errors (4·√(2/3000) = 10 %)."""
    for index in (1, 2):
        totals = remembered("one half")[index]
        error = 1.0 - totals.hits / totals.n
        assert error.var() * totals.n_eff[0] == pytest.approx(0.25, rel=4 * np.sqrt(2 / MODELS))


@pytest.mark.parametrize(("n", "p"), [(100, 0.01), (1_000, 0.01), (1_000, 0.001), (10_000, 0.001)])
def test_chernoff_covers_small_errors_too(n, p) -> None:
    """By the exact binomial law, and 10,000 repetitions of it, within 4 standard errors: at least .97.

    (With the observed error in place of the mean, as often printed, an error-free stretch has an interval of
    width 0: coverage .63 at p = .01, n = 100, for that is the probability of an error.)
    """
    k = np.arange(n + 1)
    shared = np.full(n + 1, float(n)), (n - k).astype(float), np.zeros(n + 1), np.full(n + 1, n - 1.0)
    counts = np.zeros((n + 1, 1))
    every = Totals(*shared, np.full(n + 1, float(n)), counts, counts, counts)
    inside = measures.chernoff_lower(every, DELTA) <= 1 - p
    inside &= measures.chernoff_upper(every, DELTA) >= 1 - p
    exact = binom.pmf(k, n, p)[inside].sum()
    assert exact >= 0.97

    rng = np.random.default_rng(n)
    models = 10_000 if n <= 1_000 else 1_000
    totals = totals_after(rng.random((models, n), np.float32) < p, MECHANISMS)[0]
    seen = covered("chernoff", totals, np.full(models, 1.0 - p))
    assert seen == pytest.approx(exact, abs=4 * binomial_error(exact, models) + 1e-9)


def test_correlated_losses_break_the_bound_and_fewer_effective_outcomes_mend_it() -> None:
    """At lag-1 autocorrelation ρ = .8, p = .2, Hoeffding's bound covers .74 (normal law; ± .03 is asserted).

    With n_eff·(1-ρ)/(1+ρ) in place of n_eff, ρ estimated, it covers at least its level again.
    """
    rng = np.random.default_rng(8)
    totals = totals_after(correlated(rng, 0.2, 0.8, MODELS, LENGTH), MECHANISMS)[0]
    true_class = np.full(MODELS, 0.8)
    assert covered("hoeffding", totals, true_class) == pytest.approx(0.74, abs=0.03)
    rho = measures.loss_autocorrelation(totals)
    assert np.median(rho) == pytest.approx(0.8, abs=0.02)
    fewer = measures.effective_sample_size_autocorrelated(totals)
    half = np.sqrt(np.log(2 / DELTA) / (2 * fewer))
    assert (np.abs(totals.hits / totals.n - true_class) <= half).mean() >= LEVEL
