"""Segments of predictions through the compiled scanner: the values that the reader of one record finds."""

from __future__ import annotations

import random

import pytest

from streamwatch.core.records.batch import OBJECT
from streamwatch.core.records.events import Invalid, Prediction, Side
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.edge.decoders.fields import slot_locations
from streamwatch.edge.decoders.formats.json import JsonDecoder, build, decoded_of
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatOptions
from streamwatch.edge.decoders.mapping import KindRule, TopicMapping
from streamwatch.edge.decoders.scanner.plan import plan_of, score_rules
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.mutations import mutated
from tests.edge.decoders.records import of
from tests.tiers import by_tier

RECORDS = by_tier(fast=3_000, rotating=7_500, default=30_000, everything=400_000)
SEGMENTS = {"other": "value.other", "kind": "value.kind", "deep": "value.a.b.z", "head": "header:kind"}
MAPPINGS: dict[str, tuple[Side, TopicMapping]] = {
    "predictions": ("prediction", TopicMapping(segments=SEGMENTS)),
    "one": ("prediction", TopicMapping(segments={"label": "value.label"}, scores=None)),
    "both": ("both", TopicMapping(segments={"s": "value.other"}, kind=KindRule("value.kind"))),
}


def decoder_of(side: Side, mapping: TopicMapping, vocabulary: Vocabulary | None = None) -> JsonDecoder:
    built = build(DecoderSpec("predictions", side, mapping, vocabulary=vocabulary), FormatOptions())
    assert isinstance(built, JsonDecoder)
    return built


@pytest.mark.parametrize("name", MAPPINGS)
def test_mutated_records_have_the_segments_that_each_has_read_alone(name: str) -> None:
    side, mapping = MAPPINGS[name]
    vocabulary = Vocabulary(200)  # fewer than the different values that come
    decoder = decoder_of(side, mapping, vocabulary)
    chance = random.Random(name)
    scanned = total = 0
    while total < RECORDS // len(MAPPINGS):
        oddity = chance.choice((0.0, 0.15, 0.5))
        found = fetched([mutated(chance, total + i, oddity) for i in range(60)])
        batch = decoder.decode_batch(found)
        total += len(found)
        for row, event, record in zip(batch.rows, decoded_of(batch), found, strict=True):
            assert event == decoder.decode(record, int(row["record_ms"]))
            scanned += int(row["side"] < OBJECT and row["segments"] > 0)
    assert scanned > total // 20


def test_a_row_has_no_segments_where_the_record_has_none_of_the_fields() -> None:
    decoder = decoder_of("prediction", TopicMapping(segments={"country": "value.country"}))
    content = {"id": "1", "model": "m", "prediction": "x"}
    records = [of(content), of(content | {"country": "DE"}), of(content | {"country": None})]
    decoder.decode_batch(fetched(records))  # names are learnt
    batch = decoder.decode_batch(fetched(records))
    assert not batch.objects
    found = [event.segments for event in batch.events() if isinstance(event, Prediction)]
    assert found == [None, {"country": "DE"}, None]


def test_a_value_that_is_no_name_is_refused_every_time() -> None:
    decoder = decoder_of("prediction", TopicMapping(segments={"country": "value.country"}))
    record = of({"id": "1", "model": "m", "prediction": "x", "country": ""})
    for _ in range(3):
        (event,) = decoder.decode_batch(fetched([record])).objects
        assert isinstance(event, Invalid)
        assert event.reason == "invalid_segment"


def test_long_values_are_read_one_by_one() -> None:
    decoder = decoder_of("prediction", TopicMapping(segments={"a": "value.a", "b": "value.b"}))
    record = of({"id": "1", "model": "m", "prediction": "x", "a": "y" * 100, "b": "z" * 100})
    for _ in range(2):
        (event,) = decoder.decode_batch(fetched([record])).objects
        assert isinstance(event, Prediction)
        assert event.segments == {"a": "y" * 100, "b": "z" * 100}


def test_an_empty_header_is_no_segment_that_is_absent() -> None:
    decoder = decoder_of("prediction", TopicMapping(segments={"country": "header:country"}))
    content = {"id": "1", "model": "m", "prediction": "x"}
    records = [of(content), of(content, headers=(("country", b""),))]
    for _ in range(2):  # the first time names are learnt
        absent, empty = decoder.decode_batch(fetched(records)).events()
    assert isinstance(absent, Prediction)
    assert isinstance(empty, Invalid)
    assert empty.reason == "invalid_segment"


def test_fields_of_the_key_are_no_content_that_the_compiled_loop_finds() -> None:
    mapping = TopicMapping(segments={"country": "key.country"})
    locations, rules = slot_locations(mapping, "prediction"), score_rules(mapping, lambda _: 0)
    assert plan_of("prediction", mapping, locations, {}, b"", rules=rules, reads_folds=False) is None
    decoder = build(DecoderSpec("predictions", "prediction", mapping), FormatOptions())
    for country in ("DE", "FR", "DE", "IT"):
        record = of({"id": "1", "model": "m", "prediction": "x"}, key=f'{{"country": "{country}"}}'.encode())
        (event,) = decoder.decode_batch(fetched([record])).events()
        assert isinstance(event, Prediction)
        assert event.segments == {"country": country}
