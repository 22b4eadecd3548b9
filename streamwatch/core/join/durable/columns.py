"""Integer columns as bytes: a commit writes one value for thousands of rows.

    version, columns, rows          1, 1, 4 bytes
    base, width                     9 bytes a column
    data                            of all columns, those of the largest width first

Each column is stored as differences from its smallest value, in 1, 2, 4 or 8 bytes as the largest difference
needs; none if all are equal. In a value of more than `MOST_EQUAL_ROWS` rows one column has data all the same,
so that what a reader allocates is in proportion to the value. All numbers are little-endian. Halves of
digests (uint64) are stored as they are, or, if that is shorter, as a bit for each row that is 1 where another
value begins, filled up to words, and these values: predictions of many models come one after another for the
same id.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry

VERSION: Final = 2
MOST_ROWS: Final = 2**28
"""Largest number of rows of one value."""
MOST_EQUAL_ROWS: Final = 65_536
"""Largest number of rows of a value without data, all rows equal: a damaged value cannot claim more,
and 20 columns of them are 10 MB in memory. Runs of entries and of outcomes, most of what is written, have
fewer rows (4,096 and 8,192); a larger value of equal rows pays one byte a row."""
HEAD: Final = Struct("<BBI")
_COLUMN: Final = np.dtype([("base", "<i8"), ("width", "u1")])
_AS_IT_IS: Final = 9
"""Width that marks a column of uint64."""
_REPEATED: Final = 10
"""Width that marks a column of uint64 with a bit for each row."""
_TYPES: Final = {1: "<u1", 2: "<u2", 4: "<u4", 8: "<u8"}

Column = NDArray[np.int64] | NDArray[np.uint64]


class PackedError(ValueError):
    """Raised if a packed value is not what a commit writes."""


@entry
def narrow(
    table: Any, digests: Any, bases: Any, widths: Any, words: Any, fours: Any, twos: Any, ones: Any
) -> int:
    """Write the columns of a value; return the number of bytes.

    Parameters
    ----------
    table
        int64 (columns, rows): numbers, and the bits of digests.
    digests
        bool (columns,): whether a column holds halves of digests.
    bases, widths
        int64 and uint8, (columns,), output: smallest value and width of each column.
    words, fours, twos, ones
        The same memory, of at least columns × rows words, as uint64, uint32, uint16 and uint8; output.
    """
    columns, rows = table.shape
    for c in range(columns):
        bases[c] = widths[c] = 0
        column = table[c]
        if digests[c]:
            begun = min(rows, 1)
            for i in range(1, rows):
                begun += column[i] != column[i - 1]
            widths[c] = _REPEATED if (rows + 63) // 64 + begun < rows else _AS_IT_IS
        elif rows:
            least = most = column[0]
            for i in range(1, rows):
                least = min(least, column[i])
                most = max(most, column[i])
            bases[c] = least
            span = np.uint64(most) - np.uint64(least)
            if span >> np.uint64(32):
                widths[c] = 8
            elif span >> np.uint64(16):
                widths[c] = 4
            elif span >> np.uint64(8):
                widths[c] = 2
            elif span:
                widths[c] = 1
    at = 0
    for c in range(columns):
        column, base = table[c], bases[c]
        if widths[c] == _REPEATED:
            word = at + (rows + 63) // 64
            for first in range(0, rows, 64):
                bits = np.uint64(0)
                for i in range(first, min(first + 64, rows)):
                    if i == 0 or column[i] != column[i - 1]:
                        bits |= np.uint64(1) << np.uint64(i - first)
                        words[word] = np.uint64(column[i])
                        word += 1
                words[at + first // 64] = bits
            at = word
        elif widths[c] >= 8:
            for i in range(rows):
                words[at + i] = np.uint64(column[i] - base)
            at += rows
    at *= 2
    for c in range(columns):
        column, base = table[c], bases[c]
        if widths[c] == 4:
            for i in range(rows):
                fours[at + i] = np.uint32(column[i] - base)
            at += rows
    at *= 2
    for c in range(columns):
        column, base = table[c], bases[c]
        if widths[c] == 2:
            for i in range(rows):
                twos[at + i] = np.uint16(column[i] - base)
            at += rows
    at *= 2
    for c in range(columns):
        column, base = table[c], bases[c]
        if widths[c] == 1:
            for i in range(rows):
                ones[at + i] = np.uint8(column[i] - base)
            at += rows
    return at


def pack_table(table: NDArray[np.int64], digests: Sequence[int] = ()) -> bytes:
    """Pack columns, the rows of a table of shape (columns, rows).

    Parameters
    ----------
    table
        Numbers, and the bits of halves of digests.
    digests
        Which columns hold halves of digests.
    """
    columns, rows = table.shape
    described = np.empty(columns, _COLUMN)
    bases, widths = np.empty(columns, np.int64), np.empty(columns, np.uint8)
    of_digests = np.zeros(columns, np.bool_)
    of_digests[list(digests)] = True
    words = np.empty(columns * rows, np.uint64)
    ones = words.view(np.uint8)
    size = narrow(table, of_digests, bases, widths, words, words.view(np.uint32), words.view(np.uint16), ones)
    if rows > MOST_EQUAL_ROWS and columns and not widths.any():
        widths[0], size = 1, rows
        ones[:rows] = 0
    described["base"], described["width"] = bases, widths
    return HEAD.pack(VERSION, columns, rows) + described.tobytes() + ones[:size].tobytes()


def pack_columns(columns: Sequence[Column]) -> bytes:
    """Pack columns of equal length, of integers or, as uint64, of halves of digests."""
    table = np.empty((len(columns), len(columns[0])), np.int64)
    for row, column in zip(table, columns, strict=True):
        row[:] = column.view(np.int64) if column.dtype == np.uint64 else column
    return pack_table(table, [n for n, column in enumerate(columns) if column.dtype == np.uint64])


def pack_beside(numbers: NDArray[np.int32], words: NDArray[np.uint64]) -> bytes:
    """Pack a column of integers and one of uint64, of equal length, as `pack_columns` does.

    Where the latter is stored as it is, nothing but the result is a copy of it, which takes an eighth of the
    time with scores by the hundred thousand.
    """
    rows = len(words)
    begun = int(np.count_nonzero(words[1:] != words[:-1])) + 1
    if not rows or (rows + 63) // 64 + begun < rows:
        return pack_columns((numbers.astype(np.int64), words))
    least, most = int(numbers.min()), int(numbers.max())
    width = next(width for width in (0, 1, 2, 4) if (most - least) >> 8 * width == 0)
    described = np.array([(least, width), (0, _AS_IT_IS)], _COLUMN)
    narrow_numbers = (numbers - least).astype(_TYPES[width]).tobytes() if width else b""
    head = HEAD.pack(VERSION, 2, rows) + described.tobytes()
    return b"".join([head, np.ascontiguousarray(words).data, narrow_numbers])


def unpack_columns(value: bytes, count: int) -> list[Column]:
    """Unpack `count` columns.

    Raises
    ------
    PackedError
        If version, number of columns, a width or the length is wrong, or more rows are claimed than there can
        be data for, which is checked before anything is allocated for them.
    """
    if len(value) < HEAD.size:
        raise PackedError(f"expected at least {HEAD.size} bytes, got {len(value)}")
    version, columns, rows = HEAD.unpack_from(value)
    if rows > MOST_ROWS:
        raise PackedError(f"expected at most {MOST_ROWS} rows, got {rows}")
    if version != VERSION or columns != count:
        raise PackedError(f"expected version {VERSION} and {count} columns, got {version} and {columns}")
    start = HEAD.size + _COLUMN.itemsize * count
    if len(value) < start:
        raise PackedError(f"expected at least {start} bytes, got {len(value)}")
    described = np.frombuffer(value, _COLUMN, count, HEAD.size)
    bases: list[int] = described["base"].tolist()
    widths: list[int] = described["width"].tolist()
    most = MOST_EQUAL_ROWS if not any(widths) else 8 * (len(value) - start)  # a bit or more of each row
    if rows > most:
        raise PackedError(f"expected at most {most} rows in {len(value)} bytes, got {rows}")
    found: dict[int, Column] = {}
    at = start
    for number in sorted(range(count), key=lambda number: -min(widths[number], 8)):
        base, width = bases[number], widths[number]
        if width == 0:
            found[number] = np.full(rows, base, np.int64)
        elif width == _REPEATED:
            found[number], at = _unpack_repeated(value, rows, at)
        elif width in {*_TYPES, _AS_IT_IS}:
            size = min(width, 8)
            if len(value) < at + size * rows:
                raise PackedError(f"expected {rows} rows, got {len(value)} bytes that end in column {number}")
            raw = np.frombuffer(value, _TYPES[size], rows, at)
            found[number] = raw.astype(np.uint64) if width == _AS_IT_IS else raw.astype(np.int64) + base
            at += size * rows
        else:
            raise PackedError(f"expected a width of 0, 1, 2, 4, 8, 9 or 10, got {width} of column {number}")
    if at != len(value):
        raise PackedError(f"expected {at} bytes, got {len(value)}")
    return [found[number] for number in range(count)]


def _unpack_repeated(value: bytes, rows: int, at: int) -> tuple[NDArray[np.uint64], int]:
    """Return the values of a `_REPEATED` column at byte `at`, and the byte at which the next one begins."""
    size = 8 * ((rows + 63) // 64)
    bits = np.unpackbits(np.frombuffer(value[at : at + size], np.uint8), bitorder="little")
    begun = int(bits.sum())
    if len(bits) < 8 * size or len(value) < at + size + 8 * begun:
        raise PackedError(f"expected {rows} rows with a bit each, and their values, got {len(value)} bytes")
    if not rows or not bits[0] or bits[rows:].any():
        raise PackedError(f"expected bits of {rows} rows, the first of which begins a value, got others")
    values = np.frombuffer(value, "<u8", begun, at + size)
    return values[np.cumsum(bits[:rows], dtype=np.int64) - 1].astype(np.uint64), at + size + 8 * begun
