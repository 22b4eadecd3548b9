"""Outcomes that no join has seen stand for one prediction each, at the clock of their row."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from streamwatch.core.records.events import as_float32
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.history.evaluator import OutcomeArrays, OutcomeCounts
from streamwatch.history.replay.replay import ReplaySpec, default_topics, replay


def test_outcomes_are_numbered_by_model_one_by_one_and_many_at_once() -> None:
    chance = np.random.default_rng(3)
    one_by_one, at_once, by_hand = OutcomeCounts(), OutcomeCounts(), Counter[str]()
    for _ in range(5):
        models = chance.integers(4, size=30).astype(np.int32)
        names = ["a", "b", "c", "d"]
        expected = []
        for model in models.tolist():
            by_hand[names[model]] += 1
            expected.append(by_hand[names[model]])
        assert at_once.following(models, names).tolist() == expected
        assert [one_by_one.next(names[model]) for model in models.tolist()] == expected


def test_rows_with_both_have_the_clock_of_the_file_and_wait_from_the_time_of_the_prediction(tmp_path) -> None:
    path = tmp_path / "outcomes.jsonl"
    row = '{{"id": {}, "model": "{}", "prediction": "a", "label": "a", "timestamp": {}}}\n'
    path.write_text("".join(row.format(n, m, at) for n, (m, at) in enumerate([("m", 5), ("n", 9), ("m", 7)])))
    found = []
    replay(ReplaySpec([path], seen=found.extend))
    assert [(o.model, o.event_ms, o.made, o.resolved_ms, o.waited_ms) for o in found] == [
        ("m", 5, 1, 5, 0),
        ("n", 9, 1, 9, 0),
        ("m", 7, 2, 9, 2),
    ]


def test_a_row_with_both_carries_the_probability_with_which_its_label_was_asked_for(tmp_path) -> None:
    mapping = TopicMapping(
        label_probability="value.pi", label_requested="value.asked", min_label_probability=0.05
    )
    expected = [(as_float32(0.1), True), (None, None)]
    for name, text in (
        ("o.csv", "id,model,prediction,label,pi,asked\n1,m,a,a,0.1,true\n2,m,a,a,,\n"),
        (
            "o.jsonl",
            (
                '{"id": 1, "model": "m", "prediction": "a", "label": "a", "pi": 0.1, "asked": true}\n'
                '{"id": 2, "model": "m", "prediction": "a", "label": "a"}\n'
            ),
        ),
    ):
        path = tmp_path / name
        path.write_text(text)
        found = []
        replay(ReplaySpec([path], topics=default_topics(mapping), seen=found.extend))
        assert [(o.label_probability, o.label_requested) for o in found] == expected, name


def test_arrays_count_on_and_their_clock_never_goes_back() -> None:
    arrays = OutcomeArrays(by_segment=False)
    given = {"scores": None, "segments": None}
    first = arrays.batch("ab", "aa", model="m", event_ms=[30, 20], **given)
    second = arrays.batch("ab", "aa", model=["n", "m"], event_ms=[10, 40], **given)
    assert [(o.model, o.made, o.resolved_ms, o.waited_ms) for o in [*first, *second]] == [
        ("m", 1, 30, 0),
        ("m", 2, 30, 0),
        ("n", 1, 30, 0),
        ("m", 3, 40, 0),
    ]


@pytest.mark.parametrize(
    "refused",
    [{"scores": {"a": [2.0]}}, {"event_ms": [9, 9]}, {"event_ms": [10**12], "segments": {"country": ["x"]}}],
)
def test_a_batch_that_is_refused_counts_nothing_and_moves_no_clock(refused: dict[str, Any]) -> None:
    arrays = OutcomeArrays(by_segment=False)
    absent = {"event_ms": None, "scores": None, "segments": None}
    with pytest.raises(ValueError, match=r"must be|need a SegmentsSpec"):
        arrays.batch(["a"], ["a"], model="m", **{**absent, **refused})
    found = arrays.batch(["a", "b"], ["a", "a"], model="m", **{**absent, "event_ms": [3, 2]})
    assert found.records["made"].tolist() == [1, 2]
    assert found.records["resolved_ms"].tolist() == [3, 3]
    assert arrays.outcomes == 2
