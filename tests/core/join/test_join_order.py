"""`join.order`: a label dump sorted by class, evaluated as it comes and in the order of predictions."""

from __future__ import annotations

from random import Random

import pytest

from streamwatch.core.records.events import Label, Prediction
from streamwatch.core.specs import JoinSpec
from tests.core.join.join_stream import DAY, Stream, label, predict

ORDERED = JoinSpec(order="prediction_time", reorder_window_ms=60_000)


def sorted_dump(seed=3, size=2000):
    """Predictions of a stationary stream over a day; their labels, dumped within 20 s, sorted by class."""
    chance = Random(seed)
    made = [(str(n), chance.choice("xyz"), n * DAY // size) for n in range(size)]
    predictions = [Prediction(key, "m", chance.choice([true_class, "x"]), at) for key, true_class, at in made]
    dump = [
        Label(key, true_class, DAY + n * 10, "m")
        for n, (key, true_class, _) in enumerate(sorted(made, key=lambda m: m[1]))
    ]
    return predictions, dump, [true_class for _, true_class, _ in made]


def dumped(spec, size):
    predictions, dump, true_classes = sorted_dump()
    stream = Stream(spec)
    stream.feed(*predictions)
    for start in range(0, len(dump), size):
        part = dump[start : start + size]
        stream.feed(*part)
    stream.until(2 * DAY)
    return [outcome.true_class for outcome in stream.monitors.folded], true_classes, stream


@pytest.mark.parametrize("size", [1, 50, 2000])
def test_prediction_time_restores_the_order_of_the_stream_however_it_is_cut(size):
    evaluated, true_classes, stream = dumped(ORDERED, size)
    assert evaluated == true_classes
    assert stream.value("order_buffer_outcomes") == 0
    assert stream.value("predictions_resolved_total") == len(true_classes)


def test_resolution_order_is_that_of_the_dump():
    evaluated, true_classes, _ = dumped(JoinSpec(), 50)
    assert evaluated == sorted(true_classes)


def test_nothing_is_released_before_its_window_is_over():
    stream = Stream(ORDERED)
    stream.feed(predict("a", at=1000), label("a", at=5000))
    assert stream.until(64_999) == []
    assert stream.value("order_buffer_outcomes") == 1
    assert stream.value("predictions_resolved_total") == 0
    assert len(stream.until(65_000)) == 1


def test_an_events_own_time_decides_and_ties_keep_the_order_of_resolution():
    stream = Stream(ORDERED)
    stream.feed(
        predict("a", "1", at=1000), predict("c", "3", at=1000), predict("b", "2", at=3000, timestamp_ms=500)
    )
    stream.feed(label("c", at=4000), label("a", at=4000), label("b", at=4000))
    assert [o.predicted_class for o in stream.until(DAY)] == ["2", "3", "1"]


def test_a_full_buffer_lets_the_oldest_predictions_go_and_counts_them():
    stream = Stream(JoinSpec(order="prediction_time", max_reordered=2))
    stream.feed(*(predict(key, key, at) for key, at in (("d", 500), ("b", 1000), ("c", 2000), ("a", 3000))))
    outcomes = stream.feed(label("a", at=4000), label("b", at=4000), label("c", at=4000))
    assert [o.predicted_class for o in outcomes] == ["b"]
    assert stream.value("outcomes_released_early_total") == 1
    assert stream.value("order_buffer_outcomes") == 2


@pytest.mark.slow
def test_the_buffer_stays_small_however_long_its_window():
    stream = Stream(JoinSpec(order="prediction_time", max_reordered=10, reorder_window_ms=DAY))
    for number in range(5000):
        stream.feed(predict(str(number), at=number), label(str(number), at=number))
    assert len(stream.monitors.folded) == 4990
    assert stream.value("order_buffer_outcomes") == 10


def test_late_outcomes_do_not_wait_once_newer_ones_have_left():
    stream = Stream(ORDERED)
    stream.feed(predict("b", "b", at=1000), predict("a", "a", at=5000), label("a", at=6000))
    assert len(stream.until(66_000)) == 1
    stream.feed(label("b", at=66_000))
    assert [o.predicted_class for o in stream.until(66_001)] == ["b"]


def test_assumed_outcomes_are_put_in_order_too():
    stream = Stream(JoinSpec(order="prediction_time", horizon_ms=10_000, assume="y"))
    stream.feed(predict("a", "a", at=1000), predict("b", "b", at=2000), label("b", at=5000))
    assert [o.predicted_class for o in stream.until(65_000)] == ["a", "b"]
    assert stream.value("predictions_expired_total") == stream.value("predictions_resolved_total") == 1


def test_at_the_end_of_a_recording_what_is_held_goes_in_order_and_nothing_expires():
    stream = Stream(JoinSpec(order="prediction_time", reorder_window_ms=30 * DAY, horizon_ms=DAY, assume="y"))
    stream.feed(predict("a", "a", at=1000), predict("b", "b", at=2000), predict("c", "c", at=3000))
    stream.feed(label("b", at=5000), label("a", at=6000))
    step = stream.pipeline.release_held()
    assert [outcome.predicted_class for outcome in step.outcomes] == ["a", "b"]
    assert stream.pipeline.identities() == []
    assert stream.value("pending_predictions", "m") == 1
    assert stream.value("predictions_expired_total") == 0
