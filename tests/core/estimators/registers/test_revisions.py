"""First and last predictions against plain sums over all outcomes, at every prefix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.admin.capacity import register_parts
from streamwatch.core.estimators.registers.revisions import (
    REVISIONS,
    REVISIONS_BYTES,
    RevisionsSpec,
    compared,
)
from streamwatch.core.estimators.set import EstimatorSet, decode
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import JoinSpec
from tests.core.pipeline.outcome_batches import batch_of
from tests.layouts import TINY
from tests.tiers import examples

HORIZON_MS = 240_000
SPEC = RevisionsSpec(HORIZON_MS, 0.95)


def outcomes(length: int, seed: int = 1) -> list[Outcome]:
    """Two models' outcomes; the longer they waited, the more of them were revised, mostly to the label."""
    rng = np.random.default_rng(seed)
    found: list[Outcome] = []
    for i in range(length):
        delay_ms = int(rng.choice([0, 1, 1_000, 1_001, 50_000, HORIZON_MS, HORIZON_MS + 1_000]))
        truth, first, other = "abcd"[rng.integers(4)], "abcd"[rng.integers(4)], "abcd"[rng.integers(4)]
        last = None
        if rng.random() < 0.2 + 0.6 * delay_ms / HORIZON_MS:
            last = truth if rng.random() < 0.7 else other
        found.append(Outcome("mn"[rng.integers(2)], truth, first, i, delay_ms, last_class=last))
    return found


def watching(spec: RevisionsSpec = SPEC, max_classes: int = 100) -> EstimatorSet:
    return EstimatorSet(replace(TINY, max_models=4, max_classes=max_classes, registers=(spec,)))


def edges_ms() -> list[int]:
    """0, a 240th of the horizon, and by 22 equal factors the horizon."""
    first = HORIZON_MS / 240
    return [0, *(round(first * 240 ** (k / 22)) for k in range(23))]


def plain(given: Sequence[Outcome], alpha: float) -> dict[str, float]:
    """Accuracies of first and last predictions and what else is reported of them, by definition."""
    weights = [alpha ** (len(given) - 1 - i) for i in range(len(given))]
    lasts = [each.predicted_class if each.last_class is None else each.last_class for each in given]
    total = math.fsum(weights)

    def mean(values: Sequence[float]) -> float:
        return math.fsum(w * v for w, v in zip(weights, values, strict=True)) / total

    first = mean([each.predicted_class == each.true_class for each in given])
    last = mean([last == each.true_class for last, each in zip(lasts, given, strict=True)])
    return {
        "first_prediction_accuracy_ratio": first,
        "last_prediction_accuracy_ratio": last,
        "revision_gain": last - first,
        "outcomes_revised_ratio": mean(
            [last != each.predicted_class for last, each in zip(lasts, given, strict=True)]
        ),
    }


def series(watched: EstimatorSet, model: str) -> dict[str, object]:
    names = ("first_prediction_accuracy_ratio", "last_prediction_accuracy_ratio", "revision_gain")
    return {
        family.name: value
        for family in watched.families()
        if family.name in (*names, "outcomes_revised_ratio")
        for key, value in family.samples
        if key == (model,)
    }


@pytest.mark.parametrize("alpha", [0.95, 1.0])
def test_series_are_faded_means_over_all_outcomes_of_a_model_at_every_prefix(alpha: float) -> None:
    watched, stream = watching(RevisionsSpec(HORIZON_MS, alpha)), outcomes(150)
    for i, outcome in enumerate(stream):
        watched.fold([outcome])
        so_far = [each for each in stream[: i + 1] if each.model == outcome.model]
        assert series(watched, outcome.model) == pytest.approx(plain(so_far, alpha), abs=1e-12)


@pytest.mark.parametrize("max_classes", [2, 100])
def test_outcomes_in_columns_say_the_same(max_classes: int) -> None:
    in_rows, in_columns = watching(max_classes=max_classes), watching(max_classes=max_classes)
    stream = outcomes(400)
    for start in range(0, len(stream), 50):
        in_rows.fold(stream[start : start + 50])
        in_columns.fold(batch_of(stream[start : start + 50]))
    for model in "mn":
        assert in_columns.snapshot(model) == in_rows.snapshot(model)
    unrevised = [Outcome("m", "a", "b", i, 0) for i in range(3)]
    in_rows.fold(unrevised)
    in_columns.fold(batch_of(unrevised))
    assert in_columns.snapshot("m") == in_rows.snapshot("m")


def test_bins_of_waiting_time_are_the_same_means_over_their_outcomes_with_the_model_s_weights() -> None:
    watched, stream, alpha = watching(), outcomes(400), SPEC.alpha
    watched.fold(stream)
    own = [each for each in stream if each.model == "m"]
    edges = edges_ms()
    expected: list[list[float]] = []
    for low, high in pairwise(edges):
        inside = [
            (alpha ** (len(own) - 1 - i), each)
            for i, each in enumerate(own)
            if (low < each.delay_ms or low == 0) and (each.delay_ms <= high or high == HORIZON_MS)
        ]
        weight = math.fsum(w for w, _ in inside)
        if weight >= 0.05:
            lasts = [(w, each, each.last_class or each.predicted_class) for w, each in inside]
            first = math.fsum(w for w, each in inside if each.predicted_class == each.true_class)
            last = math.fsum(w for w, each, class_ in lasts if class_ == each.true_class)
            revised = math.fsum(w for w, each, class_ in lasts if class_ != each.predicted_class)
            expected.append([low / 1e3, high / 1e3, weight, first / weight, last / weight, revised / weight])
    document = watched.details()["m"]["revisions"]
    assert isinstance(document, dict)
    by_time = document["by_waiting_time"]
    names = ("over_seconds", "up_to_seconds", "weight", "first_accuracy", "last_accuracy", "revised_ratio")
    assert len(expected) == 4
    for column, name in enumerate(names):
        assert by_time[name] == pytest.approx([row[column] for row in expected], abs=1e-12), name


def test_counts_are_of_all_outcomes_and_the_gain_has_the_interval_of_agresti_and_min() -> None:
    watched, stream = watching(RevisionsSpec(HORIZON_MS, 1.0)), outcomes(500)
    watched.fold(stream)
    own = [each for each in stream if each.model == "m"]
    right = [
        (
            each.predicted_class == each.true_class,
            (each.last_class or each.predicted_class) == each.true_class,
        )
        for each in own
    ]
    gained, lost, n = right.count((False, True)), right.count((True, False)), len(own)
    document = watched.details()["m"]["revisions"]
    assert isinstance(document, dict)
    assert (document["outcomes"], document["gained"], document["lost"]) == (n, gained, lost)
    assert document["revised"] == sum(each.last_class not in {None, each.predicted_class} for each in own)
    # Half an outcome more in each cell of the 2 x 2 table, then Wald's interval of a paired difference.
    b, c, m = gained + 0.5, lost + 0.5, n + 2
    half = 1.96 * math.sqrt(b + c - (b - c) ** 2 / m) / m
    interval = {"lower": (b - c) / m - half, "upper": (b - c) / m + half}
    expected = {"value": (gained - lost) / n, "effective_sample_size": n, **interval}
    assert document["gain"] == pytest.approx(expected)


def test_the_interval_of_the_gain_holds_in_95_of_100_samples() -> None:
    rng = np.random.default_rng(8)
    n, held = 200, 0
    for _ in range(2_000):
        unchanged, gained, lost, _ = rng.multinomial(n, [0.6, 0.12, 0.05, 0.23])
        gain = compared(np.array([n, n, unchanged + lost, gained, lost, gained + lost], float))
        held += gain.lower <= 0.07 <= gain.upper
    assert 0.94 <= held / 2_000 <= 0.965


def test_nothing_is_said_without_outcomes_and_no_interval_below_30() -> None:
    watched = watching()
    assert series(watched, "m") == {}
    watched.fold([Outcome("m", "a", "b", 0, 0, last_class="a")])
    assert series(watched, "m")["revision_gain"] == 1.0
    document = watched.details()["m"]["revisions"]
    assert isinstance(document, dict)
    assert document["gain"] == {"value": 1.0, "effective_sample_size": 1.0}


def test_classes_beyond_the_limit_are_distinguished() -> None:
    watched = watching(max_classes=2)
    known = [Outcome("m", "a", "a", 0, 0), Outcome("m", "b", "b", 1, 0)]
    watched.fold([*known, Outcome("m", "c", "d", 2, 0, last_class="c"), Outcome("m", "c", "c", 3, 0)])
    document = watched.details()["m"]["revisions"]
    assert isinstance(document, dict)
    assert (document["revised"], document["gained"], document["lost"]) == (1, 1, 0)


def test_a_waiting_time_that_long_has_not_occurred_has_no_weight_and_costs_no_tiny_numbers() -> None:
    watched = watching(RevisionsSpec(HORIZON_MS, 0.5))
    watched.fold([Outcome("m", "a", "b", 0, HORIZON_MS, last_class="a")])
    watched.fold([Outcome("m", "a", "a", i, 0) for i in range(1_100)])  # 2^-1100 is no number any more
    document = watched.details()["m"]["revisions"]
    assert isinstance(document, dict)
    assert document["by_waiting_time"]["over_seconds"] == [0.0]
    assert document["revised"] == 1
    other = watching(RevisionsSpec(HORIZON_MS, 0.5))
    other.restore(watched.snapshot("m"))
    assert other.snapshot("m") == watched.snapshot("m")


def test_a_model_takes_no_more_than_check_says_in_memory_and_on_disk() -> None:
    spec = RevisionsSpec(HORIZON_MS, 0.999)
    watched = watching(spec)
    watched.fold(
        [
            Outcome("m", "a", "ab"[i % 2], i, ms, last_class="ba"[i % 3 % 2])
            for ms in edges_ms()
            for i in range(50)
        ]
    )
    register = REVISIONS.build(spec, 1)
    state = decode(watched.snapshot("m")).sections[register.section]
    assert len(state) > 1_000
    register.restore(0, state)
    assert register.snapshots(np.array([0])) == [state]
    assert max(len(state), 23 * 6 * 8 + 4 * 8) <= REVISIONS_BYTES
    monitors = replace(TINY, max_models=10, registers=(spec,))
    (part,) = register_parts(JoinSpec(conflicts="both"), monitors)
    assert (part.what, part.bytes) == ("revisions of 10 models (monitors.max_models)", 10 * REVISIONS_BYTES)


@settings(max_examples=examples(0.5))
@given(st.integers(0, 2**32), st.lists(st.integers(0, 80), max_size=4), st.integers(0, 80))
def test_the_state_is_the_same_however_the_stream_is_cut_and_resumed(
    seed: int, cuts: list[int], stop: int
) -> None:
    stream = outcomes(80, seed)
    whole, parts = watching(), watching()
    whole.fold(stream)
    for start, end in pairwise([0, *sorted(cuts), 80]):
        parts.fold(stream[start:end])
    before, after = watching(), watching()
    before.fold(stream[:stop])
    for model in before.models():
        after.restore(before.snapshot(model))
    after.fold(stream[stop:])
    for model in whole.models():
        assert whole.snapshot(model) == parts.snapshot(model) == after.snapshot(model)
