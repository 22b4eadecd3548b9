"""Page-Hinkley's false alarms: δ = .005, α = .9999, on the loss; by default, and with λ = 50 as published."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamwatch.core.specs import PageHinkleySpec
from tests.calibration.monte_carlo import alarms_on, correlated, feed, table_of

PUBLISHED = PageHinkleySpec(threshold=50.0, dependence="ignored")


@pytest.mark.parametrize(
    ("p", "rho", "stated"),
    [
        pytest.param(0.2, 0.0, 7, id="7 per million at an error of .2"),
        pytest.param(0.3, 0.0, 18, id="18 per million at .3"),
        pytest.param(0.2, 0.5, 100, id="100 per million at .2 with lag-1 autocorrelation .5"),
    ],
)
def test_false_alarms_on_stationary_streams_are_as_rare_as_stated(p, rho, stated) -> None:
    """Six streams of 1,000,000 outcomes, each of a seed of its own.

    Their sum is within 3 standard deviations of a Poisson count of mean 6·stated (±19, ±31, ±73). Over 200
    streams the rates were 7.1 ± .2, 17.1 ± .3 and 100.5 ± .7.
    """
    streams = 6
    generators = [np.random.default_rng(seed) for seed in range(streams)]

    def draw(_, n):
        return np.concatenate([correlated(rng, p, rho, 1, n) for rng in generators])

    alarms = alarms_on(PUBLISHED, streams, 1_000_000, draw)
    found = sum(len(a) for a in alarms)
    assert abs(found - streams * stated) <= 3 * np.sqrt(streams * stated)


def regular(p, length):
    """Losses at a rate of exactly p, as evenly as can be: no chance plays a part."""
    return np.diff(np.floor(np.arange(length + 1) * p + 1e-9)).astype(np.bool_)[None]


@pytest.mark.parametrize(("rise", "seen"), [(0.009, False), (0.02, True)])
def test_a_rise_smaller_than_tolerance_plus_threshold_times_one_minus_alpha_is_never_seen(rise, seen) -> None:
    """PH settles at (rise - δ)/(1-α), below λ = 50 for a rise below .01: 40 at .009, 150 at .02.

    Losses come evenly, from 1,000,000 at .2 (so the mean moves little) to 300,000 at .2 + rise.
    """
    table = table_of(1, (), (PUBLISHED,))
    assert feed(table, regular(0.2, 1_000_000)) == []
    alarms = feed(table, regular(0.2 + rise, 300_000))
    assert bool(alarms) == seen
    if not seen:
        found = table.detectors(np.array([0]))
        assert 0.0 < found.statistic[0, 0] < found.threshold[0, 0]


def test_forgetting_in_the_papers_form_raises_false_alarms() -> None:
    """For α < 1 its sum drifts to -δ/(1-α) while its minimum never forgets; clipped does not.

    Ten streams of 300,000 outcomes at an error of .2.
    """
    rng = np.random.default_rng(5)
    losses = rng.random((10, 300_000), np.float32) < 0.2
    found = {
        form: sum(
            map(len, alarms_on(replace(PUBLISHED, form=form), 10, 300_000, lambda s, n: losses[:, s : s + n]))
        )
        for form in ("clipped", "paper")
    }
    assert found["paper"] > 2 * found["clipped"]


@pytest.mark.parametrize(("rho", "most"), [(0.0, 3.0), (0.5, 1.0), (0.8, 1.0)])
@pytest.mark.parametrize("p", [0.05, 0.2])
def test_the_default_raises_few_false_alarms_however_losses_depend_on_one_another(p, rho, most) -> None:
    """20 streams of 100,000 outcomes: at most so many alarms in each, on average (0 to 1.3 were found)."""
    streams = [correlated(np.random.default_rng(seed), p, rho, 1, 100_000)[0] for seed in range(20)]
    losses = np.stack(streams)
    alarms = alarms_on(PageHinkleySpec(), 20, 100_000, lambda start, n: losses[:, start : start + n])
    assert np.mean([len(found) for found in alarms]) <= most
