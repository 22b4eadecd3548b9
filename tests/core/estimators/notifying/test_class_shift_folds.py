"""Which it looks like when the error of a model that predicts in folds changed, over all its folds."""

from __future__ import annotations

from dataclasses import replace
from math import nan

import numpy as np
import pytest

from streamwatch.core.estimators.notifying.class_shift import ClassShift, class_shift
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome, fold_name
from tests.core.estimators.notifying.test_class_shift import CHANGED, OUTCOMES, STEADY, Z
from tests.layouts import DEFAULT

WINDOW = 1_000
"""Outcomes of the sliding window in the layout; ADWIN's is longer here."""


def drawn(
    shares: tuple[float, float], recalls: tuple[tuple[float, float], ...], seed: int
) -> list[tuple[int, int]]:
    """Label and answer of every outcome; shares of class 1 and recalls of both, before and after."""
    chance = np.random.default_rng(seed)
    late = np.arange(OUTCOMES) >= CHANGED
    label = (chance.random(OUTCOMES) < np.where(late, shares[1], shares[0])).astype(int)
    hit = chance.random(OUTCOMES) < np.array(recalls)[late.astype(int), label]
    return list(zip(label.tolist(), np.where(hit, label, 1 - label).tolist(), strict=True))


def evaluated(streams: dict[str, list[tuple[int, int]]], names: dict[str, str]) -> EstimatorSet:
    """A set of estimators that was fed these streams, side by side."""
    estimators = EstimatorSet(replace(DEFAULT, max_models=8))
    estimators.fold(
        [
            Outcome(model, names[str(label)], names[str(answer)], at, 0)
            for at, row in enumerate(zip(*streams.values(), strict=True))
            for model, (label, answer) in zip(streams, row, strict=True)
        ]
    )
    return estimators


NAMES = {"0": "c0", "1": "c1"}
CASES = {
    "classes": ((0.1, 0.4), STEADY),
    "model": ((0.3, 0.3), ((0.95, 0.8), (0.8, 0.5))),
    "unclear": ((0.1, 0.25), ((0.95, 0.6), (0.89, 0.5))),
}


@pytest.mark.parametrize("case", CASES)
def test_folds_that_all_say_the_same_say_what_one_model_says(case: str) -> None:
    stream = drawn(*CASES[case], seed=1)
    alone = evaluated({"m": stream}, NAMES).facts.class_shift("m", nan)
    folds = evaluated({fold_name("m", fold): stream for fold in range(4)}, NAMES)
    found = folds.facts.class_shift("m", nan)
    assert found is not None
    assert alone is not None
    assert found.looks_like == alone.looks_like == case
    assert found.share.name == alone.share.name
    for number in ("change", "by_classes", "by_model", "uncertainty"):
        assert getattr(found, number) == pytest.approx(getattr(alone, number), abs=1e-12)


def by_hand(streams: list[list[tuple[int, int]]], names: list[str]) -> ClassShift:
    """Means of counts over folds, each of the last outcomes of its stream and of those before."""
    before, recent = np.zeros((2, len(names))), np.zeros((2, len(names)))
    for stream in streams:
        for at, (label, answer) in enumerate(stream):
            into = recent if at >= len(stream) - WINDOW else before
            into[:, label] += 1 / len(streams), (label == answer) / len(streams)
    found = class_shift((before[0], before[1]), (recent[0], recent[1]), names, Z)
    assert found is not None
    return found


def test_folds_of_their_own_streams_are_judged_by_the_means_of_their_counts() -> None:
    streams = [drawn(*CASES["classes"], seed=seed) for seed in range(3)]
    streams = [stream[: CHANGED + WINDOW] for stream in streams]
    for fold, stream in enumerate(streams):
        stream[0] = (fold % 2, 0)  # the names of classes come in another order
    folds = evaluated({fold_name("m", fold): stream for fold, stream in enumerate(streams)}, NAMES)
    found = folds.facts.class_shift("m", nan)
    expected = by_hand(streams, ["c0", "c1"])
    assert found is not None
    assert found.by_classes == pytest.approx(expected.by_classes, abs=1e-9)
    assert found.by_model == pytest.approx(expected.by_model, abs=1e-9)
    assert found.share.name == "c1"
    assert found.share.after == pytest.approx(expected.share.after, abs=1e-12)
    assert found.uncertainty >= expected.uncertainty - 1e-9, "correlation only widens it"


def test_a_fold_with_few_outcomes_is_left_out_and_without_any_nothing_is_found() -> None:
    stream = drawn(*CASES["model"], seed=2)
    alone = evaluated({"m": stream}, NAMES).facts.class_shift("m", nan)
    both = evaluated({fold_name("m", 0): stream}, NAMES)
    both.fold([Outcome(fold_name("m", 1), "c0", "c1", at, 0) for at in range(50)])
    found = both.facts.class_shift("m", nan)
    assert found == alone
    few = evaluated({fold_name("m", fold): stream[:50] for fold in range(2)}, NAMES)
    assert few.facts.class_shift("m", nan) is None
    assert few.facts.class_shift("other", nan) is None
