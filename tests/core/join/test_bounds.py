"""What the compiled join keeps in memory is bounded by what waits, whatever the stream."""

from __future__ import annotations

import pytest

from streamwatch.core.join import names
from streamwatch.core.specs import JoinSpec
from tests.core.join.join_stream import Stream, label, label_for_all, null, predict, tick

SECOND = 1_000


def entries_ever(stream):
    return int(stream.pipeline.join.arrays.totals["top"][0])


@pytest.mark.parametrize("waiting", [1_000, 41_000, 150_000])
def test_an_entry_takes_at_most_a_hundred_bytes_with_its_share_of_the_table(waiting):
    stream = Stream()
    for start in range(0, waiting, 1_000):
        stream.feed(*[predict(str(number)) for number in range(start, start + 1_000)])
    assert stream.value("pending_predictions", "m") == waiting
    assert 64 * waiting <= stream.pipeline.join.nbytes <= 100 * waiting


def test_entries_of_what_is_forgotten_are_used_again():
    spec = JoinSpec(horizon_ms=10 * SECOND, early_horizon_ms=10 * SECOND, dedup_horizon_ms=10 * SECOND)
    stream = Stream(spec)
    for second in range(500):
        at = second * SECOND
        stream.feed(
            *[predict(f"resolved {second} {n}", at=at) for n in range(5)],
            *[label_for_all(f"resolved {second} {n}", at=at) for n in range(5)],
            *[predict(f"expires {second} {n}", at=at) for n in range(5)],
            *[label(f"early {second} {n}", at=at) for n in range(5)],
        )
    assert stream.value("predictions_accepted_total") == 5_000
    assert entries_ever(stream) < 20 * 2 * 15, "20 a second wait for ten seconds, then count for ten more"


def test_scores_are_let_go_however_their_prediction_leaves():
    spec = JoinSpec(horizon_ms=10 * SECOND, max_pending=3, max_models=1)
    stream = Stream(spec)
    scores = {"x": 0.5}
    stream.feed(
        predict("resolved", scores=scores),
        predict("resolved", scores=scores),
        label("resolved"),
        predict("withdrawn", scores=scores),
        null("withdrawn"),
        predict("of one model too many", model="n", scores=scores),
        *[predict(f"evicted or expires {number}", scores=scores) for number in range(9)],
    )
    held = stream.pipeline.join.names.scores
    assert len(held) == 3
    stream.until(10 * SECOND)
    assert len(held) == 0
    assert [outcome.scores for outcome in stream.monitors.folded] == [scores]


def test_names_that_nothing_refers_to_any_more_are_released(monkeypatch):
    monkeypatch.setattr(names, "MIN_NAMES", 50)
    stream = Stream(JoinSpec(horizon_ms=10 * SECOND, dedup_horizon_ms=10 * SECOND, max_models=5))
    for second in range(200):
        outcomes = stream.feed(
            *[predict(f"{second} {n}", f"class {second} {n}", second * SECOND) for n in range(5)],
            *[predict(f"{second} {n}", at=second * SECOND, model=f"m {second}") for n in range(5)],
            *[label(f"{second} {n}", f"true {second}", second * SECOND) for n in range(5)],
        )
        assert [o.predicted_class for o in outcomes] == [f"class {second} {n}" for n in range(5)]
        assert {o.true_class for o in outcomes} == {f"true {second}"}
        known = None if second == 0 else f"true {second - 1}"
        assert [o.label_at_prediction for o in outcomes] == [known] * 5
    join = stream.pipeline.join
    assert join.classes.version > 0
    assert join.models.version > 0
    assert len(join.classes) < 300, "6 a second, needed for twenty seconds, and as many not looked at yet"
    assert len(join.models) < 150


def test_as_many_fall_due_at_once_as_ever_wait_in_order_of_prediction():
    stream = Stream(JoinSpec(horizon_ms=10 * SECOND, assume="x"))
    number = 10_000
    for start in range(0, number, 1_000):
        stream.feed(
            *[predict(str(n), "xy"[n % 2], n % 7, timestamp_ms=n) for n in range(start, start + 1_000)]
        )
    outcomes = stream.feed(tick(20 * SECOND), label("0", at=20 * SECOND))
    assert len(outcomes) == number
    assert [outcome.predicted_class for outcome in outcomes] == ["x", "y"] * (number // 2)
    assert all(outcome.assumed for outcome in outcomes)
    assert stream.counted()["labels_late"] == 1
