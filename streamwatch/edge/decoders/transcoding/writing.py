"""Compiled readers of varints and UTF-8, and writers of scalars as JSON text.

Writers return the position after what they wrote to `out` from `end` on.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from streamwatch.core.jit import high_product, hot, inner, text_stops, trailing_zeros, word_at
from streamwatch.edge.decoders.scanner.text import (
    MINUS,
    POINT,
    QUOTE,
    UNUSUAL,
    ZERO,
    first_128_bits,
    sequence_after,
)

_U = np.uint64
_ZERO, _ONE, _TEN = _U(0), _U(1), _U(10)
_SEVEN_BITS = _U(127)
_HIGH_BITS = _U(0x8080808080808080)
_MOST_SHIFT: Final = 63
_LETTER_E: Final = 101


@hot
def varint(data: Any, at: int, stop: int) -> tuple[Any, int]:
    """Read a varint of up to 64 bits; return it, and the position after it or UNUSUAL."""
    value = _ZERO
    shift = 0
    while at < stop:
        byte = _U(data[at])
        at += 1
        value |= (byte & _SEVEN_BITS) << _U(shift)
        if byte <= _SEVEN_BITS:
            return value, (UNUSUAL if shift == _MOST_SHIFT and byte > _ONE else at)
        shift += 7
        if shift > _MOST_SHIFT:
            break
    return value, UNUSUAL


@hot
def zigzag(value: Any) -> Any:
    """Decode a zigzag number, whose sign is in the lowest bit."""
    return np.int64(value >> _ONE) ^ -np.int64(value & _ONE)


@hot
def signed(value: Any) -> Any:
    """Reinterpret 64 bits as a signed number."""
    return np.int64(value)


@inner
def is_utf8(data: Any, at: int, stop: int) -> bool:
    """Tell whether bytes are UTF-8."""
    while at < stop:
        if at + 8 <= stop and word_at(data, at) & _HIGH_BITS == _ZERO:
            at += 8
        elif data[at] < 128:
            at += 1
        else:
            at = sequence_after(data, at)
            if at < 0:
                return False
    return at == stop


@hot
def write_text(data: Any, at: int, stop: int, out: Any, end: int) -> int:
    """Write text in quotes; UNUSUAL where it would need escapes or is no UTF-8."""
    position = at
    while position < stop:
        stops = text_stops(data, position)
        if not stops:
            position += 32
            continue
        position += trailing_zeros(stops)
        if position < stop:
            # It is UNUSUAL for a quote, a backslash and a control character.
            position = sequence_after(data, position)
            if position < 0 or position > stop:
                return UNUSUAL
    out[end] = QUOTE
    end += 1
    for i in range(at, stop):
        out[end + i - at] = data[i]
    end += stop - at
    out[end] = QUOTE
    return end + 1


@hot
def write_constant(texts: Any, at: int, size: int, out: Any, end: int) -> int:
    """Copy a text."""
    for i in range(size):
        out[end + i] = texts[at + i]
    return end + size


@hot
def write_bool(value: bool, out: Any, end: int) -> int:  # noqa: FBT001 - compiled: by position
    """Write true or false."""
    if value:
        out[end], out[end + 1], out[end + 2], out[end + 3] = 116, 114, 117, 101
        return end + 4
    out[end], out[end + 1], out[end + 2], out[end + 3], out[end + 4] = 102, 97, 108, 115, 101
    return end + 5


@inner
def write_digits(number: Any, out: Any, end: int) -> int:
    """Write an unsigned number of 64 bits."""
    size, rest = 1, number // _TEN
    while rest != _ZERO:
        size += 1
        rest //= _TEN
    for i in range(end + size - 1, end - 1, -1):
        rest = number // _TEN
        out[i] = np.uint8(number - rest * _TEN) + np.uint8(ZERO)
        number = rest
    return end + size


@hot
def write_whole(number: int, out: Any, end: int) -> int:
    """Write a signed number of 64 bits."""
    if number < 0:
        out[end] = MINUS
        return write_digits(_ZERO - _U(number), out, end + 1)
    return write_digits(_U(number), out, end)


# A double is written as w·10^q with w of 18 or 19 digits, which reads back as the same double.
#
# Half the distance between two doubles is at least 2.7 units of the last of 18 digits. Here w is the upper
# half of the product of the mantissa's 64 bits and the first 64 bits of a power of ten, both truncated: the
# error is less than two units.


_LEAST_POWER: Final = -120
_LARGEST_POWER: Final = 120
_POWERS: Final = np.array(
    [first_128_bits(power) >> 64 for power in range(_LEAST_POWER, _LARGEST_POWER + 1)], np.uint64
)
_MANTISSA = _U((1 << 52) - 1)
_HIDDEN = _U(1 << 52)
_EXPONENT_BITS = _U(0x7FF)
_DIGITS_18 = _U(10**18)
_MOST_DIGITS: Final = 18


@inner
def write_double(value: float, out: Any, end: int) -> int:
    """Write a double so that it reads back as the same double.

    UNUSUAL where it is not finite, or, unless it is 0, its magnitude is below 2^-320 (5e-97) or not below
    2^321 (4e96).
    """
    bits = _U(np.float64(value).view(np.uint64))
    if bits >> _U(63) != _ZERO:
        out[end] = MINUS
        end += 1
    exponent = np.int64((bits >> _U(52)) & _EXPONENT_BITS) - 1_023  # of two: 2^exponent ≤ value
    if bits << _ONE == _ZERO:
        out[end], out[end + 1], out[end + 2] = ZERO, POINT, ZERO
        return end + 3
    if not -320 <= exponent <= 320:
        return UNUSUAL
    tens = exponent * 78_913 >> 18  # floor(log10(2^exponent)), with log10(2) ≈ 78913 / 2^18
    power = _MOST_DIGITS - 1 - tens
    mantissa = ((bits & _MANTISSA) | _HIDDEN) << _U(11)
    product = high_product(mantissa, _POWERS[power - _LEAST_POWER])
    # value = mantissa·2^(exponent - 63), power of ten = its 64 bits · 2^(floor(log2) - 63)
    shift = 62 - exponent - (217_706 * power >> 16)
    w = product >> _U(shift)
    if w >= _DIGITS_18:
        tens += 1
    stop = write_digits(w, out, end + 1)
    out[end] = out[end + 1]
    out[end + 1] = POINT
    out[stop] = _LETTER_E
    if tens < 0:
        out[stop + 1] = MINUS
        return write_digits(_U(-tens), out, stop + 2)
    return write_digits(_U(tens), out, stop + 1)
