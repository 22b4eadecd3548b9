"""Scans the records of a batch of format v2: one pass from bytes to rows of positions, with checked bounds.

`scan` is plain Python that Numba can compile; both give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records.fetched import (
    COLUMNS,
    FAULT,
    HEADER_COUNT,
    HEADERS,
    KEY,
    OFFSET,
    PADDING,
    TIMESTAMP,
    VALUE,
)

SOUND, BAD_STRUCTURE, TOO_MANY_HEADERS, RECORD_TOO_LARGE = range(4)
"""Values of the column FAULT. `scan` does not write the column APPENDED: it is the same for a whole batch."""

MAX_HEADERS = 1_000
"""Headers of one record at most: each takes two bytes in the batch, but a hundred in memory."""

Scanned: TypeAlias = tuple[int, int, int, bool]
"""(rows written; position of the next record; offset delta of the last one; whether the next is broken)."""


def new_rows(room: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Allocate rows for a number of records, shape (room, COLUMNS)."""
    return np.zeros((room, COLUMNS), np.int64)


def scan(  # noqa: C901, PLR0912, PLR0913, PLR0915, PLR0917 - compiled: scalars, and one loop
    data: Any,
    at: int,
    room: int,
    base_offset: int,
    last_delta: int,
    delta: int,
    first_ms: int,
    append_ms: int,
    rows: Any,
) -> Scanned:
    """Write one row for each record from `at` on, until the data end or `room` rows are written.

    A record with a valid length and invalid contents is a row with a `FAULT`. At an invalid length, or an
    offset that does not rise within the batch, the scan ends, as the rest of the batch cannot be read.

    Parameters
    ----------
    data
        Records of one batch, decompressed: bytes, or (compiled) a read-only uint8 array of shape (n,).
    at
        Position of the first record.
    room
        Rows to write at most.
    base_offset, last_delta
        Offset of the batch, and offset delta of its last record.
    delta
        Offset delta of the previous record; -1 at the start of a batch.
    first_ms
        Base of the records' relative timestamps; a sum beyond 64 bits becomes -1.
    append_ms
        Timestamp of all records where the broker set it; else -1.
    rows
        int64, shape (≥ room, COLUMNS); written to.
    """
    # All varints are read by one loop; `step` is the field that is read.
    found = 0
    end = len(data)
    while found < room and at < end:
        start = at
        stop = end  # end of the record, once its length is known
        step = 0  # 0 length, 1 timestamp, 2 offset, 3 key, 4 value, 5 count, 6 header name, 7 header value
        left = 0
        framed = has_offset = False
        sound = True
        rows[found, FAULT] = SOUND
        while True:
            if step == 1 and at == start:
                at += 1  # attributes of a record are not in use
            value = 0
            shift = 0
            open_ended = True
            while open_ended and at < stop and shift < 64:
                byte = data[at] & 255
                at += 1
                value |= (byte & 127) << shift
                shift += 7
                open_ended = byte > 127
            if open_ended:
                sound = False
                break
            value = ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1)
            if step == 0:
                if value <= 0 or value > end - at:
                    return found, start, delta, True
                stop = at + value
                start = at
                framed = True
                step = 1
            elif step == 1:
                if append_ms >= 0:
                    rows[found, TIMESTAMP] = append_ms
                elif (value > 0 and first_ms > 0x7FFFFFFFFFFFFFFF - value) or (
                    value < 0 and first_ms < -0x7FFFFFFFFFFFFFFF - value
                ):
                    rows[found, TIMESTAMP] = -1
                else:
                    rows[found, TIMESTAMP] = first_ms + value
                step = 2
            elif step == 2:
                if value <= delta or value > last_delta:
                    return found, start, delta, True
                delta = value
                rows[found, OFFSET] = base_offset + value
                has_offset = True
                step = 3
            elif step == 3 or step == 4:  # noqa: PLR1714 - compiled: a set would be built
                column = KEY if step == 3 else VALUE
                rows[found, column] = at
                rows[found, column + 1] = max(value, -1)
                if value > stop - at:
                    sound = False
                    break
                at += max(value, 0)
                step += 1
            elif step == 5:
                rows[found, HEADERS] = at
                rows[found, HEADER_COUNT] = value
                if value < 0 or value > stop - at:
                    sound = False
                    break
                if value > MAX_HEADERS:
                    rows[found, FAULT] = TOO_MANY_HEADERS
                    at = stop
                    break
                left = value
                step = 6
            else:
                if value > stop - at or (step == 6 and value < 0):
                    sound = False
                    break
                at += max(value, 0)
                if step == 7:
                    left -= 1
                step = 13 - step
            if step == 6 and left == 0:
                sound = at == stop
                break
        if not framed or not has_offset:
            return found, start, delta, True
        if not sound:
            rows[found, FAULT] = BAD_STRUCTURE
        at = stop
        found += 1
    return found, at, delta, False


@cache
def compiled_scan() -> Callable[..., Scanned]:
    """Compile `scan` (takes seconds), or load it from the cache of compiled functions."""
    from streamwatch.core.jit import entry  # noqa: PLC0415 - nobody else waits for numba

    compiled = entry(scan)
    compiled(np.frombuffer(b"\0\0", np.uint8), 0, 0, 0, 0, -1, 0, -1, new_rows(1))
    return compiled


# Bytes followed by zeros, so that compiled readers can use them without another copy.


def padded_copy(content: memoryview) -> memoryview:
    """Copy bytes to an array with `PADDING` more zeros; return a read-only view without these."""
    size = len(content)
    own = np.empty(size + PADDING, np.uint8)
    own[:size] = content
    own[size:] = 0
    return memoryview(own.data)[:size].toreadonly()


def with_padding(data: bytes | memoryview) -> NDArray[np.uint8] | None:
    """Return the array that `padded_copy` made, with its zeros; None for any other bytes."""
    if not isinstance(data, memoryview):
        return None
    whole: object = data.obj
    if not isinstance(whole, np.ndarray):
        return None
    found = cast("NDArray[np.uint8]", whole)
    return found if found.ndim == 1 and found.size == len(data) + PADDING else None
