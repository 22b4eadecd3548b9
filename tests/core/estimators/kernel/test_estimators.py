"""Single estimators against arithmetic of another kind, and the rules their sources state."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal, localcontext

import numba
import numpy as np
import pytest

from streamwatch.core.estimators.forgetting.drift_weighted import WEIGHTING, weight_now
from streamwatch.core.specs import (
    AdwinDriftSpec,
    AdwinSpec,
    FadingSpec,
    LandmarkSpec,
    MonitorsSpec,
    PageHinkleySpec,
    SlidingSpec,
)
from tests.core.estimators.kernel.streams import one_row, table_of
from tests.layouts import EVERYTHING

ONE = np.array([0])


@numba.njit(error_model="numpy")
def weights_now(states, w_avg, out):
    for i in range(len(states)):
        out[i] = weight_now(states[i], w_avg)


def losses(*phases, seed=0):
    """Losses of (length, error) after each other, as labels and predictions of two classes."""
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.random(n) < error for n, error in phases]).astype(np.int32)
    return np.zeros_like(x), x


@pytest.mark.slow
@pytest.mark.parametrize(
    ("alpha", "n"),
    [
        pytest.param(0.999, 200_000, id="0.999, one renormalisation"),
        pytest.param(0.9, 20_000, id="0.9, eleven"),
        pytest.param(0.3, 3_000, id="0.3, twenty"),
    ],
)
def test_fading_totals_equal_fifty_digit_arithmetic(alpha, n) -> None:
    rng = np.random.default_rng(1)
    true_class = rng.integers(0, 3, n).astype(np.int32)
    predicted_class = np.where(rng.random(n) < 0.7, true_class, 0).astype(np.int32)
    table = table_of(MonitorsSpec(forgetting=(LandmarkSpec(), FadingSpec(alpha), SlidingSpec(), AdwinSpec())))
    table.fold(one_row(n), true_class, predicted_class)
    got = table.totals(ONE, 1)

    with localcontext() as context:
        context.prec = 50
        a = Decimal(alpha)
        weight = squares = hits = repeats = Decimal(0)
        counts = [Decimal(0)] * 3
        for t in range(n):
            weight = a * weight + 1
            squares = a * a * squares + 1
            hits = a * hits + int(true_class[t] == predicted_class[t])
            repeats = a * repeats + int(t > 0 and true_class[t] == true_class[t - 1])
            counts = [a * count + int(true_class[t] == k) for k, count in enumerate(counts)]
        expected = [float(value) for value in (weight, hits, repeats, weight**2 / squares, *counts)]
    reached = [got.n[0], got.hits[0], got.repeats[0], got.n_eff[0], *got.true_class[0]]
    np.testing.assert_allclose(reached, expected, rtol=1e-12)


def test_page_hinkley_monitors_both_directions_and_splits_at_the_change() -> None:
    detector = PageHinkleySpec(threshold=20.0, direction="both")
    table = table_of(replace(MonitorsSpec(), detectors=(detector, AdwinDriftSpec())))
    every_other = np.arange(1_000) % 2
    loss = np.concatenate([every_other, np.zeros(1_000, int), every_other[:500]]).astype(np.int32)
    alarms = table.fold(one_row(2_500), np.zeros_like(loss), loss)
    fell, rose = [alarm for alarm in alarms if alarm.detector == 0]
    assert 1_000 < fell.outcome < 1_100
    assert (fell.before, fell.after) == (pytest.approx(0.5, abs=0.01), pytest.approx(0.0, abs=0.01))
    assert 2_000 < rose.outcome < 2_100
    assert (rose.before, rose.after) == (0.0, pytest.approx(0.5, abs=0.02))
    assert rose.n_eff == rose.outcome - fell.outcome


def test_no_page_hinkley_alarm_before_the_least_number_of_outcomes() -> None:
    detector = PageHinkleySpec(tolerance=0.0, threshold=2.0, alpha=1.0, min_outcomes=40)
    table = table_of(replace(MonitorsSpec(), detectors=(detector, AdwinDriftSpec())))
    alarms = table.fold(one_row(200), *losses((10, 0.0), (190, 1.0)))
    outcomes = [alarm.outcome for alarm in alarms if alarm.detector == 0]
    assert outcomes[0] == 40
    assert (np.diff(outcomes) >= 40).all()


def test_of_a_rise_and_a_fall_of_the_same_size_page_hinkley_reports_the_rise() -> None:
    """Losses 0, 0, 1, 0 at α = 3/4: ¾·⅔ − ¼ = ¼ above the mean from the third on, ¼ below it at the last."""
    detector = PageHinkleySpec(
        tolerance=0.0, threshold=0.2, alpha=0.75, min_outcomes=4, dependence="ignored", direction="both"
    )
    table = table_of(replace(MonitorsSpec(), detectors=(detector, AdwinDriftSpec())))
    (alarm,) = table.fold(one_row(4), np.zeros(4, np.int32), np.array([0, 0, 1, 0], np.int32))
    assert (alarm.outcome, alarm.statistic) == (4, 0.25)
    assert (alarm.before, alarm.after) == (0.0, 0.5)


@pytest.mark.parametrize("seed", range(3))
def test_forty_changes_five_hundred_apart_are_forty_new_drifts(seed) -> None:
    """As published; where dependence is followed, an error that alternates so soon is no drift."""
    adwin = AdwinDriftSpec("published", delta=0.002, dependence="ignored", direction="both")
    detectors = list(EVERYTHING.detectors)  # a kernel of its own would be compiled for this test alone
    at = next(at for at, each in enumerate(detectors) if each.name == "adwin_both")
    detectors[at] = adwin
    table = table_of(replace(EVERYTHING, detectors=tuple(detectors)))
    phases = [(500, (0.1, 0.7)[k % 2]) for k in range(41)]
    alarms = [a for a in table.fold(one_row(41 * 500), *losses(*phases, seed=seed)) if a.detector == at]
    hit = {(alarm.outcome - 1) // 500 for alarm in alarms} - {0}
    assert len(hit) >= 38
    assert len(alarms) <= 42
    assert all((alarm.after > alarm.before) == ((alarm.outcome - 1) // 500 % 2 == 1) for alarm in alarms)
    assert [alarm.ordinal for alarm in alarms] == list(range(1, len(alarms) + 1))


def test_upward_drifts_only_are_alarmed_unless_asked_otherwise() -> None:
    table = table_of(MonitorsSpec())
    alarms = table.fold(one_row(6_000), *losses((2_000, 0.1), (2_000, 0.6), (2_000, 0.1)))
    rises = [alarm for alarm in alarms if alarm.detector == 1]
    assert len(rises) == 1
    assert 2_000 < rises[0].outcome <= 2_100
    assert rises[0].n_eff < 200


@pytest.mark.slow
def test_one_change_after_a_long_calm_is_one_alarm_however_many_cuts_it_makes() -> None:
    table = table_of(MonitorsSpec())
    trace = table.trace(one_row(60_000), *losses((50_000, 0.1), (10_000, 0.3)))
    cuts = (np.diff(trace.totals[3].n) < 1).sum()
    assert cuts > 1
    assert trace.alarmed[1].sum() == 1


def test_window_labels_pair_across_the_edge_with_the_label_before_it() -> None:
    spec = replace(MonitorsSpec(), forgetting=(LandmarkSpec(), FadingSpec(), SlidingSpec(2), AdwinSpec()))
    trace = table_of(spec).trace(one_row(4), np.array([5, 5, 5, 3], np.int32), np.zeros(4, np.int32))
    assert trace.totals[2].n.tolist() == [1.0, 2.0, 2.0, 2.0]
    assert trace.totals[2].pairs.tolist() == [0.0, 1.0, 2.0, 2.0]
    assert trace.totals[2].repeats.tolist() == [0.0, 1.0, 2.0, 1.0]


@pytest.mark.parametrize(("gap", "average"), [(100, 2.936), (1_000, 2.991)])
def test_the_weight_after_a_drift_averages_to_w_avg_and_ends_at_one(gap, average) -> None:
    states = np.zeros(gap + 1, WEIGHTING)
    states["since"] = np.arange(gap + 1)
    states["mean_gap"], states["log_gap"] = gap, np.log(gap)
    weights = np.zeros(len(states))
    weights_now(states, 3.0, weights)
    assert np.mean(weights[:gap]) == pytest.approx(average, abs=5e-4)
    assert weights[gap - 1] == weights[gap] == 1.0


def test_weighted_accuracy_weighs_outcomes_after_a_rise_and_not_after_a_recovery() -> None:
    true_class, predicted_class = losses((2_000, 0.1), (1_000, 0.6), (1_000, 0.1))
    trace = table_of(MonitorsSpec()).trace(one_row(4_000), true_class, predicted_class)
    (declared,) = np.flatnonzero(trace.alarmed[1]) + 1
    plain = trace.totals[0].hits / trace.totals[0].n
    np.testing.assert_allclose(trace.weighted[0, :declared], plain[:declared])
    t = np.arange(4_000 - declared)
    after = np.maximum(1 + 2 * np.log(declared / (t + 1)), 1)
    weights = np.concatenate([np.ones(declared), after])
    expected = np.cumsum(weights * (true_class == predicted_class)) / np.cumsum(weights)
    np.testing.assert_allclose(trace.weighted[0], expected, rtol=1e-12)
