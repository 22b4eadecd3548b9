"""Avro values that become text by a program, beside fastavro: schemas by chance, values, and damaged ones."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from typing import Any

import fastavro
import pytest

from streamwatch.edge.decoders.schemas.avro import AvroReader
from streamwatch.edge.decoders.schemas.schema import Schema, SchemaUnusable
from streamwatch.edge.decoders.transcoding.wanted import EVERYTHING
from tests.edge.decoders.schemas.avro_bytes import EVENT, event, number, text
from tests.edge.decoders.transcoding.compared import Path, changed, check, texts_of, wanted
from tests.tiers import by_tier

SCHEMAS = by_tier(fast=60, rotating=250, default=1_000, everything=25_000)
VALUES = 20
SCALARS = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")


class Made:
    """A schema by chance, values of it, and paths into it."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.named: dict[str, Any] = {}
        self.types: dict[int, Callable[[int], Any]] = {
            0: self.record,
            1: lambda depth: {"type": "array", "items": self.type(depth + 1)},
            2: lambda depth: {"type": "map", "values": self.type(depth + 1)},
            3: self.optional,
            4: lambda _: self.name({"type": "enum", "symbols": ["a", "b", "cc"]}),
            5: lambda _: self.name({"type": "fixed", "size": chance.choice((1, 4))}),
            6: lambda _: {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
            7: lambda _: chance.choice(list(self.named) or SCALARS),
        }
        self.contents: dict[str, Callable[[Any], Any]] = {
            "null": lambda _: None,
            "boolean": lambda _: chance.random() < 0.5,
            "int": lambda _: chance.choice((0, -1, chance.randrange(-(2**31), 2**31))),
            "long": lambda _: chance.choice((0, 7, chance.randrange(-(2**63), 2**63))),
            "float": lambda _: chance.choice((0.0, -0.0, 1.5, 2.0**-40, chance.gauss(0, 1), float("nan"))),
            "double": lambda _: chance.choice((0.0, -0.0, 1.5, chance.gauss(0, 1), float("inf"), 1e300)),
            "bytes": lambda _: chance.randbytes(chance.choice((1, 2, 4))),
            "string": lambda _: chance.choice(("", "m", "fraud", "x" * 70, "é", 'q"', "a\\b", "\n", "\x7f")),
            "record": lambda node: {each["name"]: self.value(each["type"]) for each in node["fields"]},
            "array": lambda node: [self.value(node["items"]) for _ in range(chance.choice((0, 1, 3)))],
            "map": lambda node: {
                key: self.value(node["values"])
                for key in chance.sample(("a", "b", "k" * 40, "é"), chance.choice((0, 1, 3)))
            },
            "enum": lambda node: chance.choice(node["symbols"]),
            "fixed": lambda node: chance.randbytes(node["size"]),
        }
        self.schema = self.record(0)

    def name(self, node: dict[str, Any]) -> Any:
        name = f"N{self.chance.randrange(10**9)}"
        self.named[name] = node | {"name": name}
        return self.named[name]

    def record(self, depth: int) -> Any:
        fields = [
            {"name": f"f{i}", "type": self.type(depth + 1)} for i in range(self.chance.choice((1, 2, 3, 5)))
        ]
        return self.name({"type": "record", "fields": fields})

    def optional(self, depth: int) -> Any:
        inner = self.type(depth + 1)
        return inner if isinstance(inner, list) or inner == "null" else ["null", inner]

    def type(self, depth: int) -> Any:
        made = self.types.get(self.chance.randrange(16)) if depth < 4 else None
        return self.chance.choice(("string", "long", "double", *SCALARS)) if made is None else made(depth)

    def value(self, node: Any) -> Any:
        if isinstance(node, list):
            return self.value(self.chance.choice(node))
        node = self.named.get(node, node) if isinstance(node, str) else node
        return self.contents[node if isinstance(node, str) else node["type"]](node)

    def path(self, node: Any) -> Path:
        """A path to a content, mostly one that there is."""
        chance = self.chance
        node = self.named.get(node, node) if isinstance(node, str) else node
        if isinstance(node, list):
            return self.path(node[-1])
        if chance.random() < 0.1:
            return (chance.choice(("f0", "a", None)),)
        if isinstance(node, dict) and node["type"] == "record":
            field = chance.choice(node["fields"])
            return (field["name"], *(self.path(field["type"]) if chance.random() < 0.7 else ()))
        if isinstance(node, dict) and node["type"] == "array" and chance.random() < 0.8:
            return (None, *self.path(node["items"]))
        return ()

    def written(self) -> bytes:
        """Bytes of a value."""
        stream = io.BytesIO()
        parsed = fastavro.parse_schema(json.loads(json.dumps(plain(self.schema))))
        fastavro.schemaless_writer(stream, parsed, self.value(self.schema))
        return stream.getvalue()


def plain(node: Any) -> Any:
    """A schema without logical types, so that values are written as they are."""
    if isinstance(node, dict):
        return {key: plain(each) for key, each in node.items() if key != "logicalType"}
    return [plain(each) for each in node] if isinstance(node, list) else node


def compare(schemas: int, seed: int) -> tuple[int, int]:
    """Compare values of so many schemas; how many values there were, and how many became text."""
    chance = random.Random(seed)
    tried = there = 0
    for _ in range(schemas):
        made = Made(chance)
        try:
            reader = AvroReader(Schema("AVRO", json.dumps(made.schema)))
        except SchemaUnusable:  # of arrays whose items take no bytes, say
            continue
        contents = [changed(chance, made.written()) for _ in range(VALUES)]
        paths: list[Path] = [made.path(made.schema) for _ in range(chance.choice((1, 2, 4)))]
        if chance.random() < 0.3:
            paths = [()]
        tried += len(contents)
        there += check(reader, paths, contents)
    return tried, there


@pytest.mark.slow
def test_what_becomes_text_says_what_fastavro_says() -> None:
    tried, there = compare(SCHEMAS, seed=1)
    assert there > tried // 8


def reader_of(schema: Any) -> AvroReader:
    return AvroReader(Schema("AVRO", json.dumps(schema)))


def test_an_ordinary_record_becomes_what_the_mapping_looks_at_and_nothing_else() -> None:
    found = reader_of(EVENT).transcoder(wanted([("id",), ("prediction",), ("timestamp",)]))
    assert found is not None
    values = [event("a-1", scores={"fraud": 0.5}), event("é", class_=0, timestamp=-5)]
    assert texts_of(found, values) == [
        b'{"id":"a-1","prediction":"fraud","timestamp":1700000000000}',
        '{"id":"é","prediction":"legit","timestamp":-5}'.encode(),
    ]


@pytest.mark.parametrize(
    "value",
    [
        b"",
        event()[:-1],
        event() + b"\0",
        text(b"\xc3") + event()[2:],
        event(id_="a\n"),
        event(id_='"'),
        event(class_=2),
        event(class_=-1),
        text("a") + b"\x80" * 11,
        text("a") + text("m")[:1],
    ],
)
def test_values_out_of_the_ordinary_are_left(value: bytes) -> None:
    found = reader_of(EVENT).transcoder(wanted([("id",), ("prediction",)]))
    assert found is not None
    assert texts_of(found, [event(), value, event()])[1] is None


def test_text_that_nobody_looks_at_may_be_any_text_but_must_be_text() -> None:
    found = reader_of(EVENT).transcoder(wanted([("id",)]))
    assert found is not None
    assert texts_of(found, [event(model='é"\n')]) == [b'{"id":"a"}']
    bad = text("a") + text(b"\xff") + number(0) + number(0) + number(0)
    assert texts_of(found, [bad]) == [None]


@pytest.mark.parametrize("schema", ["bytes", {"type": "fixed", "name": "F", "size": 2}])
def test_what_is_wanted_as_bytes_is_left_to_others(schema: Any) -> None:
    record = {"type": "record", "name": "R", "fields": [{"name": "a", "type": schema}]}
    assert reader_of(record).transcoder(wanted([("a",)])) is None
    assert reader_of(record).transcoder(wanted([("b",)])) is not None


def test_arrays_that_claim_more_items_than_there_are_bytes_are_left_at_once() -> None:
    record = {
        "type": "record",
        "name": "R",
        "fields": [{"name": "a", "type": {"type": "array", "items": "int"}}],
    }
    for paths in ([("a",)], [("b",)]):
        found = reader_of(record).transcoder(wanted(paths))  # type: ignore[arg-type]
        assert found is not None
        assert texts_of(found, [number(2**60) + b"\0" * 9, number(-1) + number(1) + b"\0\0"]) == [None, None]


def test_the_room_for_texts_grows_with_what_is_written() -> None:
    names = [f"a_long_name_of_a_field_{i}" for i in range(400)]
    record = {"type": "record", "name": "R", "fields": [{"name": name, "type": "int"} for name in names]}
    found = reader_of(record).transcoder(EVERYTHING)
    assert found is not None
    texts = texts_of(found, [bytes(400)] * 50)
    assert [json.loads(each or b"") for each in texts] == [dict.fromkeys(names, 0)] * 50


def test_a_schema_of_very_many_steps_is_left_to_others() -> None:
    """Types within types double with each level: a program would, too."""
    fields = [{"name": "a", "type": "R0"}, {"name": "b", "type": "R0"}]
    inner: Any = {"type": "record", "name": "R0", "fields": [{"name": "x", "type": "int"}]}
    for i in range(1, 20):
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": f"R{i - 1}"}]
        inner = {"type": "record", "name": f"R{i}", "fields": fields}
    assert reader_of(inner).transcoder(EVERYTHING) is None
    assert reader_of(inner).transcoder(wanted([("nothing",)])) is not None
