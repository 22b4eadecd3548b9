"""Schemas that somebody means ill with: deep, wide, odd, endless, or nearly right."""

from __future__ import annotations

import json
import random
from typing import Any

from google.protobuf import descriptor_pb2

from streamwatch.edge.decoders.schemas.protobuf import MAIN

ODD = (None, True, -1, 0, 1.5, 10**9, 10**40, "", "x", "\ud800", [], {}, [[]], {"type": None}, float("inf"))
NAMES = ("R", "E", "c.Card", "a", "", "1", "x" * 300, "x" * 5_000, "é", "null", "record", "streamwatch")
SCALARS = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
LOGICAL = ("decimal", "uuid", "date", "timestamp-millis", "duration", "x", 7)


def avro_schema(chance: random.Random) -> str:
    """An Avro schema, with what does not belong there, or the text of one damaged."""
    match chance.randrange(40):
        case 0:
            count = chance.choice((10, 250, 2_000))
            schema: Any = [_record(f"R{i}", [("a", f"R{i - 1}" if i else "int")]) for i in range(count)]
        case 1:
            schema = _deep(chance.choice((5, 70, 200)), chance.choice(("array", "map", "record", "union")))
        case 2:
            count = chance.choice((100, 5_000, 30_000))
            schema = _record("R", [(f"f{i}", chance.choice(SCALARS)) for i in range(count)])
        case 3:
            schema = {
                "type": "enum",
                "name": "E",
                "symbols": [f"s{i}" * 9 for i in range(chance.choice((3, 9_000)))],
            }
        case _:
            schema = _type(chance, 0)
    text = json.dumps(schema)
    if chance.random() < 0.1:
        at = chance.randrange(len(text))
        cut = chance.choice((0, 1, 5))
        text = (
            text[:at]
            + chance.choice(('"', "}", "[", ",", "null", "1e999", "\\ud800", "[" * 900))
            + text[at + cut :]
        )
    return text


def _type(chance: random.Random, depth: int) -> Any:
    if chance.random() < 0.02:
        return chance.choice(ODD)
    kind = chance.randrange(14 if depth < 6 else 3)
    if kind < 3:
        return chance.choice(SCALARS if kind < 2 else NAMES)
    if kind in {9, 10}:
        return ["null", *(_type(chance, depth + 1) for _ in range(chance.choice((0, 1, 3))))]
    return _changed(chance, _object(chance, kind, depth))


def _object(chance: random.Random, kind: int, depth: int) -> dict[str, Any]:
    number = chance.randrange(10**6)
    match kind:
        case 3 | 4 | 5:
            count = chance.choice((0, 1, 2, 5))
            return _record(f"T{number}", [(_name(chance), _type(chance, depth + 1)) for _ in range(count)])
        case 6 | 7:
            return {"type": "array", "items": _type(chance, depth + 1)}
        case 8:
            return {"type": "map", "values": _type(chance, depth + 1)}
        case 11:
            symbols = [_name(chance) for _ in range(chance.choice((0, 1, 3)))]
            return {"type": "enum", "name": f"E{number}", "symbols": symbols}
        case _:
            decimal = {
                "logicalType": chance.choice(LOGICAL),
                "precision": chance.choice((9, 38, 10**7)),
                "scale": chance.choice((0, 0, 2, 2, 120, 1_000, 10**7, *ODD)),
            }
            if kind == 12:
                size = chance.choice((0, 1, 2, 16, 10**9, *ODD))
                return {"type": "fixed", "name": f"F{number}", "size": size} | decimal
            return {"type": "bytes"} | decimal


def _name(chance: random.Random) -> str:
    return chance.choice((f"f{chance.randrange(50)}", f"a_longer_name_{chance.randrange(50)}", *NAMES))


def _changed(chance: random.Random, node: dict[str, Any]) -> dict[str, Any]:
    if chance.random() < 0.04:
        node[chance.choice(list(node))] = chance.choice(ODD)
    if chance.random() < 0.04:
        node["namespace"] = chance.choice((*ODD, *NAMES))
    if chance.random() < 0.02:
        del node[chance.choice(list(node))]
    return node


def _record(name: str, fields: list[tuple[Any, Any]]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields]}


def _deep(depth: int, kind: str) -> Any:
    inner: Any = "int"
    for i in range(depth):
        inner = {
            "array": {"type": "array", "items": inner},
            "map": {"type": "map", "values": inner},
            "record": _record(f"R{i}", [("a", inner)]),
            "union": {"type": inner},
        }[kind]
    return inner


def json_schema(chance: random.Random) -> str:
    """A JSON Schema, deep or odd."""
    depth = chance.choice((1, 10, 900, 20_000))
    return chance.choice(
        ('{"properties": {"a": ' * depth + "{}" + "}}" * depth, "[" * depth, json.dumps(chance.choice(ODD)))
    )


def descriptor_set(chance: random.Random) -> bytes:
    """Descriptors of a file, with what does not belong there, or their bytes damaged."""
    files = descriptor_pb2.FileDescriptorSet()
    file = files.file.add(
        name=MAIN if chance.random() < 0.97 else "other",
        syntax=chance.choice(("proto2", "proto3", "proto3", "proto3")),
    )
    file.package = chance.choice(("", "", "", "", "ml", "ml", "a.b", "..", "x" * 2_000))
    for n in range(chance.choice((0, 1, 2, 2, 3, 40))):
        _message(chance, file.message_type.add(), n, 0)
    for n in range(chance.choice((0, 0, 1))):
        _enum(chance, file.enum_type.add(), n)
    written = bytearray(files.SerializeToString())
    while written and chance.random() < 0.2:
        at = chance.randrange(len(written))
        written[at : at + chance.choice((0, 1, 1, 4))] = chance.randbytes(chance.choice((0, 1, 1, 4)))
    return bytes(written)


def _message(chance: random.Random, message: Any, number: int, depth: int) -> None:
    message.name = chance.choice((f"M{number}",) * 20 + ("", "a b", "x" * 5_000))
    for n in range(chance.choice((0, 1, 3, 3, 3, 100))):
        one = message.field.add(number=chance.choice((n + 1,) * 20 + (0, -1, 2**29)))
        one.name = chance.choice((f"f{n}",) * 20 + ("f0", "", "x" * 2_000))
        one.label = chance.choice((1, 1, 3, 3, 2))
        one.type = chance.choice((*range(1, 19), 11, 11, 14, 14))
        if one.type in (10, 11, 14):
            one.type_name = chance.choice(
                (".M0", ".M1", ".ml.M0", ".E0", "M0", ".M0.N0", ".a.b.M0", "", ".google.protobuf.Any")
            )
        if chance.random() < 0.03:
            one.default_value = chance.choice(("1", "x" * 1_000, "nan"))
    if depth < chance.choice((0, 1, 1, 3, 60)):
        _message(chance, message.nested_type.add(), 0, depth + 1)
    if chance.random() < 0.3:
        _enum(chance, message.enum_type.add(), number)
    if chance.random() < 0.05:
        message.options.map_entry = True


def _enum(chance: random.Random, enum: Any, number: int) -> None:
    enum.name = f"E{number}"
    for n in range(chance.choice((0, 1, 3))):
        enum.value.add(
            name=chance.choice((f"V{number}_{n}", "x" * 3_000, "")), number=chance.choice((n, n, -1))
        )


def proto_text(chance: random.Random) -> str:
    """A .proto file, deep, wide, damaged or in another language."""
    depth = chance.choice((1, 5, 40, 2_000))
    text = chance.choice(
        (
            'syntax = "proto3"; ' + "message A { int32 a = 1; " * depth + "}" * depth,
            'syntax = "proto3"; message A { ' + " ".join(f"int32 f{i} = {i};" for i in range(1, depth)) + "}",
            'syntax = "proto3"; enum E { ' + "Z" * depth + " = 0; } message A { repeated E e = 1; A a = 2; }",
            'syntax = "proto3"; import "' + "x/" * depth + 'y.proto"; message A {}',
            'syntax = "proto3"; import "streamwatch_main.proto"; message A {}',
            "[" * depth,
            "",
        )
    )
    if chance.random() < 0.5 and text:
        at = chance.randrange(len(text))
        text = text[:at] + chance.choice(("{", "}", ";", '"', "\0", "/*", "é", "9" * 400)) + text[at + 1 :]
    return text
