"""Messages that become text in compiled code, beside the library: types by chance, values, damaged ones."""

from __future__ import annotations

import random
import struct
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from google.protobuf import descriptor_pb2, message_factory
from google.protobuf.descriptor_pool import DescriptorPool

from streamwatch.edge.decoders.envelopes import KINDS
from streamwatch.edge.decoders.formats import DecoderSpec, FormatOptions, protobuf
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.decoders.schemas.protobuf import MAIN, ProtobufReader, compile_protobuf
from streamwatch.edge.decoders.schemas.schema import Schema, Undecodable
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.records import FakeRecord
from tests.edge.decoders.schemas.avro_bytes import framed
from tests.edge.decoders.schemas.test_protobuf import field
from tests.edge.decoders.transcoding.compared import (
    Path,
    changed,
    check,
    content_at,
    exactly,
    texts_of,
    wanted,
)
from tests.tiers import by_tier

FILES = by_tier(fast=60, rotating=250, default=1_000, everything=20_000)
VALUES = 20
IN_DATA = TopicMapping(id="value.data.id", model="value.data.model", prediction="value.data.prediction")
SCALARS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 12, 13, 14, 15, 16, 17, 18)
"""Types of fields but messages and groups, text more often."""


class Made:
    """A file of message types by chance, values of the first, and paths into it."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.files = descriptor_pb2.FileDescriptorSet()
        file = self.files.file.add(name=MAIN, syntax=chance.choice(("proto3", "proto3", "proto2")))
        enum = file.enum_type.add(name="E")
        for i, name in enumerate(("ZERO", "ONE", "TWO")):
            enum.value.add(name=name, number=i * chance.choice((1, -7)))
        self.proto3 = file.syntax == "proto3"
        if self.proto3:
            enum.value[0].number = 0
        for n in range(3):
            self.message(file.message_type.add(name=f"M{n}"), n)
        pool = DescriptorPool()
        pool.Add(file)
        self.kind = message_factory.GetMessageClass(pool.FindMessageTypeByName("M0"))

    def message(self, message: Any, number: int) -> None:
        chance = self.chance
        numbers = chance.sample((1, 2, 3, 4, 15, 16, 2_000), chance.choice((1, 2, 4, 6)))
        has_choice = chance.random() < 0.3
        if has_choice:
            message.oneof_decl.add(name="choice")
        for i, each in enumerate(numbers):
            one = message.field.add(name=f"f{i}", number=each, label=chance.choice((1, 1, 1, 3)))
            one.type = chance.choice(SCALARS) if chance.random() < 0.75 else 11
            if one.type == 14:
                one.type_name = ".E"
            elif one.type == 11 and number < 2 and chance.random() < 0.5:
                one.type_name = f".M{chance.choice((number + 1, 2))}"
            elif one.type == 11:
                self.map(message, one, i)
            if has_choice and one.label == 1 and chance.random() < 0.5:
                one.oneof_index = 0
        if has_choice and not any(each.HasField("oneof_index") for each in message.field):
            del message.oneof_decl[:]

    def map(self, message: Any, one: Any, number: int) -> None:
        entry = message.nested_type.add(name=f"F{number}Entry")
        entry.options.map_entry = True
        chance = self.chance
        entry.field.add(name="key", number=1, label=1, type=chance.choice((9, 9, 9, 5, 8)))
        value = entry.field.add(name="value", number=2, label=1, type=chance.choice(SCALARS))
        if value.type == 14:
            value.type_name = ".E"
        one.label = 3
        one.type_name = f".{message.name}.F{number}Entry"

    def fill(self, message: Any) -> Any:
        chance = self.chance
        for each in message.DESCRIPTOR.fields:
            if chance.random() < 0.3:
                continue
            if each.message_type is not None and each.message_type.GetOptions().map_entry:
                value = each.message_type.fields_by_name["value"]
                for _ in range(chance.choice((1, 2))):
                    key = self.scalar(each.message_type.fields_by_name["key"])
                    getattr(message, each.name)[key] = self.scalar(value)
            elif each.message_type is not None and each.is_repeated:
                self.fill(getattr(message, each.name).add())
            elif each.message_type is not None:
                getattr(message, each.name).SetInParent()
                self.fill(getattr(message, each.name))
            elif each.is_repeated:
                getattr(message, each.name).extend(self.scalar(each) for _ in range(chance.choice((1, 2, 5))))
            else:
                setattr(message, each.name, self.scalar(each))
        return message

    def scalar(self, each: Any) -> Any:
        chance = self.chance
        reals = (0.0, -0.0, 1.5, chance.gauss(0, 1), float("nan"), 2.0**-30, 2.0**90)
        texts = ("", "m", "fraud", "x" * 70, "é", '"', "\n", "\x7f")
        some = {
            **dict.fromkeys((1, 2), reals),
            **dict.fromkeys((3, 16, 18), (0, -1, 5, chance.randrange(-(2**63), 2**63))),
            **dict.fromkeys((4, 6), (0, 5, chance.getrandbits(64))),
            **dict.fromkeys((5, 15, 17), (0, -1, 5, chance.randrange(-(2**31), 2**31))),
            **dict.fromkeys((7, 13), (0, 5, chance.getrandbits(32))),
            8: (True, False),
            9: texts,
            12: (b"", chance.randbytes(3)),
        }
        if each.enum_type is not None:
            return chance.choice(each.enum_type.values).number
        return chance.choice(cast("dict[int, tuple[Any, ...]]", some)[each.type])

    def path(self, descriptor: Any) -> Path:
        if self.chance.random() < 0.05:
            return ("nothing",)
        one = self.chance.choice(descriptor.fields)
        below = one.message_type
        if below is not None and not one.is_repeated:
            return (one.name, *self.path(below))
        return (one.name,)


def compare(files: int, seed: int) -> tuple[int, int]:
    """Compare values of so many types; how many values there were, and how many became text."""
    chance = random.Random(seed)
    tried = there = 0
    for _ in range(files):
        made = Made(chance)
        reader = ProtobufReader(made.files, MAIN, None)
        contents = [
            changed(chance, b"\0" + made.fill(made.kind()).SerializeToString()) for _ in range(VALUES)
        ]
        paths = [made.path(made.kind.DESCRIPTOR) for _ in range(chance.choice((1, 2, 4)))]
        tried += len(contents)
        there += check(reader, paths, contents)
    return tried, there


@pytest.mark.slow
def test_what_becomes_text_says_what_the_library_says() -> None:
    tried, there = compare(FILES, seed=1)
    assert there > tried // 8


def through(made: Made, descriptor: Any) -> Path:
    """A path by chance, also into each of several messages."""
    one = made.chance.choice(descriptor.fields)
    below = one.message_type
    if below is None or below.GetOptions().map_entry or made.chance.random() < 0.2:
        return (one.name,)
    return (one.name, *((None,) if one.is_repeated else ()), *through(made, below))


def test_a_narrowed_reader_says_what_the_whole_one_says_wherever_it_is_asked() -> None:
    chance = random.Random(13)
    compared = 0
    for _ in range(60):
        made = Made(chance)
        whole = ProtobufReader(made.files, MAIN, None)
        paths = [through(made, made.kind.DESCRIPTOR) for _ in range(chance.choice((1, 2, 4)))]
        narrow = whole.narrowed(wanted(paths))
        values = [changed(chance, b"\0" + made.fill(made.kind()).SerializeToString()) for _ in range(9)]
        texts: list[bytes] = []
        for value in values:
            try:
                expected = msgspec.json.decode(whole.to_json(value, 0, None))
            except Undecodable:
                continue
            texts.append(narrow.to_json(value, 0, None))
            found = msgspec.json.decode(texts[-1])
            for path in paths:
                assert exactly(content_at(found, path)) == exactly(content_at(expected, path))
            compared += 1
        together = narrow.all_to_json(values) if len(texts) == len(values) else None
        assert together is None or list(together) == texts
    assert compared > 200


def test_of_a_wide_message_only_what_is_wanted_is_converted() -> None:
    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(name=MAIN, syntax="proto2")
    message = file.message_type.add(name="M")
    message.field.add(name="id", number=1, label=2, type=9)  # required: the compiled writer leaves it
    for i in range(1_500):
        message.field.add(name=f"feature_number_{i}", number=10 + i, label=3, type=1)
    reader = ProtobufReader(files, MAIN, "M")
    assert reader.transcoder(wanted([("id",)])) is None
    assert len(reader.to_json(string(1, b"a"), 0, None)) > 30_000
    built = protobuf.build(
        DecoderSpec("t", "prediction", TopicMapping(model="=m", prediction="value.id")),
        FormatOptions(cast("Any", SimpleNamespace(reader=lambda _: reader))),
    )
    [record] = [FakeRecord(framed(1, string(1, b"a")))]
    assert built.as_json(record, narrow=True).value == b'{"id":"a"}'
    assert len(built.as_json(record).value or b"") > 30_000
    assert [event.id for event in built.decode_batch(fetched([record])).events()] == ["a"]  # type: ignore[union-attr]


def test_of_a_wide_row_in_an_envelope_only_what_is_wanted_is_converted() -> None:
    wide = "".join(f"repeated double feature_number_{i} = {i + 10};" for i in range(1_500))
    row = f"message Row {{ string id = 1; string model = 2; string prediction = 3; {wide} }}"
    changes = f'syntax = "proto3"; message M {{ string op = 1; Row before = 2; Row after = 3; }} {row}'
    events = f"""syntax = "proto3"; message M {{ string specversion = 1; string id = 2; string source = 3;
        string type = 4; Row data = 5; }} {row}"""
    inner = string(1, b"a") + string(2, b"m") + string(3, b"x")
    change = (string(1, b"u") + string(3, inner), string(1, b"d") + string(2, inner))
    event = string(1, b"1.0") + string(2, b"e") + string(3, b"s") + string(4, b"t") + string(5, inner)
    headers = [(f"ce_{name}", b"1.0") for name in ("specversion", "id", "source", "type")]
    binary = f'syntax = "proto3"; {row}', "Row"
    cases = [
        ("debezium", TopicMapping(), (changes, "M"), [FakeRecord(framed(1, each)) for each in change]),
        ("cloudevents", IN_DATA, (events, "M"), [FakeRecord(framed(1, event))]),
        ("cloudevents", IN_DATA, binary, [FakeRecord(framed(1, inner), headers=headers)]),
    ]
    for envelope, mapping, (text, message), records in cases:
        reader = compile_protobuf(Schema("PROTOBUF", text), message)
        built = protobuf.build(
            DecoderSpec("t", "prediction", mapping, envelope=KINDS[envelope]),
            FormatOptions(cast("Any", SimpleNamespace(reader=lambda _, reader=reader: reader))),
        )
        narrow = [built.as_json(record, narrow=True) for record in records]
        assert max(len(record.value or b"") for record in narrow) < 200
        assert min(len(built.as_json(record).value or b"") for record in records) > 30_000
        stamps = [0] * len(records)
        exactly_as = built._json.decode_all([built.as_json(record) for record in records], stamps)
        assert built.decode_all(records, stamps) == exactly_as
        assert [type(each).__name__ for each in exactly_as] == ["Prediction", "NullRecord"][: len(records)]
        assert len(built.decode_batch(fetched(records)).events()) == len(records)


PROTO = """syntax = "proto3"; package ml;
import "google/protobuf/timestamp.proto";
enum Kind { LEGIT = 0; FRAUD = 3; }
message Inner { string name = 1; optional int32 n = 2; }
message Scored {
  string id = 1; string model = 2; Kind prediction = 3; int64 timestamp = 4; map<string, double> scores = 5;
  repeated double list = 6; Inner inner = 7; repeated Inner several = 8; google.protobuf.Timestamp at = 9;
  oneof choice { string left = 10; string right = 11; } bytes raw = 12; Scored again = 13;
}"""


@pytest.fixture(scope="module")
def reader() -> ProtobufReader:
    return compile_protobuf(Schema("PROTOBUF", PROTO), "ml.Scored")


def texts(reader: ProtobufReader, paths: list[Path], *contents: bytes) -> list[bytes | None]:
    made = reader.transcoder(wanted(paths))
    assert made is not None
    check(reader, paths, contents)
    return texts_of(made, contents)


def string(number: int, content: bytes) -> bytes:
    return field(number, 2, content)


def test_wanted_fields_follow_one_another_whatever_their_order_on_the_wire(reader: ProtobufReader) -> None:
    paths: list[Path] = [("id",), ("prediction",), ("timestamp",), ("scores",)]
    entry = string(1, b"b") + field(2, 1, struct.pack("<d", 0.0))
    value = string(5, entry) + field(4, 0, b"\x05") + field(3, 0, b"\x03") + string(1, b"a") + string(2, b"m")
    assert texts(reader, paths, value, b"") == [
        b'{"id":"a","prediction":"FRAUD","timestamp":5,"scores":{"b":0.0}}',
        b'{"id":"","prediction":"LEGIT","timestamp":0,"scores":{}}',
    ]


def test_messages_within_and_fields_with_presence_are_absent_where_they_are_not_set(
    reader: ProtobufReader,
) -> None:
    paths: list[Path] = [("inner", "n"), ("inner", "name"), ("left",)]
    value = string(7, string(1, b"x") + field(2, 0, b"\x07"))
    assert texts(reader, paths, b"", value, string(7, b""), string(10, b"l")) == [
        b"{}",
        b'{"inner":{"name":"x","n":7}}',
        b'{"inner":{"name":""}}',
        b'{"left":"l"}',
    ]


@pytest.mark.parametrize(
    "value",
    [
        string(1, b"a") + string(1, b"b"),
        string(10, b"a") + string(11, b"b"),
        string(7, b"") + string(7, b""),
        string(9, b""),
        string(1, b"\xff"),
        string(2, b"\xff"),
        string(8, string(1, b"\xff")),
        string(1, b"a\n"),
        string(1, b'"'),
        string(1, b"a")[:-1],
        field(3, 0, b"\x01"),
        field(4, 0, b"\xff" * 10),
        field(1, 3, b"") + field(1, 4, b""),
        field(1, 0, b"\x01"),
        field(1, 5, b"\0" * 4),
        b"\x00\x00",
    ],
)
def test_what_the_library_reads_in_ways_of_its_own_or_refuses_is_left(
    reader: ProtobufReader, value: bytes
) -> None:
    paths: list[Path] = [("id",), ("prediction",), ("timestamp",), ("left",), ("inner", "n")]
    assert texts(reader, paths, value) == [None]


def test_fields_that_nobody_knows_or_looks_at_are_passed_over(reader: ProtobufReader) -> None:
    unknown = field(14, 0, b"\x01") + field(14, 1, b"x" * 8) + field(14, 5, b"x" * 4) + string(14, b"\xff")
    unknown += b"\xfa\xff\xff\xff\x0f\x01x"  # the largest number that a field may have
    passed = string(8, string(1, "é".encode())) + string(12, b"\xff") + string(2, b"m") + string(2, b"n")
    assert texts(reader, [("id",)], unknown + string(1, b"a") + passed) == [b'{"id":"a"}']


def test_lists_may_be_packed_or_not_or_both(reader: ProtobufReader) -> None:
    half, one = struct.pack("<d", 0.5), struct.pack("<d", 1.0)
    value = string(6, half + one) + string(1, b"a") + field(6, 1, half) + string(6, b"")
    [found] = texts(reader, [("list",)], value)
    assert found is not None
    assert msgspec.json.decode(found) == {"list": [0.5, 1.0, 0.5]}
    assert texts(reader, [("list",)], string(6, half[:-1]), b"") == [None, b'{"list":[]}']


@pytest.mark.parametrize("path", [("raw",), ("several",), ("inner",), ("at",), ()])
def test_what_is_wanted_as_bytes_or_as_messages_is_left_to_others(reader: ProtobufReader, path: Path) -> None:
    assert reader.transcoder(wanted([path])) is None


def test_messages_deep_within_one_another_are_left(reader: ProtobufReader) -> None:
    value = b""
    for _ in range(59):
        value = string(13, value)
    assert texts(reader, [("id",)], value, string(13, string(13, value))) == [b'{"id":""}', None]


def test_values_that_would_become_much_text_are_left_to_the_budget_of_others() -> None:
    fields = "".join(f"string a_field_with_a_name_{i} = {i};" for i in range(1, 101))
    proto = f'syntax = "proto3"; message M {{ repeated W w = 1; string id = 2; }} message W {{ {fields} }}'
    reader = compile_protobuf(Schema("PROTOBUF", proto))
    paths = cast("list[Path]", [("id",)])
    few, many = b"\0" + string(1, b"") * 20, b"\0" + string(1, b"") * 200
    assert texts(reader, paths, few, many) == [b'{"id":""}', None]


def test_values_of_another_message_type_are_left() -> None:
    reader = compile_protobuf(
        Schema("PROTOBUF", PROTO.replace("message Inner", "message Second").replace("Inner ", "Second "))
    )
    paths: list[Path] = [("name",), ("n",)]
    assert texts(reader, paths, b"\0" + string(1, b"a"), b"\x02\x02" + string(1, b"a"), b"") == [
        b'{"name":"a"}',
        None,
        None,
    ]
