"""Arrays of which each element is an event, through the compiled scanner: as the reader of one record says.

`STREAMWATCH_TESTS=all python -m pytest tests/edge/decoders/test_scanned_elements.py` reads more than
a third of a million mutated records.
"""

from __future__ import annotations

import json
import random

import pytest

from streamwatch.core.records.batch import LABEL, PREDICTION, SEVERAL
from streamwatch.core.records.events import EventGroup, Prediction, Side
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.edge.decoders.formats import json as json_values
from streamwatch.edge.decoders.formats.json import build, decoded_of
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatOptions
from streamwatch.edge.decoders.mapping import (
    ClassOfLargest,
    ClassOfScore,
    KindRule,
    ScoreArray,
    TopicMapping,
)
from streamwatch.edge.decoders.scanner.shape import MAX_ELEMENTS
from streamwatch.edge.keys import id_keys
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.nested import nested
from tests.edge.decoders.records import of
from tests.tiers import by_tier, few

RECORDS = by_tier(fast=14_000, rotating=14_000, default=30_000, everything=340_000)
"""Mutated records, over all mappings."""
PER_BATCH = 60
EACH = TopicMapping(model="value.each[].model", prediction="value.each[].class")
MAPPINGS: dict[str, tuple[Side, TopicMapping]] = {
    "shared id": ("prediction", EACH),
    "ids of elements": ("prediction", TopicMapping(id="value.each[].id", prediction="value.each[].class")),
    "key": ("prediction", TopicMapping(id="key", model="=m", prediction="value.each[].class")),
    "scores": (
        "prediction",
        TopicMapping(
            id="value.each[].id",
            model="value.each[].model",
            prediction="value.each[].class",
            timestamp="value.each[].at",
            timestamp_unit="iso8601",
            scores="value.each[].scores",
        ),
    ),
    "largest": (
        "prediction",
        TopicMapping(prediction=ClassOfLargest("value.each[].probabilities"), scores=None),
    ),
    "largest with scores": (
        "prediction",
        TopicMapping(
            prediction=ClassOfLargest("value.each[].probabilities"), scores="value.each[].probabilities"
        ),
    ),
    "array of scores": (
        "prediction",
        TopicMapping(
            model="value.each[].model",
            prediction="value.each[].class",
            scores=ScoreArray("value.each[].scores", ("yes", "no", "maybe")),
        ),
    ),
    "probability": (
        "prediction",
        TopicMapping(
            prediction=ClassOfScore("value.each[].score", 0.25, "yes", "no", probability=True),
            scores="value.each[].scores",
        ),
    ),
    "segments": (
        "prediction",
        TopicMapping(
            model="value.each[].model",
            prediction="value.each[].class",
            segments={"site": "value.each[].site", "kind": "value.kind"},
        ),
    ),
    "names of several": (
        "prediction",
        TopicMapping(
            id=("value.id", "value.each[].id"),
            model=("value.model", "value.each[].deep.version?"),
            prediction="value.each[].class",
        ),
    ),
    "arrays side by side": (
        "prediction",
        TopicMapping(id="value.ids[]", model="value.each[].model", prediction="value.classes[]"),
    ),
    "indices": (
        "prediction",
        TopicMapping(model="value.outputs[1].data[]", prediction="value.outputs[0].data[]"),
    ),
    "an index": ("prediction", TopicMapping(prediction="value.each[1].class", model="value.each[0].model")),
    "bare array": (
        "prediction",
        TopicMapping(
            "value[].id", "=m", "value[].class", timestamp=None, scores="value[].probabilities", fold=None
        ),
    ),
    "both": (
        "both",
        TopicMapping(
            id="value.each[].id",
            prediction="value.each[].class",
            label="value.each[].label",
            timestamp="value.at",
            timestamp_unit="iso8601",
            kind=KindRule("value.kind"),
        ),
    ),
    "one label": (
        "both",
        TopicMapping(prediction="value.each[].class", label="value.label", kind=KindRule("value.kind")),
    ),
    "labels": ("label", TopicMapping(id="value.each[].id", model=None, label="value.each[].label")),
}


@pytest.mark.parametrize("name", MAPPINGS)
@pytest.mark.parametrize("digest", few([False, True], 1))
def test_mutated_records_mean_the_same_as_columns_and_read_alone(
    name: str,
    digest: bool,  # noqa: FBT001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    side, mapping = MAPPINGS[name]
    spec = DecoderSpec("predictions", side, mapping, id_keys("shop\n" if digest else "", digest=digest))
    decoder = build(spec, FormatOptions())
    chance = random.Random(name)
    total = in_columns = several = 0
    while total < RECORDS // len(MAPPINGS) // 2:
        oddity = chance.choice((0.0, 0.15, 0.5))
        monkeypatch.setattr(json_values, "FEWEST_AT_ONCE", chance.choice((3, 512)))
        monkeypatch.setattr(json_values, "FIRST_LEARNT", chance.choice((3, 512)))
        bare = 0.9 if name == "bare array" else 0.05
        records = fetched([nested(chance, total + i, oddity, bare=bare) for i in range(PER_BATCH)])
        batch = decoder.decode_batch(records)
        together = decoder.decode_all(list(records), [record.timestamp for record in records])
        for record, found, other in zip(records, decoded_of(batch), together, strict=True):
            expected = decoder.decode(record, record.timestamp)
            assert found == other == expected, (record.value, found, other, expected)
            several += isinstance(expected, EventGroup)
        total += len(records)
        in_columns += len(records) - len(set(batch.records_of_objects().tolist()))
    assert in_columns >= total // 50  # of which half are invalid, and the first of a name are not in columns
    assert several > total // 6 or name == "an index"


def three(n: int) -> dict[str, object]:
    each = [{"model": f"m{k}", "class": "ab"[(n + k) % 2]} for k in range(3)]
    return {"id": f"id-{n}", "timestamp": 5 + n, "each": each}


def test_a_record_with_several_events_is_one_row_and_its_events_are_in_columns_once_names_are_known() -> None:
    decoder = build(DecoderSpec("p", "prediction", EACH), FormatOptions())
    records = fetched([of(three(n)) for n in range(4_000)])
    batch = decoder.decode_batch(records)
    assert len(batch.objects) == 3 * json_values.FIRST_LEARNT  # one look names all elements
    batch = decoder.decode_batch(records)
    assert not batch.objects
    assert set(batch.rows["side"].tolist()) == {SEVERAL}
    assert len(batch.elements.rows) == 12_000
    assert decoded_of(batch) == [decoder.decode(record, record.timestamp) for record in records]


def test_the_only_element_of_an_array_is_a_row_like_any_other() -> None:
    decoder = build(DecoderSpec("p", "prediction", EACH), FormatOptions())
    records = fetched([of(three(0) | {"each": [{"model": "m", "class": "a"}]})])
    decoder.decode_batch(records)
    batch = decoder.decode_batch(records)
    assert batch.rows["side"].tolist() == [PREDICTION]
    assert [event.id for event in batch.events() if isinstance(event, Prediction)] == ["id-0#0"]


def test_a_record_with_an_invalid_element_is_read_alone_and_the_others_are_not() -> None:
    decoder = build(DecoderSpec("p", "prediction", EACH), FormatOptions())
    odd = three(1)
    odd["each"][1]["class"] = None  # type: ignore[index]
    records = fetched([of(three(0)), of(odd), of(three(2))])
    decoder.decode_batch(records)
    batch = decoder.decode_batch(records)
    assert len(batch.objects) == 3
    assert decoded_of(batch) == [decoder.decode(record, record.timestamp) for record in records]


@pytest.mark.parametrize("count", [MAX_ELEMENTS - 1, MAX_ELEMENTS, MAX_ELEMENTS + 1])
def test_as_many_elements_as_are_read_are_columns_and_more_are_invalid(count: int) -> None:
    mapping = TopicMapping(model="=m", prediction="value.classes[]")
    decoder = build(DecoderSpec("p", "prediction", mapping), FormatOptions())
    small = of({"id": 1, "classes": ["a", "b"]})
    large = of({"id": 2, "classes": (["a", "b"] * count)[:count]})
    records = fetched([small, large, small])
    decoder.decode_batch(records)
    batch = decoder.decode_batch(records)
    assert (batch.rows["side"][1] == SEVERAL) == (count <= MAX_ELEMENTS)
    assert not batch.objects or count > MAX_ELEMENTS
    assert decoded_of(batch) == [decoder.decode(record, record.timestamp) for record in records]


@pytest.mark.slow
def test_room_for_elements_grows_while_records_are_read_and_nothing_is_lost() -> None:
    mapping = TopicMapping(prediction="value.each[].class", scores="value.each[].scores")
    decoder = build(DecoderSpec("p", "prediction", mapping), FormatOptions())
    each = [{"class": "a", "scores": {"a": 0.5, "b": k / 1_000}} for k in range(900)]
    records = fetched([of({"id": f"{n}", "model": "m", "each": each[n * 13 :]}) for n in range(60)])
    decoder.decode_batch(records)
    for _ in range(2):
        batch = decoder.decode_batch(records)
        assert not batch.objects
        assert decoded_of(batch) == [decoder.decode(record, record.timestamp) for record in records]


def test_names_beyond_the_vocabulary_make_all_events_of_their_record_objects() -> None:
    decoder = build(DecoderSpec("p", "prediction", EACH, vocabulary=Vocabulary(most=2)), FormatOptions())
    few = of({"id": 1, "each": [{"model": "m0", "class": "a"}, {"model": "m1", "class": "b"}]})
    records = fetched([few, of(three(2)), few])
    decoder.decode_batch(records)
    batch = decoder.decode_batch(records)
    assert len(batch.objects) == 3
    assert decoded_of(batch) == [decoder.decode(record, record.timestamp) for record in records]


def test_labels_of_elements_are_columns() -> None:
    decoder = build(DecoderSpec("p", "label", MAPPINGS["labels"][1]), FormatOptions())
    value = {"each": [{"id": 1, "label": "a"}, {"id": "2", "label": "b"}]}
    records = fetched([of(value)])
    decoder.decode_batch(records)
    batch = decoder.decode_batch(records)
    assert batch.elements.rows["side"].tolist() == [LABEL, LABEL]
    assert json.loads(records[0].value or b"") == value
    assert decoded_of(batch) == decoder.decode_all(records, [records[0].timestamp])
