"""Doubles and UTF-8 as compiled code writes and judges them, beside Python's."""

from __future__ import annotations

import math
import random
import struct
from typing import Any

import numpy as np
import pytest

from streamwatch.core.jit import entry
from streamwatch.core.records.fetched import PADDING
from streamwatch.edge.decoders.transcoding.writing import is_utf8, write_double, write_whole
from tests.tiers import by_tier

DOUBLES = by_tier(fast=20_000, rotating=50_000, default=200_000, everything=5_000_000)
TEXTS = by_tier(fast=5_000, rotating=12_000, default=50_000, everything=1_000_000)


@entry
def write_each(values: Any, out: Any, ends: Any) -> None:
    for i in range(len(values)):
        ends[i] = write_double(values[i], out[i], 0)


@entry
def write_each_whole(values: Any, out: Any, ends: Any) -> None:
    for i in range(len(values)):
        ends[i] = write_whole(values[i], out[i], 0)


@entry
def judge_each(data: Any, starts: Any, stops: Any, good: Any) -> None:
    for i in range(len(starts)):
        good[i] = is_utf8(data, starts[i], stops[i])


def written(values: list[float]) -> list[bytes | None]:
    """What is written of each; None where that is left to others."""
    out, ends = np.zeros((len(values), 32), np.uint8), np.zeros(len(values), np.int64)
    write_each(np.array(values, np.float64), out, ends)
    return [
        bytes(row[:end].tobytes()) if end >= 0 else None for row, end in zip(out, ends.tolist(), strict=True)
    ]


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


def awkward() -> list[float]:
    """Powers of two and of ten with their neighbours, where halves and digits change."""
    found: list[float] = []
    for exponent in range(-330, 331):
        found += [math.ldexp(1.0, exponent), math.ldexp(2.0 - 2**-52, exponent)]
    for exponent in range(-99, 100):
        found.append(float(f"1e{exponent}"))
    near = [math.nextafter(value, toward) for value in found for toward in (0.0, math.inf)]
    return [sign * value for value in (*found, *near) for sign in (1.0, -1.0)]


def test_doubles_read_back_bit_for_bit() -> None:
    chance = random.Random(1)
    values = awkward()
    for _ in range(DOUBLES):
        match chance.randrange(4):
            case 0:
                values.append(struct.unpack("<d", chance.randbytes(8))[0])
            case 1:
                values.append(round(chance.random(), chance.randrange(18)))
            case 2:
                values.append(float(chance.getrandbits(chance.randrange(1, 64))))
            case _:
                values.append(chance.uniform(-1, 1) * 10.0 ** chance.randrange(-90, 90))
    left = 0
    for value, text in zip(values, written(values), strict=True):
        if text is None:
            left += 1
            assert not 1e-95 < abs(value) < 1e95, value
            continue
        assert bits(float(text)) == bits(value), (value, text)
        digits = text.lstrip(b"-").partition(b"e")[0]
        assert digits == b"0.0" or len(digits) in {19, 20}, text
    assert left < len(values) // 3


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 5e-324, 1.7e308])
def test_doubles_far_from_one_and_none_are_left(value: float) -> None:
    assert written([value]) == [None]


def test_zeros_keep_their_signs() -> None:
    assert written([0.0, -0.0]) == [b"0.0", b"-0.0"]


def test_whole_numbers_of_64_bits() -> None:
    chance = random.Random(2)
    values = [0, -1, 9, 10, -10, 2**63 - 1, -(2**63), 10**18, 10**18 - 1]
    values += [chance.getrandbits(chance.randrange(1, 64)) * chance.choice((1, -1)) for _ in range(5_000)]
    out, ends = np.zeros((len(values), 32), np.uint8), np.zeros(len(values), np.int64)
    write_each_whole(np.array(values, np.int64), out, ends)
    assert [row[:end].tobytes() for row, end in zip(out, ends, strict=True)] == [
        str(value).encode() for value in values
    ]


def test_text_is_judged_as_python_judges_it() -> None:
    chance = random.Random(3)
    leads = bytes((0xC1, 0xC2, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0x80, 0x9F, 0xA0, 0x8F, 0x90, 0xBF, 0x41))
    texts = [bytes((a, b)) for a in range(256) for b in range(256)]
    texts += [bytes((a, b, 0x80, 0x80)) for a in leads for b in leads]
    for _ in range(TEXTS):
        whole = "".join(
            chr(chance.choice((0x41, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF)))
            for _ in range(chance.randrange(9))
        ).encode()
        damaged = bytearray(whole)
        if damaged and chance.random() < 0.7:
            damaged[chance.randrange(len(damaged))] = chance.choice((*leads, chance.randrange(256)))
        texts.append(bytes(damaged))
    data = np.frombuffer(b"".join(texts) + bytes(PADDING), np.uint8)
    stops = np.cumsum([len(text) for text in texts])
    starts, good = stops - [len(text) for text in texts], np.zeros(len(texts), np.bool_)
    judge_each(data, starts, stops, good)

    def is_text(content: bytes) -> bool:
        try:
            content.decode()
        except UnicodeDecodeError:
            return False
        return True

    for text, found in zip(texts, good.tolist(), strict=True):
        assert found == is_text(text), text
