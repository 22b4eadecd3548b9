"""What becomes of predictions and labels, case by case."""

from __future__ import annotations

import pytest

from streamwatch.core.records.events import Invalid, Outcome
from streamwatch.core.specs import JoinSpec
from tests.core.join.join_stream import DAY, Stream, alive, label, label_for_all, null, predict

HOUR = 3_600_000


def test_a_label_resolves_the_prediction_of_its_id_and_model():
    stream = Stream()
    outcomes = stream.feed(predict("a", "x", 1000, scores={"x": 0.9}), label("a", "y", 5000))
    assert outcomes == [
        Outcome("m", "y", "x", 5000, 4000, False, {"x": 0.9}, made=1, resolved_ms=5000, waited_ms=4000)
    ]
    assert stream.counted() == {
        "predictions_accepted": 1,
        "predictions_resolved": 1,
        "labels_accepted": 1,
        "labels_joined": 1,
    }


def test_a_label_of_another_model_does_not():
    stream = Stream()
    assert stream.feed(predict(model="m"), label(model="n")) == []
    assert (stream.value("labels_waiting"), stream.value("pending_predictions", "m")) == (1, 1)


def test_a_label_without_model_resolves_every_model_pending_in_order_of_prediction():
    stream = Stream()
    outcomes = stream.feed(predict(model="n", predicted_class="y"), predict(model="m"), label_for_all())
    assert [(o.model, o.true_class, o.predicted_class) for o in outcomes] == [
        ("n", "x", "y"),
        ("m", "x", "x"),
    ]
    assert (stream.value("labels_accepted_total"), stream.value("labels_joined_total")) == (1, 1)


def test_a_challenger_that_predicts_later_meets_the_label_without_model():
    stream = Stream()
    stream.feed(predict(model="m"), label_for_all(at=1000))
    outcomes = stream.feed(predict(model="n", predicted_class="y", at=13 * DAY))
    assert [(o.model, o.true_class, o.predicted_class) for o in outcomes] == [("n", "x", "y")]
    assert stream.value("labels_joined_total") == 1


def test_a_challenger_after_the_horizon_does_not():
    stream = Stream()
    stream.feed(predict(model="m"), label_for_all(at=1000))
    stream.until(14 * DAY + 2000)
    assert stream.feed(predict(model="n", at=14 * DAY + 2000)) == []
    assert stream.value("labels_orphaned_total") == 0


def test_event_time_serves_delay_and_record_time_is_its_substitute():
    stream = Stream()
    own = stream.feed(predict("a", at=9000, timestamp_ms=1000), label("a", at=9500, timestamp_ms=4000))
    mixed = stream.feed(predict("b", at=9600), label("b", at=9700, timestamp_ms=11_600))
    assert [(o.event_ms, o.delay_ms) for o in own + mixed] == [(4000, 3000), (11_600, 2000)]


def test_a_repeated_prediction_is_a_duplicate_with_the_same_class_and_a_conflict_with_another():
    stream = Stream()
    stream.feed(predict(predicted_class="x"), predict(predicted_class="x"), predict(predicted_class="y"))
    outcomes = stream.feed(label(true_class="y"))
    assert outcomes[0].predicted_class == "x"
    counters = stream.counters
    assert (counters.predictions_duplicate, counters.predictions_conflict) == (1, 1)
    assert counters.predictions_accepted == 1


def test_a_prediction_repeated_after_its_label_is_still_a_duplicate_or_conflict():
    stream = Stream()
    stream.feed(predict(), label())
    assert stream.feed(predict(), predict(predicted_class="y")) == []
    assert (stream.counters.predictions_duplicate, stream.counters.predictions_conflict) == (1, 1)


def test_after_its_dedup_entry_has_gone_a_repeated_prediction_is_a_new_one():
    stream = Stream(JoinSpec(dedup_horizon_ms=HOUR))
    stream.feed(predict(), label())
    stream.until(HOUR)  # closes the generation and, the horizon being over, drops it
    assert stream.value("dedup_entries") == 0
    outcomes = stream.feed(predict(predicted_class="y", at=HOUR), label(true_class="y", at=HOUR))
    assert [o.predicted_class for o in outcomes] == ["y"]


def test_a_label_that_comes_first_waits_for_its_prediction():
    stream = Stream()
    assert stream.feed(label(at=1000)) == []
    assert (stream.value("labels_early_total"), stream.value("labels_waiting")) == (1, 1)
    outcomes = stream.feed(predict(at=1200, timestamp_ms=900))
    assert [o.delay_ms for o in outcomes] == [100]
    assert (stream.value("labels_joined_total"), stream.value("labels_waiting")) == (1, 0)


def test_a_label_that_comes_first_is_an_orphan_after_the_early_horizon():
    stream = Stream()
    stream.feed(label(at=1500))
    stream.until(HOUR + 1999)
    assert stream.value("labels_orphaned_total") == 0
    stream.until(HOUR + 2000)  # 1.5 s later by record time, rounded up
    assert stream.value("labels_orphaned_total") == 1
    stream.feed(predict(at=HOUR + 2000))
    assert stream.value("pending_predictions", "m") == 1


def test_a_label_without_model_is_an_orphan_only_after_the_horizon_and_only_if_it_met_nobody():
    stream = Stream()
    stream.feed(label_for_all("a"), label_for_all("b"), predict("a"))
    stream.until(14 * DAY - 1)
    assert stream.value("labels_orphaned_total") == 0
    stream.until(14 * DAY)
    assert (stream.value("labels_orphaned_total"), stream.value("labels_joined_total")) == (1, 1)
    assert stream.value("labels_retained") == 0


@pytest.mark.parametrize("make", [label, label_for_all])
def test_with_retain_unmatched_off_a_label_that_meets_nobody_is_not_kept(make):
    stream = Stream(JoinSpec(retain_unmatched=False))
    stream.feed(make())
    assert stream.feed(predict()) == []
    assert stream.value("labels_orphaned_total") == 1
    assert len(alive(stream)) == 1


def test_with_retain_unmatched_off_a_label_that_met_one_model_still_meets_the_next():
    stream = Stream(JoinSpec(retain_unmatched=False))
    assert len(stream.feed(predict(model="m"), label_for_all(), predict(model="n"))) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [(label, label), (label, label_for_all), (label_for_all, label), (label_for_all, label_for_all)],
)
def test_for_one_pair_the_first_label_wins_whichever_its_form(first, second):
    stream = Stream()
    outcomes = stream.feed(
        predict(), first(true_class="x"), second(true_class="x"), second("a", true_class="x")
    )
    assert len(outcomes) == 1
    assert stream.value("labels_duplicate_total") == 2


@pytest.mark.parametrize("first", [label, label_for_all])
def test_the_first_label_wins_also_where_both_come_before_the_prediction(first):
    stream = Stream()
    other = label_for_all if first is label else label
    outcomes = stream.feed(first(true_class="x"), other(true_class="y"), predict())
    assert [o.true_class for o in outcomes] == ["x"]
    assert (stream.value("labels_joined_total"), stream.value("labels_corrected_total")) == (1, 1)


def test_a_label_changed_after_resolution_is_counted_and_not_evaluated_again():
    stream = Stream()
    stream.feed(predict(), label(true_class="x"))
    assert stream.feed(label(true_class="y")) == []
    assert stream.value("labels_corrected_total") == 1


def test_a_prediction_without_label_expires_when_the_clock_passes_the_horizon():
    stream = Stream(JoinSpec(horizon_ms=DAY))
    stream.feed(predict(at=500))
    stream.until(DAY + 999)
    assert stream.value("predictions_expired_total") == 0
    assert stream.until(DAY + 1000) == []
    assert stream.value("predictions_expired_total") == 1
    assert stream.value("oldest_pending_timestamp_seconds") is None


def test_on_expiry_assume_evaluates_the_expired_as_that_class():
    stream = Stream(JoinSpec(horizon_ms=DAY, assume="legitimate"))
    stream.feed(predict(predicted_class="fraud", at=500))
    assert stream.until(DAY + 1000) == [
        Outcome(
            "m",
            "legitimate",
            "fraud",
            DAY + 1000,
            DAY + 500,
            assumed=True,
            made=1,
            resolved_ms=DAY + 1000,
            waited_ms=DAY + 500,
        )
    ]
    assert stream.counted()["outcomes_assumed"] == stream.counted()["predictions_expired"] == 1


def test_expiries_come_in_order_of_deadline_then_of_insertion():
    stream = Stream(JoinSpec(horizon_ms=DAY, assume="y"))
    stream.feed(predict("d", at=900), predict("b", at=1000), predict("c", at=2700), predict("a", at=3000))
    outcomes = stream.until(2 * DAY)
    assert [o.event_ms - DAY for o in outcomes] == [1000, 1000, 3000, 3000]
    assert [o.delay_ms - DAY for o in outcomes] == [100, 0, 300, 0]


def test_a_label_beyond_the_horizon_is_late_though_it_came_in_the_same_batch():
    stream = Stream(JoinSpec(horizon_ms=DAY))
    assert stream.feed(predict(at=0), label(at=3 * DAY)) == []
    assert stream.value("predictions_expired_total") == stream.value("labels_late_total") == 1


@pytest.mark.parametrize("assume", [None, "x"])
@pytest.mark.parametrize("make", [label, label_for_all])
def test_a_label_after_expiry_is_late_and_never_evaluated(make, assume):
    stream = Stream(JoinSpec(horizon_ms=DAY, assume=assume))
    stream.feed(predict())
    stream.until(DAY)
    assert stream.feed(make(at=DAY + 1)) == []
    assert stream.value("labels_late_total") == 1


@pytest.mark.parametrize("make", [label, label_for_all])
def test_a_label_of_a_withdrawn_prediction_is_unusable(make):
    stream = Stream()
    stream.feed(predict(), null(), make())
    assert stream.monitors.folded == []
    assert stream.value("labels_unusable_total", "withdrawn") == 1
    assert stream.value("predictions_withdrawn_total") == 1


@pytest.mark.parametrize("make", [label, label_for_all])
def test_a_label_of_an_evicted_prediction_is_unusable(make):
    stream = Stream(JoinSpec(max_pending=1))
    stream.feed(predict("a"), predict("b"), make("a"))
    assert stream.monitors.folded == []
    assert stream.value("labels_unusable_total", "evicted") == 1


@pytest.mark.parametrize("make", [label, label_for_all])
@pytest.mark.parametrize("label_first", [True, False])
def test_a_label_of_a_model_over_the_limit_is_unusable_whichever_came_first(make, label_first):
    stream = Stream(JoinSpec(max_models=1))
    pair = [predict("b", model="n"), make("b", **({"model": "n"} if make is label else {}))]
    stream.feed(predict("a", model="m"), *(reversed(pair) if label_first else pair))
    assert stream.monitors.folded == []
    assert stream.value("labels_unusable_total", "over_limit") == 1
    assert stream.value("records_over_limit_total", "models") == 1
    assert stream.value("predictions_accepted_total") == 1


def test_a_null_value_withdraws_the_pending_predictions_of_its_model_or_of_all():
    stream = Stream()
    stream.feed(predict(model="m"), predict(model="n"), predict(model="o"), null(model="n"))
    assert stream.value("predictions_withdrawn_total") == 1
    stream.feed(null())
    assert stream.value("predictions_withdrawn_total") == 3
    assert stream.feed(predict(model="m")) == []
    assert stream.value("predictions_duplicate_total") == 1


def test_a_null_value_on_a_label_topic_or_without_an_id_is_only_counted():
    stream = Stream()
    stream.feed(predict(), null(topic="labels", withdraws=False), null(None), null("unknown"))
    assert stream.counters.null_records == {"labels": 1, "predictions": 2}
    assert stream.value("null_records_total", "labels") == 1
    assert stream.value("pending_predictions", "m") == 1


def test_a_label_older_than_its_prediction_is_evaluated_with_delay_0():
    stream = Stream()
    outcomes = stream.feed(predict(at=5000), label(at=5000, timestamp_ms=1000))
    assert [(o.event_ms, o.delay_ms) for o in outcomes] == [(1000, 0)]
    assert stream.value("labels_negative_delay_total") == 1


def test_invalid_records_are_counted_by_topic_and_reason():
    stream = Stream()
    stream.feed(Invalid("t", 0, 1, "no_id"), Invalid("t", 0, 2, "no_id"), Invalid("t", 1, 0, "invalid_json"))
    stream.feed(Invalid("u", 0, 1, "no_id"))
    assert stream.counted() == {
        "records_invalid:no_id:t": 2,
        "records_invalid:invalid_json:t": 1,
        "records_invalid:no_id:u": 1,
    }


def test_invalid_records_are_counted_by_model_for_so_many_models_and_those_that_predict():
    stream = Stream(JoinSpec(horizon_ms=DAY, max_models=2))
    stream.feed(predict("a", model="m"), predict("b", model="n"))
    stream.feed(*(Invalid("t", 0, i, "no_id", stream.pipeline.clock_ms, m) for i, m in enumerate("xyzzmmm")))
    counted = {model: stream.value("model_records_invalid_total", model) for model in "xym"}
    assert counted == {"x": 1, "y": 1, "m": 3}
    assert stream.counted()["records_invalid:no_id:t"] == 7
    assert stream.value("model_records_invalid_total", "z") is None


def test_a_model_that_retires_takes_its_invalid_records_with_it():
    stream = Stream(JoinSpec(horizon_ms=HOUR))
    stream.feed(predict("a", model="m"), label("a", model="m"))
    stream.feed(Invalid("t", 0, 0, "no_id", stream.pipeline.clock_ms, "m"))
    assert stream.value("model_records_invalid_total", "m") == 1
    stream.until(DAY)
    assert stream.value("model_records_invalid_total", "m") is None


def test_a_label_without_model_that_meets_several_predictions_is_counted_once():
    stream = Stream(JoinSpec(horizon_ms=DAY))
    stream.feed(predict(model="m"), predict(model="n"), predict(model="o"))
    stream.feed(null(model="m"), label(model="n", true_class="y"), label_for_all(true_class="x"))
    assert [o.model for o in stream.monitors.folded] == ["n", "o"]
    assert stream.value("labels_accepted_total") == 2
    assert stream.value("labels_joined_total") == 2
    assert stream.value("labels_corrected_total") == stream.value("labels_unusable_total", "withdrawn") == 0


def test_a_label_that_meets_nobody_is_no_orphan_if_its_prediction_may_be_older_than_the_start():
    stream = Stream(JoinSpec(horizon_ms=DAY, early_horizon_ms=HOUR))
    stream.pipeline.join.start_ms = 10 * DAY
    stream.feed(label_for_all("c", at=10 * DAY), label("a", at=11 * DAY - 1), label("b", at=11 * DAY))
    stream.until(12 * DAY)
    assert stream.value("labels_before_start_total") == 2
    assert stream.value("labels_orphaned_total") == 1


def test_a_label_in_the_first_entry_meets_a_refused_prediction_of_its_model():
    stream = Stream(JoinSpec(max_models=1))
    stream.feed(label("a", model="n"), predict("b", model="m"))
    assert stream.value("labels_waiting") == 1
    assert stream.feed(predict("a", model="n")) == []
    assert (stream.value("labels_waiting"), stream.counters.models_over_limit) == (0, 1)


@pytest.mark.parametrize("before", [0, 1])
def test_a_label_for_all_in_whatever_entry_meets_a_prediction_that_has_a_label_of_its_own(before):
    stream = Stream()
    stream.feed(*(predict(f"other {k}", model="k") for k in range(before)))
    stream.feed(label("z", model="k"), label("a", "x", model="m"), predict("z", model="k"))
    stream.feed(label_for_all("a", "x"))  # in the entry that the label of z left
    (outcome,) = stream.feed(predict("a", "y", model="m"))
    assert outcome.true_class == "x"
    counted = stream.counted()
    assert (counted["labels_joined"], counted["labels_duplicate"]) == (2, 1)
