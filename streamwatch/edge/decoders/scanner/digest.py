"""XXH3-128 with seed 0 of up to 128 bytes, after the specification of xxHash (doc/xxhash_spec.md, "XXH3")."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from streamwatch.core.jit import high_product, hot, swapped, word_at

MAX_BYTES: Final = 128

_SECRET_BYTES = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07d"
    "ccff7221b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e"
    "3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac83"
    "34d3ebc3"
)


def _secret(at: int) -> int:
    return int.from_bytes(_SECRET_BYTES[at : at + 8], "little")


_U = np.uint64
_SECRET = np.array([_secret(at) for at in range(len(_SECRET_BYTES) - 7)], np.uint64)
_MIX_9_LOW, _MIX_9_HIGH = _U(_secret(32) ^ _secret(40)), _U(_secret(48) ^ _secret(56))
_MIX_4 = _U(_secret(16) ^ _secret(24))
_MIX_1_LOW = _U((_secret(0) ^ _secret(4)) & 0xFFFFFFFF)
_MIX_1_HIGH = _U((_secret(8) ^ _secret(12)) & 0xFFFFFFFF)
_PRIME32_2 = _U(0x85EBCA77)
_PRIME64_1, _PRIME64_2, _PRIME64_3 = _U(0x9E3779B185EBCA87), _U(0xC2B2AE3D27D4EB4F), _U(0x165667B19E3779F9)
_PRIME64_4 = _U(0x85EBCA77C2B2AE63)
_PRIME_MX1, _PRIME_MX2 = _U(0x165667919E3779F9), _U(0x9FB21C651E98DF25)
_LOW = _U(0xFFFFFFFF)


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
    """Low and high half of the digest of 1 to `MAX_BYTES` bytes."""
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
        high = high_product(word, _PRIME64_1) + last + (last & _LOW) * (_PRIME32_2 - _U(1))
        low ^= swapped(high)
        return _spread(low * _PRIME64_2), _spread(high_product(low, _PRIME64_2) + high * _PRIME64_2)
    if size > 3:
        first = word_at(data, at) & _LOW
        last = word_at(data, at + size - 4) & _LOW
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
    turned = ((turned << _U(13)) | (turned >> _U(19))) & _LOW
    return _spread_short(word ^ _MIX_1_LOW), _spread_short(turned ^ _MIX_1_HIGH)
