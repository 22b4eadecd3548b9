"""Records as they are read, with the fault of one that cannot be read; and messages of older formats."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records.events import Partition
from streamwatch.core.records.fetched import (
    APPENDED,
    COLUMNS,
    FAULT,
    HEADER_COUNT,
    HEADERS,
    KEY,
    KEY_BYTES,
    OFFSET,
    PADDING,
    TIMESTAMP,
    VALUE,
    VALUE_BYTES,
    FetchedRecords,
)
from streamwatch.edge.sources.kafka.batches.frames import (
    APPEND_TIME,
    LEGACY_CHECKED_FROM,
    LEGACY_HEAD,
    LEGACY_LEAST,
    LOG_OVERHEAD,
    Batch,
)
from streamwatch.edge.sources.kafka.batches.scan import (
    BAD_STRUCTURE,
    RECORD_TOO_LARGE,
    SOUND,
    TOO_MANY_HEADERS,
)

HEADER_ENCODING: Final = "header_encoding"
TOO_LARGE: Final = "record_too_large"
FAULTS: Final = {
    BAD_STRUCTURE: "record_structure",
    TOO_MANY_HEADERS: "too_many_headers",
    RECORD_TOO_LARGE: TOO_LARGE,
}
"""Value of the column FAULT → reason; `header_encoding` is found only when a record object is made."""
_LONGER: Final = 4
"""Ratio of an answer's length to that of its records, up to which records refer to the answer's memory."""
_PADDING: Final = np.zeros(PADDING, np.uint8)
_NO_ROWS: Final = np.zeros((0, COLUMNS), np.int64)


class KafkaRecord(msgspec.Struct, frozen=True, gc=False):
    """A record of Kafka; implements `core.ports.Record`.

    Attributes
    ----------
    fault
        Reason, as in `records_invalid_total`, why the content cannot be read; then key and value are None,
        and there are no headers. None for a readable record.
    timestamp_type
        1 where the broker set the timestamp (LogAppendTime), else 0.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None = None
    value: bytes | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()
    fault: str | None = None
    timestamp_type: int = 0


class KafkaRecords(FetchedRecords):
    """Records of one partition, as rows of positions in the bytes that were fetched."""

    __slots__ = ("partition",)

    def __init__(self, partition: Partition, data: NDArray[np.uint8], rows: NDArray[np.int64]) -> None:
        super().__init__(data, rows)
        self.partition = partition

    def part(self, rows: NDArray[np.int64]) -> KafkaRecords:
        """Return some of the records, by their rows, over the same data."""
        return KafkaRecords(self.partition, self.data, rows)

    def over(self, data: NDArray[np.uint8], rows: NDArray[np.int64]) -> KafkaRecords:
        """Return records of the same partition, by rows over other data."""
        return KafkaRecords(self.partition, data, rows)

    def record(self, row: int) -> KafkaRecord:
        """Make the object of one record, with copied contents."""
        topic, number = self.partition
        columns: list[int] = self.rows[row].tolist()
        offset, timestamp, key_at, key_bytes, value_at, value_bytes, headers_at, headers, fault, kind = (
            columns
        )
        if fault:
            return KafkaRecord(topic, number, offset, timestamp, fault=FAULTS[fault], timestamp_type=kind)
        view = memoryview(self.data.data)
        key = None if key_bytes < 0 else bytes(view[key_at : key_at + key_bytes])
        value = None if value_bytes < 0 else bytes(view[value_at : value_at + value_bytes])
        try:
            found = _headers(view, headers_at, headers) if headers else ()
        except UnicodeDecodeError:
            return KafkaRecord(topic, number, offset, timestamp, fault=HEADER_ENCODING, timestamp_type=kind)
        return KafkaRecord(topic, number, offset, timestamp, key, value, found, None, kind)


Piece: TypeAlias = tuple[NDArray[np.int64], NDArray[np.uint8], int]
"""(rows, bytes that they refer to, the position that rows have for the first of these bytes)."""


def gathered(partition: Partition, pieces: Sequence[Piece]) -> KafkaRecords:
    """Concatenate pieces over one copy of their bytes; updates positions in the rows in place."""
    if not pieces:
        return KafkaRecords(partition, _PADDING, _NO_ROWS)
    start = 0
    for rows, data, first in pieces:
        if start != first:
            rows[:, (KEY, VALUE, HEADERS)] += start - first
        start += len(data)
    data = np.concatenate([*(data for _, data, _ in pieces), _PADDING])
    if len(pieces) == 1:
        return KafkaRecords(partition, data, pieces[0][0])
    return KafkaRecords(partition, data, np.concatenate([rows for rows, *_ in pieces]))


def in_place(partition: Partition, pieces: Sequence[Piece], answer: NDArray[np.uint8]) -> KafkaRecords | None:
    """Concatenate pieces without copying bytes: `answer`, with its `PADDING` zeros, becomes their data.

    None where some bytes are elsewhere, or the answer, which would stay in memory, is more than `_LONGER`
    times as long as the pieces.
    """
    if not pieces or len(answer) > _LONGER * sum(len(data) for _, data, _ in pieces):
        return None
    begin, end = _addresses(answer)
    shifts: list[int] = []
    for _, data, first in pieces:
        start, stop = _addresses(data)
        if start < begin or stop > end:
            return None
        shifts.append(start - begin - first)
    for (rows, *_), shift in zip(pieces, shifts, strict=True):
        if shift:
            rows[:, (KEY, VALUE, HEADERS)] += shift
    if len(pieces) == 1:
        return KafkaRecords(partition, answer, pieces[0][0])
    return KafkaRecords(partition, answer, np.concatenate([rows for rows, *_ in pieces]))


def _addresses(data: NDArray[np.uint8]) -> tuple[int, int]:
    start: int = data.__array_interface__["data"][0]
    return start, start + len(data)


def _headers(view: memoryview, at: int, count: int) -> tuple[tuple[str, bytes | None], ...]:
    """Return the names and values of headers whose structure was scanned."""
    found: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length, at = _varint(view, at)
        name = str(view[at : at + length], "utf-8")
        at += length
        length, at = _varint(view, at)
        found.append((name, None if length < 0 else bytes(view[at : at + length])))
        at += max(length, 0)
    return tuple(found)


def _size(view: memoryview, row: Sequence[int]) -> int:
    """Return the bytes of key, value and headers of a scanned record."""
    size = max(row[KEY_BYTES], 0) + max(row[VALUE_BYTES], 0)
    at = row[HEADERS]
    for _ in range(2 * row[HEADER_COUNT]):
        length, at = _varint(view, at)
        size += max(length, 0)
        at += max(length, 0)
    return size


def divided(rows: NDArray[np.int64], data: NDArray[np.uint8], first: int, end: int, most: int) -> list[Piece]:
    """Split scanned rows into pieces without the bytes of records over a limit, which get a fault.

    Parameters
    ----------
    rows
        Rows as `scan` wrote them, with positions in `data`; changed in place.
    data, first, end
        The records' bytes are `data[first:end]`.
    most
        Limit on the bytes of key, value and headers together.
    """
    if end - first <= most:
        return [(rows, data[first:end], first)] if len(rows) else []
    likely = np.arange(len(rows)) if rows[:, FAULT].any() else np.diff(rows[:, KEY], append=end) > most
    view = memoryview(data.data)
    large = [
        i
        for i in np.arange(len(rows))[likely].tolist()
        if not rows[i, FAULT] and _size(view, rows[i].tolist()) > most
    ]
    pieces: list[Piece] = []
    start = 0
    for i in large:
        pieces.append((rows[start:i], data[first : rows[i, KEY]], first))
        first = int(rows[i + 1, KEY]) if i + 1 < len(rows) and not rows[i + 1, FAULT] else int(rows[i, KEY])
        rows[i, (KEY, VALUE, HEADERS, HEADER_COUNT)] = 0
        rows[i, (KEY_BYTES, VALUE_BYTES)] = -1
        rows[i, FAULT] = RECORD_TOO_LARGE
        pieces.append((rows[i : i + 1], data[:0], 0))
        start = i + 1
    pieces.append((rows[start:], data[first:end], first))
    return [piece for piece in pieces if len(piece[0])]


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return (value >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), at
        shift += 7


# Messages of formats v0 and v1, which logs written before Kafka 0.11 may still hold.
#
# A compressed message contains a set of messages. In v0 these have their own offsets; in v1 they are numbered
# from 0, and the last of them has the offset of the outer message.


def message_row(message: Batch, data: memoryview) -> list[int]:
    """Make the row of one message, with positions in `data`; with a fault if its lengths do not fit."""
    at, timestamp = message.body, -1
    if message.magic == 1:
        if message.end - at < 8:
            return bad_row(message)
        (timestamp,) = struct.unpack_from(">q", data, at)
        at += 8
    parts: list[int] = []
    for _ in range(2):
        if message.end - at < 4:
            return bad_row(message)
        (length,) = struct.unpack_from(">i", data, at)
        at += 4
        if length > message.end - at:
            return bad_row(message)
        parts += at, max(length, -1)
        at += max(length, 0)
    if at != message.end:
        return bad_row(message)
    return [message.base_offset, timestamp, *parts, 0, 0, SOUND, bool(message.attributes & APPEND_TIME)]


def bad_row(message: Batch) -> list[int]:
    """Make the row of a message that cannot be read."""
    return [message.base_offset, -1, message.body, -1, message.body, -1, 0, 0, BAD_STRUCTURE, 0]


def rows_within(outer: Batch, data: memoryview, outer_ms: int) -> NDArray[np.int64]:
    """Return the rows of the messages in a compressed one, up to the first with an invalid length.

    Parameters
    ----------
    outer
        Header of the compressed message.
    data
        Its decompressed value.
    outer_ms
        Its timestamp, which all records get where the broker set it.
    """
    found: list[list[int]] = []
    at = 0
    while len(data) - at >= LOG_OVERHEAD + LEGACY_LEAST:
        offset, length, crc, magic, attributes = LEGACY_HEAD.unpack_from(data, at)
        end = at + LOG_OVERHEAD + length
        if length < LEGACY_LEAST or end > len(data):
            break
        message = Batch(magic, offset, 0, attributes, -1, -1, -1, 1, at + LEGACY_HEAD.size, end)
        sound = magic == outer.magic and zlib.crc32(data[at + LEGACY_CHECKED_FROM : end]) == crc
        found.append(message_row(message, data) if sound else bad_row(message))
        at = end
    rows = np.array(found, np.int64).reshape(-1, COLUMNS)
    if outer.magic == 1 and len(rows):
        rows[:, OFFSET] += outer.base_offset - rows[-1:, OFFSET]  # wraps for offsets that no log has
        if outer.attributes & APPEND_TIME:
            rows[:, (TIMESTAMP, APPENDED)] = outer_ms, 1
    return rows
