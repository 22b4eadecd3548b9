"""The verdict on a model that predicts in folds, after every outcome, against its definition."""

from __future__ import annotations

from dataclasses import replace
from math import log

import msgspec
import numpy as np
import pytest

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import VERDICT, Outcome, fold_name, model_of
from tests.core.estimators.verdicts.plain_verdict import PlainVerdict, Side
from tests.layouts import DEFAULT
from tests.tiers import by_tier

SPEC = replace(DEFAULT, max_models=8, max_classes=4, verdict_outcomes=300)
PERSISTENT = 0


class PlainFold(PlainVerdict):
    """A fold keeps account of its leads, and leaves claims to its model."""

    def _claim(self, t: int) -> None:
        del t


class PlainFolds:
    """The folds of one model and the claims of their mean."""

    def __init__(self, folds: int, outcomes: int) -> None:
        self.folds = [PlainFold(outcomes) for _ in range(folds)]
        self.threshold = self.folds[0].threshold
        self.changes = 0

    def take(self, fold: int, d: float, outcome: int, event_ms: int) -> bool:
        before = self.changes
        one = self.folds[fold]
        had_started = one.started
        if one.take(d, outcome, event_ms):  # only time opens it
            self.changes += 1
            for other in self.folds:
                if other.verdict:
                    other._change(0, (outcome, event_ms), len(other.leads))
        elif one.started and (d or not had_started):
            reached = [s for s in ("worse", "better") if self.mean(s) >= self.threshold]
            if reached:
                self.claim(max(reached, key=self.mean), reached)
        return self.changes > before

    def counted(self, name: str) -> list[Side]:
        return [getattr(fold, name) for fold in self.folds if fold.started]

    def mean(self, name: str) -> float:
        return sum(side.mean for side in self.counted(name)) / len(self.folds)

    def claim(self, name: str, reached: list[str]) -> None:
        sides = self.counted(name)
        largest = max(max(side.c) for side in sides)
        since = next(side.start[side.c.index(largest)] for side in sides if largest in side.c)
        sign = sides[0].sign
        self.changes += self.folds[0].verdict != sign
        for fold in self.folds:
            if fold.verdict != sign:
                fold._change(sign, since, len(fold.leads))
            fold.last_claim = len(fold.leads) if fold.started else 10**9  # others open it
            for side in reached:
                getattr(fold, side).forget()


def ids(n: int, folds: int, seed: int):
    """(fold, label, prediction) of ids whose labels repeat with .8; the folds are right together at times.

    The model is good for 2,600 ids, then bad, then as good as no change; an id in seven lacks its last fold.
    """
    rng = np.random.default_rng(seed)
    label = 0
    for i in range(n):
        label = label if rng.random() < 0.8 else 1 - label
        share = 0.97 if i < 2_600 else 0.6 if i < 3_500 else 0.8
        common = rng.random() < share
        for fold in range(folds):
            if fold == folds - 1 and i % 7 == 0:
                continue
            right = common if rng.random() < 0.5 else rng.random() < share
            yield i, fold, label, label if right else 1 - label


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(by_tier(fast=1, default=1, everything=6)))
def test_the_verdict_of_folds_is_that_of_the_mean_evidence_after_every_outcome(seed: int) -> None:
    folds = 3
    table, plain = ModelTable(SPEC), PlainFolds(folds, SPEC.verdict_outcomes)
    rows = [table.add_model() for _ in range(folds)]
    table.join_folds(rows)
    previous: list[int | None] = [None] * folds
    counted = [0] * folds
    changes = claims = 0
    for i, fold, y, y_hat in ids(4_200, folds, seed):
        counted[fold] += 1
        alarms = table.fold(
            np.array([rows[fold]], np.int32),
            np.array([y], np.int32),
            np.array([y_hat], np.int32),
            event_ms=np.array([1_000 * i], np.int64),
        )
        changed = False
        answer = previous[fold]
        if answer is not None:
            d = float(y_hat == y) - float(answer == y)
            changed = plain.take(fold, d, counted[fold], 1_000 * i)
        previous[fold] = y
        assert [a.detector for a in alarms if a.detector >= len(SPEC.detectors)] == (
            [len(SPEC.detectors)] if changed else []
        )
        changes += changed
        if not (changed or (i and i % 40 == 0)):
            continue
        found = table.fold_verdicts(rows)
        one = plain.folds[0]
        assert found.verdict[PERSISTENT, 0] == one.verdict
        if one.since[0]:
            assert (found.since[PERSISTENT, 0], 1_000 * found.since_seconds[PERSISTENT, 0]) == one.since
            claims += 1
        for values, name in ((found.better, "better"), (found.worse, "worse")):
            expected = log(max(plain.mean(name), 1.0)) / log(plain.threshold)
            assert values[PERSISTENT, 0] == pytest.approx(expected, abs=1e-9)
        intervals = np.array([each.interval() for each in plain.folds]).mean(axis=0)
        lead = (found.lead, found.lower, found.upper)
        assert [v[PERSISTENT, 0] for v in lead] == pytest.approx(intervals.tolist(), abs=1e-9, nan_ok=True)
    assert changes >= 3, "better, worse and open must all have come"
    assert claims > 50


def test_a_change_is_reported_once_of_the_model_and_folds_of_others_have_no_part_in_it() -> None:
    monitors = EstimatorSet(SPEC)
    outcomes = [
        Outcome(fold_name(model, fold), str(y), str(y_hat if model == "m" else y), 1_000 * i, 5)
        for i, fold, y, y_hat in ids(4_200, 3, 1)
        for model in ("m", "n")
    ]
    verdicts = [a for a in monitors.fold(outcomes) if a.detector == VERDICT]
    assert [a.after for a in verdicts if a.model == "n"] == [1.0]
    of_m = [a for a in verdicts if a.model == "m"]
    assert [a.before for a in of_m][1:] == [a.after for a in of_m][:-1]
    assert {a.after for a in of_m} == {1.0, -1.0, 0.0}
    assert all(a.judgement.opponent == "persistent" for a in of_m)


def test_changes_are_numbered_in_turn_where_a_fold_comes_later() -> None:
    monitors = EstimatorSet(SPEC)
    rng = np.random.default_rng(2)
    n = 14_000
    labels = np.cumsum(rng.random(n) < 0.2) % 2
    share = np.where(np.arange(n) < 7_000, 0.97, 0.5)
    outcomes = [
        Outcome(fold_name("m", fold), str(y), str(y_hat), i, 5)
        for fold in (2, 0, 1)  # of each id, the later fold comes first
        for i, (y, y_hat) in enumerate(zip(labels, labels ^ (rng.random(n) >= share), strict=True))
        if i < 7_200 and (fold < 2 or i >= 3_000)
    ]
    outcomes.sort(key=lambda outcome: outcome.event_ms)
    before = [outcome for outcome in outcomes if outcome.event_ms < 2_500]
    (first,) = [a for a in monitors.fold(before) if a.detector == VERDICT]
    records = monitors._table.pools.models["verdicts"]  # as if there had been three more changes by then
    records["changes"][monitors._index.rows_of_folds("m"), PERSISTENT] += 3
    (second,) = [a for a in monitors.fold(outcomes[len(before) :]) if a.detector == VERDICT]
    assert second.event_ms - second.outcome == 2_999, "at an outcome of the later fold"
    assert (first.ordinal, second.ordinal) == (1, 5)


@pytest.mark.slow
@pytest.mark.parametrize("cut", [1, 37, 1_000])
def test_verdicts_and_alarms_of_folds_do_not_depend_on_batches(cut: int) -> None:
    outcomes = [
        Outcome(fold_name("m", fold), str(y), str(y_hat), 1_000 * i, 5)
        for i, fold, y, y_hat in ids(2_400, 3, 2)
    ]
    whole, parts = EstimatorSet(SPEC), EstimatorSet(SPEC)
    expected = whole.fold(outcomes)
    found = [a for start in range(0, len(outcomes), cut) for a in parts.fold(outcomes[start : start + cut])]
    assert found == expected
    assert {model_of(a.model) for a in found} == {a.model for a in found} == {"m"}
    by_detector: dict[str, list[int]] = {}
    for alarm in found:
        by_detector.setdefault(alarm.detector, []).append(alarm.ordinal)
    for ordinals in by_detector.values():
        assert ordinals == list(range(1, len(ordinals) + 1))
    for name in whole.models():
        assert whole.snapshot(name) == parts.snapshot(name)
    assert whole.families() == parts.families()


def test_with_one_fold_the_verdict_is_that_of_the_model_without_folds() -> None:
    """A mean of one: the e-detector of the fold, whoever claims."""
    stream = [(i, y, y_hat) for i, fold, y, y_hat in ids(4_200, 1, 3)]
    folds, plain = EstimatorSet(SPEC), EstimatorSet(SPEC)
    one = [Outcome(fold_name("m", 0), str(y), str(y_hat), 1_000 * i, 5) for i, y, y_hat in stream]
    other = [Outcome("m", str(y), str(y_hat), 1_000 * i, 5) for i, y, y_hat in stream]
    uncounted = [msgspec.structs.replace(alarm, errors=None) for alarm in plain.fold(other)]
    assert folds.fold(one) == uncounted  # errors are counted of models without folds
    for family, expected in zip(folds.families(), plain.families(), strict=True):
        if not family.name.startswith(("fold", "detector_statistic", "detector_threshold")):
            assert dict(family.samples) == pytest.approx(dict(expected.samples)), family.name
