"""False verdicts while watched at every outcome, delays, and the interval of the mean lead.

`STREAMWATCH_VERDICT_RUNS=1000` runs the long form; `python -m tests.calibration.verdict_figures` prints every
figure, those that no guarantee covers among them.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from scipy.stats import binom

from streamwatch.core.estimators.verdicts.readout import lead_bounds
from tests.calibration import leads
from tests.core.estimators.verdicts.runs import first_changes, intervals

RUNS = int(os.environ.get("STREAMWATCH_VERDICT_RUNS", "200"))
OUTCOMES = 100_000
DELTA = 0.05
AT_ONCE = 25
"""Streams drawn at once: a few hundred bytes an outcome."""


def in_parts(draw, runs, outcomes, seed, of):
    """`of` the drawn leads, put together from parts that fit memory."""
    rng = np.random.default_rng(seed)
    parts = [min(AT_ONCE, runs - start) for start in range(0, runs, AT_ONCE)]
    return np.concatenate([of(draw(rng, streams, outcomes)) for streams in parts])


def assert_share_at_most(nominal, found, runs):
    """A binomial test: a share that is `nominal` in truth fails it once in a thousand times."""
    assert binom.sf(found - 1, runs, nominal) > 1e-3, f"{found} of {runs}, nominal {nominal}"


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(leads.independent(0.5), id="independent, .5"),
        pytest.param(leads.independent(0.853), id="independent, .853"),
        pytest.param(leads.independent(0.99), id="independent, .99"),
        pytest.param(leads.errs_at_switches, id="errors at switches"),
        pytest.param(leads.near_periodic, id="near-periodic labels"),
        pytest.param(leads.correlated_losses(0.3), id="losses correlated by .3"),
        pytest.param(leads.correlated_losses(0.8), id="losses correlated by .8"),
    ],
)
def test_an_equal_model_gets_a_verdict_within_100_000_outcomes_at_most_once_in_twenty(draw) -> None:
    found = in_parts(draw, RUNS, OUTCOMES, 3, first_changes)
    assert_share_at_most(DELTA, int((found[:, :2] > 0).any(axis=1).sum()), RUNS)


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(leads.correlated_losses(0.8, 0.97), id="losses correlated by .8, both right with .97"),
        pytest.param(leads.correlated_losses(0.8, both=True), id="losses of both correlated by .8"),
        pytest.param(leads.correlated_losses(0.9), id="losses correlated by .9"),
        pytest.param(leads.correlated_losses(0.95), id="losses correlated by .95"),
    ],
)
def test_an_equal_model_whose_losses_depend_on_each_other_seldom_gets_a_verdict(draw) -> None:
    """Nothing is promised of these. While evidence grew before φ was known, it was .10, .08, .15 and .38."""
    found = in_parts(draw, RUNS, OUTCOMES, 3, first_changes)
    assert_share_at_most(0.075, int((found[:, :2] > 0).any(axis=1).sum()), RUNS)


@pytest.mark.parametrize(
    ("after", "most", "error"),
    [(-0.05, 8_000, 400), (-0.10, 2_200, 120), (-0.20, 450, 40)],
)
def test_a_model_that_becomes_worse_is_said_to_be_worse_and_since_when(after, most, error) -> None:
    """From +.05 at outcome 20,000. Medians, in outcomes; `verdict_figures` prints them."""
    at = 20_000
    found = in_parts(leads.changing(0.05, after, at), 60, 3 * at, 4, first_changes)
    worse, since = found[:, 1], found[:, 3]
    assert (worse > at).all()
    assert np.median(worse - at) <= most
    assert abs(np.median(since - at)) <= error


def test_a_good_model_that_falls_soon_is_said_to_be_worse_while_it_is() -> None:
    """From .98 to .57 beside a baseline of .78 at outcome 2,500: one change does not count as dispersion."""
    found = in_parts(leads.changing(0.20, -0.21, 2_500, 0.78), 60, 7_500, 6, first_changes)
    worse, since = found[:, 1], found[:, 3]
    assert (worse > 2_500).all()
    assert np.median(worse - 2_500) <= 900
    assert abs(np.median(since - 2_500)) <= 40


def excluded(drawn):
    """Whether the interval of each stream ever leaves out 0."""
    lower, upper = lead_bounds(intervals(drawn), DELTA)
    return ((lower > 0.0) | (upper < 0.0)).any(axis=1)


@pytest.mark.parametrize(
    "draw",
    [
        pytest.param(leads.independent(0.853), id="independent, .853"),
        pytest.param(leads.correlated_losses(0.3), id="losses correlated by .3"),
        pytest.param(leads.correlated_losses(0.8), id="losses correlated by .8"),
    ],
)
def test_the_interval_of_the_mean_lead_leaves_out_the_truth_at_most_once_in_twenty_ever(draw) -> None:
    assert_share_at_most(DELTA, int(in_parts(draw, RUNS, OUTCOMES, 5, excluded).sum()), RUNS)
