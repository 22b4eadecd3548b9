"""Numbers that stand for values of segments: bounded, released, and durable beside entries without any."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.join import names
from streamwatch.core.join.durable.packed import entry_columns, pack_waiting, unpack_waiting
from streamwatch.core.join.layout import ENTRY
from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.batch import RecordBatch
from streamwatch.core.records.events import OTHER, Event, Label, Prediction
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.keys import digest_bytes
from tests.core.columns import in_columns
from tests.core.join.durable_streams import ColumnShelf
from tests.core.join.join_stream import RecordingEstimatorSet
from tests.layouts import TINY

Feed = Callable[[Pipeline, list[Event]], None]


def as_objects(pipeline: Pipeline, events: list[Event]) -> None:
    pipeline.advance(events)


def as_columns(pipeline: Pipeline, events: list[Event]) -> None:
    records: RecordBatch = in_columns(events, Vocabulary(), digests=False)
    for step in pipeline.steps(records):
        assert step.work is None


def predictions(values: list[str], start: int = 0) -> list[Event]:
    return [
        Prediction(str(start + i), "m", "x", i, segments={"c": value, "d": "1"})
        for i, value in enumerate(values)
    ]


@pytest.mark.parametrize("feed", [as_objects, as_columns])
def test_values_beyond_the_bound_are_others_and_counted(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "MOST_SEGMENTS", 2)
    monitors = RecordingEstimatorSet()
    pipeline = Pipeline(JoinSpec(), monitors, digest_bytes)
    feed(pipeline, predictions(["a", "b", "e", "a", "f"]))
    feed(pipeline, predictions(["e", "b"], start=5))
    assert pipeline.join.counters.predictions_segments_over_limit == 3
    feed(pipeline, [Label(str(i), "x", 10) for i in range(7)])
    found = [outcome.segments and outcome.segments["c"] for outcome in monitors.folded]
    assert found == ["a", "b", OTHER, "a", OTHER, OTHER, "b"]
    assert [outcome.segments for outcome in monitors.folded][2] == {"c": OTHER, "d": OTHER}


def test_a_stream_of_ever_new_values_keeps_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "MIN_NAMES", 10)
    monkeypatch.setattr(names, "MOST_SEGMENTS", 40)
    monitors = RecordingEstimatorSet()
    pipeline = Pipeline(JoinSpec(), monitors, digest_bytes)
    for i in range(500):
        event = Prediction(str(i), "m", "x", i, segments={"c": f"v{i}"}, scores={"x": 1.0} if i % 3 else None)
        as_objects(pipeline, [event])
        if i >= 5:
            as_objects(pipeline, [Label(str(i - 5), "x", i)])
    assert [outcome.segments for outcome in monitors.folded] == [{"c": f"v{i}"} for i in range(495)]
    assert pipeline.join.counters.predictions_segments_over_limit == 0
    assert len(pipeline.join.names.segments) <= 40


def test_values_come_back_once_those_that_crowded_them_out_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "MIN_NAMES", 2)
    monkeypatch.setattr(names, "MOST_SEGMENTS", 2)
    monitors = RecordingEstimatorSet()
    pipeline = Pipeline(JoinSpec(), monitors, digest_bytes)
    as_objects(pipeline, predictions(["a", "b", "c"]))
    as_objects(pipeline, [Label(str(i), "x", 5) for i in range(3)])
    for i in range(10, 18):
        as_objects(pipeline, predictions(["e"], start=i))
        as_objects(pipeline, [Label(str(i), "x", 6)])
    found = [(outcome.segments or {})["c"] for outcome in monitors.folded]
    assert found[:4] == ["a", "b", OTHER, OTHER]
    assert found[-1] == "e"


def test_entries_without_segments_take_no_room_for_them() -> None:
    zeros = np.zeros(3, np.int64)
    entries = entry_columns(np.zeros(3, ENTRY), np.arange(3, dtype=np.int32))
    plain = pack_waiting(entries, zeros)
    assert unpack_waiting(plain).segments.tolist() == [-1, -1, -1]
    some = pack_waiting(entries, zeros, np.array([-1, 4, 7]))
    assert unpack_waiting(some).segments.tolist() == [-1, 4, 7]
    assert len(some) - len(plain) == 3


def segmented() -> EstimatorSet:
    return EstimatorSet(
        replace(TINY, max_models=4, registers=(SegmentsSpec(max_values=3, max_classes=TINY.max_classes),))
    )


def a_stream() -> list[Event]:
    rng = np.random.default_rng(4)
    events: list[Event] = []
    for i in range(600):
        segments = {"c": f"v{rng.integers(5)}"} | ({"d": "w"} if rng.random() < 0.5 else {})
        chosen = segments if rng.random() < 0.9 else None
        scores = {"x": 0.7, "y": 0.3} if rng.random() < 0.3 else None
        shown = "xy"[rng.integers(2)]
        events.append(Prediction(str(i), "mn"[rng.integers(2)], shown, 10 * i, None, scores, chosen))
        if i > 30:
            events.append(Label(str(i - int(rng.integers(30))), "xy"[rng.integers(2)], 10 * i))
    return events


@pytest.mark.slow
@pytest.mark.parametrize("feed", [as_objects, as_columns])
@pytest.mark.parametrize("cut", [pytest.param(1, marks=pytest.mark.slow), 37, 5_000])
def test_estimates_of_segments_depend_on_no_cut_restore_or_form_of_events(feed: Feed, cut: int) -> None:
    events, monitors = a_stream(), segmented()
    one_by_one = Pipeline(JoinSpec(), monitors, digest_bytes)
    for event in a_stream():
        one_by_one.advance([event])
    shelf, others = ColumnShelf(), segmented()
    pipeline = Pipeline(JoinSpec(), others, digest_bytes)
    bounds = [*range(0, len(events), cut), len(events)]
    for at, (start, stop) in enumerate(pairwise(bounds)):
        feed(pipeline, events[start:stop])
        if at % 7 == 3:
            shelf.commit(pipeline)
            pipeline = shelf.restored(Pipeline(JoinSpec(), others, digest_bytes))
    assert monitors.details()["m"]["segments"]
    for model in ("m", "n"):
        assert others.snapshot(model) == monitors.snapshot(model)


def test_what_waited_before_segments_were_asked_for_has_none_and_what_waits_keeps_its_own() -> None:
    shelf, monitors = ColumnShelf(), RecordingEstimatorSet()
    pipeline = Pipeline(JoinSpec(), monitors, digest_bytes)
    as_objects(pipeline, [Prediction("1", "m", "x", 0)])
    shelf.commit(pipeline)
    pipeline = shelf.restored(Pipeline(JoinSpec(), monitors, digest_bytes))
    as_objects(pipeline, [Prediction("2", "m", "x", 1, segments={"c": "v"})])
    shelf.commit(pipeline)
    pipeline = shelf.restored(Pipeline(JoinSpec(), monitors, digest_bytes))
    as_objects(pipeline, [Prediction("3", "m", "x", 2), *(Label(str(i), "x", 3) for i in (1, 2, 3))])
    assert [outcome.segments for outcome in monitors.folded] == [None, {"c": "v"}, None]
