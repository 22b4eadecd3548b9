"""ADWIN's false alarms, and one alarm per drift, as published and as by default.

A cut is a new drift iff its newest discarded outcome is later than the outcome at which the last new drift
was declared; alarms are new drifts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamwatch.core.specs import AdwinDriftSpec, AdwinSpec
from tests.calibration.monte_carlo import alarms_on, correlated, feed, table_of

PUBLISHED = AdwinDriftSpec(delta=0.002, dependence="ignored")
BOTH = replace(PUBLISHED, direction="both")


def of_error(error, models, seed):
    """Draws losses whose error at outcome t is error[t]."""
    rng = np.random.default_rng(seed)
    return lambda start, n: rng.random((models, n), np.float32) < error[start : start + n]


def steps(*phases):
    """Error at every outcome from (outcomes, error) after each other."""
    return np.concatenate([np.full(n, p, np.float32) for n, p in phases])


@pytest.mark.parametrize("p", [0.1, 0.2, 0.5])
def test_on_a_stationary_stream_false_alarms_are_far_rarer_than_delta_a_check(p) -> None:
    """30 streams of 1,000,000 outcomes each, δ = .002, a check every 32.

    δ bounds the false alarms per check (62 per million); the test is conservative: about 1 in 10 streams
    has one at all, about half of them early, where the window is short. Asserted: at most δ·100 = 0.2 per
    stream plus what a Poisson count of that mean leaves open (6 + 3·√6 = 13 in 30 streams).
    """
    models = 30
    draw = np.random.default_rng(int(10 * p))
    alarms = alarms_on(
        BOTH, models, 1_000_000, lambda _, n: draw.random((models, n), np.float32) < p, chunk=50_000
    )
    assert sum(len(a) for a in alarms) <= 13
    assert max(len(a) for a in alarms) <= 3


def test_forty_changes_five_hundred_apart_are_forty_alarms() -> None:
    """100 streams; the goal is at least 95 % of the changes and at most 2 extra alarms in each."""
    models, changes = 100, 40
    error = steps(*[(500, (0.1, 0.7)[k % 2]) for k in range(changes + 1)])
    for alarms in alarms_on(BOTH, models, len(error), of_error(error, models, 1)):
        seen = {(alarm.outcome - 1) // 500 for alarm in alarms} - {0}
        assert len(seen) >= 0.95 * changes
        assert len(alarms) - len(seen) <= 2


def test_one_change_is_one_alarm_or_two() -> None:
    """200 streams of 5,000 outcomes at .1, then 5,000 at .4: between 1.0 and 1.1 alarms on average."""
    models, error = 200, steps((5_000, 0.1), (5_000, 0.4))
    alarms = alarms_on(PUBLISHED, models, len(error), of_error(error, models, 2))
    seen = [sum(alarm.outcome > 5_000 for alarm in a) for a in alarms]
    assert min(seen) >= 1
    assert np.mean(seen) <= 1.1


@pytest.mark.parametrize("calm", [2_000, 20_000])
def test_a_second_jump_five_hundred_outcomes_after_a_first_is_seen(calm) -> None:
    """100 streams: .1, then .4, then .8 after 500; both are alarmed within 500 outcomes in at least 99."""
    models, error = 100, steps((calm, 0.1), (500, 0.4), (1_000, 0.8))
    alarms = alarms_on(PUBLISHED, models, len(error), of_error(error, models, 3))
    for start in (calm, calm + 500):
        seen = [any(start < alarm.outcome <= start + 500 for alarm in a) for a in alarms]
        assert np.mean(seen) >= 0.99


def test_a_ramp_over_a_hundred_thousand_outcomes_is_reported_again_and_again() -> None:
    """40 streams, error .1 to .5: between 4 and 15 alarms each (about 7; every cut would be about 170)."""
    models, length = 40, 100_000
    error = np.linspace(0.1, 0.5, length, dtype=np.float32)
    alarms = alarms_on(PUBLISHED, models, length, of_error(error, models, 4))
    for found in alarms:
        assert 4 <= len(found) <= 15
        assert all(alarm.after > alarm.before for alarm in found)
    assert 5 <= np.mean([len(found) for found in alarms]) <= 10


@pytest.mark.parametrize(("rho", "most"), [(0.0, 1.5), (0.5, 1.5), (0.8, 2.0)])
@pytest.mark.parametrize("p", [0.05, 0.2])
def test_the_default_raises_few_false_alarms_however_losses_depend_on_one_another(p, rho, most) -> None:
    """20 streams of 100,000 outcomes: at most so many alarms in each, on average (.1 to .9 were found)."""
    streams = [correlated(np.random.default_rng(seed), p, rho, 1, 100_000)[0] for seed in range(20)]
    losses = np.stack(streams)
    alarms = alarms_on(AdwinDriftSpec(), 20, 100_000, lambda start, n: losses[:, start : start + n])
    assert np.mean([len(found) for found in alarms]) <= most


@pytest.mark.parametrize(("rho", "outcomes"), [(0.0, 600), (0.8, 2_500)])
def test_the_default_finds_a_jump_though_it_is_stricter_where_losses_depend_on_one_another(
    rho, outcomes
) -> None:
    """60 streams, .2 for 8,000 outcomes, then .4: the median alarm within so many (about 130 and 900)."""
    before = correlated(np.random.default_rng(1), 0.2, rho, 60, 8_000)
    after = correlated(np.random.default_rng(2), 0.4, rho, 60, 12_000)
    losses = np.concatenate([before, after], axis=1)
    alarms = alarms_on(AdwinDriftSpec(), 60, 20_000, lambda start, n: losses[:, start : start + n])
    first = [next((a.outcome - 8_000 for a in found if a.outcome > 8_000), 12_000) for found in alarms]
    assert np.median(first) <= outcomes


@pytest.mark.parametrize(("gap", "least"), [(1_000, 0.0), (2_000, 0.8), (5_000, 0.95)])
def test_an_error_that_goes_up_and_down_is_drift_only_if_it_stays_for_long_enough(gap, least) -> None:
    """20 streams of ten rises from .1 to .2 and falls back: what alternates within a thousand outcomes counts
    as dependence (.14 of the rises were found), what lasts for 2,000 as drift (.90), and 5,000 (1.00).
    """
    models, error = 20, steps(*[(gap, (0.1, 0.2)[k % 2]) for k in range(21)])
    alarms = alarms_on(AdwinDriftSpec(), models, len(error), of_error(error, models, 6))
    seen = [{(a.outcome - 1) // gap for a in found if (a.outcome - 1) // gap % 2} for found in alarms]
    share = np.mean([len(each) / 10 for each in seen])
    assert share >= least
    assert least > 0.0 or share <= 0.4


@pytest.mark.parametrize(("adwin", "least", "most"), [(PUBLISHED, 5.0, 10.0), (AdwinDriftSpec(), 0.0, 1.5)])
def test_where_losses_repeat_the_window_that_follows_dependence_has_the_better_accuracy(
    adwin, least, most
) -> None:
    """12 streams of an error of .2, repeating with probability .8: root mean square error in points, at every
    500th outcome from the 8,000th to the 30,000th (7.4 and .8 were found).
    """
    window = AdwinSpec(adwin.delta, adwin.min_subwindow, adwin.clock, adwin.dependence)
    table = table_of(12, (window,), (adwin,))
    losses = correlated(np.random.default_rng(8), 0.2, 0.8, 12, 30_000)
    errors = []
    for start in range(0, 30_000, 500):
        feed(table, losses[:, start : start + 500])
        totals = table.totals(np.arange(12), 0)
        if start >= 8_000:
            errors.append(1.0 - totals.hits / totals.n - 0.2)
    found = 100.0 * np.sqrt(np.mean(np.square(errors)))
    assert least < found < most
