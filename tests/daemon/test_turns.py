"""What a poll delivers is decoded and evaluated in turns of bounded size: health answers between them."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.events import Invalid, Label, Partition, Prediction
from streamwatch.daemon.turns import (
    BYTES_PER_TURN,
    DECODED_PER_TURN,
    SCORES_PER_TURN,
    in_turns,
    up_to_scores,
)
from tests.edge.decoders.records import FakeRecord
from tests.tiers import examples

SIZES = st.lists(
    st.sampled_from([0, 1, 300, BYTES_PER_TURN // 3, BYTES_PER_TURN, 3 * BYTES_PER_TURN])
    | st.just(DECODED_PER_TURN + 7),
    max_size=6,
)


def records(sizes: Sequence[int]) -> list[FakeRecord]:
    """One of each size; a number of small ones instead where it is `DECODED_PER_TURN + 7`."""
    found: list[int] = []
    for size in sizes:
        found += [10] * size if size == DECODED_PER_TURN + 7 else [size]
    return [FakeRecord(bytes(size), offset=i) for i, size in enumerate(found)]


@settings(max_examples=examples(1))
@given(st.dictionaries(st.sampled_from([Partition("a", 0), Partition("a", 1), Partition("b", 0)]), SIZES))
def test_every_record_has_its_turn_in_order_and_no_turn_is_larger_than_allowed(
    sizes: dict[Partition, list[int]],
) -> None:
    delivered = {partition: records(found) for partition, found in sizes.items()}
    seen: dict[Partition, list[FakeRecord]] = {partition: [] for partition in delivered}
    for turn in in_turns(delivered):
        taken = [record for each in turn.values() for record in each]
        assert taken
        assert all(0 < len(each) <= DECODED_PER_TURN for each in turn.values())
        assert len(taken) == 1 or sum(len(record.value) for record in taken[:-1]) < BYTES_PER_TURN
        for partition, each in turn.items():
            seen[partition] += each
    assert seen == delivered


def prediction(scores: int) -> Prediction:
    return Prediction("i", "m", "a", 0, None, {str(i): 0.0 for i in range(scores)} if scores else None)


def test_predictions_with_many_scores_are_evaluated_a_few_at_a_time() -> None:
    third = SCORES_PER_TURN // 3
    events = [
        Label("i", "a", 0),
        prediction(third),
        prediction(0),
        prediction(third),
        Invalid("t", 0, 0, "x"),
    ]
    assert up_to_scores(events) == events
    assert up_to_scores([*events, prediction(2 * third), prediction(1)]) == events
    alone = [prediction(SCORES_PER_TURN + 1), prediction(0), prediction(1)]
    assert up_to_scores(alone) == alone[:2]
    assert up_to_scores([]) == []
