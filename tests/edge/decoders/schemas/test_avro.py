"""Avro values become the JSON that a producer of JSON would have written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamwatch.edge.decoders.schemas.avro import MAX_DECIMAL_BYTES, AvroReader, compile_avro
from streamwatch.edge.decoders.schemas.schema import Schema, SchemaUnusable, Undecodable
from tests.edge.decoders.schemas.avro_bytes import EVENT, event, number, text


def reader(schema: Any, *references: tuple[str, Any]) -> AvroReader:
    return compile_avro(
        Schema("AVRO", json.dumps(schema), tuple((name, json.dumps(each)) for name, each in references))
    )


def read(schema: Any, contents: bytes, *references: tuple[str, Any]) -> Any:
    return json.loads(reader(schema, *references).to_json(b"-----" + contents, 5, None))


def record(*fields: tuple[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": n, "type": t} for n, t in fields]}


def test_a_prediction_written_by_the_specification_is_read() -> None:
    assert read(EVENT, event(scores={"fraud": 0.25, "legit": 0.75})) == {
        "id": "a",
        "model": "m",
        "prediction": "fraud",
        "timestamp": 1_700_000_000_000,
        "scores": {"fraud": 0.25, "legit": 0.75},
    }


@pytest.mark.parametrize(
    ("type_", "contents", "expected"),
    [
        ("boolean", b"\x01", True),
        ("long", number(-(2**63)), -(2**63)),
        ("string", text("ä"), "ä"),
        ("bytes", text(b"\x00\xff"), "AP8="),
        (["null", "string"], number(1) + text("x"), "x"),
        (["null", "string"], number(0), None),
        ({"type": "array", "items": "int"}, number(2) + number(1) + number(2) + number(0), [1, 2]),
        ({"type": "long", "logicalType": "timestamp-millis"}, number(1_735_689_600_123), 1_735_689_600_123),
        (
            {"type": "long", "logicalType": "timestamp-micros"},
            number(1_735_689_600_123_456),
            1_735_689_600_123_456,
        ),
        ({"type": "int", "logicalType": "date"}, number(20_000), 20_000),
        ({"type": "int", "logicalType": "time-millis"}, number(1), 1),
        ({"type": "string", "logicalType": "uuid"}, text("6f1c"), "6f1c"),
        (
            {"type": "fixed", "name": "F", "size": 16, "logicalType": "uuid"},
            bytes(range(16)),
            "00010203-0405-0607-0809-0a0b0c0d0e0f",
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            text((-1250).to_bytes(2, "big", signed=True)),
            "-12.50",
        ),
        (
            {"type": "fixed", "name": "D", "size": 4, "logicalType": "decimal", "precision": 9, "scale": 0},
            (7).to_bytes(4, "big"),
            "7",
        ),
    ],
)
def test_each_type_has_its_json(type_: Any, contents: bytes, expected: Any) -> None:
    found = read(record(("f", type_)), contents)["f"]
    assert (type(found), found) == (type(expected), expected)


def test_a_schema_may_refer_to_types_of_another() -> None:
    card = {"type": "record", "name": "Card", "namespace": "c", "fields": [{"name": "n", "type": "string"}]}
    found = read(record(("card", "c.Card")), text("4711"), ("c.Card", card))
    assert found == {"card": {"n": "4711"}}


@pytest.mark.parametrize(
    "contents",
    [
        event()[:-1],
        event() + b"\0",
        b"",
        b"\xff" * 20,
        number(-5),
        number(2**62) + b"a",
        event(class_=9),
        text(b"\xff") + event()[2:],
    ],
)
def test_contents_that_the_schema_does_not_describe_are_undecodable(contents: bytes) -> None:
    with pytest.raises(Undecodable):
        reader(EVENT).to_json(contents, 0, None)


def test_an_array_that_claims_more_items_than_there_are_bytes_is_undecodable() -> None:
    with pytest.raises(Undecodable):
        read(record(("f", {"type": "array", "items": "int"})), number(2**60))


def test_a_decimal_of_a_million_digits_is_undecodable() -> None:
    schema = record(("f", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}))
    with pytest.raises(Undecodable):
        read(schema, text(b"\x7f" * 1_000_000))
    assert read(schema, text(b"\x7f" * MAX_DECIMAL_BYTES))["f"].replace(".", "") == str(
        int("7f" * MAX_DECIMAL_BYTES, 16)
    )


def doubling(depth: int) -> dict[str, Any]:
    """A record of two records of two records …, with nothing but nulls at the end: 2^depth for no bytes."""
    inner: Any = "null"
    named: Any = inner
    for i in range(depth):
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": named}]
        inner = {"type": "record", "name": f"R{i}", "fields": fields}
        named = f"R{i}"
    return inner


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (record(("f", {"type": "array", "items": "null"})), "arrays whose items are more than the bytes"),
        (
            record(("f", {"type": "array", "items": {**record(), "name": "E"}})),
            "arrays whose items are more than the bytes",
        ),
        (record(("f", {"type": "map", "values": doubling(9)})), "maps whose items are more than the bytes"),
        (doubling(40), "more than 10000 values that take no bytes"),
        (record(("f", ["null", "R"])), r"a record within itself \(R\)"),
        ({"type": "record"}, "is no Avro schema"),
        ("strin", "is no Avro schema: strin"),
        (record(("f", "c.Card")), r"is no Avro schema: c.Card"),
        (7, "is no Avro schema"),
    ],
)
def test_schemas_whose_values_cost_more_than_their_bytes_or_that_are_none_have_no_reader(
    schema: Any, message: str
) -> None:
    with pytest.raises(SchemaUnusable, match=message):
        reader(schema)


def test_text_that_is_no_json_or_nested_without_end_is_no_schema() -> None:
    for text_ in ("{", "[" * 100_000, '"' + "a" * 10):
        with pytest.raises(SchemaUnusable):
            compile_avro(Schema("AVRO", text_))


def test_a_schema_of_another_format_has_no_reader() -> None:
    with pytest.raises(SchemaUnusable, match="expected an Avro schema, got one of type PROTOBUF"):
        compile_avro(Schema("PROTOBUF", "syntax = 'proto3';"))
