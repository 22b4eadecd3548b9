"""From the text of a field to what a row holds: ids, times, headers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from streamwatch.core.jit import hot, text_stops, trailing_zeros
from streamwatch.edge.decoders.scanner.text import (
    ABSENT,
    MINUS,
    NUMBER,
    POINT,
    RAW,
    TEXT,
    UNUSUAL,
    ZERO,
    digits,
    same,
)

MAX_TIMESTAMP_MS: Final = 253_402_300_799_999
"""The end of the year 9999, as in `edge.decoders.fields`."""
MAX_ID_BYTES: Final = 128
MILLISECONDS, SECONDS, MICROSECONDS, NANOSECONDS = range(4)
"""Units of timestamps."""
MAX_TIME_DIGITS: Final = 19
"""Digits of a timestamp: what they write fits an unsigned word."""
_MAX_SPLIT_MS: Final = 4_000_000_000_000
"""Up to here (the year 2096) seconds with decimals are binary fractions to well below a microsecond."""
_TEN = np.uint64(10)
_LATEST = np.uint64(MAX_TIMESTAMP_MS)
_DIGIT_0 = np.uint64(ZERO)


@hot
def id_span(data: Any, kind: int, start: int, stop: int) -> tuple[int, int]:
    """Start and end of an id's text; UNUSUAL where the id is none, or not written as it is known."""
    if kind == TEXT:
        start += 1
        stop -= 1
    elif kind == RAW:
        at = start
        while at < stop:
            stops = text_stops(data, at)
            if stops:
                at += trailing_zeros(stops)
                break
            at += 32
        if at < stop:
            return UNUSUAL, UNUSUAL
    elif kind == NUMBER:
        first = start + 1 if data[start] == MINUS else start
        if first + digits(data, first) != stop or (first > start and data[first] == ZERO):
            return UNUSUAL, UNUSUAL
    else:
        return UNUSUAL, UNUSUAL
    if not 0 < stop - start <= MAX_ID_BYTES:
        return UNUSUAL, UNUSUAL
    return start, stop


@hot
def _written(data: Any, start: int, stop: int) -> Any:
    """The number that digits write."""
    number = np.uint64(0)
    for at in range(start, stop):
        number = number * _TEN + (np.uint64(data[at]) - _DIGIT_0)
    return number


@hot
def time_ms(  # noqa: C901, PLR0911, PLR0912 - compiled: one branch a form
    data: Any, kind: int, start: int, stop: int, unit: int
) -> int:
    """Milliseconds since the epoch; UNUSUAL where it is no plain number, or out of range.

    Seconds may have decimals: those of a millisecond are rounded, and left to others where they are close to
    a half, which binary fractions decide.
    """
    if kind == TEXT:
        start += 1
        stop -= 1
    elif kind != NUMBER and kind != RAW:  # noqa: PLR1714 - compiled
        return UNUSUAL
    count = digits(data, start)
    end = start + count
    if count == 0 or count > MAX_TIME_DIGITS or end > stop:
        return UNUSUAL
    number = _written(data, start, end)
    if unit == SECONDS:
        if count > 12:
            return UNUSUAL
        number *= np.uint64(1_000)
        if end < stop:
            decimals = digits(data, end + 1)
            if data[end] != POINT or not 0 < decimals <= 9 or end + 1 + decimals != stop:
                return UNUSUAL
            if number > np.uint64(_MAX_SPLIT_MS):
                return UNUSUAL
            fraction = _written(data, end + 1, stop)
            for _ in range(decimals, 9):
                fraction *= _TEN
            rest = np.int64(fraction % np.uint64(1_000_000))
            if 499_000 < rest < 501_000:
                return UNUSUAL
            number += fraction // np.uint64(1_000_000)
            if rest > 500_000:
                number += np.uint64(1)
    elif end != stop:
        return UNUSUAL
    elif unit == MICROSECONDS:
        number //= np.uint64(1_000)
    elif unit == NANOSECONDS:
        number //= np.uint64(1_000_000)
    return np.int64(number) if number <= _LATEST else UNUSUAL  # type: ignore[return-value]  (compiled: an int64)


@hot
def _varint(data: Any, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at


@hot
def read_headers(data: Any, at: int, count: int, plan: Any, trace: Any) -> bool:
    """Find the headers wanted, the last of each name; False if a name is not ASCII."""
    for _ in range(count):
        size, at = _varint(data, at)
        start = at
        at += size
        for place in range(start, at):
            if data[place] > 127:
                return False
        value, begin = _varint(data, at)
        for i in range(len(plan.header_leaf)):
            if plan.header_size[i] == size and same(data, start, plan.header_names, plan.header_at[i], size):
                leaf = plan.header_leaf[i]
                trace.kind[leaf] = RAW if value >= 0 else ABSENT
                trace.start[leaf] = begin
                trace.stop[leaf] = begin + max(value, 0)
        at = begin + max(value, 0)
    return True
