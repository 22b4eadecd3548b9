"""Avro values become the JSON that a producer of JSON would have written."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from streamwatch.edge.decoders.schemas.avro import MAX_DECIMAL_BYTES, AvroReader
from streamwatch.edge.decoders.schemas.schema import Schema, SchemaUnusable, Undecodable
from tests.edge.decoders.schemas.avro_bytes import EVENT, event, number, text
from tests.processor_time import own_garbage


def reader(schema: Any, *references: tuple[str, Any]) -> AvroReader:
    return AvroReader(
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


def chain(length: int) -> list[Any]:
    """Flat records, each of which names the one before."""
    fields = [[{"name": "a", "type": "int"}], *([{"name": "a", "type": f"R{i}"}] for i in range(length))]
    return [{"type": "record", "name": f"R{i}", "fields": each} for i, each in enumerate(fields)]


def nested(depth: int) -> Any:
    """Arrays of arrays."""
    inner: Any = "int"
    for _ in range(depth):
        inner = {"type": "array", "items": inner}
    return inner


def nested_in_array(type_: Any) -> Any:
    fields = [{"name": "f", "type": {"type": "array", "items": type_}}]
    return {"type": "record", "name": "Top", "fields": fields}


DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 9}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (record(("f", {"type": "array", "items": "null"})), "arrays whose items are more than the bytes"),
        (
            record(("f", {"type": "array", "items": {**record(), "name": "E"}})),
            "arrays whose items are more than the bytes",
        ),
        (record(("f", {"type": "map", "values": doubling(9)})), "maps whose items are more than the bytes"),
        (doubling(40), "more than 1000 values that take no bytes"),
        (["null", doubling(40)], "more than 1000 values that take no bytes"),
        (record(("f", ["null", "R"])), r"a record within itself \(R\)"),
        ({"type": "record"}, "is no Avro schema"),
        ("strin", "is no Avro schema: strin"),
        (record(("f", "c.Card")), r"is no Avro schema: c.Card"),
        (7, "is no Avro schema"),
        (chain(250), "nested more than 64 types deep"),
        (nested(65), "nested more than 64 types deep"),
        ({"type": "fixed", "name": "F", "size": "x"}, "size: expected a whole number from 0 to .*, got 'x'"),
        ({"type": "fixed", "name": "F", "size": -1}, "size: expected a whole number from 0 to .*, got -1"),
        ({"type": "fixed", "name": "F", "size": float("inf")}, "size: expected a whole number .* got inf"),
        ({"type": "fixed", "name": "F", "size": True}, "size: expected a whole number .* got True"),
        ({**DECIMAL, "scale": 10_000_000}, "scale: expected a whole number from 0 to 1000, got 10000000"),
        ({**DECIMAL, "precision": 10_000_000}, "precision: expected a whole number from 0 to 1000"),
        ({**DECIMAL, "scale": "x"}, "scale: expected a whole number from 0 to 1000, got 'x'"),
        ({**DECIMAL, "scale": [1]}, "scale: expected a whole number"),
        (nested_in_array({**DECIMAL, "scale": 900}), "arrays whose items are more than the bytes they take"),
        (
            nested_in_array({"type": "enum", "name": "E", "symbols": ["a", "b" * 500]}),
            "arrays whose items are more than the bytes they take",
        ),
        (
            nested_in_array(record(("n" * 500, "boolean"))),
            "arrays whose items are more than the bytes they take",
        ),
        (nested_in_array(["null", doubling(3)]), "arrays whose items are more than the bytes they take"),
        (nested_in_array({"type": "fixed", "name": "F", "size": 0}), "arrays whose items are more than"),
        (record(("n" * 20_000, "boolean")), "becomes more than 16384 bytes of text for no bytes"),
        ({"type": "enum", "name": "E", "symbols": [f"s{i}" for i in range(20_000)]}, "more than 20000 types"),
        ({"type": "enum", "name": "E", "symbols": [1]}, "expected a symbol, got 1"),
        ({"type": "enum", "name": "E", "symbols": "ab"}, "symbols: expected list"),
        ({"type": "record", "name": 5, "fields": []}, "name: expected str, got 5"),
        ({"type": "record", "name": "R", "namespace": 5, "fields": []}, "namespace: expected str, got 5"),
        ({"type": "record", "name": "R", "fields": [7]}, "expected a field, got 7"),
        ({"type": "record", "name": "R", "fields": [{"name": "a"}]}, "expected a type, got None"),
        ({"type": "array"}, "expected a type, got None"),
    ],
)
def test_schemas_whose_values_cost_more_than_their_bytes_or_that_are_none_have_no_reader(
    schema: Any, message: str
) -> None:
    with pytest.raises(SchemaUnusable, match=message):
        reader(schema)


def test_text_that_is_no_json_or_nested_without_end_is_no_schema() -> None:
    for text_ in ("{", "[" * 100_000, '{"type":' * 50_000, "1" * 5_000, '"' + "a" * 10):
        with pytest.raises(SchemaUnusable):
            AvroReader(Schema("AVRO", text_))


def test_a_schema_of_another_format_has_no_reader() -> None:
    with pytest.raises(SchemaUnusable, match="expected an Avro schema, got one of type PROTOBUF"):
        AvroReader(Schema("PROTOBUF", "syntax = 'proto3';"))


@pytest.mark.parametrize(
    "type_",
    [
        ["null", record(("a_name_of_some_length", ["null", "boolean"]), ("b", ["null", "double"]))],
        record(("group", record(("flag", "boolean")) | {"name": "G"})),
        {"type": "enum", "name": "E", "symbols": ["REFUSED_BY_THE_ISSUER", "ACCEPTED"]},
        {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 38},
        {"type": "map", "values": "null"},
    ],
)
def test_what_people_put_in_arrays_has_a_reader(type_: Any) -> None:
    assert reader(nested_in_array(type_))


def test_records_within_records_are_read_up_to_a_depth() -> None:
    written = number(60) + number(5)  # the last branch of the union
    found = read(chain(60), written)
    for _ in range(60):
        found = found["a"]
    assert found == {"a": 5}


def test_a_union_is_not_parsed_anew_for_every_record() -> None:
    """Three thousand branches took 150 ms a record."""
    branches = [record(("a", "int")) | {"name": f"R{i}"} for i in range(3_000)]
    union = reader(branches)
    value = number(2_999) + number(1)
    union.to_json(value, 0, None)
    with own_garbage():
        began = time.thread_time()
        for _ in range(100):
            union.to_json(value, 0, None)
        assert time.thread_time() - began < 1.0
