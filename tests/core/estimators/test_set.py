"""Estimators of all models: limits, folded classes, retired models, alarms, references by name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.records.outcome_objects import in_columns
from streamwatch.core.specs import DriftWeightedSpec, MonitorsSpec
from tests.core.estimators.estimated import SPEC, STREAM, cut, folded, state, value
from tests.layouts import EVERYTHING


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
    assert monitors.details()["m"]["classes"] == ("x", "y")


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


def test_an_alarm_of_a_detector_carries_the_errors_up_to_its_outcome():
    _, alarms = folded(STREAM)
    errors = {model: [0] for model in "abc"}
    for o in STREAM:
        errors[o.model].append(errors[o.model][-1] + (o.true_class != o.predicted_class))
    of_detectors = [alarm for alarm in alarms if alarm.judgement is None]
    assert len(of_detectors) >= 3
    for alarm in of_detectors:
        assert alarm.errors == errors[alarm.model][alarm.outcome]
    assert all(alarm.errors is None for alarm in alarms if alarm.judgement is not None)


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


def test_when_a_model_was_first_seen_is_reported():
    monitors, _ = folded(STREAM)
    first = {o.model: o.event_ms / 1000 for o in reversed(STREAM)}
    assert {m: d["first_seen_timestamp_seconds"] for m, d in monitors.details().items()} == first


@pytest.mark.slow
def test_a_reference_that_appears_later_is_followed_by_its_name_from_then_on():
    by_champion = DriftWeightedSpec(drift_signal="reference", reference="champion")
    spec = replace(EVERYTHING, drift_weighted=(*EVERYTHING.drift_weighted[:-1], by_champion), max_models=2)
    monitors = EstimatorSet(spec)

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

    resumed = EstimatorSet(spec)
    for model in ("challenger", "champion"):
        resumed.restore(monitors.snapshot(model))
    for each in (monitors, resumed):
        each.fold([Outcome("champion", "a", "b", i, 0) for i in range(10)])
        each.fold([Outcome("challenger", "a", "a", i, 0) for i in range(50)])
    assert resumed.families() == monitors.families()


@pytest.mark.parametrize("cuts", [(), (1, 2, 5_999), (3_000,)])
def test_the_sum_of_delays_ends_at_a_limit_where_timestamps_are_wrong(cuts):
    """Labels dated 9999: after 36,400 of them the sum would be negative, and a counter must not fall."""
    year_9999 = 253_402_300_799_999
    wrong = [Outcome("m", "x", "x", year_9999, year_9999)] * 6_000
    monitors, before = EstimatorSet(SPEC), 0.0
    for _ in range(8):
        for part in cut(wrong, cuts):
            monitors.fold(part)
            now = value(monitors, "label_delay_seconds", "m")
            assert now.total >= before
            before = now.total
    assert now.counts[-1] == 48_000
    many = EstimatorSet(SPEC)
    many.fold([Outcome("m", "x", "x", year_9999, year_9999)] * 48_000)  # more than a sum holds, at once
    assert value(many, "label_delay_seconds", "m").total == before
    assert many.snapshot("m") == monitors.snapshot("m")
    batch = many._columns.indexed(in_columns([Outcome("m", "x", "x", year_9999, year_9999)] * 48_000))
    for _ in range(100):  # four million outcomes of all estimators would take long
        many._state.delays.observe(batch)
    assert value(many, "label_delay_seconds", "m").total == 2**62 / 1000
