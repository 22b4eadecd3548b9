"""The compiled join says what the join row by row says, after every batch, and what a naive one says."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.pipelines.column_pipeline import ColumnPipeline
from streamwatch.core.specs import ComparisonSpec, JoinSpec
from streamwatch.edge.keys import digest_bytes
from tests.core.join.compiled.streams import compare, cramped, crowded_digests
from tests.core.join.join_stream import Stream
from tests.core.join.naive_join import NaiveJoin
from tests.core.join.test_join_model import cases, counted, naive_counted
from tests.tiers import by_tier, examples

STREAMS = by_tier(fast=4, rotating=25, default=100, everything=10_000)


def test_every_outcome_counter_and_entry_is_the_same_on_adversarial_streams():
    outcomes = sum(compare(Random(seed)) for seed in range(STREAMS))
    assert outcomes > 5 * STREAMS


def test_ids_with_nearly_equal_digests_are_told_apart():
    for seed in range(10**6, 10**6 + STREAMS // 4):
        compare(Random(seed), crowded_digests)


@pytest.mark.slow
def test_it_is_the_same_with_little_room_and_with_names_that_are_released():
    with cramped():
        for seed in range(2 * 10**6, 2 * 10**6 + STREAMS // 2):
            compare(Random(seed))


@settings(max_examples=examples(1))
@given(cases(), st.sampled_from([None, 0, 3000]))
def test_every_counter_and_outcome_equals_a_naive_join_after_every_event(case, start_ms):
    spec, events = case
    compared = spec.comparisons if spec.order == "resolution" else ()
    spec = replace(spec, comparisons=compared, conflicts="first")
    stream = Stream(spec)
    stream.pipeline = ColumnPipeline(spec, stream.monitors, digest_bytes)
    stream.pipeline.start_ms = start_ms
    naive = NaiveJoin(spec, start_ms)
    for event in events:
        stream.feed(event)
        naive.feed(event)
        ours, theirs = counted(stream), naive_counted(naive)
        assert {key: value for key, value in ours.items() if value} == {
            key: value for key, value in theirs.items() if value
        }
        assert stream.monitors.folded == naive.outcomes
    assert stream.monitors.retired == naive.retired_after_outcomes()


def test_models_compared_in_the_order_of_predictions_are_not_its_business():
    compared = JoinSpec(comparisons=(ComparisonSpec("a", ("b",)),), order="prediction_time")
    with pytest.raises(ValueError, match="expected order 'resolution' with comparisons"):
        ColumnPipeline(compared, Stream().monitors, digest_bytes)


def test_predictions_that_are_revised_are_not_its_business():
    with pytest.raises(ValueError, match="must be 'first', got 'last'"):
        ColumnPipeline(JoinSpec(conflicts="last"), Stream().monitors, digest_bytes)
