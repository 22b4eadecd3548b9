"""Positions of accepted predictions travel packed, and are counted up to every outcome."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamwatch.core.buckets.contract import DUE, RECORD
from streamwatch.core.buckets.made import (
    AcceptedPredictions,
    MadeCounts,
    PackedPredictions,
    PredictionPositions,
    PredictionPositionsState,
    counts_of,
)
from streamwatch.core.join.durable.columns import PackedError, pack_columns

MODELS = ["m", "n", "o"]
positions = st.tuples(st.integers(0, 40), st.integers(0, 2), st.integers(0, 2**40), st.integers(0, 2))
events = st.lists(st.tuples(positions, st.integers(0, 2)), unique_by=lambda each: each[0], max_size=30).map(
    sorted
)
RANKS = [7 << 32, 5, 1 << 32 | 3]


def packed(several, chosen=(True, True, True)):
    """Predictions that an id bucket accepted in two pieces, of the models that are chosen."""
    accepted = AcceptedPredictions()
    for piece in (several[:4], several[4:]):
        if piece:
            models = np.array([model for _, model in piece], np.int32)
            accepted.add(models, MODELS, np.array([position for position, _ in piece], np.int64))
    return accepted.of(np.array([chosen[MODELS.index(name)] for name in accepted.models], np.bool_), RANKS)


@given(events, st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_positions_come_back_with_ranks_for_partitions(several, chosen):
    found = packed(several, chosen)
    models, at = found.unpacked()
    expected = [
        (MODELS[model], time, RANKS[partition], offset, event)
        for (time, partition, offset, event), model in several
        if chosen[model]
    ]
    assert [
        (found.models[m], *position) for m, position in zip(models.tolist(), at.tolist(), strict=True)
    ] == expected


def test_numbers_without_a_name_or_a_partition_are_refused():
    wrong = pack_columns([np.array([number], np.int64) for number in (1, 0, 0, 0, 0)])
    for names, ranks in (([], [1]), (["m"], [1]), (["m", "n"], [])):
        with pytest.raises(PackedError, match="accepted predictions"):
            PackedPredictions(wrong, names, ranks, [0] * len(ranks)).unpacked()


@pytest.mark.parametrize(
    ("accepted", "numbers"),
    [(2**40, [5]), (5, [3, 2]), (5, [2, 2]), (5, [0, 2]), (5, [-7]), (5, [2, 6]), (-1, [1])],
)
def test_positions_of_predictions_that_were_not_accepted_are_refused(accepted, numbers):
    columns = pack_columns([np.array(numbers, np.int64), *np.zeros((4, len(numbers)), np.int64)])
    with pytest.raises(PackedError, match=f"expected ascending numbers of {accepted} predictions"):
        PredictionPositions().restore(PredictionPositionsState(accepted, columns))


@given(st.lists(events, min_size=1, max_size=3), st.lists(events, max_size=3), st.data())
def test_what_was_accepted_up_to_a_position_is_counted_in_every_batch(batches, resolutions, data):
    """Each batch is 100 ms later; one in two goes on from a state, and a model may retire behind it."""
    counts, by_hand = MadeCounts(), Counter[str]()
    for number, batch in enumerate(batches):
        later = 100 * number
        accepted = [((time + later, *rest), model) for (time, *rest), model in batch]
        halves = [accepted[0::2], accepted[1::2]]
        wanted = resolutions[number] if number < len(resolutions) else []
        wanted = [((time + later, *rest), model) for (time, *rest), model in wanted]
        kinds = [data.draw(st.sampled_from([DUE, RECORD])) for _ in wanted]
        ordered = sorted(
            ((time, kind, RANKS[partition], offset, event), model)
            for ((time, partition, offset, event), model), kind in zip(wanted, kinds, strict=True)
        )
        counts.begin([packed(half) for half in halves], MODELS)
        got = counts.of(
            np.array([model for _, model in ordered], np.int32),
            np.array([(position[0], *position[2:], 0) for position, _ in ordered], np.int64).reshape(-1, 5),
            np.array([position[1] for position, _ in ordered], np.int64),
        )
        ranked = [
            ((time, RECORD, RANKS[partition], offset, event), MODELS[model])
            for (time, partition, offset, event), model in accepted
        ]
        expected = [
            by_hand[MODELS[model]] + sum(name == MODELS[model] and at <= position for at, name in ranked)
            for position, model in ordered
        ]
        assert got.tolist() == expected
        counts.end()
        by_hand.update(name for _, name in ranked)
        if data.draw(st.booleans()):
            counts = counts_of(counts.by_model)


def test_a_model_that_retires_in_a_batch_begins_at_0_and_counts_what_comes_after():
    counts = counts_of({"m": 2**32 - 1, "n": 4})
    accepted = [((10, 0, 1, 0), 0), ((20, 0, 2, 0), 0), ((20, 0, 3, 0), 1)]
    counts.begin([packed(accepted)], "mn")
    resolved, kinds = np.array([[10, RANKS[0], 9, 0, 0], [20, RANKS[0], 9, 0, 0]]), np.array([RECORD, RECORD])
    models = np.zeros(1, np.int32)
    assert counts.of(models, resolved[:1], kinds[:1]).tolist() == [0]  # 2**32, modulo 2**32
    counts.retire(["m"], 20)
    assert counts.of(models, resolved[1:], kinds[1:]).tolist() == [1]
    counts.end()
    assert counts.by_model == {"m": 1, "n": 5}
