"""Texts that hold more are read where they are, elements by a field, and whole values as they are."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from streamwatch.core.records.events import EventGroup, Invalid, Prediction
from streamwatch.edge.decoders.formats import KINDS
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatOptions
from streamwatch.edge.decoders.mapping import InArray, Named, TopicMapping, parse_field_location
from streamwatch.edge.decoders.texts import Encoding, TextRule, Texts
from tests.edge.decoders.records import AT_MS, FakeRecord


def read(content: Any, *rules: tuple[str, tuple[Encoding, ...]]) -> Any:
    return Texts([TextRule(*rule) for rule in rules]).read(content)


def packed(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("content", "path", "written", "expected"),
    [
        ({"a": '{"b": 1}'}, "value.a", ("json",), {"a": {"b": 1}}),
        ({"a": {"b": 1}}, "value.a", ("json",), {"a": {"b": 1}}),
        ({"b": 1}, "value.a", ("json",), {"b": 1}),
        ({"a": None}, "value.a.b", ("json",), {"a": None}),
        ('{"b": 1}', "value", ("json",), {"b": 1}),
        ({"a": packed('{"b": 1}')}, "value.a", ("base64", "json"), {"a": {"b": 1}}),
        ({"a": packed("x")}, "value.a", ("base64",), {"a": "x"}),
        ({"a": packed("1,x\n2,y")}, "value.a", ("base64", "csv"), {"a": [[1, "x"], [2, "y"]]}),
        (
            {"a": '1.0,"x, y",,007,1e5,-3,0.50'},
            "value.a",
            ("csv",),
            {"a": [[1.0, "x, y", None, "007", "1e5", -3, 0.5]]},
        ),
        ({"a": "x\ty z"}, "value.a", ("tsv",), {"a": [["x", "y z"]]}),
        ({"a": ["[1]", "[2]"]}, "value.a[]", ("json",), {"a": [[1], [2]]}),
        ({"a": ["[1]", "[2]"]}, "value.a[1]", ("json",), {"a": ["[1]", [2]]}),
        ({"a": [{"b": "[1]"}, {}]}, "value.a[].b", ("json",), {"a": [{"b": [1]}, {}]}),
        (
            {"a": [{"k": "x", "b": "[1]"}, "no object", {"k": "y", "b": "[2]"}, {"k": "y", "b": "[3]"}]},
            "value.a[k=y].b",
            ("json",),
            {"a": [{"k": "x", "b": "[1]"}, "no object", {"k": "y", "b": [2]}, {"k": "y", "b": "[3]"}]},
        ),
        ({"a": [{"k": "x", "b": "[1]"}]}, "value.a[k=y].b", ("json",), {"a": [{"k": "x", "b": "[1]"}]}),
    ],
)
def test_the_content_of_a_text_replaces_it(
    content: Any, path: str, written: tuple[Encoding, ...], expected: Any
) -> None:
    assert read(content, (path, written)) == expected


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("{", ("json",)),
        ("no json", ("json",)),
        ("[" * 5_000, ("json",)),
        ("***", ("base64",)),
        (base64.b64encode(b"\xff\xfe").decode(), ("base64",)),
        (packed("{"), ("base64", "json")),
        ('"' + "x" * 200_000, ("csv",)),
    ],
)
def test_a_text_that_is_not_written_so_makes_the_record_invalid(
    text: str, written: tuple[Encoding, ...]
) -> None:
    spec = DecoderSpec("t", "prediction", TopicMapping(), texts=(TextRule("value.a", written),))
    record = FakeRecord(json.dumps({"id": 1, "model": "m", "prediction": "x", "a": text}).encode())
    (event,) = KINDS["json"].build(spec, FormatOptions()).decode_all([record], [AT_MS])
    assert isinstance(event, Invalid)
    assert event.reason == "invalid_text"


def test_texts_within_texts_are_read_in_the_order_of_the_rules() -> None:
    inner = json.dumps({"b": json.dumps({"c": 1})})
    assert read({"a": inner}, ("value.a", ("json",)), ("value.a.b", ("json",))) == {"a": {"b": {"c": 1}}}


WORD = TopicMapping(id="key", model="=m", prediction="value", scores=None, timestamp=None, fold=None)


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("text", b" yes \n", "yes"),
        ("text", b"1.0", "1.0"),
        ("text", b'"yes"', '"yes"'),
        ("text", b"", "invalid_class"),
        ("text", b"\xff", "invalid_utf8"),
        ("text", b"\0\0\0\0\x07yes", "schema_registry_framing"),
        ("json", b'"yes"', "yes"),
        ("json", b"1.0", "1"),
        ("json", b"true", "true"),
        ("json", b"null", "missing_prediction"),
        ("json", b"yes", "invalid_json"),
        ("json", b'{"a": 1}', "invalid_class"),
    ],
)
def test_a_value_may_be_the_class_itself(kind: str, value: bytes, expected: str) -> None:
    decoder = KINDS[kind].build(DecoderSpec("t", "prediction", WORD), FormatOptions())
    (event,) = decoder.decode_all([FakeRecord(value, key=b"k")], [AT_MS])
    assert not isinstance(event, EventGroup)
    assert (
        event.predicted_class if isinstance(event, Prediction) else getattr(event, "reason", "")
    ) == expected


def test_a_single_value_is_no_object_for_any_other_mapping() -> None:
    decoder = KINDS["json"].build(DecoderSpec("t", "prediction", TopicMapping()), FormatOptions())
    (event,) = decoder.decode_all([FakeRecord(b'"yes"')], [AT_MS])
    assert isinstance(event, Invalid)
    assert event.reason == "not_an_object"


PAIRS = TopicMapping(id="value.tags[key=id].value", model="=m", prediction="value.tags[key=class].value.text")


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ([{"key": "class", "value": {"text": "x"}}, {"key": "id", "value": 7}], ("7", "x")),
        (
            [{"key": "id", "value": 7}, {"key": "id", "value": 8}, {"key": "class", "value": {"text": "x"}}],
            ("7", "x"),
        ),
        ([{"key": "id", "value": 7}], "missing_prediction"),
        ({"key": "id"}, "missing_id"),
        (["id"], "missing_id"),
    ],
)
def test_an_element_is_found_by_the_text_of_one_of_its_fields(tags: Any, expected: Any) -> None:
    assert parse_field_location("value.tags[key=id].value") == InArray(("tags", Named("key", "id"), "value"))
    decoder = KINDS["json"].build(DecoderSpec("t", "prediction", PAIRS), FormatOptions())
    (event,) = decoder.decode_all([FakeRecord(json.dumps({"tags": tags}).encode())], [AT_MS])
    found = (
        (event.id, event.predicted_class) if isinstance(event, Prediction) else getattr(event, "reason", "")
    )
    assert found == expected
