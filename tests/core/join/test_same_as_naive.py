"""The compiled join says what a naive one says, after every batch, whatever its form."""

from __future__ import annotations

from random import Random

import pytest

from streamwatch.core.pipeline.pipeline import Pipeline
from streamwatch.core.records.events import Prediction
from streamwatch.core.specs import JoinSpec
from streamwatch.edge.keys import digest_bytes
from tests.core.join.join_stream import RecordingEstimatorSet
from tests.core.join.streams import compare, cramped, crowded_case, crowded_digests
from tests.tiers import by_tier, seeds

STREAMS = by_tier(fast=4, default=100, everything=10_000)


def test_every_outcome_counter_and_entry_is_the_same_on_adversarial_streams():
    streams = seeds(0, STREAMS, 8)
    outcomes = sum(compare(Random(seed)) for seed in streams)
    assert outcomes > 5 * len(streams)


def test_ids_with_nearly_equal_digests_are_distinguished():
    for seed in seeds(10**6, STREAMS // 4):
        compare(Random(seed), crowded_digests)


def test_many_models_that_predict_an_id_one_after_another_are_distinguished():
    for seed in seeds(3 * 10**6, max(1, STREAMS // 10)):
        compare(Random(seed), case=crowded_case)
        compare(Random(-seed), crowded_digests, crowded_case)


def test_models_are_looked_for_among_those_of_their_id_only_until_these_are_marked():
    pipeline = Pipeline(JoinSpec(), RecordingEstimatorSet(), digest_bytes)
    marked: list[int] = []
    for ids in (["new models"], ["a", "b", "c"]):
        pipeline.advance([Prediction(id_, f"model-{n}", "x", 0) for id_ in ids for n in range(20)])
        marked.append(int(pipeline.join.arrays.totals["marked_chains"][0]))
    assert marked[1] - marked[0] == 3
    assert pipeline.join.holdings().pending == 80


def test_predictions_sent_twice_in_a_row_mark_the_models_of_their_id_once():
    pipeline = Pipeline(JoinSpec(), RecordingEstimatorSet(), digest_bytes)
    twice = [Prediction("a", f"model-{n // 2}", "x", 0) for n in range(40)]
    before = pipeline.join.arrays.totals["marked_chains"][0]
    pipeline.advance([Prediction("b", f"model-{n}", "x", 0) for n in range(20)])  # models get their numbers
    marked = int(pipeline.join.arrays.totals["marked_chains"][0])
    pipeline.advance(twice)
    assert before == 0
    assert int(pipeline.join.arrays.totals["marked_chains"][0]) - marked == 1
    assert (pipeline.join.holdings().pending, pipeline.join.counters.predictions_duplicate) == (40, 20)


@pytest.mark.slow
def test_it_is_the_same_with_little_room_and_with_names_that_are_released():
    with cramped():
        for seed in seeds(2 * 10**6, STREAMS // 2):
            compare(Random(seed))
