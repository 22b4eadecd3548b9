"""Values of one schema that are read together become what each becomes by itself, or are read so."""

from __future__ import annotations

import io
import json
import random
from typing import Any

import fastavro
import pytest

from streamwatch.edge.decoders.schemas.avro import AvroReader
from streamwatch.edge.decoders.schemas.protobuf import compile_protobuf
from streamwatch.edge.decoders.schemas.schema import Schema, Undecodable, ValueReader
from tests.edge.decoders.schemas.avro_bytes import text
from tests.tiers import by_tier

BATCHES = by_tier(fast=200, rotating=500, default=2_000, everything=20_000)
AVRO: dict[str, Any] = {
    "type": "record",
    "name": "Scored",
    "fields": [
        {"name": "id", "type": "string"},
        {"name": "n", "type": ["null", "long"]},
        {"name": "scores", "type": {"type": "map", "values": "double"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["a", "b"]}},
        {"name": "again", "type": ["null", "Kind"]},
    ],
}
PROTO = """syntax = "proto3"; message Scored { string id = 1; int64 n = 2; map<string, double> scores = 3;
repeated float list = 4; bool flag = 5; bytes raw = 6; }
message Other { optional string id = 1; int64 n = 2; }"""


def alone(reader: ValueReader, contents: list[bytes], preface: bytes | None = None) -> list[bytes] | None:
    try:
        return [reader.to_json(each, 0, preface) for each in contents]
    except Undecodable:
        return None


def changed(chance: random.Random, contents: list[bytes]) -> list[bytes]:
    """Some of the bytes at other positions, or gone."""
    for _ in range(chance.choice((0, 0, 1, 2))):
        at = chance.randrange(len(contents))
        value = bytearray(contents[at])
        position = chance.randrange(len(value) + 1)
        value[position : position + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
        contents[at] = bytes(value)
    return contents


def in_avro(chance: random.Random) -> bytes:
    written = io.BytesIO()
    record = {
        "id": "x" * chance.randrange(5),
        "n": chance.choice((None, chance.getrandbits(40))),
        "scores": {f"c{k}": chance.random() for k in range(chance.randrange(3))},
        "kind": chance.choice("ab"),
        "again": chance.choice((None, "b")),
    }
    fastavro.schemaless_writer(written, AVRO, record)
    return written.getvalue()


def test_avro_values_with_and_without_damage() -> None:
    reader, chance = AvroReader(Schema("AVRO", json.dumps(AVRO))), random.Random(1)
    together = 0
    for _ in range(BATCHES):
        contents = changed(chance, [in_avro(chance) for _ in range(chance.randrange(1, 6))])
        found, expected = reader.all_to_json(contents), alone(reader, contents)
        assert found == expected, contents
        together += found is not None
    assert BATCHES // 3 < together < BATCHES


@pytest.mark.parametrize(
    "schema", ["string", ["null", "string"], {"type": "array", "items": "string"}, "Kind"]
)
def test_avro_values_that_are_no_records(schema: Any) -> None:
    reader = AvroReader(Schema("AVRO", json.dumps(AVRO["fields"][3]["type"] if schema == "Kind" else schema)))
    contents = {"string": text("a\nb"), "Kind": b"\2"}.get(str(schema), b"\0")
    assert reader.all_to_json([contents] * 3) == alone(reader, [contents] * 3)


def test_an_avro_value_that_takes_the_bytes_of_the_next_is_found_out() -> None:
    reader = AvroReader(Schema("AVRO", '"string"'))
    whole = text("x" * 60)
    for at in range(1, len(whole)):
        contents = [whole[:at], whole[at:]]
        assert reader.all_to_json(contents) is None
        assert alone(reader, contents) is None
    assert reader.all_to_json([whole, whole]) == [b'"%s"' % (b"x" * 60)] * 2
    assert reader.all_to_json([text("a") + text("b")]) is None


def test_protobuf_messages_with_and_without_damage() -> None:
    reader = compile_protobuf(Schema("PROTOBUF", PROTO))
    kind, chance = reader._class("Scored"), random.Random(2)
    together = 0
    for _ in range(BATCHES):
        contents = [
            b"\0"
            + kind(
                id="é\n" * chance.randrange(3),
                n=chance.getrandbits(40),
                scores={f"c{k}": chance.random() for k in range(chance.randrange(3))},
                list=[chance.random() for _ in range(chance.randrange(3))],
                flag=chance.random() < 0.5,
                raw=chance.randbytes(chance.randrange(4)),
            ).SerializeToString()
            for _ in range(chance.randrange(1, 6))
        ]
        contents = changed(chance, contents)
        found, expected = reader.all_to_json(contents), alone(reader, contents)
        if found is not None:
            assert found == expected, contents
            together += 1
        else:
            assert expected is None or any(each[:1] != b"\0" for each in contents)
    assert together > BATCHES // 3


def test_messages_of_another_type_or_with_fields_that_may_be_absent_are_read_one_by_one() -> None:
    reader = compile_protobuf(Schema("PROTOBUF", PROTO))
    assert reader.all_to_json([b"\2\2"]) is None
    other = compile_protobuf(Schema("PROTOBUF", PROTO), "Other")
    assert other.all_to_json([b"", b""]) is None
    scored = compile_protobuf(Schema("PROTOBUF", PROTO), "Scored")
    assert scored.all_to_json([b"", b""]) == alone(scored, [b"", b""])


def test_entries_of_a_map_are_in_an_order_that_is_not_the_library_s() -> None:
    """Which has them by a hash that differs between processes: sums over scores would, in their last bits."""
    proto = """syntax = "proto3"; enum E { A = 0; } message M { map<string, double> scores = 1; int32 n = 2;
    map<int32, E> by_number = 3; }"""
    reader = compile_protobuf(Schema("PROTOBUF", proto))
    names = [f"class-{k}" for k in range(30)]
    message = reader._class("M")(scores=dict.fromkeys(names, 0.5), by_number=dict.fromkeys(range(30), 0))
    value = b"\0" + message.SerializeToString()
    reported = json.loads(reader.to_json(value, 0, None))
    assert list(reported["scores"]) == sorted(names)
    assert list(reported["by_number"]) == [str(k) for k in range(30)]
    assert reader.all_to_json([value]) in ([reader.to_json(value, 0, None)], None)
