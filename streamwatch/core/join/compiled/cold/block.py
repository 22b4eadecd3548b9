"""Entries as they lie on disk: blocks of columns, each as narrow as its values allow.

A block holds its entries column by column, each value less the smallest of its column, in as many whole bytes
as the largest difference needs; so nothing has to be given up for being too large, and what is alike in all
entries takes no room. Entries of one stream take 20 to 26 bytes, of which 16 are the id's digest. A value of
a column is found without reading those before it.

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
"""An entry outside the table, unpacked: 64 bytes, and the columns of a block in this order.

Fields as in `layout.ENTRY`. `arrival`: place in the queue of its kind, larger than that of any entry that has
come before, so no two have the same. `generation`: of a dedup entry; of what waits the number of its topic.
"""

VERSION: Final = 1
COLUMNS: Final = len(PACKED_ENTRY.names or ())
WORDS: Final = PACKED_ENTRY.itemsize // 8
WIDTHS_AT: Final = 8
SMALLEST_AT: Final = 24
HEADER_BYTES: Final = SMALLEST_AT + 8 * COLUMNS
PADDING: Final = 8
"""Bytes that must exist behind a block in memory: values are read eight bytes at a time."""

RECORD_MS, ARRIVAL, STATE_AND_GENERATION = 2, 4, 7
"""Words of an entry; of the last the lower half is the state."""
_LONG: Final = 5
"""Columns of 8 bytes; those behind them have 4."""
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
    """Value of column c of entry i, so that unsigned numbers sort as the values do.

    Of an event's own time it is the difference to its record's, those ahead and behind in turn, and 0 for
    none.
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
    """Bytes that a number needs."""
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
    """Write entries `start` … as a block at byte `at`; where it ends. There is room for `most_bytes`."""
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
    """Bits of a value of so many bytes."""
    return _ZERO if width == 0 else _ALL >> np.uint64(64 - 8 * width)


@hot
def count_at(data, at):
    """Entries of the block at byte `at`."""
    return np.int64(word_at(data, at) >> np.uint64(32))


@hot
def put_value(words, i, c, value):
    """Set column c of entry i, all of whose words were 0; columns in order. Undoes `column_value`."""
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
    """Read entries `first` … of the block at byte `at` into `words` from `start` on."""
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
    """Value of column c, `RECORD_MS` or `ARRIVAL`, of entry i of the block at byte `at`."""
    column = at + HEADER_BYTES
    for before in range(c):
        column += np.int64(data[at + WIDTHS_AT + before]) * count_at(data, at)
    width = np.int64(data[at + WIDTHS_AT + c])
    value = (word_at(data, column + i * width) & mask_of(width)) + word_at(data, at + SMALLEST_AT + 8 * c)
    return np.int64(value ^ _SIGN)


@hot
def end_of_block(data, at, limit):
    """Byte at which the block at byte `at` ends; -1 if what lies there before `limit` is no whole block."""
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
    """Bytes that a block of so many entries takes at most."""
    return HEADER_BYTES + count * PACKED_ENTRY.itemsize


def words_of(entries: NDArray[np.void]) -> Words:
    """`PACKED_ENTRY` (n,) as uint64 (n, 8), without a copy."""
    return entries.view(np.uint64).reshape(-1, WORDS)
