"""Block format of entries on disk: columns, each as narrow as its values allow.

A block stores its entries column by column. Each value is stored as its difference from the column's smallest
value, in as many whole bytes as the largest difference needs. So any value can be stored, and a column of
equal values takes no room. Entries of one stream take 20 to 26 bytes, of which 16 are the id's digest. A
value of a column can be read without those before it.

Block: one byte `VERSION`, three of zeros, the number of entries (4 bytes); widths of the columns (one byte
each, then zeros up to 16); their smallest values (8 bytes each); the columns. Numbers are little-endian.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import hot, word_at

PACKED_ENTRY: Final = np.dtype(
    [
        ("low", np.uint64),
        ("high", np.uint64),
        ("record_ms", np.int64),
        ("timestamp_ms", np.int64),
        ("arrival", np.int64),
        ("model", np.int32),
        ("predicted_class", np.int32),
        ("true_or_scores", np.int32),
        ("label_at_prediction", np.int32),
        ("state", np.int32),
        ("generation", np.int32),
    ],
    align=True,
)
"""Unpacked entry outside the table: 64 bytes; a block's columns are in this order.

Fields as in `layout.ENTRY`. `arrival`: number in order of arrival in the queue of its kind, unique.
`generation`: for a dedup entry its generation, otherwise the number of its topic.
"""

VERSION: Final = 1
COLUMNS: Final = len(PACKED_ENTRY.names or ())
WORDS: Final = PACKED_ENTRY.itemsize // 8
WIDTHS_AT: Final = 8
SMALLEST_AT: Final = 24
HEADER_BYTES: Final = SMALLEST_AT + 8 * COLUMNS
PADDING: Final = 8
"""Number of bytes that must follow a block in memory, as values are read eight bytes at a time."""

RECORD_MS, ARRIVAL, STATE_AND_GENERATION = 2, 4, 7
"""Words of an entry; the lower half of the last is the state."""
_LONG: Final = 5
"""Number of columns of 8 bytes; those after them have 4."""
_TIMESTAMP: Final = 3
_SIGN: Final = np.uint64(1 << 63)
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_ALL: Final = np.uint64(0xFFFFFFFFFFFFFFFF)
_NO_TIME: Final = _SIGN

Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]


@hot
def column_value(words, i, c):
    """Value of column c of entry i, converted to unsigned so that it sorts as the original does.

    For an event's own time it is the zigzag-coded difference from its record's time plus 1, or 0 for no time.
    """
    if c == _TIMESTAMP:
        if words[i, _TIMESTAMP] == _NO_TIME:
            return _ZERO
        ahead = np.int64(words[i, _TIMESTAMP] - words[i, RECORD_MS])
        return np.uint64((ahead << 1) ^ (ahead >> 63)) + _ONE
    if c < RECORD_MS:
        return words[i, c]
    if c < _LONG:
        return words[i, c] ^ _SIGN
    half = c - _LONG
    value = np.int32(words[i, _LONG + half // 2] >> np.uint64(32 * (half % 2)))
    return np.uint64(np.int64(value)) ^ _SIGN


@hot
def width_of(largest):
    """Number of bytes that a number needs."""
    width = 0
    while largest != _ZERO:
        largest >>= np.uint64(8)
        width += 1
    return width


@hot
def put_word(data, at, word):
    """Write 8 bytes."""
    for k in range(8):
        data[at + k] = np.uint8(word >> np.uint64(8 * k))


@hot
def pack_entries(words, start, count, data, at):
    """Write `count` entries from `start` on as a block at byte `at`; return where it ends.

    There must be room for `most_bytes(count)`.
    """
    put_word(data, at, (np.uint64(count) << np.uint64(32)) | np.uint64(VERSION))
    put_word(data, at + 8, _ZERO)
    put_word(data, at + 16, _ZERO)
    end = at + HEADER_BYTES
    for c in range(COLUMNS):
        smallest, largest = _ALL, _ZERO
        for i in range(start, start + count):
            value = column_value(words, i, c)
            smallest = min(smallest, value)
            largest = max(largest, value)
        width = width_of(largest - smallest)
        data[at + WIDTHS_AT + c] = np.uint8(width)
        put_word(data, at + SMALLEST_AT + 8 * c, smallest)
        if width > 0:
            for i in range(start, start + count):
                value = column_value(words, i, c) - smallest
                for _ in range(width):
                    data[end] = np.uint8(value)
                    value >>= np.uint64(8)
                    end += 1
    return end


@hot
def mask_of(width):
    """Bit mask of a value of this many bytes."""
    return _ZERO if width == 0 else _ALL >> np.uint64(64 - 8 * width)


@hot
def count_at(data, at):
    """Number of entries of the block at byte `at`."""
    return np.int64(word_at(data, at) >> np.uint64(32))


@hot
def put_value(words, i, c, value):
    """Set column c of entry i from its packed value; the inverse of `column_value`.

    The entry's words must be 0 at first, and columns set in order.
    """
    if c == _TIMESTAMP:
        if value == _ZERO:
            words[i, _TIMESTAMP] = _NO_TIME
        else:
            zigzag = value - _ONE
            ahead = (zigzag >> _ONE) ^ (_ZERO - (zigzag & _ONE))
            words[i, _TIMESTAMP] = words[i, RECORD_MS] + ahead
    elif c < RECORD_MS:
        words[i, c] = value
    elif c < _LONG:
        words[i, c] = value ^ _SIGN
    else:
        half = c - _LONG
        bits = (value ^ _SIGN) & np.uint64(0xFFFFFFFF)
        words[i, _LONG + half // 2] |= bits << np.uint64(32 * (half % 2))


@hot
def unpack_entries(data, at, first, count, words, start):
    """Read `count` entries from `first` on of the block at byte `at` into `words` from `start` on."""
    column = at + HEADER_BYTES
    whole = count_at(data, at)
    for i in range(start, start + count):
        for w in range(_LONG, WORDS):
            words[i, w] = _ZERO
    for c in range(COLUMNS):
        width = np.int64(data[at + WIDTHS_AT + c])
        smallest = word_at(data, at + SMALLEST_AT + 8 * c)
        mask = mask_of(width)
        for i in range(count):
            value = (word_at(data, column + (first + i) * width) & mask) + smallest
            put_value(words, start + i, c, value)
        column += width * whole


@hot
def long_at(data, at, c, i):
    """Value of column c (`RECORD_MS` or `ARRIVAL`) of entry i of the block at byte `at`."""
    column = at + HEADER_BYTES
    for before in range(c):
        column += np.int64(data[at + WIDTHS_AT + before]) * count_at(data, at)
    width = np.int64(data[at + WIDTHS_AT + c])
    value = (word_at(data, column + i * width) & mask_of(width)) + word_at(data, at + SMALLEST_AT + 8 * c)
    return np.int64(value ^ _SIGN)


@hot
def end_of_block(data, at, limit):
    """Byte at which the block at byte `at` ends; -1 if there is no whole block before `limit`."""
    if at + HEADER_BYTES > limit or word_at(data, at) & np.uint64(0xFFFFFFFF) != np.uint64(VERSION):
        return -1
    width = 0
    for c in range(COLUMNS):
        if data[at + WIDTHS_AT + c] > 8:
            return -1
        width += np.int64(data[at + WIDTHS_AT + c])
    end = at + HEADER_BYTES + count_at(data, at) * width
    return end if end <= limit else -1


def most_bytes(count: int) -> int:
    """Largest number of bytes of a block of this many entries."""
    return HEADER_BYTES + count * PACKED_ENTRY.itemsize


def words_of(entries: NDArray[np.void]) -> Words:
    """View `PACKED_ENTRY` (n,) as uint64 (n, 8), without a copy."""
    return entries.view(np.uint64).reshape(-1, WORDS)
