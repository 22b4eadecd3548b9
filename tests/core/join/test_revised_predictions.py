"""`join.conflicts`: a model predicts an id again before its label, and the last counts, or both do."""

from __future__ import annotations

from streamwatch.core.records.events import Outcome, PairedAnswer
from streamwatch.core.specs import ComparisonSpec, JoinSpec
from tests.core.join.join_stream import Stream, label, label_for_all, null, predict
from tests.core.join.streams import answers

LAST = JoinSpec(conflicts="last", horizon_ms=10_000)
BOTH = JoinSpec(conflicts="both", horizon_ms=10_000)


def test_the_last_prediction_before_the_label_counts_with_its_scores_segments_and_time():
    stream = Stream(LAST)
    stream.feed(predict(predicted_class="x", at=1_000, scores={"x": 0.9}, segments={"country": "DE"}))
    stream.feed(predict(predicted_class="y", at=3_000, scores={"y": 0.7}))
    outcomes = stream.feed(label(true_class="y", at=5_000))
    assert outcomes == [
        Outcome("m", "y", "y", 5_000, 2_000, False, {"y": 0.7}, made=1, resolved_ms=5_000, waited_ms=4_000)
    ]
    counters = stream.counters
    assert (counters.predictions_accepted, counters.predictions_conflict) == (1, 1)


def test_its_own_time_is_where_its_delay_begins():
    stream = Stream(LAST)
    stream.feed(predict(predicted_class="x", at=1_000, timestamp_ms=500))
    stream.feed(predict(predicted_class="y", at=3_000, timestamp_ms=2_500))
    assert [outcome.delay_ms for outcome in stream.feed(label(at=5_000))] == [2_500]


def test_a_prediction_that_returns_to_the_first_class_counts_and_one_of_the_same_class_is_a_duplicate():
    stream = Stream(LAST)
    stream.feed(*(predict(predicted_class=each, at=at) for at, each in enumerate("xyyx")))
    (outcome,) = stream.feed(label(true_class="y", at=10))
    assert (outcome.predicted_class, outcome.delay_ms) == ("x", 7)
    assert (stream.counters.predictions_conflict, stream.counters.predictions_duplicate) == (2, 1)


def test_a_prediction_after_the_label_changes_nothing():
    stream = Stream(LAST)
    assert len(stream.feed(predict(predicted_class="x"), label(true_class="y"))) == 1
    assert stream.feed(predict(predicted_class="y"), label(true_class="y")) == []
    assert (stream.counters.predictions_conflict, stream.counters.with_model.duplicate) == (1, 1)


def test_the_horizon_runs_from_the_first_prediction():
    stream = Stream(LAST)
    stream.feed(predict(predicted_class="x", at=1_000), predict(predicted_class="y", at=9_000))
    assert stream.value("pending_predictions", "m") == 1
    stream.until(11_000)
    assert stream.value("predictions_expired_total") == 1
    assert stream.feed(predict(predicted_class="x", at=11_000), label(at=11_000)) == []
    assert stream.value("labels_late_total") == 1


def test_one_that_expires_is_assumed_about_with_its_last_class():
    stream = Stream(JoinSpec(conflicts="last", horizon_ms=10_000, assume="y"))
    stream.feed(predict(predicted_class="x", at=0), predict(predicted_class="y", at=4_000))
    (outcome,) = stream.until(10_000)
    assert (outcome.assumed, outcome.predicted_class, outcome.delay_ms) == (True, "y", 6_000)


def test_one_that_was_withdrawn_is_not_revised():
    stream = Stream(LAST)
    stream.feed(predict(predicted_class="x"), null(), predict(predicted_class="y"))
    assert stream.feed(label()) == []
    assert stream.value("predictions_withdrawn_total") == 1


def test_it_knows_the_label_that_had_come_when_it_was_revised():
    stream = Stream(LAST)
    stream.feed(predict("a"), predict("b", "x"), label("a", "z"), predict("b", "y"))
    assert [outcome.label_at_prediction for outcome in stream.feed(label("b"))] == ["z"]


def test_a_revision_shows_that_its_model_still_predicts():
    stream = Stream(LAST)
    stream.feed(predict(predicted_class="x", at=1_000), predict(predicted_class="y", at=4_000))
    assert stream.value("last_prediction_timestamp_seconds", "m") == 4.0


def test_compared_models_meet_with_their_last_answers():
    spec = JoinSpec(conflicts="last", comparisons=(ComparisonSpec("m", ("n",)),))
    stream = Stream(spec)
    stream.feed(predict(model="m", predicted_class="x"), predict(model="n", predicted_class="x"))
    stream.feed(predict(model="m", predicted_class="y"))
    outcomes = stream.feed(label_for_all(true_class="y"))
    assert [(each.model, each.predicted_class) for each in outcomes] == [("m", "y"), ("n", "x")]
    assert answers(outcomes[1]) == (PairedAnswer("m", "y"),)


def test_outcomes_take_the_order_of_the_last_predictions_where_that_is_asked_for():
    spec = JoinSpec(conflicts="last", order="prediction_time", reorder_window_ms=10_000)
    stream = Stream(spec)
    stream.feed(predict("a", "x", 1_000), predict("b", "x", 2_000), predict("a", "y", 3_000))
    stream.feed(label("a", at=4_000), label("b", at=4_000))
    assert [(each.predicted_class, each.delay_ms) for each in stream.until(20_000)] == [
        ("x", 2_000),
        ("y", 1_000),
    ]


def test_of_both_the_first_counts_and_the_last_class_is_beside_it():
    stream = Stream(BOTH)
    stream.feed(predict(predicted_class="x", at=1_000, timestamp_ms=500, scores={"x": 0.9}))
    stream.feed(
        *(predict(predicted_class=each, at=at) for at, each in ((3_000, "y"), (3_500, "y"), (4_000, "z")))
    )
    outcomes = stream.feed(label(true_class="y", at=5_000))
    at = {"made": 1, "resolved_ms": 5_000, "waited_ms": 4_000}
    assert outcomes == [Outcome("m", "y", "x", 5_000, 4_500, False, {"x": 0.9}, last_class="z", **at)]
    counters = stream.counters
    assert (counters.predictions_conflict, counters.predictions_duplicate) == (2, 1)


def test_of_both_one_that_returned_to_its_first_class_says_so():
    stream = Stream(BOTH)
    stream.feed(*(predict(predicted_class=each) for each in "xyx"))
    (outcome,) = stream.feed(label(true_class="y"))
    assert (outcome.predicted_class, outcome.last_class) == ("x", "x")
    assert stream.counters.predictions_conflict == 2


def test_of_both_what_was_never_revised_has_no_last_class():
    stream = Stream(BOTH)
    (outcome,) = stream.feed(predict(), predict(), label())
    assert outcome.last_class is None


def test_of_both_what_expires_is_assumed_about_with_first_and_last():
    stream = Stream(JoinSpec(conflicts="both", horizon_ms=10_000, assume="y"))
    stream.feed(predict(predicted_class="x", at=0), predict(predicted_class="y", at=4_000))
    (outcome,) = stream.until(10_000)
    assert (outcome.predicted_class, outcome.last_class, outcome.delay_ms) == ("x", "y", 10_000)


def test_of_both_a_repetition_after_the_label_is_one_of_the_first():
    stream = Stream(BOTH)
    stream.feed(predict(predicted_class="x"), predict(predicted_class="y"), label())
    stream.feed(predict(predicted_class="x"), predict(predicted_class="y"))
    assert (stream.counters.predictions_duplicate, stream.counters.predictions_conflict) == (1, 2)


def test_a_prediction_that_waits_while_settings_go_from_both_to_last_is_replaced_whole():
    stream = Stream(BOTH)
    stream.feed(predict(predicted_class="x"), predict(predicted_class="y"))
    later = stream.again(LAST)
    (outcome,) = later.feed(predict(predicted_class="z", at=1), label(true_class="z", at=2))
    assert (outcome.predicted_class, outcome.last_class) == ("z", None)


def test_a_last_class_that_both_kept_counts_with_last_from_the_time_of_the_first():
    stream = Stream(BOTH)
    stream.feed(predict(predicted_class="x"), predict(predicted_class="y"))
    later = stream.again(LAST)
    (outcome,) = later.feed(predict(predicted_class="y", at=1), label(true_class="y", at=2))
    assert (outcome.predicted_class, outcome.last_class, outcome.delay_ms) == ("y", None, 2)
    assert later.counters.predictions_duplicate == 1


def test_with_first_after_both_the_first_class_stands_and_the_last_one_is_forgotten():
    stream = Stream(BOTH)
    stream.feed(predict(predicted_class="x"), predict(predicted_class="y"))
    later = stream.again(JoinSpec())
    later.feed(predict(predicted_class="x", at=1), predict(predicted_class="y", at=1))
    assert (later.counters.predictions_duplicate, later.counters.predictions_conflict) == (1, 2)
    (outcome,) = later.feed(label(true_class="y", at=2), predict("other", at=3))
    assert (outcome.predicted_class, outcome.last_class) == ("x", None)
