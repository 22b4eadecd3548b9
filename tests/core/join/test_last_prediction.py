"""When each model predicted last, for whoever asks whether it still does."""

from __future__ import annotations

from tests.core.join.join_stream import Stream, label, predict

NAME = "last_prediction_timestamp_seconds"


def test_the_latest_event_time_of_a_model_s_predictions_is_reported():
    stream = Stream()
    stream.feed(predict("a", model="m", at=9_000, timestamp_ms=4_000), predict("b", model="n", at=9_500))
    stream.feed(predict("c", model="m", at=10_000, timestamp_ms=3_000))
    assert (stream.value(NAME, "m"), stream.value(NAME, "n")) == (4.0, 9.5)


def test_a_producer_that_dates_ahead_is_believed_to_the_time_of_its_record():
    stream = Stream()
    stream.feed(predict("a", at=9_000, timestamp_ms=253_402_300_799_000))
    assert stream.value(NAME, "m") == 9.0


def test_predictions_that_are_not_accepted_and_labels_do_not_count():
    stream = Stream()
    stream.feed(predict("a", "x", at=1_000), predict("a", "x", at=5_000), predict("a", "y", at=6_000))
    stream.feed(label("a", "x", at=7_000))
    assert stream.value(NAME, "m") == 1.0


def test_it_survives_a_restart():
    stream = Stream()
    stream.feed(predict("a", at=9_000))
    assert stream.again().value(NAME, "m") == 9.0
