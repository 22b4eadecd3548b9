"""For which reason records of JSON are invalid, and which model an invalid record names."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamwatch.core.records.events import Invalid, Side
from streamwatch.edge.decoders.formats.json import build
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatOptions
from streamwatch.edge.decoders.judging import MAX_SCORES
from streamwatch.edge.decoders.mapping import REASONS, TopicMapping
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.formats.json_records import FLAT, LABEL, decode, reason
from tests.edge.decoders.records import AT_MS, FakeRecord, of


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"", "invalid_json"),
        (b"{", "invalid_json"),
        (b'{"id":NaN}', "invalid_json"),
        (b'{"id":1e999}', "invalid_json"),
        (b'{"id":"\\ud800"}', "invalid_json"),
        (b'{"a":' * 5_000, "invalid_json"),
        (b'{"id":"\xff"}', "invalid_utf8"),
        (b'{"id":"\xed\xa0\x80"}', "invalid_utf8"),
        ('{"id":"x"}'.encode("utf-16"), "invalid_utf8"),
        (b"[1]", "not_an_object"),
        (b'"a"', "not_an_object"),
        (b" null", "not_an_object"),
        (b"7", "not_an_object"),
        (b"\x00\x00\x00\x00\x2a\x02a", "schema_registry_framing"),
        (b'\x00\x00\x00\x00\x01{"id":"a"}', "schema_registry_framing"),
        (b"\x00\x01", "invalid_json"),
    ],
)
def test_what_is_no_json_object_says_what_it_is(value: bytes, expected: str):
    assert reason(FakeRecord(value)) == expected


@pytest.mark.parametrize(
    ("side", "content", "expected"),
    [
        ("prediction", FLAT | {"id": None}, "missing_id"),
        ("prediction", {"id": "a", "prediction": "x"}, "missing_model"),
        ("prediction", {"id": "a", "model": "m"}, "missing_prediction"),
        ("label", {"id": "a"}, "missing_label"),
        ("label", {"label": "a"}, "missing_id"),
        ("label", LABEL | {"model": ""}, "invalid_model"),
        ("label", LABEL | {"label": [1]}, "invalid_class"),
        ("prediction", FLAT | {"timestamp": "yesterday"}, "invalid_timestamp"),
        ("prediction", FLAT | {"timestamp": -1}, "invalid_timestamp"),
        ("prediction", FLAT | {"timestamp": True}, "invalid_timestamp"),
        ("prediction", FLAT | {"timestamp": 10**18}, "invalid_timestamp"),
        ("prediction", FLAT | {"timestamp": 10**400}, "invalid_timestamp"),
        ("prediction", FLAT | {"timestamp": -1e308}, "invalid_timestamp"),
        ("label", LABEL | {"timestamp": {}}, "invalid_timestamp"),
        ("prediction", FLAT | {"scores": [0.5]}, "invalid_scores"),
        ("prediction", FLAT | {"scores": {"ok": 1.5}}, "invalid_scores"),
        ("prediction", FLAT | {"scores": {"ok": "high"}}, "invalid_scores"),
        ("prediction", FLAT | {"scores": {"": 0.5}}, "invalid_scores"),
    ],
)
def test_each_field_has_its_reason(side: Side, content: Any, expected: str):
    assert reason(of(content), side) == expected


def test_reasons_are_a_closed_documented_set():
    assert set(REASONS) >= {"schema_registry_framing", "invalid_utf8", "invalid_json", "not_an_object"}
    assert all(json.dumps(text) for text in REASONS.values())


def test_more_scores_than_are_looked_at_make_a_record_invalid():
    for count, expected in ((MAX_SCORES, ""), (MAX_SCORES + 1, "invalid_scores")):
        scores = {str(i): 0.0 for i in range(count)}
        event = decode(of({"id": "a", "model": "m", "prediction": "x", "scores": scores}))
        assert getattr(event, "reason", "") == expected


@pytest.mark.parametrize(
    "fault", ["header_encoding", "record_structure", "too_many_headers", "record_too_large"]
)
@pytest.mark.parametrize("side", ["prediction", "label"])
def test_a_record_that_could_not_be_read_is_invalid_for_that_reason(fault: str, side: Side):
    unread = FakeRecord(None, fault=fault)
    assert decode(unread, side) == Invalid(unread.topic, unread.partition, unread.offset, fault)
    assert fault in REASONS


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ({"model": "m", "prediction": "a"}, "missing_id"),
        ({"id": "1", "model": "m"}, "missing_prediction"),
        ({"id": "1", "model": "m", "prediction": "a", "scores": {"a": 2}}, "invalid_scores"),
    ],
)
def test_an_invalid_record_names_its_model_where_that_can_be_read(value: dict[str, Any], reason: str):
    event = decode(FakeRecord(json.dumps(value).encode()), "prediction")
    assert isinstance(event, Invalid)
    assert (event.reason, event.model) == (reason, "m")


def test_an_invalid_record_whose_model_cannot_be_read_names_none():
    for value in (b"{", b"[]", b'{"id": "1", "prediction": "a"}', b'{"model": "\\u0000", "id": "1"}'):
        event = decode(FakeRecord(value), "prediction")
        assert isinstance(event, Invalid)
        assert event.model is None


def test_a_constant_or_a_header_names_the_model_of_a_value_that_cannot_be_read():
    record = FakeRecord(b"{", headers=(("model-version", b"v3"),))
    for location, model in (("=v3", "v3"), ("header:model-version", "v3"), ("header:other", None)):
        event = decode(record, "prediction", TopicMapping(model=location))
        assert isinstance(event, Invalid)
        assert (event.reason, event.model) == ("invalid_json", model)


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        (TopicMapping(), "not_an_object"),
        (TopicMapping(segments={"site": "value.site"}), "not_an_object"),
        (TopicMapping(id=("value.id", "value.row")), "not_an_object"),
        (TopicMapping(prediction="value.list[0]"), "not_an_object"),
        (TopicMapping(prediction="value.each[].class"), "not_an_object"),
        (TopicMapping(prediction="value[0].class"), "missing_id"),
        (TopicMapping(id="value[].id", prediction="value[].class"), "missing_model"),
        (TopicMapping(prediction="value[kind=x].class"), "missing_id"),
    ],
)
@pytest.mark.parametrize("scanned", [False, True])
def test_an_array_is_no_object_whatever_else_the_mapping_needs(
    mapping: TopicMapping,
    expected: str,
    scanned: bool,  # noqa: FBT001 - a case
) -> None:
    decoder = build(DecoderSpec("predictions", "prediction", mapping), FormatOptions())
    record = FakeRecord(b'[{"id": "a", "class": "x"}]')
    if scanned:
        [event] = decoder.decode_batch(fetched([record])).spread().batch.events()
    else:
        event = decoder.decode(record, AT_MS)
    assert isinstance(event, Invalid)
    assert event.reason == expected
