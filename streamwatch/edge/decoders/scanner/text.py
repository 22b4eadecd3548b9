"""Tokens of JSON, as far as they are plain. Positions index a uint8 array with zeros behind its end."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamwatch.core.jit import digit_stops, hot, text_stops, trailing_zeros, word_at

QUOTE, COMMA, COLON, PLUS, MINUS, POINT, ZERO, SPACE = 34, 44, 58, 43, 45, 46, 48, 32
LETTER_T, LETTER_Z = 84, 90
OBJECT_OPENS, OBJECT_CLOSES, ARRAY_OPENS, ARRAY_CLOSES = 123, 125, 91, 93
ABSENT, NULL, TEXT, NUMBER, LITERAL, RAW = range(6)
"""Kinds of content; RAW is that of a key or header, which has no quotes."""
UNUSUAL = -1
MAX_DIGITS = 19
"""Of the integral part of a number, one less of a negative one: what has more may not fit 64 bits."""

_TRUE = np.uint64(int.from_bytes(b"true", "little"))
_NULL = np.uint64(int.from_bytes(b"null", "little"))
_FALSE = np.uint64(int.from_bytes(b"false", "little"))
_FOUR = np.uint64(0xFFFFFFFF)
_FIVE = np.uint64(0xFFFFFFFFFF)
_ONE = np.uint64(1)


@hot
def after_space(data: Any, at: int) -> int:
    """The first position from `at` on that is no white space."""
    byte = data[at]
    while byte == 32 or byte == 10 or byte == 13 or byte == 9:  # noqa: PLR1714 - compiled
        at += 1
        byte = data[at]
    return at


@hot
def plain_text(data: Any, at: int) -> int:
    """From the byte after an opening quote to the closing one; UNUSUAL where the text is not plain."""
    stops = text_stops(data, at)
    while stops == 0:
        at += 32
        stops = text_stops(data, at)
    at += trailing_zeros(stops)
    return at if data[at] == QUOTE else UNUSUAL


@hot
def digits(data: Any, at: int) -> int:
    """Count digits from `at` on; 32 or more count as 64."""
    return trailing_zeros(digit_stops(data, at))


@hot
def number_after(data: Any, at: int) -> int:
    """The position after a number; UNUSUAL if it is none, or has many digits or an exponent of many."""
    most = MAX_DIGITS
    if data[at] == MINUS:
        at += 1
        most -= 1
    count = digits(data, at)
    if count == 0 or count > most or (count > 1 and data[at] == ZERO):
        return UNUSUAL
    at += count
    if data[at] == POINT:
        at += 1
        count = digits(data, at)
        if count == 0 or count > 31:
            return UNUSUAL
        at += count
    byte = data[at]
    if byte == 101 or byte == 69:  # noqa: PLR1714 - compiled; e or E
        at += 1
        byte = data[at]
        if byte == PLUS or byte == MINUS:  # noqa: PLR1714, SIM109 - compiled
            at += 1
        count = digits(data, at)
        if count == 0 or count > 2:
            return UNUSUAL
        at += count
    return at


@hot
def scalar_after(data: Any, at: int) -> tuple[int, int]:
    """The position after text, a number, true, false or null at `at`, and its kind; UNUSUAL if it is none."""
    byte = data[at]
    if byte == QUOTE:
        at = plain_text(data, at + 1)
        return (UNUSUAL if at < 0 else at + 1), TEXT
    if byte == MINUS or ZERO <= byte <= 57:
        return number_after(data, at), NUMBER
    word = word_at(data, at)
    if word & _FOUR == _TRUE:
        return at + 4, LITERAL
    if word & _FOUR == _NULL:
        return at + 4, NULL
    if word & _FIVE == _FALSE:
        return at + 5, LITERAL
    return UNUSUAL, ABSENT


@hot
def first_word(data: Any, at: int, size: int) -> Any:
    """Up to 8 bytes as a number; those beyond `size` count as zero."""
    word = word_at(data, at)
    if size >= 8:
        return word
    return word & ((_ONE << np.uint64(8 * size)) - _ONE)


@hot
def same(data: Any, at: int, other: Any, place: int, size: int) -> bool:
    """Tell whether `size` bytes of two arrays are equal."""
    while size >= 8:
        if word_at(data, at) != word_at(other, place):
            return False
        at += 8
        place += 8
        size -= 8
    return size <= 0 or first_word(data, at, size) == first_word(other, place, size)
