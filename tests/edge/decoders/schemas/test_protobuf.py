"""Messages become the JSON that a producer of JSON would have written."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from google.protobuf import descriptor_pb2

from streamwatch.edge.decoders.schemas.protobuf import ProtobufReader, compile_protobuf, read_indexes
from streamwatch.edge.decoders.schemas.schema import Schema, SchemaUnusable, Undecodable

SCORED = """
syntax = "proto3";
package ml;
import "cards/card.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
message Envelope {
  map<string, int32> counts = 1;
  message Scored {
    enum Class { LEGIT = 0; FRAUD = 1; }
    string id = 1;
    Class prediction = 2;
    map<string, double> scores = 3;
    cards.Card card = 4;
    google.protobuf.Timestamp at = 5;
    bool fraud = 6;
    optional int64 amount = 7;
    repeated int32 codes = 8;
    oneof origin { string shop = 9; string web = 10; }
    google.protobuf.StringValue note = 11;
    bytes raw = 12;
    Scored parent = 13;
    map<bool, string> flags = 14;
  }
}
message Other { int64 timestamp = 1; }
"""
CARD = 'syntax = "proto3"; package cards; message Card { string number = 1; }'


@pytest.fixture(scope="module")
def reader() -> ProtobufReader:
    return compile_protobuf(Schema("PROTOBUF", SCORED, (("cards/card.proto", CARD),)))


def field(number: int, wire: int, contents: bytes) -> bytes:
    """A field by the encoding's documentation: (number << 3 | wire type), then its contents."""
    return bytes([number << 3 | wire]) + (bytes([len(contents)]) + contents if wire == 2 else contents)


def varint(value: int) -> bytes:
    written = bytearray()
    while value > 127:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])


def read(reader: ProtobufReader, indexes: bytes, contents: bytes) -> Any:
    return json.loads(reader.to_json(b"-----" + indexes + contents, 5, None))


NESTED = bytes([4, 0, 0])
"""Two indexes, zigzag: the first message's first nested one."""
EMPTY = {"id": "", "prediction": "LEGIT", "scores": {}, "fraud": False, "codes": [], "raw": "", "flags": {}}
"""Fields without presence that are not on the wire."""


def test_fields_that_are_not_on_the_wire_have_their_defaults_unless_they_have_presence(
    reader: ProtobufReader,
) -> None:
    assert read(reader, NESTED, b"") == EMPTY


def test_every_kind_of_field_is_read(reader: ProtobufReader) -> None:
    contents = (
        field(1, 2, b"tx-1")
        + field(2, 0, b"\x01")
        + field(3, 2, field(1, 2, b"FRAUD") + field(2, 1, bytes.fromhex("000000000000e03f")))
        + field(4, 2, field(1, 2, b"4711"))
        + field(5, 2, field(1, 0, varint(1_734_220_800)))
        + field(6, 0, b"\x01")
        + field(7, 0, bytes.fromhex("9601"))
        + field(8, 2, b"\x01\x02")
        + field(10, 2, b"app")
        + field(11, 2, field(1, 2, b"n"))
        + field(12, 2, b"\x00\xff")
        + field(13, 2, field(1, 2, b"tx-0"))
        + field(14, 2, field(1, 0, b"\x01") + field(2, 2, b"y"))
    )
    assert read(reader, NESTED, contents) == {
        "id": "tx-1",
        "prediction": "FRAUD",
        "scores": {"FRAUD": 0.5},
        "card": {"number": "4711"},
        "at": "2024-12-15T00:00:00Z",
        "fraud": True,
        "amount": 150,
        "codes": [1, 2],
        "web": "app",
        "note": "n",
        "raw": "AP8=",
        "parent": {**EMPTY, "id": "tx-0"},
        "flags": {"true": "y"},
    }


def test_an_enum_value_that_the_schema_does_not_name_is_its_number(reader: ProtobufReader) -> None:
    assert read(reader, NESTED, field(2, 0, b"\x07"))["prediction"] == 7


def test_indexes_name_the_message_and_a_single_zero_is_the_first(reader: ProtobufReader) -> None:
    assert read(reader, bytes([2, 2]), field(1, 0, b"\x05")) == {"timestamp": 5}
    assert read(reader, b"\0", b"") == {"counts": {}}
    assert read(reader, bytes([2, 0]), b"") == {"counts": {}}


def test_indexes_of_a_header_leave_the_value_to_the_message(reader: ProtobufReader) -> None:
    assert json.loads(reader.to_json(field(1, 0, b"\x05"), 0, bytes([2, 2]))) == {"timestamp": 5}


@pytest.mark.parametrize(
    "indexes", [b"", b"\x01", bytes([2, 8]), bytes([6, 0, 0, 0]), b"\xff" * 9, bytes([2])]
)
def test_indexes_of_no_message_are_undecodable(reader: ProtobufReader, indexes: bytes) -> None:
    with pytest.raises(Undecodable):
        read(reader, indexes, b"")


def test_indexes_are_read_as_the_documentation_writes_them() -> None:
    """Confluent, "Wire format": the array [1, 0] is 4 2 0 in bytes (2, 1, 0 as zigzag varints)."""
    assert read_indexes(bytes([4, 2, 0]), 0) == ((1, 0), 3)
    assert read_indexes(bytes([0, 8]), 0) == ((0,), 1)


@pytest.mark.parametrize(
    "contents",
    [b"\x0a", b"\xff" * 30, field(1, 2, b"\xff"), field(4, 2, b"\x0a\x7f"), b"\x0a\x7f" * 120],
)
def test_contents_that_are_no_message_are_undecodable(reader: ProtobufReader, contents: bytes) -> None:
    with pytest.raises(Undecodable):
        read(reader, NESTED, contents)


def test_nesting_without_end_is_undecodable(reader: ProtobufReader) -> None:
    contents = b""
    for _ in range(20_000):
        contents = bytes([13 << 3 | 2]) + varint(len(contents)) + contents
    with pytest.raises(Undecodable):
        read(reader, NESTED, contents)


@pytest.mark.slow
def test_half_a_million_empty_messages_of_many_fields_are_undecodable() -> None:
    fields = " ".join(f"int32 f{i} = {i};" for i in range(1, 101))
    text = f'syntax = "proto3"; message A {{ message B {{ {fields} }} repeated B bs = 1; }}'
    bomb = compile_protobuf(Schema("PROTOBUF", text))
    with pytest.raises(Undecodable):
        read(bomb, b"\0", b"\x0a\x00" * 500_000)
    assert len(read(bomb, b"\0", b"\x0a\x00" * 30)["bs"]) == 30


def test_a_message_named_by_the_settings_is_every_value_s() -> None:
    schema = Schema("PROTOBUF", SCORED, (("cards/card.proto", CARD),))
    assert json.loads(compile_protobuf(schema, "ml.Other").to_json(field(1, 0, b"\x05"), 0, None)) == {
        "timestamp": 5
    }
    assert json.loads(compile_protobuf(schema, "").to_json(b"", 0, None)) == {"counts": {}}
    with pytest.raises(SchemaUnusable, match=r"expected one of its messages \(ml.Envelope, .*got 'ml.Nope'"):
        compile_protobuf(schema, "ml.Nope")


def test_fields_of_proto2_have_presence_whatever_their_default() -> None:
    text = 'syntax = "proto2"; message A { required string id = 1; optional int32 n = 2 [default = 5]; }'
    two = compile_protobuf(Schema("PROTOBUF", text))
    assert read(two, b"\0", field(1, 2, b"x")) == {"id": "x"}


MANY, MANY_TYPES = (" ".join(f"message M{i} {{}}" for i in range(count)) for count in (1_000, 20_001))


@pytest.mark.parametrize(
    ("text", "references", "message"),
    [
        (
            'syntax = "proto3"; message A { strin id = 1; }',
            (),
            r'does not compile: schema:1:32: "strin" is not',
        ),
        ('syntax = "proto3"; import "x.proto";', (), "does not compile: x.proto: File not found"),
        ("", (("../x.proto", ""),), r"imports '\.\./x\.proto', which is no relative path"),
        ("", (("/etc/x.proto", ""),), "which is no relative path"),
        ("", (("x" * 300, ""),), "imports 'x{300}': File name too long"),
        ("", (("a", ""), ("a/b.proto", "")), "imports 'a/b.proto': (Not a directory|File exists)"),
        ("", (("a/b.proto", ""), ("a", "")), "imports 'a': Is a directory"),
        ("", (("\ud800", ""),), "which is no Unicode"),
        (
            f'syntax = "proto3"; message A{"b" * 30_000} {{ {MANY} }}',
            (),
            "defines names of more than 16777216",
        ),
        (f'syntax = "proto3"; {MANY_TYPES}', (), "more than 20000 message types"),
    ],
)
def test_a_schema_that_does_not_compile_says_where(
    text: str, references: tuple[tuple[str, str], ...], message: str
) -> None:
    with pytest.raises(SchemaUnusable, match=message):
        compile_protobuf(Schema("PROTOBUF", text, references))


def test_a_schema_of_another_format_has_no_reader() -> None:
    with pytest.raises(SchemaUnusable, match="expected a Protocol Buffers schema, got one of type AVRO"):
        compile_protobuf(Schema("AVRO", '"string"'))


def test_files_of_a_schema_are_not_run_by_the_compiler() -> None:
    """Python looks for modules in the folder it is started in, unless configured not to."""
    hostile = (("grpc_tools/protoc.py", "raise SystemExit(7)"), ("grpc_tools/__init__.py", ""))
    assert compile_protobuf(Schema("PROTOBUF", 'syntax = "proto3"; message A {}', hostile))


def test_a_descriptor_that_the_compiler_chokes_on_is_reported_as_its_failure() -> None:
    """Registries give descriptors back in base64."""
    file = descriptor_pb2.FileDescriptorProto(name="a.proto", syntax="proto3")
    file.message_type.add(name="not a name \x00\xff")
    text = base64.b64encode(file.SerializeToString()).decode()
    with pytest.raises((SchemaUnusable, ChildProcessError)):
        compile_protobuf(Schema("PROTOBUF", text))


def test_one_byte_does_not_become_a_name_of_thirty_kilobytes() -> None:
    long = "E" * 30_000
    text = f'syntax = "proto3"; enum E {{ {long} = 0; }} message A {{ repeated E es = 1; }}'
    bomb = compile_protobuf(Schema("PROTOBUF", text))
    with pytest.raises(Undecodable):
        read(bomb, b"\0", field(1, 2, bytes(100)))
    fields = " ".join(f"int32 {long[:9_000]}{i} = {i};" for i in range(1, 19))
    named = compile_protobuf(Schema("PROTOBUF", f'syntax = "proto3"; message A {{ {fields} }}'))
    with pytest.raises(Undecodable):
        read(named, b"\0", b"")


def test_a_compiler_that_swells_ends_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamwatch.edge.decoders.schemas.protobuf.COMPILE_BYTES", 1 << 20)
    with pytest.raises(ChildProcessError, match="protoc ended with"):
        compile_protobuf(Schema("PROTOBUF", 'syntax = "proto3"; message A {}'))
