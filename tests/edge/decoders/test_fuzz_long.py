"""Ten million mutated records: none raises, and what is accepted keeps the rules for names and times."""

from __future__ import annotations

import random

import pytest

from streamwatch.edge.decoders.formats import DecoderSpec
from streamwatch.edge.decoders.formats.json import JsonDecoder
from tests.edge.decoders.records import AT_MS, FakeRecord
from tests.edge.decoders.test_fuzz import MAPPINGS, check
from tests.tiers import by_tier

RECORDS = by_tier(fast=2_000, rotating=12_000, default=50_000, everything=10_000_000)
SEEDS = (
    b'{"id": "a-1", "model": "m", "prediction": "yes", "timestamp": 1700000000000, "scores": {"yes": 0.75}}',
    b'{"id": 17, "model": "m", "prediction": true, "label": 1.0, "fold": 3}',
    b'{"id": "a-1", "label": "no", "timestamp": null, "model": null}',
    b'{"a": {"b": "\\u00e9", "c": -1.5e3}, "model": {"prediction": {"label": "x"}}, "id": {"x": "y"}}',
)
PIECES = (
    b"",
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b",",
    b":",
    b"null",
    b"1e999",
    b"\xff",
    b"\xed\xa0\x80",
    b"\\ud800",
    b"\x00",
)


def mutated(chance: random.Random) -> bytes:
    """A seed with some bytes replaced, left out, doubled or cut off."""
    value = bytearray(chance.choice(SEEDS))
    for _ in range(chance.randrange(1, 6)):
        at = chance.randrange(len(value) + 1)
        match chance.randrange(4):
            case 0:
                value[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                value[at : at + chance.randrange(1, 9)] = chance.choice(PIECES)
            case 2:
                value[at:at] = value[at : at + chance.randrange(1, 20)]
            case _:
                del value[at + chance.randrange(40) :]
    return bytes(value)


@pytest.mark.parametrize("first", range(8))
def test_no_mutation_of_an_ordinary_record_raises(first: int) -> None:
    chance = random.Random(first)
    decoders = [JsonDecoder(DecoderSpec("predictions", *mapping)) for mapping in MAPPINGS]
    for _ in range(RECORDS // 8):
        value = mutated(chance)
        event = chance.choice(decoders).decode(FakeRecord(value, b"k"), AT_MS)
        try:
            check(event)
        except AssertionError as error:
            error.add_note(f"the record was {value!r}")
            raise
