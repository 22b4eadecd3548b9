"""Records with scores, times in ISO 8601 and arrays: ordinary, nearly so, or not at all."""

from __future__ import annotations

import json
import random
import struct

from tests.edge.decoders.mutations import damage, written
from tests.edge.decoders.records import FakeRecord

CLASSES = ("yes", "no", "1", "maybe", "class-with-a-long-name", "true", "é", "")
NUMBERS = (
    "0", "1", "0.0", "1.0", "-0", "-0.0", "0.5", "5e-1", "5E-01", "0.1e1", "1e-7", "-1e-7", "-1e-6",
    "-1.1e-6", "1.000001", "1.0000011", "1.0000009", "0.30000000000000004",
    "0.1000000000000000055511151231257827", "2.2250738585072014e-308", "4.9e-324", "1e-400", "1e400",
    "1e23", "9007199254740993", "9007199254740993.0", "0.00012345678901234567", "0.12345678901234567890",
    "12345678901234567890", "1e-99", "1e-100", "01", "1.", ".5", "+1", "NaN", "null", '"0.5"', "true",
    "[]", "{}", "-", "0.5.5", "0x1", "1e", "1e+", "-5", "17.25",
)  # fmt: skip
"""Scores as they are, and as they should not be."""
MOMENTS = (
    '"2023-11-14T22:13:20Z"', '"2023-11-14T22:13:20.123456+01:00"', '"2023-11-14 22:13:20"', "null",
    '"2023-11-14T22:13:20,5-0930"', '"2023-02-29T00:00:00Z"', '"2023-11-14"', "1700000000000", '""',
)  # fmt: skip


def number(chance: random.Random, oddity: float) -> str:
    """A score as it is written."""
    if chance.random() < oddity / 4:
        return chance.choice(NUMBERS)
    match chance.randrange(6):
        case 0:
            return f"{chance.random():.{chance.randrange(1, 25)}f}"
        case 1:
            return repr(struct.unpack("<f", struct.pack("<f", chance.random()))[0])
        case 2:
            return repr(chance.random() * 10.0 ** -chance.randrange(12))
        case 3:  # exactly between two doubles, or next to it
            middle = f"{((chance.getrandbits(52) | 1 << 52) * 2 + 1) * 5**54:d}"
            return f"0.{middle[: chance.choice((17, 18, 19, 25))]}"
        case _:
            return repr(chance.random())


def scores(chance: random.Random, oddity: float) -> str:
    """Scores of a few classes as they are written, mostly an object."""
    count = chance.choice((1, 2, 2, 3, 3, 3)) if chance.random() >= oddity / 4 else chance.choice((0, 4, 40))
    shape = chance.random()
    if shape < oddity / 10:
        return chance.choice(
            ("null", "7", '"x"', "{", "[]", "{}", '{"yes"}', '{"yes": 1,}', "[1,]", '{"yes":}')
        )
    space = chance.choice(("", "", " ", "\n ")) if chance.random() < 0.3 else ""
    values = [number(chance, oddity) for _ in range(count)]
    if shape < 0.4:
        return f"[{space}{f',{space}'.join(values)}{space}]"
    few = CLASSES[:4] if chance.random() >= oddity / 4 else CLASSES
    names = list(few[:count]) if chance.random() < 0.7 else chance.choices(few, k=count)
    pairs = [f'"{name}"{space}:{space}{value}' for name, value in zip(names, values, strict=False)]
    return f"{{{space}{f',{space}'.join(pairs)}{space}}}"


def elements(chance: random.Random, oddity: float) -> str:
    """Some models' predictions as they are written."""
    count = chance.choice((1, 2, 3)) if chance.random() >= oddity / 4 else chance.choice((0, 5))
    found: list[str] = []
    for k in range(count):
        pairs = {
            "model": json.dumps(f"m{k}"),
            "class": chance.choice(('"yes"', '"no"', "1")),
            "at": chance.choice(MOMENTS[:3]),
        }
        if chance.random() < 0.3:
            pairs["scores"] = scores(chance, oddity)
        if chance.random() < oddity / 2:
            pairs[chance.choice(("model", "class", "at", "x"))] = chance.choice(NUMBERS)
        if chance.random() < oddity / 4:
            del pairs[chance.choice(("model", "class", "at"))]
        found.append("{" + ",".join(f'"{name}":{text}' for name, text in pairs.items()) + "}")
    return f"[{','.join(found)}]"


def scored(chance: random.Random, n: int, oddity: float) -> FakeRecord:
    """A record with scores, times as text and an array, ordinary or not."""
    contents = {
        "id": f'"id-{n}"',
        "model": chance.choice(('"m"', '"n"', "7")),
        "prediction": chance.choice(('"yes"', '"no"', "1", "true")),
        "score": number(chance, oddity),
        "kind": chance.choice(('"prediction"', '"label"')),
        "label": chance.choice(('"yes"', '"no"', "0")),
        "at": chance.choice(MOMENTS[:3] if chance.random() >= oddity / 4 else MOMENTS),
        "scores": scores(chance, oddity),
        "list": "[" + ",".join(number(chance, oddity) for _ in range(3)) + "]",
        "logits": scores(chance, oddity),
        "each": elements(chance, oddity),
    }
    for name in ("scores", "logits", "score", "at", "each", "list"):
        if chance.random() < 0.2:
            del contents[name]
    value = bytearray(written(chance, contents, oddity / 2))
    if chance.random() < oddity / 8:
        damage(chance, value)
    return FakeRecord(bytes(value), b"key-%d" % n)
