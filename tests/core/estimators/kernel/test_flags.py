"""Marks of outcomes and the shadow classifiers that make some of them, against recounting the whole past."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.estimators.kernel.admission import Scores
from streamwatch.core.specs import MonitorsSpec
from tests.core.estimators.kernel.footprint import footprint
from tests.core.estimators.kernel.streams import (
    drifting,
    late_labels,
    one_row,
    scores_in,
    some_scores,
    table_of,
)
from tests.core.estimators.kernel.twin import FLAGS, Twin
from tests.layouts import EVERYTHING
from tests.tiers import examples

SPEC = EVERYTHING
NO_SHADOWS = replace(SPEC, shadow_max_classes=0)
MANY_CLASSES = replace(SPEC, max_classes=5_000)
ONE = np.array([0])


def dense(rows) -> Scores:
    """Scores of every class for every outcome, from an (n, K) array."""
    n, k = rows.shape
    return Scores(np.arange(0, n * k + 1, k), np.tile(np.arange(k, dtype=np.int32), n), rows.ravel())


def of(scores, t):
    """Scores of one outcome as a dictionary."""
    part = slice(scores.offsets[t], scores.offsets[t + 1])
    return dict(zip(scores.classes[part].tolist(), scores.values[part].tolist(), strict=True))


def accuracy(table, name, weight):
    """Share of outcomes a shadow classifier got right, over everything."""
    totals = table.totals(ONE, 0)
    return float(getattr(totals, name)[0] / getattr(totals, weight)[0])


@pytest.mark.parametrize(
    ("spec", "classes", "stationary", "n"),
    [
        pytest.param(SPEC, 5, 0, 1_500, id="five classes, a change every 300"),
        pytest.param(
            SPEC, 12, 3_300, 3_700, id="windows long enough for blocks are cut", marks=pytest.mark.slow
        ),
        pytest.param(
            SPEC, 22, 0, 1_500, id="more classes than shadow classifiers take", marks=pytest.mark.slow
        ),
        pytest.param(
            replace(SPEC, shadow_max_classes=0),
            3,
            0,
            500,
            id="without shadow classifiers",
            marks=pytest.mark.slow,
        ),
        pytest.param(MANY_CLASSES, 9, 0, 900, id="entries of 64 bits", marks=pytest.mark.slow),
    ],
)
def test_every_mark_equals_the_twin_after_every_outcome(spec, classes, stationary, n) -> None:
    true_class, predicted_class = drifting(n, classes, seed=classes, stationary=stationary)
    label_at_prediction, scores = late_labels(true_class, seed=1), some_scores(true_class, seed=2)
    trace = table_of(spec).trace(one_row(n), true_class, predicted_class, label_at_prediction, scores)
    twin = Twin(spec)
    expected = np.zeros((len(spec.forgetting), len(FLAGS), n))
    for t in range(n):
        twin.update(int(true_class[t]), int(predicted_class[t]), int(label_at_prediction[t]), of(scores, t))
        for index in range(len(spec.forgetting)):
            totals = twin.totals(index, classes)
            expected[index, :, t] = [totals[name] for name in FLAGS]
    for index, forgetting in enumerate(spec.forgetting):
        for name, series in zip(FLAGS, expected[index], strict=True):
            got = getattr(trace.totals[index], name)
            np.testing.assert_allclose(
                got, series, rtol=1e-11, atol=1e-9, err_msg=f"{name} {forgetting.name}"
            )
    landmark = trace.totals[0]
    assert (landmark.label_at_prediction_repeats[-1], landmark.lost_twice[-1]) > (50, 50)
    assert (spec.shadow_max_classes > 0) == bool(landmark.scored.any())


@settings(max_examples=examples(0.15))
@given(cuts=st.lists(st.integers(1, 599), max_size=8, unique=True), stop=st.integers(0, 600))
@pytest.mark.parametrize("classes", [9, 20])
def test_marks_do_not_depend_on_batches_or_on_stopping_and_resuming(classes, cuts, stop) -> None:
    n = 600
    true_class, predicted_class = drifting(n, classes, seed=3)
    label_at_prediction, scores = late_labels(true_class, seed=1), some_scores(true_class, seed=2)

    def feed(table, edges):
        for start, end in pairwise(edges):
            part = slice(start, end)
            batch = (
                true_class[part],
                predicted_class[part],
                label_at_prediction[part],
                scores_in(scores, part),
            )
            table.fold(one_row(end - start), *batch)

    whole, cut, resumed = table_of(SPEC), table_of(SPEC), table_of(SPEC)
    feed(whole, [0, n])
    feed(cut, [0, *sorted(cuts), n])
    assert cut.snapshot(0) == whole.snapshot(0)
    before = table_of(SPEC)
    feed(before, [0, stop])
    resumed.restore(0, before.snapshot(0))
    feed(resumed, [stop, n])
    assert resumed.snapshot(0) == whole.snapshot(0)


def test_a_label_known_at_the_prediction_counts_for_itself_and_none_counts_for_nothing() -> None:
    table = table_of(MonitorsSpec(max_models=1))
    true_class = np.array([1, 1, 0, 0, 1], np.int32)
    label_at_prediction = np.array([-1, -1, 1, 0, 1_001], np.int32)
    table.fold(one_row(5), true_class, true_class, label_at_prediction)
    totals = table.totals(ONE, 0)
    assert (totals.label_at_prediction_repeats[0], totals.label_at_prediction_pairs[0]) == (1.0, 3.0)
    assert (totals.repeats[0], totals.pairs[0]) == (2.0, 4.0)


def test_correction_does_not_see_the_label_it_is_scored_on() -> None:
    """On independent labels nothing can be gained; counting y_t first would gain about .3 here."""
    rng = np.random.default_rng(0)
    n, k = 60_000, 16
    true_class = rng.integers(0, k, n).astype(np.int32)
    scores = dense(rng.random((n, k)))
    table = table_of(MonitorsSpec(max_models=1))
    table.fold(one_row(n), true_class, true_class, scores=scores)
    for name, weight in (("corrected", "scored"), ("transition", "transition_n")):
        assert accuracy(table, name, weight) == pytest.approx(1 / k, abs=0.005)


def test_under_strong_persistence_correction_gains_what_the_true_transitions_would() -> None:
    """Scores say nothing, labels repeat with probability .8: the best anyone can do is .8."""
    rng = np.random.default_rng(1)
    n, k = 30_000, 4
    true_class = np.zeros(n, np.int32)
    for t in range(1, n):
        true_class[t] = (
            true_class[t - 1] if rng.random() < 0.8 else (true_class[t - 1] + rng.integers(1, k)) % k
        )
    noise = rng.dirichlet(np.full(k, 50.0), n)
    predicted_class = noise.argmax(axis=1).astype(np.int32)
    table = table_of(MonitorsSpec(max_models=1))
    table.fold(one_row(n), true_class, predicted_class, scores=dense(noise))
    assert (true_class == predicted_class).mean() == pytest.approx(0.25, abs=0.02)
    for name, weight in (
        ("corrected", "scored"),
        ("transition", "transition_n"),
        ("augmented", "augmented_n"),
    ):
        assert accuracy(table, name, weight) == pytest.approx(0.8, abs=0.02)


def test_the_augmented_classifier_learns_what_the_model_confuses() -> None:
    """A model that always answers the next class is always corrected, once each class was seen."""
    true_class = np.random.default_rng(2).integers(0, 3, 3_000).astype(np.int32)
    predicted_class = ((true_class + 1) % 3).astype(np.int32)
    table = table_of(MonitorsSpec(max_models=1))
    table.fold(one_row(3_000), true_class, predicted_class)
    totals = table.totals(ONE, 0)
    assert totals.hits[0] == 0.0
    assert totals.augmented_n[0] - totals.augmented[0] <= 9
    assert totals.lost_twice[0] == 2_999.0


def test_a_model_with_too_many_classes_has_no_shadow_classifiers_and_gives_their_memory_back() -> None:
    table = table_of(MonitorsSpec(max_models=1))
    true_class = np.arange(400, dtype=np.int32) % 16
    table.fold(one_row(400), true_class, true_class)
    assert table.totals(ONE, 1).transition_n[0] > 0.0
    held = footprint(table.pools, 0)
    table.fold(one_row(1), np.array([16], np.int32), np.array([0], np.int32))
    for index in range(4):
        totals = table.totals(ONE, index)
        assert (totals.transition_n[0], totals.augmented_n[0], totals.scored[0]) == (0.0, 0.0, 0.0)
        assert totals.lost_twice[0] == 0.0
    assert footprint(table.pools, 0) < held
    resumed = table_of(MonitorsSpec(max_models=1))
    resumed.restore(0, table.snapshot(0))
    assert resumed.snapshot(0) == table.snapshot(0)
    resumed.fold(one_row(50), true_class[:50], true_class[:50])
    assert resumed.totals(ONE, 0).transition_n[0] == 0.0


def test_shadow_counts_take_no_memory_once_all_models_have_too_many_classes_and_some_for_later_ones() -> None:
    spec = MonitorsSpec(max_models=3)
    table = table_of(spec, 2)
    few = np.arange(400, dtype=np.int32) % 16
    many = np.arange(400, dtype=np.int32) % 17
    table.fold(np.full(400, 0, np.int32), many, many)
    table.fold(np.full(400, 1, np.int32), few, few)
    counts = table.pools.shadows
    assert counts.any()
    table.fold(np.full(1, 1, np.int32), np.array([16], np.int32), np.array([0], np.int32))
    assert not table.pools.shadows.any()
    assert len(table.pools.shadows) == len(counts)
    assert not table.pools.shadow_allocator.any()
    assert table.add_model() == 2
    table.fold(np.full(400, 2, np.int32), few, few)
    alone = table_of(MonitorsSpec(max_models=1))
    alone.fold(one_row(400), few, few)
    assert table.snapshot(2) == alone.snapshot(0)
    assert table.pools.shadows.any()


def test_shadow_counts_survive_renormalisation_of_their_unit() -> None:
    """A new majority is found out within about ln 2/(1 − α) outcomes, also past a unit of 2^256."""
    n = 400_000
    rng = np.random.default_rng(3)
    true_class = (rng.random(n) < np.where(np.arange(n) % 50_000 < 25_000, 0.8, 0.2)).astype(np.int32)
    table = table_of(MonitorsSpec(max_models=1))
    table.fold(one_row(n), true_class, true_class)
    assert table.pools.models["shadow"]["unit"][0, 0] < 2.0**256
    lost = 0.6 * np.log(2) * 1_000 / 25_000
    assert accuracy(table, "transition", "transition_n") == pytest.approx(0.8 - lost, abs=0.01)


def test_scores_must_be_of_known_indices_and_in_order() -> None:
    table = table_of(SPEC)
    offsets, nothing = np.array([0, 1]), np.zeros(1, np.int32)
    with pytest.raises(ValueError, match="outcome 0 of a batch"):
        table.fold(one_row(1), nothing, nothing, scores=Scores(offsets, np.array([42], np.int32), np.ones(1)))
    for wrong in (np.array([0]), np.array([1, 1]), np.array([0, 2])):
        with pytest.raises(ValueError, match="offsets of the scores of"):
            table.fold(one_row(1), nothing, nothing, scores=Scores(wrong, nothing, np.ones(1)))
    assert table.outcomes(ONE).tolist() == [0]
