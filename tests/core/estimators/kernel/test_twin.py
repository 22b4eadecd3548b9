"""The kernel against its slow twin, after every outcome."""

from __future__ import annotations

import numpy as np
import pytest

from streamwatch.core.estimators import catalogue
from streamwatch.core.specs import AdwinSpec
from tests.core.estimators.kernel.streams import drifting, one_row, table_of
from tests.core.estimators.kernel.twin import FLAGS, Twin
from tests.core.estimators.plain_recovery import PlainRecovery
from tests.layouts import EVERYTHING

FIELDS = ("n", "hits", "repeats", "pairs", "n_eff", "true_class", "predicted_class", "agreed", *FLAGS)


def assert_same_alarms(alarms, expected) -> None:
    """`expected`: (position, alarm of the twin), in order."""
    assert [(a.position, a.detector, a.ordinal, a.outcome) for a in alarms] == [
        (position, a.detector, a.ordinal, a.outcome) for position, a in expected
    ]
    np.testing.assert_allclose(
        [(a.statistic, a.threshold, a.before, a.after, a.n_eff) for a in alarms],
        [(a.statistic, a.threshold, a.before, a.after, a.n_eff) for _, a in expected],
        rtol=1e-9,
    )


def assert_same_recoveries(trace, missed) -> None:
    plain = PlainRecovery(missed, 0.999, EVERYTHING.verdict_outcomes)
    expected = list(plain.run(trace.alarms))
    assert trace.recovery["since"].tolist() == [each.since for each in expected]
    np.testing.assert_allclose(trace.recovery["depth"], [each.depth for each in expected], rtol=1e-9)
    np.testing.assert_array_equal(trace.recovery["outcomes"], [each.outcomes for each in expected])


@pytest.mark.parametrize(
    ("classes", "stationary", "n"),
    [
        pytest.param(2, 0, 1_500, id="two classes, a change every 300"),
        pytest.param(
            30,
            3_300,
            4_000,
            id="classes appear, windows long enough for blocks are cut",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_every_estimator_equals_the_twin_after_every_outcome(classes: int, stationary: int, n: int) -> None:
    true_class, predicted_class = drifting(n, classes, seed=classes, stationary=stationary)
    trace = table_of(EVERYTHING).trace(one_row(n), true_class, predicted_class)
    twin = Twin(EVERYTHING)
    alarms = []
    totals = [{name: [] for name in FIELDS} for _ in EVERYTHING.forgetting]
    detectors = []
    warned = []
    weighted = []
    for t in range(n):
        alarms += [(t, alarm) for alarm in twin.update(int(true_class[t]), int(predicted_class[t]))]
        for index, series in enumerate(totals):
            for name, value in twin.totals(index, classes).items():
                series[name].append(value)
        detectors.append([twin.detector(index) for index in range(len(EVERYTHING.detectors))])
        warned.append([twin.warned(index) for index in range(len(EVERYTHING.detectors))])
        weighted.append([drift_weighted.now() for drift_weighted in twin.drift_weighted])

    for index, series in enumerate(totals):
        for name, expected in series.items():
            got = getattr(trace.totals[index], name)
            forgetting = EVERYTHING.forgetting[index].name
            np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-9, err_msg=f"{name} {forgetting}")
    expected = np.array(detectors)
    np.testing.assert_allclose(trace.statistic.T, expected[:, :, 0], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(trace.threshold.T, expected[:, :, 1], rtol=1e-9)
    np.testing.assert_array_equal(trace.warned.T, warned)
    np.testing.assert_allclose(trace.weighted.T, np.array(weighted)[:, :, 0], rtol=1e-11)
    np.testing.assert_allclose(trace.weighted_n_eff.T, np.array(weighted)[:, :, 1], rtol=1e-11)
    assert_same_recoveries(trace, true_class != predicted_class)
    drifts = [alarm for alarm in trace.alarms if alarm.detector < len(EVERYTHING.detectors)]
    assert_same_alarms(drifts, alarms)
    for alarm in drifts:
        assert trace.alarmed[alarm.detector, alarm.position]
        assert trace.statistic[alarm.detector, alarm.position] == alarm.statistic
        assert alarm.statistic > alarm.threshold
    assert trace.alarmed.sum() == len(drifts)


def test_the_streams_used_here_make_every_detector_alarm_and_cut_large_buckets() -> None:
    true_class, predicted_class = drifting(4_000, 30, seed=30, stationary=3_300)
    trace = table_of(EVERYTHING).trace(one_row(4_000), true_class, predicted_class)
    assert {alarm.detector for alarm in trace.alarms} >= set(range(len(EVERYTHING.detectors)))
    warns = [catalogue.entry(detector).warns for detector in EVERYTHING.detectors]
    assert trace.warned.any(axis=1).tolist() == warns
    assert not (trace.warned & trace.alarmed).any()
    unweighted = trace.totals[0].n
    assert (trace.weighted_n_eff[:, -1] < 0.999 * unweighted[-1]).all()
    width = trace.totals[EVERYTHING.forgetting.index(AdwinSpec())].n
    assert width.max() > 3_000
    assert width[-1] < 1_000


@pytest.mark.slow
def test_models_in_one_batch_see_nothing_of_each_other_but_drifts_of_their_reference() -> None:
    rng = np.random.default_rng(5)
    n, models = 1_500, 4
    true_class, predicted_class = drifting(n, 12, seed=6, every=400)
    rows = rng.integers(0, models, n).astype(np.int32)
    table = table_of(EVERYTHING, models)
    twins = [Twin(EVERYTHING)]
    twins += [Twin(EVERYTHING, twins[0]) for _ in range(1, models)]
    expected = []
    for t in range(n):
        expected += [(t, a) for a in twins[rows[t]].update(int(true_class[t]), int(predicted_class[t]))]
    got = []
    for start in range(0, n, 97):
        part = slice(start, start + 97)
        alarms = table.fold(rows[part], true_class[part], predicted_class[part])
        got += [alarm._replace(position=start + alarm.position) for alarm in alarms]
    assert_same_alarms(got, expected)
    assert [alarm.row for alarm in got] == [rows[alarm.position] for alarm in got]

    every = np.arange(models)
    for index in range(len(EVERYTHING.forgetting)):
        totals = table.totals(every, index)
        for row, twin in enumerate(twins):
            for name, value in twin.totals(index, totals.true_class.shape[1]).items():
                np.testing.assert_allclose(getattr(totals, name)[row], value, rtol=1e-11, atol=1e-9)
    found = table.detectors(every)
    for index in range(len(EVERYTHING.detectors)):
        states = np.array([twin.detector(index) for twin in twins])
        shown = np.c_[found.statistic[index], found.threshold[index]]
        np.testing.assert_allclose(shown, states, rtol=1e-9, atol=1e-11)
        assert found.alarms[index].tolist() == [
            sum(a.detector == index for a in twin.alarms) for twin in twins
        ]
        assert found.warned[index].tolist() == [twin.warned(index) for twin in twins]
    for index in range(len(EVERYTHING.drift_weighted)):
        expected = np.array([twin.drift_weighted[index].now() for twin in twins])
        np.testing.assert_allclose(np.c_[table.weighted(every, index)], expected, rtol=1e-11)
    assert twins[3].drift_weighted[4].drifts > 0, "the reference declared drifts, and others know"
    assert table.outcomes(every).tolist() == [twin.outcomes for twin in twins]
    misses = [int((twin.history[0] != twin.history[1]).sum()) for twin in twins]
    assert table.errors(every).tolist() == misses
