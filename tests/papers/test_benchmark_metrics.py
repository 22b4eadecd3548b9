"""Metrics of the field's benchmark: by hand, by what CapyMOA prints, and by counting outcome by outcome."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.papers.benchmark.contestants import CONTROLS, NEVER, at_random, every, oracle
from streamwatch.papers.benchmark.metrics import (
    Counts,
    Episode,
    Rule,
    Run,
    World,
    at_instances,
    episodes_of,
    mean_of,
    measured,
    pooled,
    scored,
    stacked,
    within,
)
from streamwatch.papers.result import Measured
from tests.tiers import examples


def metrics(alarms, drifts, max_delay, instances, early=0):
    rule = Rule(max_delay, early)
    return measured(episodes_of(alarms, drifts, rule), rule, instances)


def test_the_example_of_capymoas_documentation():
    """Drifts at 1,000 and 2,000; alarms at 500, 1,200, 1,250 and 2,100; 200 allowed."""
    found = metrics([500, 1200, 1250, 2100], [(1000, 1000), (2000, 2000)], 200, 200)
    assert found.f1 == pytest.approx(0.6666666666666666)
    assert (found.delay, found.normalised_delay) == (150.0, 0.75)
    relaxed = metrics([500, 1200, 1250, 2100], [(1000, 1000), (2000, 2000)], 400, 200)
    assert (relaxed.delay, relaxed.normalised_delay) == (150.0, 0.375)


@pytest.mark.parametrize(
    ("max_delay", "detected", "delay", "normalised"),
    [
        (100, 1000, 0.0, 0.0),
        (100, 1150, math.nan, math.nan),
        (200, 1150, 150.0, 0.75),
        (200, 1200, 200.0, 1.0),
        (500, 1150, 150.0, 0.3),
        (500, 1200, 200.0, 0.4),
    ],
)
def test_the_table_of_delays_of_capymoas_notebook(max_delay, detected, delay, normalised):
    found = metrics([detected], [(1000, 1000)], max_delay, 2000)
    assert found.delay == pytest.approx(delay, nan_ok=True)
    assert found.normalised_delay == pytest.approx(normalised, nan_ok=True)


def test_adwin_of_capymoas_notebook():
    """Alarms at 1,024 and 1,088, one drift at 1,000, 200 allowed: printed with the notebook."""
    found = metrics([1024, 1088], [(1000, 1000)], 200, 2000)
    assert (found.false, found.true, found.missed) == (0, 2, 0)
    assert (found.precision, found.recall, found.episode_recall, found.f1) == (1.0, 1.0, 1.0, 1.0)
    assert (found.delay, found.normalised_delay) == (24.0, pytest.approx(0.12))
    assert (found.false_rate, found.alarm_rate) == (0.0, 1.0)


def test_the_delay_of_a_gradual_drift_is_from_its_beginning_and_may_exceed_the_tolerance():
    found = metrics([1700], [(1000, 1500)], 200, 2000)
    assert (found.true, found.delay, found.normalised_delay) == (1, 700.0, 3.5)


def test_an_early_alarm_is_true_within_what_is_allowed_before():
    found = metrics([950], [(1000, 1000)], 200, 2000, early=100)
    assert (found.true, found.delay, found.normalised_delay) == (1, -50.0, -0.25)
    assert metrics([899], [(1000, 1000)], 200, 2000, early=100).false == 1


def test_a_line_of_the_papers_results():
    """SEED on STAGGER's abrupt drifts: 108 false, 30 true, 4 missed; its printed figures."""
    episodes = [Episode(0, 0, (0,) * (2 if k < 4 else 1) if k < 26 else ()) for k in range(30)]
    false = Episode(10_000, 10_000, (1,) * 108)
    found = measured([*episodes, false], Rule(1000), 300_031)
    assert (found.true, found.false) == (30, 108)
    assert found.precision == pytest.approx(0.21739130434782608)
    assert found.false_rate == pytest.approx(0.3599628038436028)
    # One more episode than the paper's carries the false alarms: it counts as missed.
    assert found.recall == pytest.approx(30 / (30 + 5))


def test_alarms_after_the_last_tolerance_are_false_or_left_out():
    """CapyMOA 409 counts them; the paper's experiments on synthetic streams did not."""
    rule, drifts = Rule(100), [(1000, 1000)]
    alarms = [1050, 1101, 5000]
    assert measured(episodes_of(alarms, drifts, rule), rule, 6000).false == 2
    assert within(alarms, drifts, rule) == [1050]


def counted(alarms, drifts, max_delay, early, instances):
    """The same by a walk over instances, each put down to the drift whose tolerance ends next."""
    true, false, first = 0, 0, {}
    fired = {alarm: alarms.count(alarm) for alarm in alarms}
    for at in range(-early, instances + max_delay + 1):
        number = fired.get(at, 0)
        if not number:
            continue
        owner = next((k for k, (_, end) in enumerate(drifts) if at <= end + max_delay), len(drifts) - 1)
        start, end = drifts[owner]
        if start - early <= at <= end + max_delay:
            true += number
            first.setdefault(owner, at - start)
        else:
            false += number
    return true, false, len(drifts) - len(first), sum(first.values()) / len(first) if first else None


@given(st.data())
@settings(max_examples=examples(4), deadline=None)
def test_metrics_are_those_of_a_walk_over_every_instance(data):
    instances = data.draw(st.integers(1, 60))
    starts = sorted(data.draw(st.sets(st.integers(0, instances - 1), min_size=1, max_size=4)))
    drifts = [
        (start, min(start + data.draw(st.integers(0, 8)), nxt - 1))
        for start, nxt in zip(starts, [*starts[1:], instances + 9], strict=True)
    ]
    alarms = sorted(data.draw(st.lists(st.integers(0, instances - 1), max_size=12)))
    max_delay, early = data.draw(st.integers(1, 10)), data.draw(st.integers(0, 5))
    found = metrics(alarms, drifts, max_delay, instances, early)
    true, false, missed, delay = counted(alarms, drifts, max_delay, early, instances)
    assert (found.true, found.false, found.missed) == (true, false, missed)
    assert found.delay == (
        pytest.approx(delay) if delay is not None else pytest.approx(math.nan, nan_ok=True)
    )
    assert found.true + found.false == len(alarms)
    assert found.alarm_rate == pytest.approx(1000 * len(alarms) / instances)
    assert found.false_rate == pytest.approx(1000 * false / instances)
    precision = true / len(alarms) if alarms else 0.0
    recall = true / (true + missed) if true + missed else 0.0
    assert (found.precision, found.recall) == (pytest.approx(precision), pytest.approx(recall))
    expected = 2 * true / (2 * true + false + missed) if true else 0.0  # F1 in counts
    assert found.f1 == pytest.approx(expected)
    assert found.episode_recall == pytest.approx(1 - missed / len(drifts))


@pytest.mark.parametrize(
    ("alarms", "drifts"), [([3, 1], [(5, 5)]), ([], []), ([], [(5, 4)]), ([], [(5, 5), (2, 2)])]
)
def test_what_is_out_of_order_is_refused(alarms, drifts):
    with pytest.raises(ValueError, match="expected"):
        episodes_of(alarms, drifts, Rule(5))


@pytest.mark.parametrize(("max_delay", "early"), [(0, 0), (5, -1)])
def test_a_tolerance_of_nothing_is_refused(max_delay, early):
    with pytest.raises(ValueError, match="expected max_delay"):
        Rule(max_delay, early)


def test_no_episode_and_no_instance_are_refused():
    for episodes, instances in (([], 10), ([Episode(1, 1, ())], 0)):
        with pytest.raises(ValueError, match="expected a drift"):
            measured(episodes, Rule(5), instances)


def test_always_firing_scores_by_how_dense_drifts_are():
    """river 1963: an alarm at every hundredth outcome, 20,000 outcomes; its F1 is of drift density alone.

    By hand, 100 allowed: a drift every 4,000 has 2 true alarms of 40 each, one every 400 has 2 of 4.
    """
    alarms = every(100).alarms(20_000, (), np.random.default_rng(0))
    sparse = metrics(alarms, [(k, k) for k in range(4_000, 20_000, 4_000)], 100, 20_000)
    dense = metrics(alarms, [(k, k) for k in range(400, 20_000, 400)], 100, 20_000)
    assert (sparse.true, dense.true) == (8, 98)
    assert sparse.f1 == pytest.approx(2 * 8 / (2 * 8 + 192))
    assert dense.f1 == pytest.approx(2 * 98 / (2 * 98 + 102))


def test_controls_do_what_they_are_called():
    drifts, rng = [(50, 50), (95, 95)], np.random.default_rng(1)
    assert NEVER.alarms(100, drifts, rng) == []
    assert every(1).alarms(3, drifts, rng) == [1, 2, 3]
    assert every(40).alarms(100, drifts, rng) == [40, 80]
    assert oracle(10).alarms(100, drifts, rng) == [60]
    number = len(at_random(0.1).alarms(100_000, drifts, rng))
    assert abs(number - 10_000) < 5 * math.sqrt(100_000 * 0.1 * 0.9)
    never, oracles = (
        next(each for each in CONTROLS if each.name.startswith(name)) for name in ("never", "oracle")
    )
    scores = [
        metrics(each.alarms(10_000, [(5_000, 5_000)], rng), [(5_000, 5_000)], 500, 10_000)
        for each in (never, oracles)
    ]
    assert [score.f1 for score in scores] == [0.0, 1.0]


def run(losses, positions, drift, instances):
    return Run(np.array(losses, np.bool_), np.array(positions), (drift,), instances)


def test_alarms_on_runs_of_unequal_length_are_given_as_instances_of_their_streams():
    runs = (run([0, 1, 1], [4, 6, 9], (6, 6), 10), run([1, 0, 0, 1], [0, 1, 2, 3], (2, 2), 10))
    assert stacked(runs).astype(int).tolist() == [[0, 1, 1, 0], [1, 0, 0, 1]]
    assert at_instances([[2, 4], [1, 4]], runs) == [[6], [0, 3]]
    world = World("", Rule(1), runs)
    assert scored([[6], [0, 3]], world) == [Counts(1, 0, 0, 1, 0), Counts(1, 1, 0, 1, 1)]


def test_a_metric_over_runs_is_pooled_and_its_error_is_the_jackknifes():
    """F1 of pooled episodes, and leaving out each of three runs by hand."""
    runs = tuple(run([0] * 10, range(10), (5, 5), 10) for _ in range(3))
    world = World("", Rule(2), runs)
    alarms = [[5], [1, 6], []]
    found = pooled(scored(alarms, world), world, lambda m: m.f1)
    # true 2, false 1, missed 1; without run 1: 1, 1, 1; without run 2: 1, 0, 1; without run 3: 2, 1, 0
    assert found.value == pytest.approx(4 / 6)
    left = np.array([2 / 4, 2 / 3, 4 / 5])
    assert found.error == pytest.approx(math.sqrt(2 / 3 * ((left - left.mean()) ** 2).sum()))
    rate = pooled(scored(alarms, world), world, lambda m: m.false_rate)
    assert rate.value == pytest.approx(1000 / 30)


def test_a_mean_over_worlds_leaves_out_what_is_undefined():
    found = mean_of([Measured(1.0, 0.3), Measured(math.nan), Measured(2.0, 0.4)])
    assert (found.value, found.error) == (1.5, pytest.approx(0.25))
    assert math.isnan(mean_of([Measured(math.nan)]).value)
