"""Probabilities of labels from predictions to outcomes, through commits, restarts and changed settings."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.durable.packed import SIDE, parts_of
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.events import as_float32
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.keys import digest_bytes
from tests.core.join.cold.cold_streams import ColdJoined
from tests.core.join.durable_streams import DurableJoined
from tests.core.join.join_stream import label, predict

HALF, RARE = 0.5, as_float32(0.05)
SPEC = JoinSpec(carried=("sampling",))


def in_memory(spec):
    return DurableJoined(spec, digest_bytes, None)


def outside(spec):
    return ColdJoined(spec, digest_bytes, None, Random(4))


MADE = pytest.mark.parametrize("made", [in_memory, outside])


def go_on(columns, **changed):
    columns.commit()
    columns.spec = replace(columns.spec, **changed)
    columns.restart()


def sampled(columns):
    return [(outcome.label_probability, outcome.label_requested) for outcome in columns.outcomes]


PREDICTIONS = [
    predict("a", at=0, label_probability=HALF),
    predict("b", at=1, label_probability=RARE, label_requested=True),
    predict("c", at=2, label_probability=1.0, label_requested=False, scores={"x": 0.9}),
    predict("d", at=3),
]


def labels(at):
    return [label(key, at=at) for key in "abcd"]


@MADE
def test_they_are_those_of_the_prediction_after_commits_and_restarts(made):
    columns = made(SPEC)
    columns.feed(PREDICTIONS[:2])
    go_on(columns)
    columns.feed([label("early", at=2), predict("early", at=2, label_probability=RARE), *PREDICTIONS[2:]])
    go_on(columns)
    columns.feed(labels(5_000))
    assert sampled(columns) == [(RARE, None), (HALF, None), (RARE, True), (1.0, False), (None, None)]


@MADE
def test_without_the_setting_none_is_kept_and_what_was_dropped_does_not_come_back(made):
    columns = made(SPEC)
    columns.feed(PREDICTIONS)
    go_on(columns, carried=())
    columns.feed([label("a", at=10), predict("e", at=11, label_probability=HALF)])
    go_on(columns, carried=("sampling",))
    columns.feed([predict("f", at=12, label_probability=HALF), *labels(5_000)[1:], label("e", at=5_001)])
    columns.feed([label("f", at=5_002)])
    assert sampled(columns) == [(None, None)] * 5 + [(HALF, None)]


@pytest.mark.parametrize(
    ("conflicts", "expected"), [("first", (RARE, True)), ("both", (RARE, True)), ("last", (HALF, None))]
)
def test_a_revised_prediction_has_its_own(conflicts, expected):
    columns = in_memory(replace(SPEC, conflicts=conflicts))
    columns.feed([PREDICTIONS[1]])
    columns.commit()
    columns.feed([predict("b", "y", at=5, label_probability=HALF)])
    go_on(columns)
    columns.feed([label("b", at=9)])
    assert sampled(columns) == [expected]


def test_in_the_order_of_predictions_they_are_held_with_their_outcomes():
    columns = in_memory(replace(SPEC, order="prediction_time", reorder_window_ms=60_000))
    columns.feed([*PREDICTIONS, *labels(5_000)[::-1]])
    assert columns.outcomes == []
    go_on(columns)
    columns.feed([predict("z", at=100_000)])
    assert sampled(columns) == [(HALF, None), (RARE, True), (1.0, False), (None, None)]


def test_numbers_that_stand_for_nothing_are_refused():
    columns = in_memory(SPEC)
    columns.feed(PREDICTIONS)
    columns.pipeline.join.arrays.side[0, 0] = 1 << 29
    columns.commit()
    assert any(parts_of(key)[0] == SIDE for key, _ in columns.shelf.items())
    with pytest.raises(PackedError, match="probabilities with which labels"):
        columns.shelf.restored(Pipeline(SPEC, columns.monitors, digest_bytes))
