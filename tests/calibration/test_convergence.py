"""Prequential error with and without forgetting, beside holdout.

Gama, Sebastião, Rodrigues 2009, §3.2.1: the loss of a learner is Bernoulli(p(t)) with p(t) = .10 +
.40·e^(-t/2000). At n = 20,000 the error on a holdout sample is .1000; accumulated it is .1400; faded
with α = .999 .1000 (.0066 is the standard deviation of one run).
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from streamwatch.core.specs import FadingSpec, LandmarkSpec, SlidingSpec
from tests.calibration.monte_carlo import totals_after

RUNS = 400
N = 20_000
T = np.arange(1, N + 1)
P = 0.10 + 0.40 * np.exp(-T / 2_000)
FADED = 0.999 ** (N - T)
MECHANISMS = (LandmarkSpec(), FadingSpec(0.999), SlidingSpec(1_000))
EXPECTED = (P.mean(), (FADED * P).sum() / FADED.sum(), P[-1_000:].mean())


@cache
def errors():
    """Error of every run under each mechanism."""
    rng = np.random.default_rng(9)
    totals = totals_after(rng.random((RUNS, N), np.float32) < P, MECHANISMS)
    return [1.0 - t.hits / t.n for t in totals]


def test_the_exact_values_are_those_of_the_table() -> None:
    holdout = 0.10 + 0.40 * np.exp(-N / 2_000)
    assert round(holdout, 4) == 0.1000
    assert round(EXPECTED[0], 4) == 0.1400
    assert EXPECTED[1] == pytest.approx(0.1000, abs=5e-5)


@pytest.mark.parametrize("index", range(3), ids=[m.name for m in MECHANISMS])
def test_the_mean_over_runs_is_the_exact_value(index) -> None:
    """Within 4 standard errors of 400 runs."""
    error = errors()[index]
    assert error.mean() == pytest.approx(EXPECTED[index], abs=4 * error.std() / np.sqrt(RUNS))


def test_fading_reaches_holdout_and_the_landmark_does_not() -> None:
    """In standard deviations of one run: .0066 faded (within 15 %, 4·√(1/800)), .0024 accumulated."""
    accumulated, faded, sliding = errors()
    assert faded.std() == pytest.approx(0.0066, rel=0.15)
    assert abs(faded.mean() - 0.1000) < 0.001
    assert abs(sliding.mean() - 0.1000) < 0.001
    assert accumulated.min() > 0.13
