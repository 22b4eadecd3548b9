"""Scores in columns go with their predictions: through the merge, into the join, and to event objects."""

from __future__ import annotations

import random

import numpy as np

from streamwatch.core.join.names import new_names
from streamwatch.core.join.rows import RecordNumbering
from streamwatch.core.merge.inbox import KeptBatches
from streamwatch.core.records.batch import OBJECT, RecordBatch, rows_of
from streamwatch.core.records.events import Event, Prediction
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.daemon.turns import (
    COLUMN_SCORES_PER_TURN,
    ROWS_PER_TURN,
    rows_up_to_objects,
    scores_in_columns,
)
from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats.json import JsonDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.records import of

VOCABULARY = Vocabulary()
DECODER = JsonDecoder(
    DecoderSpec("predictions", "prediction", TopicMapping(segments={}, fold=None), vocabulary=VOCABULARY)
)


def batch(chance: random.Random, count: int, classes: int = 4) -> RecordBatch:
    """Predictions, some of them with scores, some of them invalid."""
    contents = []
    for n in range(count):
        content = {"id": f"{n}", "model": "m", "prediction": "c0"}
        if chance.random() < 0.7:
            named = chance.sample(range(classes), chance.randrange(1, classes + 1))
            content["scores"] = {f"c{k}": chance.random() for k in named}  # type: ignore[assignment]
        contents.append(content if chance.random() < 0.8 else content | {"model": ""})
    records = fetched([of(content) for content in contents])
    DECODER.decode_batch(records)  # the names are learnt
    return DECODER.decode_batch(records)


def test_batches_keep_their_scores_from_arrival_to_release() -> None:
    chance = random.Random(1)
    kept = KeptBatches()
    expected: list[Event] = []
    words = np.zeros((0, 8), np.int64)
    for _ in range(20):
        some = [batch(chance, chance.randrange(1, 9)) for _ in range(chance.randrange(1, 3))]
        expected += [event for each in some for event in each.events()]
        words = np.concatenate([words, kept.add(some)])
        chosen = np.flatnonzero(np.array([chance.random() < 0.8 for _ in range(len(words))]))
        words = words[chosen]
        expected = [expected[index] for index in chosen.tolist()]
        if chance.random() < 0.4:
            kept.keep(rows_of(words))
        rows = rows_of(words.copy())
        found = kept.batch(rows, rows["record_ms"].copy()).events()
        assert found == expected
        assert set(VOCABULARY.classes.names) >= {
            VOCABULARY.classes.names[number] for number in kept.classes_of_scores().tolist()
        }
    assert any(isinstance(event, Prediction) and event.scores for event in expected)


def test_rows_of_the_join_hold_the_scores() -> None:
    some = batch(random.Random(2), 50)
    names = new_names()
    numbering = RecordNumbering(names)
    rows = numbering.rows(some.rows, some.vocabulary)
    numbering.hold_scores(rows, some)
    for row, event, side in zip(rows, some.events(), some.rows["side"].tolist(), strict=True):
        if side != OBJECT:
            assert isinstance(event, Prediction)
            number = row["scores"]
            held = names.scores.lists(np.array([number])) if number >= 0 else None
            found = held and held.by_class(np.array([0]), names.classes.names)[0]
            assert found == event.scores


def test_a_turn_ends_before_more_scores_in_columns_than_fit() -> None:
    chance = random.Random(3)
    plain = [
        of({"id": f"{n}", "model": "m", "prediction": "c0", "scores": {f"c{k}": 0.01 for k in range(100)}})
        for n in range(1_200)
    ]
    for _ in range(2):
        many = DECODER.decode_batch(fetched(plain))
    assert not many.objects
    assert rows_up_to_objects(many) == COLUMN_SCORES_PER_TURN // 100 == 1_000
    assert scores_in_columns(many.part(0, 1_000)) == COLUMN_SCORES_PER_TURN
    few = batch(chance, 30)
    sizes = [len(event.scores or ()) for event in few.events() if isinstance(event, Prediction)]
    assert scores_in_columns(few) == sum(sizes)
    assert rows_up_to_objects(few) == len(few) <= ROWS_PER_TURN
