"""Some hundred outcomes in which everything happens: what each leaves is what the slow twin says.

Detectors are quick here: each of them alarms, and warns if it can, before a few dozen wrong answers. So the
whole kernel is compared with its definitions in a second, and in less than a minute where Python runs it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from streamwatch.core.estimators import catalogue
from streamwatch.core.estimators.kernel.table import ModelTable, Trace
from streamwatch.core.estimators.registers.prediction_clock import PredictionClockSpec, table_spec
from streamwatch.core.specs import FadingSpec, MonitorsSpec
from tests.core.estimators.kernel.streams import Ints, late_labels, one_row, scores_in, some_scores, table_of
from tests.core.estimators.kernel.twin import FLAGS, Twin
from tests.core.estimators.plain_recovery import PlainRecovery
from tests.layouts import EVERYTHING

FIELDS = ("n", "hits", "repeats", "pairs", "n_eff", "true_class", "predicted_class", "agreed", *FLAGS)
SHORTER = {
    "rate": {"threshold": 0.5},
    "rate_both": {"threshold": 0.3},
    "ddm": {"min_outcomes": 12},
    "ddm_early": {"min_outcomes": 5},
    "cusum": {"threshold": 3.0},
    "cusum_expected": {"threshold": 4.0, "min_outcomes": 3},
    "ewma": {"weight": 0.1, "alarm_level": 2.0},
    "ewma_paper": {"min_outcomes": 8},
    "stepd": {"recent": 12},
    "stepd_both": {"recent": 10},
    "kswin": {"recent": 10, "older": 25, "significance": 0.05},
    "kswin_short": {"recent": 15, "older": 10, "significance": 0.1},
}
"""Parameters of detectors by name where those of `EVERYTHING` need longer streams."""
QUICK = replace(
    EVERYTHING,
    forgetting=tuple(FadingSpec(0.9) if f == FadingSpec(0.999) else f for f in EVERYTHING.forgetting),
    detectors=tuple(replace(d, **SHORTER.get(d.name, {})) for d in EVERYTHING.detectors),
    verdict_outcomes=120,
)
"""Recovery is of the first fading factor: a memory of 10 outcomes, and 120 before a drift is given up."""
WITHOUT = replace(table_spec(PredictionClockSpec(), 1), max_classes=4)
"""Without shadow classifiers, as detectors in the order of predictions are."""
CLASSES = 3


def phases(*errors: float, length: int, seed: int) -> tuple[Ints, Ints]:
    """Labels and answers: so many outcomes at each error, whose labels come in longer and longer runs."""
    rng = np.random.default_rng(seed)
    n = length * len(errors)
    error = np.repeat(errors, length)
    stays = rng.random(n) < np.repeat(np.linspace(0.2, 0.9, len(errors)), length)
    true_class = rng.integers(0, CLASSES, n).astype(np.int32)
    for t in range(1, n):
        true_class[t] = true_class[t - 1] if stays[t] else true_class[t]
    wrong = rng.random(n) < error
    return true_class, np.where(
        wrong, (true_class + rng.integers(1, CLASSES, n)) % CLASSES, true_class
    ).astype(np.int32)


def scores_of(scores, t: int) -> dict[int, float]:
    part = slice(scores.offsets[t], scores.offsets[t + 1])
    return dict(zip(scores.classes[part].tolist(), scores.values[part].tolist(), strict=True))


def assert_same_alarms(alarms, expected) -> None:
    """`expected`: (position, row, alarm of the twin), in order."""
    assert [(a.position, a.row, a.detector, a.ordinal, a.outcome) for a in alarms] == [
        (position, row, a.detector, a.ordinal, a.outcome) for position, row, a in expected
    ]
    np.testing.assert_allclose(
        [(a.statistic, a.threshold, a.before, a.after, a.n_eff) for a in alarms],
        [(a.statistic, a.threshold, a.before, a.after, a.n_eff) for *_, a in expected],
        rtol=1e-9,
    )


def test_after_every_outcome_all_estimators_are_those_of_the_twin_and_all_detectors_alarm() -> None:
    true_class, predicted_class = phases(0.05, 0.9, 0.1, 0.7, length=50, seed=11)
    known, scores = late_labels(true_class, seed=1), some_scores(true_class, seed=2)
    table, twin, expected, warned, recovery = table_of(QUICK), Twin(QUICK), [], [], []
    for start in range(0, len(true_class), 40):
        part = slice(start, start + 40)
        columns = true_class[part], predicted_class[part], known[part], scores_in(scores, part)
        trace = table.trace(one_row(40), *columns)
        states = []
        for t in range(start, start + 40):
            alarms = twin.update(
                *(int(column[t]) for column in (true_class, predicted_class, known)), scores_of(scores, t)
            )
            expected += [(t, 0, alarm) for alarm in alarms]
            states.append(State(twin))
        assert_same_states(trace, states)
        assert_same_alarms(
            [a._replace(position=start + a.position) for a in trace.alarms],
            [e for e in expected if e[0] >= start],
        )
        assert {(a.position, a.detector) for a in trace.alarms} == set(
            zip(*trace.alarmed.T.nonzero(), strict=True)
        )
        warned.append(trace.warned)
        recovery.append(trace.recovery)
    assert {alarm.detector for *_, alarm in expected} == set(range(len(QUICK.detectors)))
    warns = [catalogue.entry(detector).warns for detector in QUICK.detectors]
    assert np.concatenate(warned, axis=1).any(axis=1).tolist() == warns
    assert all(each.drifts for each in twin.drift_weighted)
    plain = PlainRecovery(true_class != predicted_class, 0.9, QUICK.verdict_outcomes)
    assert_same_recoveries(np.concatenate(recovery), plain, expected)


class State:
    """What the twin of a model says of its estimators after an outcome."""

    def __init__(self, twin: Twin) -> None:
        self.totals = [twin.totals(index, CLASSES) for index in range(len(QUICK.forgetting))]
        self.detectors = [twin.detector(index) for index in range(len(QUICK.detectors))]
        self.warned = [twin.warned(index) for index in range(len(QUICK.detectors))]
        self.weighted = [each.now() for each in twin.drift_weighted]


def assert_same_states(trace: Trace, states: list[State]) -> None:
    for index, got in enumerate(trace.totals):
        for name in FIELDS:
            series = [each.totals[index][name] for each in states]
            np.testing.assert_allclose(getattr(got, name), series, 1e-11, 1e-9, err_msg=f"{name} {index}")
    detectors = np.stack([trace.statistic, trace.threshold]).T
    np.testing.assert_allclose(detectors, [each.detectors for each in states], rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(trace.warned.T, [each.warned for each in states])
    weighted = np.stack([trace.weighted, trace.weighted_n_eff]).T
    np.testing.assert_allclose(weighted, [each.weighted for each in states], rtol=1e-11)


def assert_same_recoveries(traced, plain: PlainRecovery, expected) -> None:
    """Drifts as measured anew after every outcome; at least one has recovered."""
    known = list(plain.run([Rise(alarm) for *_, alarm in expected]))
    assert traced["since"].tolist() == [each.since for each in known]
    assert traced["recovered"].tolist() == [each.recovered for each in known]
    assert traced["not_recovered"].tolist() == [each.not_recovered for each in known]
    np.testing.assert_allclose(traced["depth"], [each.depth for each in known], rtol=1e-9)
    np.testing.assert_array_equal(traced["outcomes"], [each.outcomes for each in known])
    assert known[-1].recovered > 0


class Rise:
    """An alarm of a detector, as recovery takes it."""

    since = 0

    def __init__(self, alarm) -> None:
        self.outcome, self.before, self.after = alarm.outcome, alarm.before, alarm.after


class Models:
    """Outcomes of three models that come in turns, and their twins; the first model is the reference."""

    def __init__(self) -> None:
        rng = np.random.default_rng(8)
        streams = [
            phases(0.02, 0.98, length=40, seed=1),
            phases(0.8, 0.1, 0.95, length=27, seed=2),
            phases(0.3, 0.3, 0.3, length=13, seed=3),
        ]
        self.rows = rng.permutation(np.repeat(np.arange(3), [80, 81, 39])).astype(np.int32)
        self.true_class, self.predicted_class = np.zeros((2, 200), np.int32)
        for row, (true_class, predicted_class) in enumerate(streams):
            self.true_class[self.rows == row] = true_class
            self.predicted_class[self.rows == row] = predicted_class
        self.known = late_labels(self.true_class, seed=5)
        self.scores = some_scores(self.true_class, seed=6)
        self.event_ms = 1_000_000 + 1_000 * np.arange(200)
        first = Twin(QUICK)
        self.twins = [first, Twin(QUICK, first), Twin(QUICK, first)]
        self.expected = []
        for t, row in enumerate(self.rows.tolist()):
            alarms = self.twins[row].update(
                int(self.true_class[t]),
                int(self.predicted_class[t]),
                int(self.known[t]),
                scores_of(self.scores, t),
            )
            self.expected += [(t, row, alarm) for alarm in alarms]

    def fold(self, table: ModelTable, edges: list[int]):
        """Alarms of all batches, with their positions in the whole."""
        found = []
        for start, end in pairwise(edges):
            part = slice(start, end)
            alarms = table.fold(
                self.rows[part],
                self.true_class[part],
                self.predicted_class[part],
                self.known[part],
                scores_in(self.scores, part),
                self.event_ms[part],
            )
            found += [alarm._replace(position=start + alarm.position) for alarm in alarms]
        return found


@pytest.fixture(scope="module")
def models() -> Models:
    return Models()


@pytest.mark.parametrize(
    ("max_models", "edges"),
    [
        pytest.param(6, [0, 1, 3, 20, 60, 61, 200], id="in batches"),
        pytest.param(400, [0, 5, 17, 200], id="in a table that does not fit a core's cache"),
    ],
)
def test_models_in_one_batch_are_those_of_their_twins(
    models: Models, max_models: int, edges: list[int]
) -> None:
    spec: MonitorsSpec = replace(QUICK, max_models=max_models)
    table = table_of(spec, 3)
    assert (table.pools.models.nbytes > 1 << 20) == (max_models > 6)
    assert_same_alarms(models.fold(table, edges), models.expected)

    every = np.arange(3)
    for index in range(len(spec.forgetting)):
        totals = table.totals(every, index)
        for row, twin in enumerate(models.twins):
            for name, value in twin.totals(index, CLASSES).items():
                np.testing.assert_allclose(getattr(totals, name)[row], value, rtol=1e-11, atol=1e-9)
    found = table.detectors(every)
    for index in range(len(spec.detectors)):
        states = np.array([twin.detector(index) for twin in models.twins])
        shown = np.c_[found.statistic[index], found.threshold[index]]
        np.testing.assert_allclose(shown, states, rtol=1e-9, atol=1e-11)
        assert found.alarms[index].tolist() == [
            sum(a.detector == index for a in twin.alarms) for twin in models.twins
        ]
        assert found.warned[index].tolist() == [twin.warned(index) for twin in models.twins]
    for index in range(len(spec.drift_weighted)):
        weighted = np.array([twin.drift_weighted[index].now() for twin in models.twins])
        np.testing.assert_allclose(np.c_[table.weighted(every, index)], weighted, rtol=1e-11)
    assert models.twins[1].drift_weighted[4].drifts > 0, "the reference declared drifts, and others know"
    assert table.outcomes(every).tolist() == [twin.outcomes for twin in models.twins]

    alarm_errors = {(a.row, a.outcome): a.errors for a in models.fold(table_of(spec, 3), edges)}
    persistent = table.layout.opponents.index("persistent")
    leads = table.verdicts(every).lead[persistent]
    for row, twin in enumerate(models.twins):
        true_class, predicted_class = twin.history[:, 1 : twin.outcomes + 1]
        missed = true_class != predicted_class
        assert table.errors(np.array([row])).tolist() == [missed.sum()]
        for (of, outcome), errors in alarm_errors.items():
            assert of != row or errors == missed[:outcome].sum()
        lead = (~missed[1:]).astype(float) - (true_class[1:] == true_class[:-1])
        of_whole_blocks = lead[:64].mean() if len(lead) >= 64 else np.nan
        assert leads[row] == pytest.approx(of_whole_blocks, nan_ok=True)
        plain = PlainRecovery(missed, 0.9, QUICK.verdict_outcomes)
        *_, last = plain.run([Rise(alarm) for _, of, alarm in models.expected if of == row])
        record = table.recoveries(every)[row]
        got = [record[name] for name in ("since", "recovered", "not_recovered", "depth", "outcomes")]
        np.testing.assert_allclose(got, last)
        if last.since:
            (begun,) = np.flatnonzero(models.rows == row)[[int(record["alarmed"]) - 1]]
            assert record["alarm_ms"] == models.event_ms[begun]


def test_what_is_left_of_a_window_that_was_long_is_what_its_outcomes_count() -> None:
    """Buckets of 512 outcomes and more have counts of their own, which are merged, and taken off at a cut."""
    table = table_of(QUICK)
    true_class, predicted_class = phases(0.05, 0.05, 0.9, length=1_700, seed=6)
    known, scores = late_labels(true_class, seed=1), some_scores(true_class, seed=2)
    window, widths = len(QUICK.forgetting) - 1, []
    for start, end in pairwise([0, 3_400, 3_420, 3_440, 5_100]):
        part = slice(start, end)
        columns = true_class[part], predicted_class[part], known[part], scores_in(scores, part)
        table.fold(one_row(end - start), *columns)
        width, totals = int(table.adwin_width(np.array([0]), window)[0]), table.totals(np.array([0]), window)
        own = slice(end - width, end)
        y, answer, before = true_class[own], predicted_class[own], true_class[own.start - 1 : end - 1]
        assert totals.n[0] == width
        assert totals.true_class[0].tolist() == np.bincount(y, minlength=CLASSES).tolist()
        assert totals.predicted_class[0].tolist() == np.bincount(answer, minlength=CLASSES).tolist()
        assert totals.agreed[0].tolist() == np.bincount(y[y == answer], minlength=CLASSES).tolist()
        if own.start:
            assert (totals.pairs[0], totals.repeats[0]) == (width, (y == before).sum())
            assert totals.label_at_prediction_repeats[0] == (known[own] == y).sum()
            missed = true_class != predicted_class
            assert totals.lost_twice[0] == (missed[own] & missed[own.start - 1 : end - 1]).sum()
        widths.append(width)
    assert max(widths) > 3_000
    assert 100 < widths[-1] < 2_000


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(QUICK, id="with shadow classifiers, which note classes too"),
        pytest.param(WITHOUT, id="without", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize(("true_class", "predicted_class"), [(2, 0), (0, 2), (2, 2)])
def test_a_class_counts_from_its_first_outcome_whether_it_is_true_or_predicted(
    true_class: int, predicted_class: int, spec: MonitorsSpec
) -> None:
    table = table_of(spec)
    table.fold(one_row(1), *np.array([[true_class], [predicted_class]], np.int32))
    totals = table.totals(np.array([0]), 0)
    assert totals.true_class.tolist() == [[float(k == true_class) for k in range(3)]]
    assert totals.predicted_class.tolist() == [[float(k == predicted_class) for k in range(3)]]
