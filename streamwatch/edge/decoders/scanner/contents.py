"""From the text of a field to what a row holds: ids, times, headers."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from streamwatch.core.jit import hot, inner, text_stops, trailing_zeros
from streamwatch.edge.decoders.scanner.text import (
    ABSENT,
    COLON,
    COMMA,
    LETTER_T,
    LETTER_Z,
    MINUS,
    NUMBER,
    PLUS,
    POINT,
    RAW,
    SPACE,
    TEXT,
    UNUSUAL,
    ZERO,
    digits,
    same,
)

MAX_TIMESTAMP_MS: Final = 253_402_300_799_999
"""The end of the year 9999, as in `edge.decoders.fields`."""
MAX_ID_BYTES: Final = 128
MILLISECONDS, SECONDS, MICROSECONDS, NANOSECONDS, ISO_8601 = range(5)
"""Units of timestamps; the last is text with date and time."""
MAX_TIME_DIGITS: Final = 19
"""Digits of a timestamp: what they write fits an unsigned word."""
_MAX_SPLIT_MS: Final = 4_000_000_000_000
"""Up to here (the year 2096) seconds with decimals are binary fractions to well below a microsecond."""
_TEN = np.uint64(10)
_DAYS_BEFORE_1970: Final = 719_468
"""From the first of March of the year 0."""
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
def _two_digits(data: Any, at: int) -> int:
    """The number that two digits write; UNUSUAL where they are none."""
    tens: Any = np.int64(data[at]) - ZERO
    ones: Any = np.int64(data[at + 1]) - ZERO
    return tens * 10 + ones if 0 <= tens <= 9 and 0 <= ones <= 9 else UNUSUAL


@hot
def _days_of_month(year: int, month: int) -> int:
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    return 30 + (month + month // 8) % 2


@hot
def _days_since_1970(year: int, month: int, day: int) -> int:
    """Count days of the Gregorian calendar; a year begins in March, so that a leap day is its last."""
    if month <= 2:
        year -= 1
        month += 12
    leap_days = year // 4 - year // 100 + year // 400
    return 365 * year + leap_days + (153 * (month - 3) + 2) // 5 + day - 1 - _DAYS_BEFORE_1970


@inner
def iso_8601_ms(  # noqa: PLR0911 - compiled: a way out for each part
    data: Any, at: int, stop: int
) -> int:
    """Milliseconds since the epoch of `2026-11-26T10:40:28.125+01:00`, with fewer or more decimals or none.

    The date and time are joined by T or a space; the offset is Z, `+01:00`, `+0100`, `+01` or none, which is
    UTC. Fractions of a millisecond are cut off. UNUSUAL for every other form, and out of range.
    """
    if stop - at < 19:
        return UNUSUAL
    between = (np.int64(data[at + 4]) << 8) | np.int64(data[at + 7])
    if between != 0x2D2D or data[at + 13] != COLON or data[at + 16] != COLON:
        return UNUSUAL
    if data[at + 10] != LETTER_T and data[at + 10] != SPACE:
        return UNUSUAL
    century, year = _two_digits(data, at), _two_digits(data, at + 2)
    month, day = _two_digits(data, at + 5), _two_digits(data, at + 8)
    hour, minute, second = _two_digits(data, at + 11), _two_digits(data, at + 14), _two_digits(data, at + 17)
    if century < 0 or year < 0 or not 1 <= month <= 12 or not 0 <= hour <= 23:
        return UNUSUAL
    year += 100 * century
    if not (0 <= minute <= 59 and 0 <= second <= 59 and 1 <= day <= _days_of_month(year, month)):
        return UNUSUAL
    found: Any = ((_days_since_1970(year, month, day) * 24 + hour) * 60 + minute) * 60_000 + second * 1_000
    at += 19
    if at < stop and (data[at] == POINT or data[at] == COMMA):
        decimals = digits(data, at + 1)
        if not 0 < decimals <= 9 or at + 1 + decimals > stop:
            return UNUSUAL
        weight = 100
        for place in range(at + 1, at + 1 + min(decimals, 3)):
            found += weight * (np.int64(data[place]) - ZERO)
            weight //= 10
        at += 1 + decimals
    if at < stop:
        offset = _offset_minutes(data, at, stop)
        if offset == UNUSUAL:
            return UNUSUAL
        found -= offset * 60_000
    return found if 0 <= found <= MAX_TIMESTAMP_MS else UNUSUAL


@hot
def _offset_minutes(data: Any, at: int, stop: int) -> int:
    """Minutes of an offset from UTC; UNUSUAL where it is none, so that one of -1 minute is left to others."""
    if data[at] == LETTER_Z:
        return 0 if at + 1 == stop else UNUSUAL
    size = stop - at
    if (data[at] != PLUS and data[at] != MINUS) or not (size == 3 or size == 5 or size == 6):  # noqa: PLR1714
        return UNUSUAL
    if size == 6 and data[at + 3] != COLON:
        return UNUSUAL
    hours = _two_digits(data, at + 1)
    minutes = 0 if size == 3 else _two_digits(data, stop - 2)
    if not (0 <= hours <= 23 and 0 <= minutes <= 59):
        return UNUSUAL
    offset = hours * 60 + minutes
    return -offset if data[at] == MINUS else offset


@hot
def time_ms(  # noqa: C901, PLR0911, PLR0912 - compiled: one branch a form
    data: Any, kind: int, start: int, stop: int, unit: int
) -> int:
    """Milliseconds since the epoch; UNUSUAL where it is no plain number or text, or out of range.

    Seconds may have decimals: those of a millisecond are rounded, and left to others where they are close to
    a half, which binary fractions decide.
    """
    if kind == TEXT:
        start += 1
        stop -= 1
    elif kind != NUMBER and kind != RAW:  # noqa: PLR1714 - compiled
        return UNUSUAL
    if unit == ISO_8601:
        return iso_8601_ms(data, start, stop) if kind != NUMBER else UNUSUAL
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
