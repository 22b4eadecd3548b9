"""Of an invalid record it is reported which path was looked at and which fields are there, and no content."""

from __future__ import annotations

from typing import Any

import pytest

from streamwatch.core.ports import Explains
from streamwatch.core.records.events import EventGroup, Invalid
from streamwatch.edge.decoders.formats import KINDS
from streamwatch.edge.decoders.formats.kind import DecoderSpec, FormatOptions
from streamwatch.edge.decoders.mapping import ClassOfScore, KeyOf, TopicMapping, Trimmed
from tests.edge.decoders.records import AT_MS, FakeRecord, of

HIDDEN = "4111-1111"


def explained(
    mapping: TopicMapping, record: FakeRecord, kind: str = "json", **options: Any
) -> tuple[str, str]:
    """The reason of the first invalid event of a record, and how it is explained."""
    decoder = KINDS[kind].build(DecoderSpec("predictions", "prediction", mapping), FormatOptions(**options))
    (found,) = decoder.decode_all([record], [AT_MS])
    events = found.events if isinstance(found, EventGroup) else (found,)
    reason = next(event.reason for event in events if isinstance(event, Invalid))
    assert isinstance(decoder, Explains)
    shown = decoder.explain(record, reason)
    assert HIDDEN not in shown
    return reason, shown


@pytest.mark.parametrize(
    ("mapping", "content", "reason", "shown"),
    [
        (
            TopicMapping(),
            {"ID": HIDDEN, "b": 1},
            "missing_id",
            "looked at value.id: value has the fields ID, b",
        ),
        (TopicMapping(), {}, "missing_id", "looked at value.id: value has no fields"),
        (TopicMapping(), {"id": [HIDDEN]}, "invalid_id", "value.id is an array of 1 elements"),
        (
            TopicMapping(),
            {"id": 1, "model": {"name": HIDDEN}},
            "invalid_model",
            "value.model is an object with the fields name",
        ),
        (
            TopicMapping(id="value.a.b"),
            {"a": {"c": HIDDEN}},
            "missing_id",
            "looked at value.a.b: value.a has the fields c",
        ),
        (
            TopicMapping(id="value.a.b"),
            {"a": HIDDEN},
            "missing_id",
            "looked at value.a.b: value.a is a text of 9 characters, not an object",
        ),
        (
            TopicMapping(id="value.a[1].b"),
            {"a": [1]},
            "missing_id",
            "looked at value.a[1].b: value.a is an array of 1 elements",
        ),
        (
            TopicMapping(id=("value.a", "value.b")),
            {"a": HIDDEN},
            "missing_id_part",
            "looked at [value.a, value.b]: value has the fields a",
        ),
        (
            TopicMapping(id=Trimmed("value.x", "t-")),
            {"a": 1},
            "missing_id",
            "looked at {path: value.x, strip_prefix: t-}: value has the fields a",
        ),
        (
            TopicMapping(model=KeyOf("value.s"), prediction="value.s.*"),
            {"id": 1, "t": {}},
            "missing_elements",
            "looked at {key_of: value.s}: value has the fields id, t",
        ),
        (
            TopicMapping(prediction=ClassOfScore("value.p", "value.cut", "a", "b")),
            {"id": 1, "model": "m", "p": 1},
            "missing_threshold",
            "looked at value.cut: value has the fields id, model, p",
        ),
        (
            TopicMapping(id="header:id"),
            {"id": 1},
            "missing_id",
            "looked at header:id: the record has no headers",
        ),
        (TopicMapping(id="key"), {"id": 1}, "missing_id", "looked at key: the record has no key"),
        (
            TopicMapping(timestamp="value.at"),
            {"id": 1, "model": "m", "prediction": "x", "at": HIDDEN},
            "invalid_timestamp",
            "value.at is a text of 9 characters",
        ),
    ],
)
def test_the_path_is_named_and_what_is_there(
    mapping: TopicMapping, content: Any, reason: str, shown: str
) -> None:
    found, reported = explained(mapping, of(content))
    assert found == reason
    assert shown in reported


def test_few_names_are_shown_and_none_that_cannot_be_printed() -> None:
    many = {f"field{n}": HIDDEN for n in range(20)} | {"x" * 200: 1}
    _, shown = explained(TopicMapping(), of(many))
    assert shown.endswith("field7 and 13 more")
    _, shown = explained(TopicMapping(), of({"\x1b[31m": 1, "y" * 200: 1}))
    assert shown == "looked at value.id: value has the fields \\x1b[31m, " + "y" * 40 + "…"


PROTO = """
syntax = "proto3";
package shop;
message Scored { string id = 1; string model = 2; string prediction = 3; double score = 4; }
"""


def test_of_protocol_buffers_the_message_is_named_and_the_fields_that_were_decoded() -> None:
    good = b"\x0a\x02a1\x12\x01m"
    reason, shown = explained(TopicMapping(id="value.key"), FakeRecord(good), "protobuf", schema_text=PROTO)
    assert reason == "missing_id"
    expected = "message shop.Scored: looked at value.key: value has the fields id, model, prediction, score"
    assert shown == expected
    reason, shown = explained(TopicMapping(), FakeRecord(good + b"\x1a\xffx"), "protobuf", schema_text=PROTO)
    assert reason == "invalid_protobuf"
    assert shown == (
        "expected message shop.Scored (id = 1, model = 2, prediction = 3, score = 4); "
        "decoded until it breaks off: id, model"
    )
    other = b"\x4a\x01x\x07"
    reason, shown = explained(TopicMapping(), FakeRecord(other), "protobuf", schema_text=PROTO)
    assert reason == "invalid_protobuf"
    assert shown.endswith("decoded until it breaks off: unknown 9")
