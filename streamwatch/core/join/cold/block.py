"""Block format of entries on disk: columns, each as narrow as its values allow.

A block stores its entries column by column. Each value is stored as its difference from the column's smallest
value, in as many whole bytes as the largest difference needs. So any value can be stored, and a column of
equal values takes no room. Entries of one stream take 20 to 26 bytes, of which 16 are the id's digest. A
value of a column can be read without those before it.

Block: one byte `VERSION`, one with the number of side columns, two of zeros, the number of entries (4 bytes);
widths of the columns (one byte each, then zeros up to 16); their smallest values (8 bytes each); the columns,
those of `PACKED_ENTRY` before side columns. Numbers are little-endian.

In memory an entry is a row of words: those of `PACKED_ENTRY`, then one for each side column.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import detached, entry, hot, word_at
from streamwatch.core.join.counters import PENDING, RESOLVED
from streamwatch.core.join.layout import OF_CLASSES
from streamwatch.core.join.table import NUMBERS
from streamwatch.core.records.outcomes import SEGMENTS_FROM

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
"""Length of the header of a block without side columns."""
MOST_SIDE_COLUMNS: Final = SMALLEST_AT - WIDTHS_AT - COLUMNS
SKIPPED, REPLACING = -1, -2
"""Targets of stored side columns other than a word: none; the predicted class, where there is a value."""
PADDING: Final = 8
"""Number of bytes that must follow a block in memory, as values are read eight bytes at a time."""

RECORD_MS, ARRIVAL, STATE_AND_GENERATION = 2, 4, 7
"""Words of an entry; the lower half of the last is the state."""
_LONG: Final = 5
"""Number of columns of 8 bytes; those after them have 4."""
_TIMESTAMP: Final = 3
_PREDICTED_CLASS: Final = (PACKED_ENTRY.names or ()).index("predicted_class")
_SIGN: Final = np.uint64(1 << 63)
_ZERO: Final = np.uint64(0)
_ONE: Final = np.uint64(1)
_HALF: Final = np.uint64(0xFFFFFFFF)
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
    if c >= COLUMNS:
        return words[i, WORDS + c - COLUMNS] ^ _SIGN
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

    There must be room for `most_bytes(count)` of as many side columns as the words have.
    """
    side = words.shape[1] - WORDS
    put_word(data, at, (np.uint64(count) << np.uint64(32)) | np.uint64(side << 8 | VERSION))
    put_word(data, at + 8, _ZERO)
    put_word(data, at + 16, _ZERO)
    end = at + HEADER_BYTES + 8 * side
    for c in range(COLUMNS + side):
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
def columns_at(data, at):
    """Number of columns of the block at byte `at`."""
    return COLUMNS + np.int64(data[at + 1])


@hot
def data_at(data, at):
    """Byte at which the first column of the block at byte `at` begins."""
    return at + SMALLEST_AT + 8 * columns_at(data, at)


@hot
def put_value(words, i, c, value):
    """Set column c of entry i from its packed value; the inverse of `column_value`, but for side columns.

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
        bits = (value ^ _SIGN) & _HALF
        words[i, _LONG + half // 2] |= bits << np.uint64(32 * (half % 2))


@hot
def unpack_entries(data, at, first, count, words, start, into):
    """Read `count` entries from `first` on of the block at byte `at` into `words` from `start` on.

    `into`, int64, has for each side column of the block the index of its word, or `SKIPPED` or `REPLACING`.
    """
    column = data_at(data, at)
    whole = count_at(data, at)
    for i in range(start, start + count):
        for w in range(_LONG, words.shape[1]):
            words[i, w] = _ZERO
    for c in range(COLUMNS):
        width = np.int64(data[at + WIDTHS_AT + c])
        smallest = word_at(data, at + SMALLEST_AT + 8 * c)
        mask = mask_of(width)
        for i in range(count):
            value = (word_at(data, column + (first + i) * width) & mask) + smallest
            put_value(words, start + i, c, value)
        column += width * whole
    for c in range(COLUMNS, columns_at(data, at)):
        target = into[c - COLUMNS]
        width = np.int64(data[at + WIDTHS_AT + c])
        smallest = word_at(data, at + SMALLEST_AT + 8 * c)
        mask = mask_of(width)
        for i in range(count if target != SKIPPED else 0):
            value = ((word_at(data, column + (first + i) * width) & mask) + smallest) ^ _SIGN
            if target >= 0:
                words[start + i, WORDS + target] = value
            elif value != _ZERO:
                half = _PREDICTED_CLASS - _LONG
                word = words[start + i, _LONG + half // 2] & (_HALF << np.uint64(32 * (1 - half % 2)))
                words[start + i, _LONG + half // 2] = word | (value - _ONE) << np.uint64(32 * (half % 2))
        column += width * whole


@hot
def long_at(data, at, c, i):
    """Value of column c (`RECORD_MS` or `ARRIVAL`) of entry i of the block at byte `at`."""
    column = data_at(data, at)
    for before in range(c):
        column += np.int64(data[at + WIDTHS_AT + before]) * count_at(data, at)
    width = np.int64(data[at + WIDTHS_AT + c])
    value = (word_at(data, column + i * width) & mask_of(width)) + word_at(data, at + SMALLEST_AT + 8 * c)
    return np.int64(value ^ _SIGN)


@hot
def end_of_block(data, at, limit):
    """Byte at which the block at byte `at` ends; -1 if there is no whole block before `limit`."""
    if at + HEADER_BYTES > limit or word_at(data, at) & np.uint64(0xFFFF00FF) != np.uint64(VERSION):
        return -1
    columns = columns_at(data, at)
    if columns > COLUMNS + MOST_SIDE_COLUMNS or data_at(data, at) > limit:
        return -1
    width = 0
    for c in range(columns):
        if data[at + WIDTHS_AT + c] > 8:
            return -1
        width += np.int64(data[at + WIDTHS_AT + c])
    end = data_at(data, at) + count_at(data, at) * width
    return end if end <= limit else -1


def most_bytes(count: int, side: int = 0) -> int:
    """Largest number of bytes of a block of this many entries and side columns."""
    return HEADER_BYTES + 8 * side + count * (PACKED_ENTRY.itemsize + 8 * side)


def words_of(entries: NDArray[np.void]) -> Words:
    """View `PACKED_ENTRY` (n,) as uint64 (n, 8), without a copy."""
    return entries.view(np.uint64).reshape(-1, WORDS)


def with_side(entries: NDArray[np.void], side: NDArray[np.int32]) -> Words:
    """Rows of words of entries, `PACKED_ENTRY` (n,), with their side columns, (n, columns)."""
    words = words_of(np.ascontiguousarray(entries))
    if not side.shape[1]:
        return words
    return np.concatenate([words, side.astype(np.int64).view(np.uint64)], axis=1)


def entries_of(words: Words) -> NDArray[np.void]:
    """`PACKED_ENTRY` (n,) of rows of words."""
    return np.ascontiguousarray(words[:, :WORDS]).reshape(-1).view(PACKED_ENTRY)


def side_of(words: Words) -> NDArray[np.int32]:
    """Side columns of rows of words, (n, columns)."""
    return words[:, WORDS:].astype(np.int32)


# Dead bits: bit sets of the positions of a run's dead entries.


Bits = NDArray[np.uint64]


def bits_of(count: int) -> Bits:
    """Allocate bits for `count` entries, none of them set."""
    return np.zeros((count + 63) // 64, np.uint64)


@hot
def is_set(bits, i):
    """Return whether bit i is set."""
    return (bits[i >> 6] >> np.uint64(i & 63)) & _ONE != 0


@entry
def set_bits(bits, positions, fresh):
    """Set bits; write the positions newly set to `fresh`, and return their number."""
    count = 0
    for k in range(positions.shape[0]):
        i = np.int64(positions[k])
        if not is_set(bits, i):
            bits[i >> 6] |= _ONE << np.uint64(i & 63)
            fresh[count] = positions[k]
            count += 1
    return count


# Test for dedup entries whose generation has been dropped.


NEGATIVE_FROM: Final = 2**30
"""Difference of generation numbers, modulo 2³¹, from which on it counts as negative; live ones are close."""


@hot
def is_dropped(words, i, floor):
    """Return whether entry i is a dedup entry of a generation before `floor`."""
    both = words[i, STATE_AND_GENERATION]
    generation = np.int64(both >> np.uint64(32))
    return np.int64(both & _HALF) >= RESOLVED and (generation - floor) & NUMBERS >= NEGATIVE_FROM


# Names and segments that the entries of a run use, so that their numbers are not released.


_NAMES, _CLASSES = WORDS - 3, WORDS - 2
"""Words of `PACKED_ENTRY` with model and predicted class, and with true class and label at prediction."""
_ROOM = 256
"""Initial number of names of a kind for which there is room; with more, entries are read again."""


@hot
def lower_half(word):
    """Number in the lower half of a word."""
    return np.int32(word)


@hot
def upper_half(word):
    """Number in the upper half of a word."""
    return np.int32(word >> np.uint64(32))


@hot
def mark_number(marks, number, most):
    """Mark a number if it is in range and stands for a name; return the larger of it and `most`."""
    if 0 <= number < marks.shape[0]:
        marks[number] = True
    return max(most, number)


@detached
def mark_names(words, models, classes, segments, of_classes):
    """Mark the names that entries, uint64 (n, words), use; return the largest number of each kind.

    `of_classes`, int64: indices of the words that hold 1 + the number of a class, or 0.

    Numbers beyond the end of the marks are not marked.
    """
    model = np.int32(-1)
    most = np.int32(-1)
    values = np.int32(-1)
    for i in range(words.shape[0]):
        model = mark_number(models, lower_half(words[i, _NAMES]), model)
        most = mark_number(classes, upper_half(words[i, _NAMES]), most)
        most = mark_number(classes, upper_half(words[i, _CLASSES]), most)
        for k in range(of_classes.shape[0]):
            most = mark_number(classes, np.int32(np.int64(words[i, of_classes[k]]) - 1), most)
        # A pending prediction has the number of its scores or segments instead of the true class.
        carried = lower_half(words[i, _CLASSES])
        if lower_half(words[i, WORDS - 1]) != PENDING:
            most = mark_number(classes, carried, most)
        elif carried >= SEGMENTS_FROM:
            values = mark_number(segments, np.int32(carried - SEGMENTS_FROM), values)
    return model, most, values


class NamesUsed:
    """Collects the numbers of used names as entries are added.

    Parameters
    ----------
    side
        Names of the entries' side columns.
    """

    def __init__(self, side: tuple[str, ...]) -> None:
        columns = [WORDS + column for column, name in enumerate(side) if name in OF_CLASSES]
        self._of_classes = np.array(columns, np.int64)
        self._marks: list[NDArray[np.bool_]] = [np.zeros(_ROOM, np.bool_) for _ in range(3)]
        """Whether a number is used, by number, of models, classes and segments."""

    def add(self, words: Words) -> None:
        """Collect the numbers that these entries, uint64 (n, words), use."""
        models, classes, segments = self._marks
        largest = [*map(int, mark_names(words, models, classes, segments, self._of_classes))]
        if any(most >= len(marks) for most, marks in zip(largest, self._marks, strict=True)):
            self._marks = [_with_room(marks, most) for most, marks in zip(largest, self._marks, strict=True)]
            models, classes, segments = self._marks
            mark_names(words, models, classes, segments, self._of_classes)

    def used(self) -> tuple[bytes, bytes, bytes]:
        """Numbers of the models, of the classes and of the segments, each int32, ascending."""
        models, classes, segments = (np.flatnonzero(marks).astype(np.int32) for marks in self._marks)
        return models.tobytes(), classes.tobytes(), segments.tobytes()


def _with_room(marks: NDArray[np.bool_], most: int) -> NDArray[np.bool_]:
    """Enlarge marks so that `most` fits, with half as much again."""
    if most < len(marks):
        return marks
    return np.concatenate([marks, np.zeros(most + 1 + most // 2 - len(marks), np.bool_)])
