"""Class scores reach Temporal Correction, by whatever names, limits and batches they come."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from tests.core.estimators.estimated import SPEC, STREAM, cut, folded, state, value
from tests.tiers import examples


def with_scores(outcomes, seed=5):
    """Every other outcome with scores that say nothing, of classes some of which no label has."""
    rng = np.random.default_rng(seed)
    return [
        msgspec.structs.replace(o, scores=dict.fromkeys(rng.permutation(list("wxyz")).tolist(), 0.25))
        if i % 2
        else o
        for i, o in enumerate(outcomes)
    ]


def test_scores_that_say_nothing_are_corrected_to_the_previous_label():
    labels = ["x"] * 40 + ["y"] * 40
    monitors = EstimatorSet(SPEC)
    monitors.fold([Outcome("m", y, "x", i, 0, scores={"x": 0.5, "y": 0.5}) for i, y in enumerate(labels * 5)])
    corrected = value(monitors, "baseline_accuracy_ratio", "temporal_correction", "landmark", "m")
    # A class not seen yet looks more likely than its share, so the first run of labels is missed.
    assert corrected > (400 - 40 - 10) / 400
    assert value(monitors, "accuracy_ratio", "landmark", "m") == 0.5


def test_without_scores_nothing_is_corrected_but_the_other_baselines_are_there():
    monitors, _ = folded(STREAM)
    (family,) = [f for f in monitors.families() if f.name == "baseline_accuracy_ratio"]
    baselines = {baseline for (baseline, _, _), _ in family.samples}
    assert baselines >= {
        "majority",
        "persistent",
        "random",
        "uninformed",
        "transition",
        "temporally_augmented",
    }
    assert "temporal_correction" not in baselines


@pytest.mark.parametrize("spec", [SPEC, replace(SPEC, max_classes=2, max_models=2)], ids=["roomy", "full"])
@given(points=st.lists(st.integers(0, 60), max_size=4))
@settings(max_examples=examples(0.15))
def test_any_cut_of_a_stream_with_scores_gives_bitwise_the_same_state(spec, points):
    outcomes = with_scores(STREAM[:60])
    whole, pieces = EstimatorSet(spec), EstimatorSet(spec)
    alarms = whole.fold(outcomes)
    assert [a for batch in cut(outcomes, points) for a in pieces.fold(batch)] == alarms
    assert state(pieces) == state(whole)
    traced = EstimatorSet(spec)
    traced.trace(outcomes)
    assert state(traced) == state(whole)


def test_scores_of_classes_beyond_the_limit_are_left_out():
    monitors = EstimatorSet(replace(SPEC, max_classes=2))
    scores = {"x": 0.1, "y": 0.2, "z": 0.7}
    monitors.fold([Outcome("m", "xy"[i % 2], "x", i, 0, scores=scores) for i in range(50)])
    assert monitors.details()["m"]["classes"] == ("x", "y")
    assert monitors.records_over_limit["classes"] == 0
    assert value(monitors, "baseline_accuracy_ratio", "temporal_correction", "landmark", "m") > 0.9
