"""The join is bounded by configuration: what is over a limit leaves oldest first, and is counted."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from streamwatch.core.join.counters import EVICTIONS
from streamwatch.core.join.join import ROOM
from streamwatch.core.join.leaving import DUE_AT_ONCE
from streamwatch.core.records.batch import batch_of
from streamwatch.core.records.events import Label, Prediction
from streamwatch.core.specs import JoinSpec
from tests.core.join.join_stream import DAY, Stream, label, label_for_all, predict, tick


def test_over_max_pending_the_prediction_that_would_expire_first_is_evicted():
    stream = Stream(JoinSpec(max_pending=2))
    stream.feed(predict("b", at=1000), predict("c", at=5000), predict("a", at=9000))
    assert stream.value("predictions_evicted_total") == 1
    assert stream.value("oldest_pending_timestamp_seconds") == 5
    outcomes = stream.feed(label("b", at=9000), label("a", at=9000), label("c", at=9000))
    assert [outcome.delay_ms for outcome in outcomes] == [0, 4000]


def test_over_max_labels_the_oldest_label_is_evicted_whichever_its_form():
    stream = Stream(JoinSpec(max_labels=2))
    stream.feed(label_for_all("a", at=1000), label("b", at=2000), label("c", at=3000))
    assert stream.feed(predict("a", at=0)) == []
    stream.feed(label_for_all("d", at=4000))
    assert stream.feed(predict("b", at=0)) == []
    assert len(stream.feed(predict("c"), predict("d"))) == 2
    assert stream.value("labels_evicted_total") == 2


def test_a_label_that_had_met_a_prediction_is_not_counted_again_when_it_is_evicted():
    stream = Stream(JoinSpec(max_labels=1))
    stream.feed(predict("a"), label_for_all("a"), label_for_all("b", at=1000))
    assert stream.value("labels_evicted_total") == 0
    assert stream.value("labels_retained_evicted_total") == 1
    assert stream.value("labels_retained") == 1


def test_limits_that_were_lowered_are_reached_bit_by_bit():
    before = Stream(JoinSpec(max_pending=100, max_labels=100))
    for number in range(50):
        before.feed(predict(f"p{number}", at=number), label(f"early{number}", at=number))
        before.feed(label_for_all(f"all{number}", at=number))
    stream = before.again(JoinSpec(max_pending=10, max_labels=10))
    coming = [predict(f"q{number}", at=1_000 + number) for number in range(45)]
    coming += [label(f"late{number}", at=1_000 + number) for number in range(95)]
    for start in range(0, len(coming), 5):
        before_it = stream.value("predictions_evicted_total") + stream.value("labels_evicted_total")
        stream.feed(*coming[start : start + 5])
        after_it = stream.value("predictions_evicted_total") + stream.value("labels_evicted_total")
        assert after_it - before_it <= EVICTIONS * 5
    assert stream.value("predictions_evicted_total") == 50 + 45 - 10
    assert stream.value("labels_waiting") + stream.value("labels_retained") == 10
    assert stream.value("labels_evicted_total") == 100 + 95 - 10
    assert stream.feed(label("p49", at=2_000), label("q34", at=2_000)) == []
    assert len(stream.feed(label("q35", at=2_000), label("q44", at=2_000))) == 2


@pytest.mark.parametrize("anew", [False, True])
@pytest.mark.parametrize("order", ["resolution", "prediction_time"])
def test_labels_resolve_all_models_that_were_admitted_before_their_limit_was_lowered(order, anew):
    models, keys = [f"m{number}" for number in range(300)], [str(number) for number in range(28)]
    predictions = [predict(key, model=model) for key in keys for model in models]
    before, lowered = Stream(JoinSpec(max_models=300, order=order)), JoinSpec(max_models=1, order=order)
    before.feed(*predictions)
    if anew:
        stream = Stream(lowered)
        stream.pipeline.begin_join_anew(before.pipeline.snapshot())
        stream.feed(*predictions)
    else:
        stream = before.again(lowered)
    assert len(models) * len(keys) > ROOM + lowered.max_models
    outcomes = stream.feed(*map(label_for_all, keys))
    outcomes += stream.pipeline.release_held().outcomes
    assert Counter(outcome.model for outcome in outcomes) == dict.fromkeys(models, len(keys))


def test_what_is_due_at_once_and_makes_no_outcome_expires_in_parts_that_may_be_committed():
    stream = Stream(JoinSpec(horizon_ms=1_000, early_horizon_ms=1_000))
    stream.feed(*[predict(str(key)) for key in range(DUE_AT_ONCE + 1)])
    stream.feed(*[label(f"early {key}") for key in range(DUE_AT_ONCE // 2 + 1)])
    stream.feed(*[label_for_all(f"all {key}") for key in range(DUE_AT_ONCE // 2 + 1)])
    join = stream.pipeline.join

    def waiting():
        held = join.holdings()
        return held.pending + held.early + held.retained

    left, taken = [waiting()], []
    for step in stream.pipeline.steps(batch_of([predict("next")], np.zeros(1, np.int64), 5_000)):
        assert step.is_whole
        assert stream.pipeline.identities() == []
        left.append(waiting())
        taken.append(step.taken)
    assert taken == [0, 0, 1]
    assert left == [2 * DUE_AT_ONCE + 3, DUE_AT_ONCE + 3, 2, 1]
    assert stream.value("predictions_expired_total") == DUE_AT_ONCE + 1
    assert stream.value("labels_orphaned_total") == DUE_AT_ONCE + 2


def test_over_max_dedup_entries_the_oldest_are_forgotten():
    stream = Stream(JoinSpec(max_dedup_entries=4))
    for key in "abcdef":
        stream.feed(predict(key), label(key))
    assert stream.value("dedup_entries") == 4
    assert stream.value("dedup_entries_evicted_total") == 2
    stream.feed(label("f"))
    assert stream.value("labels_duplicate_total") == 1
    stream.feed(label("a"))
    assert stream.value("labels_early_total") == 1


def test_dedup_entries_live_at_least_their_horizon_and_at_most_an_eighth_longer_than_time_passes():
    stream = Stream(JoinSpec(dedup_horizon_ms=DAY))
    stream.until(0)
    for hour in range(24):
        record_ms = hour * DAY // 24
        stream.feed(predict(str(hour), at=record_ms), label(str(hour), at=record_ms))
        stream.until(record_ms)
    for hour in range(24, 60):
        stream.until(hour * DAY // 24)
        assert max(0, 48 - hour - 1) <= stream.value("dedup_entries") <= max(0, 48 - hour + 3)


def test_a_model_over_the_limit_is_refused_until_an_idle_one_has_retired():
    stream = Stream(JoinSpec(max_models=1, horizon_ms=DAY, dedup_horizon_ms=DAY))
    stream.feed(predict("a", model="old"), label("a", model="old"))
    stream.feed(predict("b", model="new"))
    assert stream.value("records_over_limit_total", "models") == 1
    stream.until(2 * DAY - 1)
    assert stream.monitors.retired == []
    stream.until(2 * DAY)
    assert stream.monitors.retired == [(1, "old")]
    assert stream.value("models_retired_total") == 1
    stream.feed(predict("c", model="new", at=2 * DAY))
    assert stream.value("pending_predictions", "new") == 1
    assert stream.value("pending_predictions", "old") is None


def test_a_model_with_something_pending_does_not_retire():
    stream = Stream(JoinSpec(horizon_ms=DAY))
    stream.feed(predict("a"), label("a"), predict("late", at=DAY))
    stream.until(2 * DAY - 1)
    assert stream.monitors.retired == []
    stream.until(2 * DAY)
    assert stream.monitors.retired == [], "idle by now, but what expires now was pending until now"


def test_outcomes_are_evaluated_before_their_model_retires_in_the_same_batch():
    stream = Stream(JoinSpec(horizon_ms=DAY))
    stream.feed(
        predict("a"),
        label("a"),
        tick(5 * DAY),
        predict("b", at=5 * DAY),
        label("b", at=5 * DAY),
    )
    assert stream.monitors.retired == [(1, "m")]
    assert stream.monitors.calls == [1, 1]


def test_estimators_are_not_asked_to_retire_a_model_they_have_never_seen():
    stream = Stream(JoinSpec(horizon_ms=DAY))
    stream.feed(predict("a"))
    stream.until(5 * DAY)
    assert stream.value("models_retired_total") == 1
    assert stream.monitors.retired == []


@pytest.mark.slow
def test_records_kept_do_not_grow_with_the_stream():
    spec = JoinSpec(max_pending=500, max_labels=300, max_dedup_entries=800)
    stream = Stream(spec)
    largest = 0
    for start in range(0, 60_000, 300):
        events = []
        for number in range(start, start + 300):
            record_ms = number * 50
            events.append(Prediction(str(number), "m", "x", record_ms))
            if number >= 200 and number % 7:
                named = "m" if number % 2 else None
                events.append(Label(str(number - 200), "x", record_ms, named))
        stream.feed(*events)
        largest = max(largest, int(stream.pipeline.join.arrays.totals["top"][0]))
    assert largest <= 2 * (500 + 300 + 800)


def test_what_falls_due_before_an_event_has_fallen_due_before_it_within_one_batch():
    stream = Stream(JoinSpec(horizon_ms=1000, early_horizon_ms=1000))
    stream.feed(
        predict("p", at=5000),
        label_for_all("a", at=5000),
        label("l", at=5000),
        label("p", at=5999),
        predict("q", at=6000),
        label("q", at=7000),
        predict("l", at=7000),
    )
    assert stream.value("predictions_resolved_total") == 1
    assert stream.value("predictions_expired_total") == 1
    assert stream.value("labels_late_total") == 1
    assert stream.value("labels_orphaned_total") == 2
