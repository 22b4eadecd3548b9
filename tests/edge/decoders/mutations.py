"""Records that are ordinary, nearly so, or not at all: fields as they are written, then changed."""

from __future__ import annotations

import random

from tests.edge.decoders.records import FakeRecord

NAMES = ("id", "model", "prediction", "label", "timestamp", "kind", "scores", "fold", "a", "b", "s", "other")
SCALARS = (
    '"a-1"', '"a-2"', '"m"', '"n"', '"yes"', '"no"', '"prediction"', '"label"', '"p"', '""', '" "', '"1"',
    "1", "0", "-0", "-1", "17", "1.0", "1.5", "-0.0", "1e2", "1E+2", "1e400", "1e308", "-1e307",
    "1e-400", "1e999", "12e05",
    "123456789012345678", "1234567890123456789", "9223372036854775807", "9223372036854775808",
    "18446744073709551615", "18446744073709551616", "-9223372036854775809", "9" * 25, "9" * 400, "01", "1.",
    ".5", "+1", "1e", "--1", "0x10", "NaN", "Infinity", "-Infinity", "nan", "true", "false", "null", "True",
    "tru", "nul", "falsey", "1700000000", "1700000000.5", "1700000000.0005", "1700000000.123456",
    "1700000000.1235", "1700000000.9995", "253402300799.9994", "253402300799.9996", "1700000000000",
    "253402300799999", "253402300800000", "1700000000123456", "1700000000123456789", '"1700000000000"',
    '"1700000000.25"', '"007"', '"1e3"', '"1_0"', '"2023-11-14T22:13:20Z"', '"\\u0061"', '"\\ud800"',
    '"\\ud83d\\ude00"', '"\\n"', '"\\""', '"\\q"', '"é"', '"\u2028"', '"\x7f"', '"\x1f"', '"\x00"',
    '"\u0085"', '"é\u200b"', '"😀 ja"', '"\\u00e9"', '"a\\/b"', '"\\t"', '"\\uDBFF"', '"\ud800"',
    '"\\u12"', '"é\\é"', '"x\x7f"', '"' + "é" * 64 + '"', '"\u0080é"', '"\xa0"',
    '"2023-02-29T00:00:00Z"', '"2023-11-14"', '"' + "x" * 128 + '"',
    '"' + "x" * 129 + '"', '"' + "é" * 65 + '"', "'a'", "{}", "[]", "[1]",
    '{"yes": 0.5, "no": 0.5}', '{"x": [{}]}',
    "[1,]", "{,}", '{"a":1,}', "[" * 70 + "]" * 70, '{"a":' * 70 + "1" + "}" * 70, "", "/**/1",
)  # fmt: skip
SPACES = ("", "", "", "", " ", "\n", "\t\r ", "\x0b", "\u00a0")
BYTES = b'"\\{}[],:0123456789.-+eE truefalsn\x00\x7f\x1f\xc3\xa9\xed\xa0\xff\n\t'


TIMES = {
    "ms": ("1700000000000", "1700000000123", "17"),
    "s": ("1700000000", "1700000000.5", "1700000000.123456", '"1700000000"'),
    "us": ("1700000000123456", "1700000000000000"),
    "ns": ("1700000000123456789", "1700000000000000000"),
    "iso8601": ('"2023-11-14T22:13:20Z"', '"2023-11-14T22:13:20.123456+01:00"', '"2023-11-14 22:13:20"'),
}


def shapes(chance: random.Random, n: int, unit: str) -> dict[str, str]:
    """The fields of an ordinary record, as they are written."""
    contents = {
        "id": f'"id-{n % 50}"' if n % 9 else f'"ïd-{n % 50}"',
        "model": chance.choice(('"m"', '"n"', '"m"', "7")),
        "prediction": chance.choice(('"yes"', '"no"', "1", "true", '"é"', '"\\u0061"')),
        "label": chance.choice(('"yes"', '"no"', "0", "false", "1.0")),
        "timestamp": chance.choice(TIMES[unit]),
        "kind": chance.choice(('"prediction"', '"label"')),
        "a": f'{{"id": "x-{n}", "b": {{"model": "m", "z": 1}}}}',
    }
    if chance.random() < 0.3:
        contents["other"] = chance.choice(
            (
                '{"f1": -1.25e-3, "f2": [0, null, {"q": "w"}]}',
                '{"\\u0069d": "é", "ü": ["a\\nb", "\x7f", {"\\"": "\\ud83d\\ude00"}]}',
                '"plain text"',
                '"Grüße, \\"Welt\\" 😀"',
                "0.125",
            )
        )
    return contents


def changed(chance: random.Random, pairs: list[tuple[str, str]], oddity: float) -> list[tuple[str, str]]:
    """Fields with others among them, some twice, in another order, or left out."""
    while chance.random() < oddity:
        match chance.randrange(6):
            case 0:
                pairs[chance.randrange(len(pairs))] = (chance.choice(NAMES), chance.choice(SCALARS))
            case 1:
                pairs.insert(chance.randrange(len(pairs)), (chance.choice(NAMES), chance.choice(SCALARS)))
            case 2:
                pairs.insert(chance.randrange(len(pairs)), chance.choice(pairs))
            case 3:
                chance.shuffle(pairs)
            case 4 if len(pairs) > 1:
                del pairs[chance.randrange(len(pairs))]
            case _:
                name, content = chance.choice(pairs)
                pairs.append(
                    (chance.choice((name.upper(), f"\\u{ord(name[0]):04x}{name[1:]}", "é")), content)
                )
    return pairs


def written(chance: random.Random, contents: dict[str, str], oddity: float) -> bytes:
    """An object with these fields; more or less as JSON would have it."""
    pairs = changed(chance, list(contents.items()), oddity)
    spaced = chance.random() < 0.2

    def space() -> str:
        return chance.choice(SPACES) if spaced and chance.random() < oddity else " " if spaced else ""

    fields = f"{space()},{space()}".join(f'"{name}"{space()}:{space()}{text}' for name, text in pairs)
    value = bytearray(f"{space()}{{{space()}{fields}{space()}}}{space()}".encode("utf-8", "surrogatepass"))
    if chance.random() < oddity / 4:
        damage(chance, value)
    before = (b"", b"\xef\xbb\xbf", b"\x00\x00\x00\x00\x01", b"[", b" ")
    return (chance.choice(before) if chance.random() < oddity / 10 else b"") + bytes(value)


def damage(chance: random.Random, value: bytearray) -> None:
    """Replace, insert or drop some bytes, or cut the rest off."""
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(value) + 1)
        match chance.randrange(4):
            case 0:
                value[at : at + 1] = bytes([chance.choice(BYTES)])
            case 1:
                value[at:at] = bytes([chance.choice(BYTES)])
            case 2:
                del value[at : at + chance.randrange(1, 4)]
            case _:
                del value[at:]


def mutated(chance: random.Random, n: int, oddity: float, unit: str = "ms") -> FakeRecord:
    """A record that is ordinary, or is not."""
    texts = (
        None,
        b"",
        b"k-1",
        b"k-2",
        b"yes",
        b"1",
        b"1.0",
        b"true",
        "é".encode(),
        b"\xff",
        b'a"b',
        b"\x00\x00\x00\x00\x01x",
        b"x" * 129,
    )
    value = None if chance.random() < oddity / 20 else written(chance, shapes(chance, n, unit), oddity)
    key = chance.choice(texts) if chance.random() < oddity else b"key-%d" % n
    headers = [
        ("kind", chance.choice((b"p", b"l"))),
        ("m", chance.choice((b"yes", b"no"))),
        ("at", b"2023-11-14T22:13:20.5Z" if unit == "iso8601" else b"1700000000000"),
    ]
    while chance.random() < oddity:
        headers.insert(
            chance.randrange(len(headers) + 1),
            (chance.choice(("kind", "m", "at", "x", "é", "")), chance.choice(texts)),
        )  # type: ignore[arg-type]
    return FakeRecord(value, key, tuple(headers))  # type: ignore[arg-type]
