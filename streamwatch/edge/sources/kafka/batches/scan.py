"""Record batches of format v2: one pass from bytes to rows of positions, bounds checked, no content decoded.

The function is plain Python that numba can compile; both give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records import (
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
"""Values of the column FAULT; APPENDED, which is the same for a whole batch, is written by others."""

MAX_HEADERS = 1_000
"""Headers of one record: each costs a hundred bytes of memory, and two in the batch."""

Scanned: TypeAlias = tuple[int, int, int, bool]
"""Rows found; where the next record begins; offset delta of the last one; whether nothing sound is there."""


def new_rows(room: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Room for this many records, shape (room, COLUMNS)."""
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
    """Write one row for each record from `at` on, until the data end or `room` rows are full.

    A record whose frame holds and whose content does not is a row with a `FAULT`; the one after it is read.
    Where no frame holds, or offsets do not rise within the batch, the rest of the batch cannot be read.

    Parameters
    ----------
    data
        Records of one batch, decompressed: bytes, or (compiled) a read-only uint8 array of shape (n,).
    at
        Where the first record begins.
    room
        Rows to write at most.
    base_offset, last_delta
        Offset of the batch, and how far its last record's lies after that.
    delta
        Offset delta of the record before; -1 at the start of a batch.
    first_ms
        Timestamp that those of the records are relative to; a sum beyond 64 bits becomes -1.
    append_ms
        Timestamp of all records where the broker set it; else -1.
    rows
        int64, shape (≥ room, COLUMNS); written to.
    """
    # The loop of a varint is here once; `step` is the field that it reads.
    found = 0
    end = len(data)
    while found < room and at < end:
        start = at
        stop = end  # the frame, once its length is known
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
    """`scan`, compiled (seconds), or taken from the cache of compiled functions (tenths of a second)."""
    from streamwatch.core.jit import entry  # noqa: PLC0415 - nobody else waits for numba

    compiled = entry(scan)
    compiled(np.frombuffer(b"\0\0", np.uint8), 0, 0, 0, 0, -1, 0, -1, new_rows(1))
    return compiled


# Bytes with zeros behind them, so that records can be read where they are.


def padded_copy(content: memoryview) -> memoryview:
    """Copy bytes: a read-only view over an array that has `PADDING` zeros more."""
    size = len(content)
    own = np.empty(size + PADDING, np.uint8)
    own[:size] = content
    own[size:] = 0
    return memoryview(own.data)[:size].toreadonly()


def with_padding(data: bytes | memoryview) -> NDArray[np.uint8] | None:
    """The array that `padded_copy` made, zeros included; None of any other bytes."""
    if not isinstance(data, memoryview):
        return None
    whole: object = data.obj
    if not isinstance(whole, np.ndarray):
        return None
    found = cast("NDArray[np.uint8]", whole)
    return found if found.ndim == 1 and found.size == len(data) + PADDING else None
