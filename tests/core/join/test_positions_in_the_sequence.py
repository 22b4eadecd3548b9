"""Outcomes tell how many predictions their model had made, and the clock where label and prediction met."""

from __future__ import annotations

import pytest

from streamwatch.core.records.events import fold_name
from streamwatch.core.specs import JoinSpec
from tests.core.join.join_stream import DAY, Stream, label, label_for_all, null, predict

HOUR = 3_600_000


def positions(outcomes):
    return [(outcome.made, outcome.resolved_ms, outcome.waited_ms) for outcome in outcomes]


def test_every_accepted_prediction_counts_once_whatever_becomes_of_it():
    stream = Stream(JoinSpec(horizon_ms=DAY, max_pending=3))
    stream.feed(
        predict("withdrawn", at=0),
        predict("withdrawn", at=1),  # a duplicate
        predict("withdrawn", "y", at=2),  # a conflict
        null("withdrawn", at=3),
        *(predict(key, at=4) for key in ("evicted", "b", "c", "d")),
        predict("b", at=4, model="other"),  # evicts one more
    )
    assert stream.value("predictions_evicted_total") == 2
    assert positions(stream.feed(label("d", at=10))) == [(5, 10, 6)]
    assert positions(stream.feed(label("c", at=11), predict("f", at=12), label("f", at=12))) == [
        (5, 11, 7),
        (6, 12, 0),
    ]
    assert positions(stream.feed(label_for_all("b", at=13))) == [(1, 13, 9)]


def test_a_label_that_came_first_meets_at_the_prediction_which_counts():
    stream = Stream()
    outcomes = stream.feed(
        label("early", at=100),
        label_for_all("bare", at=200),
        predict("other", at=250),
        predict("early", at=300, timestamp_ms=5),
        predict("bare", at=400),
    )
    assert positions(outcomes) == [(2, 300, 0), (3, 400, 0)]


def test_clocks_are_those_of_records_not_those_that_events_tell():
    stream = Stream()
    stream.feed(predict(at=1_000, timestamp_ms=10))
    (outcome,) = stream.feed(label(at=5_000, timestamp_ms=4_000))
    assert (outcome.event_ms, outcome.delay_ms) == (4_000, 3_990)
    assert positions([outcome]) == [(1, 5_000, 4_000)]


@pytest.mark.parametrize("cut", [True, False])
def test_an_assumed_outcome_is_resolved_at_its_deadline_wherever_the_stream_is_cut(cut):
    stream = Stream(JoinSpec(horizon_ms=DAY, assume="x"))
    events = [
        predict("a", at=400),
        predict("b", at=2 * DAY - 100),
        predict("c", at=2 * DAY + 100),
        predict("d", at=9 * DAY),
    ]
    outcomes = [
        outcome
        for several in ([[event] for event in events] if cut else [events])
        for outcome in stream.feed(*several)
    ]
    assert positions(outcomes) == [
        (1, DAY + 1_000, DAY + 600),
        (3, 3 * DAY, DAY + 100),
        (3, 3 * DAY + 1_000, DAY + 900),
    ]


def test_folds_and_models_count_for_themselves():
    stream = Stream(JoinSpec(folds=True))
    one, two = fold_name("m", 0), fold_name("m", 1)
    stream.feed(predict("a", model=one), predict("a", model=two), predict("b", model=one), predict("a", at=9))
    outcomes = stream.feed(label("a", at=10))
    assert [(each.model, each.made) for each in outcomes] == [(one, 2), (two, 1), ("m", 1)]


def test_a_model_that_retired_counts_anew():
    stream = Stream(JoinSpec(horizon_ms=HOUR))
    stream.feed(predict("a", at=0), label("a", at=1), predict("b", at=2))
    stream.until(4 * HOUR)
    assert stream.monitors.retired
    assert positions(stream.feed(predict("c", at=5 * HOUR), label("c", at=5 * HOUR + 7))) == [
        (1, 5 * HOUR + 7, 7)
    ]


@pytest.mark.parametrize("order", ["resolution", "prediction_time"])
def test_counts_and_clocks_go_on_after_a_restart(order):
    stream = Stream(JoinSpec(order=order, reorder_window_ms=1_000))
    stream.feed(predict("a", at=10), predict("b", at=20), null("b", at=30), predict("c", at=40))
    held = stream.feed(label("c", at=50, timestamp_ms=45))
    again = stream.again()
    outcomes = [*held, *again.feed(label("a", at=60)), *again.until(5_000)]
    expected = [(3, 50, 10), (3, 60, 50)]
    assert positions(outcomes) == (expected if order == "resolution" else expected[::-1])
    outcomes = [*again.feed(predict("d", at=6_000), label("d", at=6_001)), *again.until(9_000)]
    assert positions(outcomes) == [(4, 6_001, 1)]


def test_the_count_wraps_at_2_to_the_32():
    stream = Stream()
    stream.feed(predict("a", at=0), predict("b", at=0))
    join = stream.pipeline.join
    join.arrays.activity["left"][join.models["m"]] = 2**32 - 2
    assert positions(stream.feed(label("a", at=1), predict("c", at=2), label("c", at=2))) == [
        (0, 1, 1),
        (1, 2, 0),
    ]


def test_counts_go_on_when_the_join_begins_anew_and_its_models_still_retire():
    stream = Stream(JoinSpec(horizon_ms=HOUR))
    stream.feed(predict("a", at=10), predict("b", at=20), label("a", at=30), predict("c", at=40, model="n"))
    for _ in range(2):
        other = Stream(stream.spec, stream.monitors)
        other.pipeline.begin_join_anew(stream.pipeline.snapshot())
        stream = other
    assert stream.value("pending_predictions", "m") == 0
    assert positions(stream.feed(label("b", at=50), predict("d", at=60), label("d", at=70))) == [(3, 70, 10)]
    stream.until(4 * HOUR)
    assert stream.monitors.retired == [(2, "m")]
    assert not stream.pipeline.join.holdings().models


def test_labels_of_predictions_lost_when_the_join_began_anew_are_no_orphans():
    stream = Stream(JoinSpec(horizon_ms=HOUR, early_horizon_ms=HOUR))
    stream.feed(predict("a", at=HOUR))
    again = Stream(stream.spec, stream.monitors)
    again.pipeline.begin_join_anew(stream.pipeline.snapshot())
    again.feed(label("a", at=2 * HOUR - 1), label("b", at=2 * HOUR))
    again.until(4 * HOUR)
    assert again.value("labels_before_start_total") == 1
    assert again.value("labels_orphaned_total") == 1
