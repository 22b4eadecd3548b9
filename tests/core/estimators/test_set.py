"""Monitors: names to estimators and back, the same whatever the cut, and nothing undefined exported."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.events import Outcome
from streamwatch.core.specs import (
    AdwinDriftSpec,
    AdwinSpec,
    DriftWeightedSpec,
    FadingSpec,
    LandmarkSpec,
    MonitorsSpec,
    PageHinkleySpec,
    SlidingSpec,
)
from tests.core.estimators.measures import plain_measures as plain
from tests.core.estimators.measures import plain_uncertainty as slow
from tests.tiers import examples

SPEC = MonitorsSpec(
    forgetting=(LandmarkSpec(), FadingSpec(0.9), SlidingSpec(20), AdwinSpec()),
    detectors=(PageHinkleySpec(threshold=5.0), AdwinDriftSpec()),
    drift_weighted=(DriftWeightedSpec(),),
    max_models=8,
    max_classes=5,
    per_class="fading:0.9",
)
SEVERAL = MonitorsSpec(
    forgetting=(FadingSpec(0.99), FadingSpec(0.5)),
    detectors=(),
    drift_weighted=(DriftWeightedSpec(), DriftWeightedSpec(w_avg=2.0)),
    max_models=8,
    max_classes=5,
)
SPECS = (
    pytest.param(SPEC, id="one of each"),
    pytest.param(SEVERAL, id="several of a kind", marks=pytest.mark.slow),  # a layout of its own
)
PLAIN = {
    "landmark": plain.landmark,
    "fading:0.9": plain.fading(0.9),
    "fading:0.99": plain.fading(0.99),
    "fading:0.5": plain.fading(0.5),
    "sliding:20": plain.sliding(20),
}


def drifting(seed, n, models=("a", "b", "c"), classes=("x", "y", "z")):
    """Outcomes of several models whose error jumps half way."""
    rng = np.random.default_rng(seed)
    outcomes = []
    for i in range(n):
        true_class = str(rng.choice(classes))
        error = 0.1 if i < n // 2 else 0.7
        predicted_class = str(rng.choice(classes)) if rng.random() < error else true_class
        delay = int(rng.integers(0, 10_000_000))
        outcomes.append(
            Outcome(str(rng.choice(models)), true_class, predicted_class, 1_000_000 + i * 500, delay)
        )
    return outcomes


def cut(outcomes, points):
    edges = [0, *sorted(points), len(outcomes)]
    return [outcomes[a:b] for a, b in pairwise(edges)]


def folded(outcomes, spec=SPEC):
    monitors = EstimatorSet(spec)
    return monitors, monitors.fold(outcomes)


def state(monitors):
    return {name: monitors.snapshot(name) for name in monitors.models()}


def value(monitors, name, *labels):
    """Value of one series, None if it is not there."""
    (family,) = [f for f in monitors.families() if f.name == name]
    return dict(family.samples).get(labels)


STREAM = drifting(1, 900)
names = st.sampled_from("abcdefgh")
streams = st.lists(st.tuples(st.sampled_from("mn"), names, names, st.booleans()), min_size=1, max_size=60)


def outcomes_of(drawn):
    """Outcomes that are right more often than not."""
    return [Outcome(m, t, t if right else p, i * 1000, i) for i, (m, t, p, right) in enumerate(drawn)]


@given(points=st.lists(st.integers(0, len(STREAM)), max_size=6))
@settings(max_examples=examples(0.15))
def test_any_cut_into_batches_gives_bitwise_the_same_state_and_the_same_alarms(points):
    whole, alarms = folded(STREAM)
    assert alarms
    pieces, in_pieces = EstimatorSet(SPEC), []
    for batch in cut(STREAM, points):
        in_pieces += pieces.fold(batch)
    assert in_pieces == alarms
    assert state(pieces) == state(whole)
    assert pieces.families() == whole.families()


@pytest.mark.parametrize("spec", SPECS)
@given(drawn=streams, data=st.data())
@settings(max_examples=examples(0.25))
def test_any_cut_of_any_stream_gives_bitwise_the_same_state_overflow_included(spec, drawn, data):
    outcomes = outcomes_of(drawn)
    points = data.draw(st.lists(st.integers(0, len(outcomes)), max_size=4))
    whole, _ = folded(outcomes, spec)
    pieces = EstimatorSet(spec)
    for batch in cut(outcomes, points):
        pieces.fold(batch)
    assert state(pieces) == state(whole)
    assert pieces.records_over_limit == whole.records_over_limit


@given(at=st.integers(0, len(STREAM)))
@settings(max_examples=examples(0.15))
def test_a_restored_model_goes_on_bitwise_as_if_nothing_had_happened(at):
    whole, alarms = folded(STREAM)
    before, early = folded(STREAM[:at])
    after = EstimatorSet(SPEC)
    for name in reversed(before.models()):
        assert after.restore(before.snapshot(name)) == name
    assert state(after) == state(before)
    assert early + after.fold(STREAM[at:]) == alarms
    assert state(after) == state(whole)
    assert after.families() == whole.families()


def test_restoring_replaces_a_model_of_the_same_name():
    before, _ = folded(STREAM[:300])
    monitors, _ = folded(STREAM)
    for name in before.models():
        monitors.restore(before.snapshot(name))
    assert state(monitors) == state(before)


def test_a_snapshot_under_other_limits_or_no_snapshot_at_all_is_refused_in_words():
    monitors, _ = folded(STREAM[:50])
    narrow = EstimatorSet(MonitorsSpec(max_classes=4))
    with pytest.raises(ValueError, match="max_classes must be 5 as in the snapshot of model 'a', got 4"):
        narrow.restore(monitors.snapshot("a"))
    with pytest.raises(ValueError, match=r".+"):
        narrow.restore(pickle.dumps("not a snapshot"))
    assert narrow.models() == []


def guessed(lead, labels, true_class):
    """The class that leads among earlier labels, counted by .999 per outcome of age, and whether it is right.

    A class that led before keeps the lead at a tie; nothing is guessed before the first label.
    """
    if not labels:
        return true_class, None
    counts = {k: sum(0.999**age for age, y in enumerate(reversed(labels)) if y == k) for k in labels}
    best = max(counts, key=counts.__getitem__)
    lead = best if counts[best] > counts[lead] * (1 + 1e-12) else lead
    return lead, lead == true_class


@pytest.mark.parametrize("spec", SPECS)
@given(drawn=streams)
@settings(max_examples=examples(0.25))
def test_every_estimate_is_the_plain_one_after_every_outcome(spec, drawn):
    monitors = EstimatorSet(replace(spec, max_classes=8))
    outcomes = outcomes_of(drawn)
    trace = monitors.trace(outcomes)
    seen, leads = {"m": [], "n": []}, {"m": None, "n": None}
    for outcome, row in zip(outcomes, trace.rows, strict=True):
        pairs = seen[outcome.model]
        leads[outcome.model], mark = guessed(leads[outcome.model], [t for t, *_ in pairs], outcome.true_class)
        pairs.append((outcome.true_class, outcome.predicted_class, plain.Flags(majority=mark)))
        cells = dict(zip(trace.columns, row, strict=True))
        assert (cells["model"], cells["outcome"]) == (outcome.model, len(pairs))
        for label in (f.name for f in spec.forgetting if f.name in PLAIN):
            remembered = PLAIN[label](pairs)
            twins = plain.MEASURES | slow.MEASURES
            expected = {f"{name}:{label}": of(remembered) for name, of in twins.items()}
            for name, bound in slow.BOUNDS.items():
                expected[f"accuracy_bound_ratio:{name}:{label}"] = bound(remembered, spec.confidence_delta)
            majority = {"majority_prequential": plain.majority_prequential}
            for name, of in (plain.BASELINES | majority).items():
                expected[f"baseline_accuracy_ratio:{name}:{label}"] = of(remembered)
            expected[f"effective_sample_size:{label}"] = plain.effective_sample_size(remembered)
            for column, theirs in expected.items():
                tolerance = 1e-7 if column.startswith("kappa_plus") else 1e-9
                assert plain.agree(cells[column], theirs, tolerance), (column, cells[column], theirs)


def test_a_trace_folds_and_its_last_row_says_what_the_series_say():
    traced = EstimatorSet(SPEC)
    trace = traced.trace(STREAM)
    monitors, alarms = folded(STREAM)
    assert trace.alarms == alarms
    assert state(traced) == state(monitors)
    assert traced.families() == monitors.families()
    last = {row[0]: dict(zip(trace.columns, row, strict=True)) for row in trace.rows}
    compared = 0
    for family in monitors.families():
        if family.kind != "gauge" or "model" not in family.labels:
            continue
        position = family.labels.index("model")
        for labels, number in family.samples:
            column = ":".join([family.name, *labels[:position], *labels[position + 1 :]])
            if column in trace.columns:
                compared += 1
                assert last[labels[position]][column] == number, column
    assert compared >= 3 * 60


def test_a_trace_flags_each_alarm_in_the_row_of_its_outcome():
    trace = EstimatorSet(SPEC).trace(STREAM)
    flagged = [
        (row[0], detector.name, row[1])
        for row in trace.rows
        for detector in SPEC.detectors
        if row[trace.columns.index(f"alarm:{detector.name}")] == 1
    ]
    assert flagged == [(a.model, a.detector, a.outcome) for a in trace.alarms]
    assert flagged


def test_a_trace_has_the_columns_of_the_default_settings_by_name():
    trace = EstimatorSet(MonitorsSpec()).trace(STREAM[:3])
    assert trace.columns[:4] == ["model", "outcome", "y_true", "y_pred"]
    assert len(set(trace.columns)) == len(trace.columns)
    for column in (
        "accuracy_ratio:fading:0.999",
        "kappa:landmark",
        "kappa_majority:sliding:1000",
        "kappa_persistent:landmark",
        "kappa_plus:adwin:0.002",
        "mcc:fading:0.999",
        "adwin_window_outcomes:adwin:0.002",
        "baseline_accuracy_ratio:persistent:landmark",
        "effective_sample_size:landmark",
        "accuracy_bound_ratio:hoeffding:fading:0.999",
        "accuracy_bound_ratio:chernoff_upper:adwin:0.002",
        "kappa_zscore:sliding:1000",
        "drift_weighted_accuracy_ratio",
        "detector_statistic:page_hinkley",
        "detector_threshold:page_hinkley",
        "alarm:page_hinkley",
        "alarm:adwin",
    ):
        assert column in trace.columns
    first = dict(zip(trace.columns, trace.rows[0], strict=True))
    assert first["kappa:landmark"] is None
    assert first["alarm:page_hinkley"] == 0
    assert first["adwin_window_outcomes:adwin:0.002"] == 1


def test_traces_do_not_depend_on_how_they_are_cut_either():
    whole, pieces = EstimatorSet(SPEC), EstimatorSet(SPEC)
    rows = [row for batch in cut(STREAM, [1, 2, 450]) for row in pieces.trace(batch).rows]
    assert rows == whole.trace(STREAM).rows


def test_a_folded_prediction_is_a_hit_only_if_it_names_the_true_class():
    spec = MonitorsSpec(max_classes=2, per_class="landmark")
    pairs = [("x", "x"), ("y", "y"), ("p", "p"), ("p", "q"), ("p", "x"), ("y", "q"), ("r", "r")]
    monitors, _ = folded([Outcome("m", t, p, i, 0) for i, (t, p) in enumerate(pairs)], spec)
    assert value(monitors, "outcomes_total", "m") == 7
    assert value(monitors, "errors_total", "m") == 3
    assert value(monitors, "accuracy_ratio", "landmark", "m") == pytest.approx(4 / 7)
    assert value(monitors, "recall_ratio", "__other__", "landmark", "m") == 2 / 4
    assert value(monitors, "recall_ratio", "y", "landmark", "m") == 1 / 2
    assert monitors.records_over_limit == {"classes": 5, "models": 0}
    assert monitors.details()["m"]["classes"] == ["x", "y"]


def test_a_class_that_is_really_called_other_is_not_mistaken_for_the_folded_ones():
    spec = MonitorsSpec(max_classes=1, per_class="landmark")
    pairs = [("__other__", "__other__"), ("p", "q")]
    monitors, _ = folded([Outcome("m", t, p, i, 0) for i, (t, p) in enumerate(pairs)], spec)
    assert value(monitors, "recall_ratio", "__other__", "landmark", "m") == 1.0
    assert value(monitors, "recall_ratio", "__other___", "landmark", "m") == 0.0


def test_ever_new_classes_cost_no_memory():
    monitors = EstimatorSet(SPEC)
    monitors.fold([Outcome("m", f"c{i}", f"d{i}", i, 0) for i in range(2_000)])
    assert len(monitors.details()["m"]["classes"]) == SPEC.max_classes
    assert len(monitors.snapshot("m")) < 20_000


def test_outcomes_of_models_beyond_the_table_are_counted_and_the_others_evaluated():
    monitors, _ = folded([Outcome(f"m{i % 10}", "x", "x", i, 0) for i in range(100)])
    assert monitors.models() == [f"m{i}" for i in range(8)]
    assert monitors.records_over_limit == {"classes": 0, "models": 20}
    assert value(monitors, "outcomes_total", "m7") == 10
    monitors.retire("m0")
    monitors.fold([Outcome("m9", "x", "y", 0, 0)])
    assert value(monitors, "outcomes_total", "m9") == 1
    assert value(monitors, "errors_total", "m9") == 1
    assert value(monitors, "accuracy_ratio", "landmark", "m9") == 0.0
    assert value(monitors, "outcomes_total", "m0") is None


def test_a_retired_model_comes_back_as_a_new_one():
    monitors, _ = folded(STREAM)
    fresh, _ = folded(STREAM[:40])
    for name in monitors.models():
        monitors.retire(name)
    assert all(f.samples == [] for f in monitors.families() if "model" in f.labels)
    monitors.fold(STREAM[:40])
    assert state(monitors) == state(fresh)


def test_an_empty_batch_is_nothing():
    monitors = EstimatorSet(SPEC)
    assert monitors.fold([]) == []
    assert monitors.trace([]).rows == []
    assert monitors.models() == []


def test_alarms_carry_the_event_time_of_their_outcome_and_are_remembered():
    monitors, alarms = folded(STREAM)
    counts = {"a": 0, "b": 0, "c": 0}
    times = {}
    for o in STREAM:
        counts[o.model] += 1
        times[o.model, counts[o.model]] = o.event_ms
    last, count = {}, {}
    for alarm in alarms:
        assert alarm.event_ms == times[alarm.model, alarm.outcome]
        key = (alarm.detector, alarm.model)
        last[key], count[key] = alarm.event_ms / 1000, count.get(key, 0) + 1
        assert alarm.ordinal == count[key]
    for detector in SPEC.detectors:
        for model in counts:
            key = (detector.name, model)
            assert value(monitors, "alarms_total", *key) == count.get(key, 0)
            assert value(monitors, "last_alarm_timestamp_seconds", *key) == last.get(key)
    assert list(monitors.recent_alarms) == alarms


def test_when_a_model_was_first_seen_is_told():
    monitors, _ = folded(STREAM)
    first = {o.model: o.event_ms / 1000 for o in reversed(STREAM)}
    assert {m: d["first_seen_timestamp_seconds"] for m, d in monitors.details().items()} == first


@pytest.mark.slow  # a layout of its own
def test_a_reference_that_appears_later_is_followed_by_its_name_from_then_on():
    drift_weighted = (
        DriftWeightedSpec(),
        DriftWeightedSpec(drift_signal="reference", reference="champion"),
    )
    monitors = EstimatorSet(replace(MonitorsSpec(), drift_weighted=drift_weighted, max_models=2))

    def evaluate(model, wrong):
        monitors.fold([Outcome(model, "a", "b" if w else "a", i, 0) for i, w in enumerate(wrong)])

    def weighs_more(model, which):
        label = {"own": "own:3.0", "reference": "reference:champion:3.0"}[which]
        return value(monitors, "drift_weighted_effective_sample_size", label, model) < value(
            monitors, "outcomes_total", model
        )

    steady = [i % 3 == 0 for i in range(300)]
    evaluate("challenger", steady)
    evaluate("champion", [i % 20 == 0 for i in range(1_000)] + [i % 4 > 0 for i in range(300)])
    assert weighs_more("champion", "own")
    assert not weighs_more("challenger", "reference")
    evaluate("challenger", steady)
    assert weighs_more("challenger", "reference")
    assert not weighs_more("challenger", "own")

    resumed = EstimatorSet(replace(MonitorsSpec(), drift_weighted=drift_weighted, max_models=2))
    for model in ("challenger", "champion"):
        resumed.restore(monitors.snapshot(model))
    for each in (monitors, resumed):
        each.fold([Outcome("champion", "a", "b", i, 0) for i in range(10)])
        each.fold([Outcome("challenger", "a", "a", i, 0) for i in range(50)])
    assert resumed.families() == monitors.families()
