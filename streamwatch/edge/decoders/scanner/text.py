"""Compiled reading of JSON tokens, and digests. Positions index a uint8 array that ends with zeros."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from streamwatch.core.jit import (
    digit_stops,
    high_product,
    hot,
    inner,
    swapped,
    text_stops,
    trailing_zeros,
    word_at,
)

QUOTE, COMMA, COLON, PLUS, MINUS, POINT, ZERO, SPACE = 34, 44, 58, 43, 45, 46, 48, 32
LETTER_T, LETTER_Z = 84, 90
OBJECT_OPENS, OBJECT_CLOSES, ARRAY_OPENS, ARRAY_CLOSES = 123, 125, 91, 93
ABSENT, NULL, TEXT, NUMBER, LITERAL, RAW, SCORES, WIDE, ODD = range(9)
"""Kinds of content: RAW is a key or header, without quotes; SCORES an object or array; text is TEXT if it is
printable ASCII, WIDE with other characters, and ODD with escapes or control characters."""
UNUSUAL = -1
MAX_DIGITS = 19
"""Digits of a number's integral part at most, one less if negative, so that it fits 64 bits."""

_TRUE = np.uint64(int.from_bytes(b"true", "little"))
_NULL = np.uint64(int.from_bytes(b"null", "little"))
_FALSE = np.uint64(int.from_bytes(b"false", "little"))
_FOUR = np.uint64(0xFFFFFFFF)
_FIVE = np.uint64(0xFFFFFFFFFF)


@hot
def after_space(data: Any, at: int) -> int:
    """Return the first position from `at` on that is no white space."""
    byte = data[at]
    while byte == 32 or byte == 10 or byte == 13 or byte == 9:  # noqa: PLR1714 - compiled
        at += 1
        byte = data[at]
    return at


_DELETE: Final = 0x7F
_BACKSLASH, _UNICODE = 92, 117
_BEYOND = np.uint64(1 << 32)
"""Bit after the 32 bytes that are searched, at which the search ends."""
_ESCAPES = np.uint64(sum(1 << (ord(sign) - 64) for sign in "\\bfnrt"))
"""Bit set of the characters from 64 on that may follow a backslash; `"` and `/` may, too."""


@hot
def plain_text(data: Any, at: int) -> int:
    """Return the position of a text's closing quote from `at` on; UNUSUAL if not printable ASCII."""
    stops = text_stops(data, at)
    while stops == 0:
        at += 32
        stops = text_stops(data, at)
    at += trailing_zeros(stops)
    return at if data[at] == QUOTE else UNUSUAL


@hot
def text_after(data: Any, at: int) -> tuple[int, int]:
    """Return the position of a text's closing quote from `at` on, or UNUSUAL, and its kind."""
    stops = text_stops(data, at)
    while stops == 0:
        at += 32
        stops = text_stops(data, at)
    at += trailing_zeros(stops)
    return (at, TEXT) if data[at] == QUOTE else _other_text(data, at)


@inner
def _other_text(data: Any, at: int) -> tuple[int, int]:
    """Continue `text_after` from a byte that is not printable ASCII."""
    kind = WIDE
    while True:
        byte = data[at]
        if byte == QUOTE:
            return at, kind
        if byte < SPACE:
            return UNUSUAL, kind
        if byte > _DELETE:
            if byte == 0xC2 and data[at + 1] < 0xA0:  # a control character from U+0080 to U+009F
                kind = ODD
            at = sequence_after(data, at)
        elif byte == _BACKSLASH:
            kind = ODD
            at = _escape_after(data, at + 1)
        else:
            if byte == _DELETE:
                kind = ODD
            at += 1
            at += trailing_zeros(text_stops(data, at) | _BEYOND)
        if at < 0:
            return UNUSUAL, kind


@hot
def _escape_after(data: Any, at: int) -> int:
    """Return the position after an escape; `at` follows the backslash. UNUSUAL if invalid or a surrogate."""
    byte = data[at]
    if byte == QUOTE or byte == 47:  # noqa: PLR1714 - compiled
        return at + 1
    if byte == _UNICODE:
        for i in range(at + 1, at + 5):
            sign = data[i] | 32
            if not (ZERO <= data[i] <= 57 or 97 <= sign <= 102):
                return UNUSUAL
        is_half = (data[at + 1] | 32) == 100 and data[at + 2] > 55  # from d800 to dfff
        return UNUSUAL if is_half else at + 5
    is_escape = 64 < byte < 128 and (_ESCAPES >> np.uint64(byte - 64)) & np.uint64(1) != np.uint64(0)
    return at + 1 if is_escape else UNUSUAL


@hot
def sequence_after(data: Any, at: int) -> int:
    """Return the position after a character of two to four bytes in UTF-8; UNUSUAL if it is invalid.

    Valid are those of Unicode's table 3-7, without surrogates and overlong forms. Up to three bytes after
    `at` are read.
    """
    lead = data[at]
    if lead < 0xC2 or lead > 0xF4:
        return UNUSUAL
    following = 1 + (lead >= 0xE0) + (lead >= 0xF0)
    low, high = 0x80, 0xBF
    if lead == 0xE0:
        low = 0xA0
    elif lead == 0xED:
        high = 0x9F
    elif lead == 0xF0:
        low = 0x90
    elif lead == 0xF4:
        high = 0x8F
    if data[at + 1] < low or data[at + 1] > high:
        return UNUSUAL
    for i in range(at + 2, at + following + 1):
        if data[i] & 0xC0 != 0x80:
            return UNUSUAL
    return at + following + 1


@hot
def digits(data: Any, at: int) -> int:
    """Count digits from `at` on; 32 or more count as 64."""
    return trailing_zeros(digit_stops(data, at))


@hot
def number_after(data: Any, at: int) -> int:
    """Return the position after a number; UNUSUAL if it is invalid, or has too many digits."""
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
    """Return the position after a text, number, true, false or null, or UNUSUAL, and its kind."""
    byte = data[at]
    if byte == QUOTE:
        at, kind = text_after(data, at + 1)
        return (UNUSUAL if at < 0 else at + 1), kind
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
    """Return up to 8 bytes as a little-endian number; those beyond `size` count as zero."""
    word = word_at(data, at)
    if size >= 8:
        return word
    return word & ((_ONE << np.uint64(8 * size)) - _ONE)


@hot
def same(data: Any, at: int, other: Any, other_at: int, size: int) -> bool:
    """Tell whether `size` bytes of two arrays are equal."""
    while size >= 8:
        if word_at(data, at) != word_at(other, other_at):
            return False
        at += 8
        other_at += 8
        size -= 8
    return size <= 0 or first_word(data, at, size) == first_word(other, other_at, size)


# Text of a number → the nearest double, by Lemire's algorithm (arXiv 2101.11408).
#
# A number is w·10^q with w below 2^64. The upper bits of w times the first 128 bits of 10^q decide the
# double: that these suffice for every w and q is proved in Mushtak and Lemire (arXiv 2212.06644).


MAX_SIGNIFICANT: Final = 19
"""Digits of w at most, without leading zeros, so that it fits 64 bits without a sign."""
_LEAST_POWER: Final = -160
_LARGEST_POWER: Final = 140
"""Bounds of q; within them every w gives a normal double."""


def first_128_bits(power: int) -> int:
    """Return the first 128 bits of 10^power (those of 5^power), rounded up for a negative power."""
    if power >= 0:
        bits: int = 5**power
        size = bits.bit_length()
        return bits << (128 - size) if size <= 128 else bits >> (size - 128)
    divisor: int = 5**-power
    size = divisor.bit_length()
    if power >= -27:
        return (1 << (size + 127)) // divisor + 1
    quotient: int = (1 << (2 * size + 128)) // divisor + 1
    return quotient >> (quotient.bit_length() - 128)


_POWERS: Final = [first_128_bits(power) for power in range(_LEAST_POWER, _LARGEST_POWER + 1)]
_U = np.uint64
_HIGH: Final = np.array([bits >> 64 for bits in _POWERS], np.uint64)
_LOW: Final = np.array([bits & (2**64 - 1) for bits in _POWERS], np.uint64)
_TENFOLD: Final = np.array([10**count for count in range(8)], np.uint64)
_ZEROS = _U(0x3030303030303030)
_PAIRS, _FOURS = _U(0x000000FF000000FF), _U(0x000F424000000064)
_TENS = _U(0x0000271000000001)
_SHIFT_8, _SHIFT_16, _SHIFT_32 = _U(8), _U(16), _U(32)
_ONE, _TWO, _THREE = _U(1), _U(2), _U(3)
_LAST = _U(63)
_UNSURE = _U(0x1FF)
"""Bits below the mantissa, its rounding bit and one more; if all are set, more bits of 10^q are needed."""
_HIDDEN = _U(1 << 52)


@hot
def _eight(word: Any) -> Any:
    """Return the number of eight digits, given as a word whose bytes are 0 to 9."""
    word = word * _U(10) + (word >> _SHIFT_8)
    return ((word & _PAIRS) * _FOURS + ((word >> _SHIFT_16) & _PAIRS) * _TENS) >> _SHIFT_32


@hot
def _appended(number: Any, data: Any, at: int, count: int) -> Any:
    """Append `count` further digits to a number, modulo 2^64."""
    while count >= 8:
        number = number * _U(100_000_000) + _eight(word_at(data, at) - _ZEROS)
        at += 8
        count -= 8
    if count > 0:
        word = (word_at(data, at) - _ZEROS) << _U(64 - 8 * count)
        number = number * _TENFOLD[count] + _eight(word)
    return number


@hot
def _nearest(w: Any, power: int) -> Any:
    """Return the bits of the double nearest to w·10^power, ties to even; w must not be 0."""
    zeros = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> _U(64 - step) == _U(0):
            w <<= _U(step)
            zeros += step
    i = power - _LEAST_POWER
    low = w * _HIGH[i]
    high = high_product(w, _HIGH[i])
    if high & _UNSURE == _UNSURE:
        further = high_product(w, _LOW[i])
        low += further
        if low < further:
            high += _ONE
    upper = high >> _LAST
    shift = upper + _U(9)
    mantissa = high >> shift
    exponent = (217_706 * power >> 16) + 63 + np.int64(upper) - zeros + 1_023
    if low <= _ONE and -4 <= power <= 23 and mantissa & _THREE == _ONE and mantissa << shift == high:
        mantissa -= _ONE  # exactly between two doubles: take the even one
    mantissa = (mantissa + (mantissa & _ONE)) >> _ONE
    if mantissa >> _U(53) != _U(0):
        mantissa = _HIDDEN
        exponent += 1
    return (mantissa & (_HIDDEN - _ONE)) | (_U(exponent) << _U(52))


@inner
def number_at(  # noqa: C901, PLR0912 - compiled: a branch for each part
    data: Any, at: int
) -> tuple[int, float]:
    """Return the position after a number, or UNUSUAL, and the nearest double, equal to Python's `float`.

    UNUSUAL if it is invalid, a negative zero, or has too many digits.
    """
    negative = data[at] == MINUS
    if negative:
        at += 1
    whole, w = 1, _U(0)
    if data[at] != ZERO:
        whole = digits(data, at)
        if whole == 0 or whole > MAX_SIGNIFICANT - 1:
            return UNUSUAL, 0.0
        w = _appended(w, data, at, whole)
    at += whole
    power = 0
    if data[at] == POINT:
        at += 1
        decimals = digits(data, at)
        if decimals == 0 or decimals > 31:
            return UNUSUAL, 0.0
        if whole + decimals > MAX_SIGNIFICANT:
            zeros = 0
            if w == _U(0):
                zeros = 1
                while zeros <= decimals and data[at + zeros - 1] == ZERO:
                    zeros += 1
            if whole + decimals - zeros > MAX_SIGNIFICANT:
                return UNUSUAL, 0.0
        w = _appended(w, data, at, decimals)
        at += decimals
        power = -decimals
    byte = data[at]
    if byte == 101 or byte == 69:  # noqa: PLR1714 - compiled; e or E
        at += 1
        byte = data[at]
        if byte == PLUS or byte == MINUS:  # noqa: PLR1714, SIM109 - compiled
            at += 1
        count = digits(data, at)
        if count == 0 or count > 2:
            return UNUSUAL, 0.0
        exponent: Any = np.int64(_appended(_U(0), data, at, count))
        power += -exponent if byte == MINUS else exponent
        at += count
    if w == _U(0):
        return (UNUSUAL if negative else at), 0.0
    found = np.uint64(_nearest(w, power)).view(np.float64)
    return at, -found if negative else found


# XXH3-128 with seed 0 of up to 128 bytes, by the specification of xxHash (doc/xxhash_spec.md, "XXH3").


MAX_BYTES: Final = 128

_SECRET_BYTES = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07d"
    "ccff7221b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e"
    "3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac83"
    "34d3ebc3"
)


def _secret(at: int) -> int:
    return int.from_bytes(_SECRET_BYTES[at : at + 8], "little")


_SECRET = np.array([_secret(at) for at in range(len(_SECRET_BYTES) - 7)], np.uint64)
_MIX_9_LOW, _MIX_9_HIGH = _U(_secret(32) ^ _secret(40)), _U(_secret(48) ^ _secret(56))
_MIX_4 = _U(_secret(16) ^ _secret(24))
_MIX_1_LOW = _U((_secret(0) ^ _secret(4)) & 0xFFFFFFFF)
_MIX_1_HIGH = _U((_secret(8) ^ _secret(12)) & 0xFFFFFFFF)
_PRIME32_2 = _U(0x85EBCA77)
_PRIME64_1, _PRIME64_2, _PRIME64_3 = _U(0x9E3779B185EBCA87), _U(0xC2B2AE3D27D4EB4F), _U(0x165667B19E3779F9)
_PRIME64_4 = _U(0x85EBCA77C2B2AE63)
_PRIME_MX1, _PRIME_MX2 = _U(0x165667919E3779F9), _U(0x9FB21C651E98DF25)
_LOW_WORD = _U(0xFFFFFFFF)


@hot
def _spread(bits: Any) -> Any:
    bits ^= bits >> _U(37)
    bits *= _PRIME_MX1
    return bits ^ (bits >> _U(32))


@hot
def _spread_short(bits: Any) -> Any:
    bits ^= bits >> _U(33)
    bits *= _PRIME64_2
    bits ^= bits >> _U(29)
    bits *= _PRIME64_3
    return bits ^ (bits >> _U(32))


@hot
def _mixed(data: Any, at: int, secret: int) -> Any:
    left = word_at(data, at) ^ _SECRET[secret]
    right = word_at(data, at + 8) ^ _SECRET[secret + 8]
    return (left * right) ^ high_product(left, right)


@hot
def digest(data: Any, at: int, size: int) -> tuple[Any, Any]:
    """Return the low and high half of the digest of 1 to `MAX_BYTES` bytes."""
    length = _U(size)
    if size > 16:
        low = length * _PRIME64_1
        high = _U(0)
        i = (size - 1) // 32
        while i >= 0:
            front = at + 16 * i
            back = at + size - 16 * (i + 1)
            low += _mixed(data, front, 32 * i)
            low ^= word_at(data, back) + word_at(data, back + 8)
            high += _mixed(data, back, 32 * i + 16)
            high ^= word_at(data, front) + word_at(data, front + 8)
            i -= 1
        mixed = low * _PRIME64_1 + high * _PRIME64_4 + length * _PRIME64_2
        return _spread(low + high), _U(0) - _spread(mixed)
    if size > 8:
        first = word_at(data, at)
        last = word_at(data, at + size - 8)
        word = first ^ last ^ _MIX_9_LOW
        low = word * _PRIME64_1 + (_U(size - 1) << _U(54))
        last ^= _MIX_9_HIGH
        high = high_product(word, _PRIME64_1) + last + (last & _LOW_WORD) * (_PRIME32_2 - _U(1))
        low ^= swapped(high)
        return _spread(low * _PRIME64_2), _spread(high_product(low, _PRIME64_2) + high * _PRIME64_2)
    if size > 3:
        first = word_at(data, at) & _LOW_WORD
        last = word_at(data, at + size - 4) & _LOW_WORD
        word = (first + (last << _U(32))) ^ _MIX_4
        factor = _PRIME64_1 + (length << _U(2))
        low = word * factor
        high = high_product(word, factor) + (low << _U(1))
        low ^= high >> _U(3)
        low ^= low >> _U(35)
        low *= _PRIME_MX2
        return low ^ (low >> _U(28)), _spread(high)
    first = _U(data[at])
    middle = _U(data[at + (size >> 1)])
    last = _U(data[at + size - 1])
    word = (first << _U(16)) | (middle << _U(24)) | last | (length << _U(8))
    turned = swapped(word) >> _U(32)
    turned = ((turned << _U(13)) | (turned >> _U(19))) & _LOW_WORD
    return _spread_short(word ^ _MIX_1_LOW), _spread_short(turned ^ _MIX_1_HIGH)
