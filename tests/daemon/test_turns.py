"""What a poll delivers is decoded and evaluated in turns of bounded size: health answers between them."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.merge import Arrivals, arrivals_of
from streamwatch.core.records.events import Invalid, Label, Partition, Prediction
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.daemon.turns import (
    COLUMN_SCORES_PER_TURN,
    LONG_SECONDS,
    RECORDS_PER_TURN,
    ROOM,
    ROOM_OF_COLUMNS,
    ROWS_PER_SHORT_TURN,
    ROWS_PER_TURN,
    SCORES_PER_TURN,
    SHORT_SECONDS,
    TurnLength,
    in_turns,
    rooms_after,
    rows_up_to_objects,
    up_to_scores,
)
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord, gathered
from tests.core.columns import in_columns
from tests.edge.decoders.records import FakeRecord
from tests.edge.sources.kafka.batches.pieces import piece_of
from tests.tiers import examples

SIZES = st.lists(
    st.sampled_from([0, 1, 300, ROOM.size_bytes // 3, ROOM.size_bytes, 3 * ROOM.size_bytes])
    | st.just(RECORDS_PER_TURN + 7),
    max_size=6,
)


def records(sizes: Sequence[int]) -> list[FakeRecord]:
    """One of each size; a number of small ones instead where it is `RECORDS_PER_TURN + 7`."""
    found: list[int] = []
    for size in sizes:
        found += [10] * size if size == RECORDS_PER_TURN + 7 else [size]
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
        assert all(0 < len(each) <= RECORDS_PER_TURN for each in turn.values())
        assert len(taken) == 1 or sum(len(record.value) for record in taken[:-1]) < ROOM.size_bytes
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


@pytest.mark.slow
def test_fetched_records_are_cut_where_objects_are_but_more_at_a_time() -> None:
    partition, chance = Partition("a", 0), random.Random(0)
    sizes = [chance.choice((0, 100, 500, ROOM.size_bytes)) for _ in range(6_000)]
    fetched = gathered(
        partition, [piece_of([KafkaRecord("a", 0, i, 0, None, bytes(n)) for i, n in enumerate(sizes)])]
    )
    turns = [turn[partition] for turn in in_turns({partition: fetched})]
    assert [record.offset for turn in turns for record in turn] == list(range(len(sizes)))
    for turn in turns:
        own = [len(record.value or b"") for record in turn]
        assert sum(own[:-1]) < ROOM.size_bytes
        assert len(own) == ROOM.fetched or sum(own) >= ROOM.size_bytes or turn is turns[-1]


@pytest.mark.slow
def test_where_nearly_all_are_columns_larger_turns_follow_until_there_are_objects_again() -> None:
    label, odd = Label("i", "a", 0), Invalid("t", 0, 0, "x")

    def decoded(events: Sequence[Label | Invalid]) -> Arrivals:
        batch = in_columns(events, Vocabulary(), digests=False)
        return arrivals_of([FakeRecord(b"", offset=i) for i in range(len(events))], batch)

    few, many = decoded([label] * 70 + [odd] * 10), decoded([label] * 69 + [odd] * 10)
    of_two = rooms_after({Partition("a", 0): few, Partition("a", 1): few, Partition("b", 0): many})
    assert of_two == {"a": ROOM_OF_COLUMNS, "b": ROOM}
    assert rooms_after({Partition("a", 0): few, Partition("a", 1): many}) == {"a": ROOM}
    partition, rooms = Partition("a", 0), iter((ROOM, ROOM_OF_COLUMNS, ROOM))
    fetched = gathered(
        partition, [piece_of([KafkaRecord("a", 0, i, 0, None, bytes(100)) for i in range(20_000)])]
    )
    turns = [len(turn[partition]) for turn in in_turns({partition: fetched}, lambda _: next(rooms))]
    assert turns == [ROOM.fetched, ROOM_OF_COLUMNS.fetched, ROOM.fetched]


def test_a_topic_of_objects_has_short_turns_beside_and_after_one_of_columns() -> None:
    columns, objects = Partition("a", 0), Partition("b", 0)
    rooms = {"a": ROOM_OF_COLUMNS, "b": ROOM}
    fetched = {
        partition: gathered(
            partition, [piece_of([KafkaRecord("a", 0, i, 0, None, bytes(1_000)) for i in range(number)])]
        )
        for partition, number in ((columns, 3_000), (objects, 600))
    }
    turns = [
        {partition: len(each) for partition, each in turn.items()}
        for turn in in_turns(fetched, rooms.__getitem__)
    ]
    of_objects = ROOM.size_bytes // 1_000 + 1
    assert turns == [
        {columns: ROOM_OF_COLUMNS.size_bytes // 1_000 + 1, objects: of_objects},
        {columns: 3_000 - ROOM_OF_COLUMNS.size_bytes // 1_000 - 1, objects: of_objects},
        {objects: 600 - 2 * of_objects},
    ]


def test_of_many_objects_among_columns_no_more_than_fit_a_turn_are_joined_at_once() -> None:
    label, odd = Label("i", "a", 0), Invalid("t", 0, 0, "x")
    few = in_columns([label, odd, label] * 100, Vocabulary(), digests=False)
    assert rows_up_to_objects(few) == 300
    many = in_columns([label, odd] * ROWS_PER_TURN, Vocabulary(), digests=False)
    assert rows_up_to_objects(many) == 2 * RECORDS_PER_TURN + 1
    plain = in_columns([label] * (ROWS_PER_TURN + 1), Vocabulary(), digests=False)
    assert rows_up_to_objects(plain) == ROWS_PER_TURN
    half = prediction(COLUMN_SCORES_PER_TURN // 2 + 1)
    scored = in_columns([label, half, label, half, prediction(1)], Vocabulary(), digests=False)
    assert not scored.objects
    assert rows_up_to_objects(scored) == 3


def test_turns_are_twice_as_long_while_they_are_short_and_only_then() -> None:
    now = 0.0
    length = TurnLength(lambda: now)

    def rows_after(seconds: float, rows: int) -> int:
        nonlocal now
        length.begin()
        now += seconds
        length.end(rows)
        return length.rows

    assert length.rows == ROWS_PER_TURN
    assert rows_after(1.1 * SHORT_SECONDS, ROWS_PER_TURN) == ROWS_PER_TURN
    assert rows_after(0.9 * SHORT_SECONDS, ROWS_PER_TURN) == ROWS_PER_SHORT_TURN
    assert rows_after(0.9 * LONG_SECONDS, ROWS_PER_SHORT_TURN) == ROWS_PER_SHORT_TURN
    assert rows_after(1.1 * LONG_SECONDS, ROWS_PER_SHORT_TURN) == ROWS_PER_TURN
    assert rows_after(0.9 * SHORT_SECONDS, ROWS_PER_TURN // 2) == ROWS_PER_TURN
    assert rows_after(0.4 * SHORT_SECONDS, ROWS_PER_TURN // 2) == ROWS_PER_SHORT_TURN
    assert rows_after(0.0, 0) == ROWS_PER_SHORT_TURN
    plain = in_columns([Label("i", "a", 0)] * (ROWS_PER_SHORT_TURN + 1), Vocabulary(), digests=False)
    assert rows_up_to_objects(plain, length.rows) == ROWS_PER_SHORT_TURN
