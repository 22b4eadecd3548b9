"""With which probability a label is asked for, and whether it was, from a record to the event."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import numpy as np
import pytest
from pydantic import ValidationError

from streamwatch.core.records.batch import OBJECT
from streamwatch.core.records.events import Event, Invalid, Prediction
from streamwatch.edge.decoders.formats import KINDS
from streamwatch.edge.decoders.formats.json import JsonDecoder, build
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatOptions
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.decoders.schemas.schema import Schema, SchemaRequest, ValueReader
from streamwatch.edge.decoders.trees import needs_trees
from streamwatch.settings.topics import MappingSection
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.records import AT_MS, FakeRecord, of
from tests.edge.decoders.schemas.avro_bytes import framed
from tests.edge.decoders.schemas.test_protobuf import field

MAPPING = TopicMapping(
    label_probability="value.pi", label_requested="value.asked", min_label_probability=0.05
)
PREDICTED = {"id": "1", "model": "m", "prediction": "x"}
AVRO = {
    "type": "record",
    "name": "Sampled",
    "fields": [
        *({"name": name, "type": "string"} for name in PREDICTED),
        {"name": "pi", "type": ["null", "double"]},
        {"name": "asked", "type": "boolean"},
    ],
}
PROTO = """syntax = "proto3";
message Sampled { string id = 1; string model = 2; string prediction = 3; double pi = 4; bool asked = 5; }"""


class AtHand:
    def reader(self, wanted: SchemaRequest) -> ValueReader | str:
        return wanted.compile({1: Schema("AVRO", json.dumps(AVRO)), 2: Schema("PROTOBUF", PROTO)}[wanted.ref])


def decoded(content: dict[str, Any], mapping: TopicMapping = MAPPING, **fields: Any) -> Event:
    """The event of a record read alone, which must be that of the same record in columns."""
    assert needs_trees(mapping)
    decoder = build(DecoderSpec("predictions", "prediction", mapping), FormatOptions())
    assert isinstance(decoder, JsonDecoder)
    record = of({**PREDICTED, **content}, **fields)
    alone = decoder.decode(record, AT_MS)
    for _ in range(2):  # the first time names are learnt
        (event,) = decoder.decode_batch(fetched([record])).events()
        if isinstance(alone, Prediction):
            assert event == alone
        else:
            assert isinstance(event, Invalid)
            assert isinstance(alone, Invalid)
            assert event.reason == alone.reason
    assert isinstance(alone, Prediction | Invalid)
    return alone


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"pi": 0.05}, (0.05, None)),
        ({"pi": 1, "asked": True}, (1.0, True)),
        ({"pi": "0.1", "asked": "false"}, (0.1, False)),
        ({"pi": 0.1, "asked": 1}, (0.1, True)),
        ({"pi": 0.1, "asked": 0}, (0.1, False)),
        ({"pi": None, "asked": True}, (None, None)),
        ({}, (None, None)),
    ],
)
def test_a_probability_is_the_nearest_float32_and_may_be_absent(content, expected) -> None:
    event = decoded(content)
    assert isinstance(event, Prediction)
    rounded = None if expected[0] is None else float(np.float32(expected[0]))
    assert (event.label_probability, event.label_requested) == (rounded, expected[1])


@pytest.mark.parametrize("wrong", [0.0499, 0, -1, 1.0001, "a", True, [0.5], {"p": 1}, "nan", 1e400])
def test_any_other_probability_makes_the_record_invalid(wrong: object) -> None:
    event = decoded({"pi": wrong} if wrong != 1e400 else {"pi": 10**300})
    assert isinstance(event, Invalid)
    assert event.reason == "invalid_label_probability"


@pytest.mark.parametrize("wrong", ["yes", 2, [True], ""])
def test_what_neither_asks_nor_does_not_makes_the_record_invalid(wrong: object) -> None:
    event = decoded({"pi": 0.5, "asked": wrong})
    assert isinstance(event, Invalid)
    assert event.reason == "invalid_label_requested"


def test_the_paths_may_be_a_header_and_a_field_within_others() -> None:
    mapping = TopicMapping(
        label_probability="header:pi",
        label_requested="value.review.asked",
        min_label_probability=0.05,
        segments={"country": "value.country"},
    )
    event = decoded({"review": {"asked": True}, "country": "DE"}, mapping, headers=(("pi", b"0.25"),))
    assert isinstance(event, Prediction)
    assert (event.label_probability, event.label_requested, event.segments) == (0.25, True, {"country": "DE"})


def test_records_are_columns_with_a_probability_and_without() -> None:
    decoder = build(DecoderSpec("predictions", "prediction", MAPPING), FormatOptions())
    assert isinstance(decoder, JsonDecoder)
    records = fetched([of(PREDICTED), of({**PREDICTED, "pi": 0.5}), of({**PREDICTED, "pi": 2})])
    decoder.decode_batch(records)
    batch = decoder.decode_batch(records)
    assert [side == OBJECT for side in batch.rows["side"].tolist()] == [False, False, True]


def test_avro_and_protobuf_give_the_event_that_json_gives() -> None:
    contents = {**PREDICTED, "pi": 0.3, "asked": True}
    expected = decoded({"pi": 0.3, "asked": True})
    written = io.BytesIO()
    fastavro.schemaless_writer(written, AVRO, contents)
    reported = b"".join(field(n, 2, contents[name].encode()) for n, name in enumerate(PREDICTED, 1))  # type: ignore[attr-defined]
    proto = reported + field(4, 1, np.float64(0.3).tobytes()) + field(5, 0, b"\x01")
    for kind, value in (
        ("avro", framed(1, written.getvalue())),
        ("protobuf", framed(2, b"\0" + proto)),
        ("json_schema", framed(7, json.dumps(contents).encode())),
    ):
        decoder = KINDS[kind].build(
            DecoderSpec("predictions", "prediction", MAPPING), FormatOptions(AtHand())
        )
        record = FakeRecord(value)
        assert decoder.decode_all([record], [AT_MS]) == [expected], kind
        assert decoder.decode_batch(fetched([record])).events() == [expected], kind


def test_settings_want_the_least_probability_beside_its_path() -> None:
    for wrong, shown in (
        ({"label_probability": "value.pi"}, "need each other"),
        ({"min_label_probability": 0.1}, "need each other"),
        ({"label_requested": "value.asked"}, "needs label_probability"),
        ({"label_probability": "value.pi", "min_label_probability": 0}, r"in \[1e-06, 1\], got 0"),
        ({"label_probability": "value.pi", "min_label_probability": 1.5}, r"in \[1e-06, 1\], got 1\.5"),
    ):
        with pytest.raises(ValidationError, match=shown):
            MappingSection(**wrong)
