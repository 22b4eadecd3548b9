"""Learners computed for whole streams at once, beside slow ones that go instance by instance."""

from __future__ import annotations

import math
from collections import defaultdict

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from streamwatch.core.specs import DriftWeightedSpec
from streamwatch.papers import learners as naive_bayes
from streamwatch.papers.learners import (
    ADWIN_DRIFT,
    ALPHA,
    LinearDiscriminant,
    alarms_of,
    at_alarms,
    augmented,
    chance_alarms,
    spec_of,
    watch_losses,
)
from streamwatch.papers.recovery import recovery
from streamwatch.papers.result import Measured, over_runs, share
from streamwatch.papers.streams.sources import StickySpec, sticky, waveform
from streamwatch.papers.weighted import weights

pytestmark = pytest.mark.slow


def slow_naive_bayes(x, y, classes, window):
    """Posterior of each instance from the instances before it, by definition."""
    found = []
    for t in range(len(x)):
        first = 0 if window is None else max(0, t - window)
        logs = []
        for k in range(classes):
            of_k = x[first:t][y[first:t] == k]
            log = math.log((len(of_k) + 1) / (t - first + classes))
            for j in range(x.shape[1]):
                mean = of_k[:, j].mean() if len(of_k) else x[t, j]
                variance = max(of_k[:, j].var(), naive_bayes.LEAST_VARIANCE) if len(of_k) > 1 else 1.0
                log -= 0.5 * (math.log(variance) + (x[t, j] - mean) ** 2 / variance)
            logs.append(log)
        shares = np.exp(np.array(logs) - max(logs))
        found.append(shares / shares.sum())
    return np.array(found)


@pytest.mark.parametrize("window", [None, 1, 7, 60])
def test_naive_bayes_knows_what_came_before_each_instance_and_nothing_else(window):
    rng = np.random.default_rng(3)
    y = rng.integers(3, size=150)
    x = rng.standard_normal((150, 2)) + np.array([0.0, 1.0, 30.0])[y][:, None]
    found = naive_bayes.scores(x, y, 3, window)
    np.testing.assert_allclose(found, slow_naive_bayes(x, y, 3, window), atol=1e-6)


def test_a_learner_that_begins_anew_is_a_new_learner_from_there_on():
    rng = np.random.default_rng(4)
    y = rng.integers(2, size=300)
    x = rng.standard_normal((300, 2)) + y[:, None]
    found = naive_bayes.restarted(x, y, 2, np.array([100, 250]))
    for begin, end in ((0, 100), (100, 250), (250, 300)):
        np.testing.assert_array_equal(
            found[begin:end], naive_bayes.predictions(x[begin:end], y[begin:end], 2)
        )


def test_a_learner_begins_anew_where_a_detector_on_its_own_losses_alarms():
    rng = np.random.default_rng(5)
    y = rng.integers(2, size=12_000)
    x = (np.where(np.arange(12_000) < 5_000, 1, -1) * (2 * y - 1) + 0.5 * rng.standard_normal(12_000))[
        :, None
    ]
    answers, starts = at_alarms(x, y, 2, spec_of(), ADWIN_DRIFT)
    assert len(starts) == 1
    assert 5_000 < starts[0] < 5_200
    np.testing.assert_array_equal(answers, naive_bayes.restarted(x, y, 2, np.array(starts)))
    whole = naive_bayes.predictions(x, y, 2) != y
    assert alarms_of(spec_of(), whole)[ADWIN_DRIFT][0] == starts[0]


def test_random_alarms_keep_their_distance_and_come_as_often_as_they_should():
    rng = np.random.default_rng(6)
    gaps = np.diff(chance_alarms(rng, 500_000, 0.01))
    assert gaps.min() >= 30
    assert gaps.mean() == pytest.approx(29 + 100, rel=0.05)
    assert chance_alarms(rng, 100, 1.0) == [30, 60, 90]
    assert chance_alarms(rng, 100, 0.0) == []


@pytest.mark.parametrize("order", [0, 1, 3])
def test_augmentation_is_the_faded_majority_of_labels_in_the_same_context(order):
    rng = np.random.default_rng(7)
    y, answers = rng.integers(3, size=400), rng.integers(3, size=400)
    found = augmented(y, answers, 3, order)
    history = defaultdict(list)
    for t in range(400):
        past = [0] * order + y[:t].tolist()
        context = (int(answers[t]), *past[len(past) - order :])
        counts = [sum(ALPHA ** (t - s) for s, k in history[context] if k == c) for c in range(3)]
        if max(counts) < 0.05:
            assert found[t] == answers[t]
        else:
            assert counts[found[t]] == pytest.approx(max(counts))
        history[context].append((t, int(y[t])))


def test_the_linear_discriminant_answers_as_that_of_scikit_learn():
    x, y = waveform(np.random.default_rng(8), 3_000)
    learner = LinearDiscriminant(3, 21)
    assert set(learner.predict(x[:10]).tolist()) == {0}
    for begin in range(0, 2_000, 100):
        learner.learn(x[begin : begin + 100], y[begin : begin + 100])
    theirs = LinearDiscriminantAnalysis().fit(x[:2_000], y[:2_000]).predict(x[2_000:])
    assert (learner.predict(x[2_000:]) == theirs).mean() > 0.995
    assert (theirs == y[2_000:]).mean() == pytest.approx(0.85, abs=0.03)


def test_drift_weights_of_known_drifts_are_those_the_daemon_gives_its_own():
    rng = np.random.default_rng(9)
    losses = rng.random(9_000) < np.where(np.arange(9_000) // 3_000 % 2 == 0, 0.1, 0.5)
    watched = watch_losses(spec_of(weighting=DriftWeightedSpec(w_avg=3.0)), losses)
    drifts = watched.alarms(0, ADWIN_DRIFT).tolist()
    assert drifts
    expected = np.average(~losses, weights=weights(len(losses), drifts))
    assert watched.weighted()[0, -1] == pytest.approx(expected, abs=1e-9)
    np.testing.assert_array_equal(weights(50, []), 1.0)


def test_recovery_is_depth_and_outcomes_until_the_error_is_within_its_bound():
    n_eff = np.full(100, 2_000.0)
    bound = math.sqrt(math.log(2 / 0.05) / 4_000)
    error = np.full(100, 0.1)
    error[50:60] = np.linspace(0.2, 0.3, 10)
    error[60:70] = 0.2
    found = recovery(error, n_eff, 50)
    assert (found.before, found.depth, found.outcomes) == (0.1, pytest.approx(0.2), 21.0)
    error[50:] = 0.3
    assert math.isnan(recovery(error, n_eff, 50).outcomes)
    error[50:] = 0.1 + 0.9 * bound
    assert recovery(error, n_eff, 50).outcomes == 0.0
    with pytest.raises(ValueError, match="outcomes before and after it, got 0 of 100"):
        recovery(error, n_eff, 0)


def test_sticky_labels_repeat_as_given_and_their_posteriors_are_calibrated():
    drawn = sticky(StickySpec(repeat=0.7), np.random.default_rng(10), 60_000)
    repeats = (drawn.true_class[1:] == drawn.true_class[:-1]).mean()
    assert repeats == pytest.approx(0.7 + 0.3 * (0.36 + 0.16), abs=0.01)
    for posterior in (drawn.posterior, drawn.informed):
        for low, high in ((0.1, 0.3), (0.6, 0.9)):
            among = (posterior[:, 1] >= low) & (posterior[:, 1] < high)
            assert drawn.true_class[among].mean() == pytest.approx(posterior[among, 1].mean(), abs=0.02)


@pytest.mark.parametrize(
    ("changed", "message"), [({"repeat": 1.0}, "repeat must be in"), ({"priors": (0.5, 0.6)}, "sum to 1")]
)
def test_sticky_labels_that_cannot_be_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        StickySpec(**changed)


def test_numbers_tell_their_standard_error_and_leave_out_runs_without_value():
    found = over_runs([1.0, 3.0, float("nan")])
    assert (found.value, found.error) == (2.0, pytest.approx(1.0))
    assert share(0, 20).error > 0.03
    assert Measured(-0.00001, 0.0, 3).text() == "0.000"
    assert Measured(float("nan")).text() == "–"
    assert Measured(0.5, 0.0124, 2).text() == "0.50 ± 0.01"
