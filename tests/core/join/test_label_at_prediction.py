"""What a model could know when it predicted: the label resolved last before its prediction was accepted."""

from __future__ import annotations

import pytest

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.specs import JoinSpec
from tests.core.join.join_stream import DAY, Stream, label, label_for_all, predict
from tests.layouts import TINY


def label_at_prediction(outcomes):
    return [outcome.label_at_prediction for outcome in outcomes]


def test_nothing_is_known_before_the_first_label() -> None:
    stream = Stream()
    stream.feed(predict("a"), predict("b"))
    assert label_at_prediction(stream.feed(label("a", "x"), label("b", "y"))) == [None, None]


def test_a_prediction_knows_the_label_resolved_last_before_it_came_and_none_that_came_later() -> None:
    stream = Stream()
    stream.feed(predict("a"), label("a", "x"), predict("b"), predict("c"))
    assert label_at_prediction(stream.feed(label("b", "y"), label("c", "z"))) == ["x", "x"]
    assert label_at_prediction(stream.feed(predict("d"), label("d", "x"))) == ["z"]


def test_a_label_that_came_before_its_prediction_is_not_known_to_it_but_to_the_next() -> None:
    stream = Stream()
    assert label_at_prediction(stream.feed(label("a", "x"), predict("a"), predict("b"), label("b", "y"))) == [
        None,
        "x",
    ]


def test_models_know_only_the_labels_of_their_own_predictions() -> None:
    stream = Stream()
    stream.feed(predict("a", model="m"), predict("a", model="n"), predict("b", model="m"))
    stream.feed(label("b", "y", model="m"), predict("c", model="m"), predict("c", model="n"))
    outcomes = stream.feed(label_for_all("a", "x"), label_for_all("c", "z"))
    assert [(o.model, o.true_class, o.label_at_prediction) for o in outcomes] == [
        ("m", "x", None),
        ("n", "x", None),
        ("m", "z", "y"),
        ("n", "z", None),
    ]


def test_an_assumed_class_is_no_label_that_could_be_known() -> None:
    stream = Stream(JoinSpec(horizon_ms=DAY, assume="legitimate"))
    stream.feed(predict("a", at=0), label("a", "fraud", at=0), predict("b", at=0))
    (assumed,) = stream.until(DAY + 1_000)
    assert (assumed.assumed, assumed.label_at_prediction) == (True, "fraud")
    stream.feed(predict("c", at=DAY))
    assert label_at_prediction(stream.feed(label("c", "fraud", at=DAY))) == ["fraud"]


def test_a_label_is_known_when_it_resolves_even_if_its_outcome_waits_for_its_order() -> None:
    stream = Stream(JoinSpec(order="prediction_time", reorder_window_ms=60_000))
    stream.feed(predict("a", at=1_000), label("a", "x", at=2_000), predict("b", at=3_000))
    assert stream.feed(label("b", "y", at=4_000)) == []
    assert label_at_prediction(stream.until(100_000)) == [None, "x"]


@pytest.mark.slow
@pytest.mark.parametrize("delay", [1, 5])
def test_persistence_that_waits_for_labels_falls_behind_persistence_that_does_not(delay: int) -> None:
    """Labels repeat in runs of ten; with a label d predictions late, d + 1 of each ten see the run before."""
    labels = [str(i // 10 % 2) for i in range(2_000)]
    monitors = EstimatorSet(TINY)
    stream = Stream(monitors=monitors)
    for i in range(len(labels) + delay):
        events = [predict(str(i), "0", at=i)] if i < len(labels) else []
        if i >= delay:
            events.append(label(str(i - delay), labels[i - delay], at=i))
        stream.feed(*events)
    (family,) = [f for f in monitors.families() if f.name == "baseline_accuracy_ratio"]
    accuracy = {baseline: value for (baseline, _, _), value in family.samples}
    assert accuracy["persistent"] == pytest.approx(0.9, abs=0.001)
    assert accuracy["persistent_at_prediction"] == pytest.approx(0.9 - 0.1 * delay, abs=0.002)
