"""A record as it is read, and why it cannot be if it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
import numpy as np

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.scan import BAD_STRUCTURE, TOO_MANY_HEADERS

HEADER_ENCODING: Final = "header_encoding"
TOO_LARGE: Final = "record_too_large"
FAULTS: Final = {BAD_STRUCTURE: "record_structure", TOO_MANY_HEADERS: "too_many_headers"}
"""Reasons by what stands in the column FAULT of a scanned row; sizes and headers are looked at here."""


class _TooLarge(Exception):  # noqa: N818 - it names what is the case
    """The headers make a record larger than allowed."""


class KafkaRecord(msgspec.Struct, frozen=True, gc=False):
    """Implements `core.ports.Record`.

    Attributes
    ----------
    fault
        Why the content cannot be read, as a reason of `records_invalid_total`; then key and value are None,
        and there are no headers. None for an ordinary record.
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


def records_of(
    partition: Partition, data: Any, rows: Sequence[Sequence[int]], timestamp_type: int, most: int
) -> list[KafkaRecord]:
    """Records from scanned rows; what is taken from the data is copied.

    Parameters
    ----------
    partition
        Where they were read.
    data
        What was scanned: bytes-like.
    rows
        As `scan` wrote them: COLUMNS integers each.
    timestamp_type
        Of their batch.
    most
        Bytes of key, value and headers together; nothing is copied of a record that has more.
    """
    topic, number = partition
    kind = timestamp_type
    view = memoryview(data)
    records: list[KafkaRecord] = []
    for offset, timestamp, key_at, key_bytes, value_at, value_bytes, headers_at, headers, fault in rows:
        left = most - max(key_bytes, 0) - max(value_bytes, 0)
        reason = FAULTS[fault] if fault else TOO_LARGE if left < 0 else None
        if reason is not None:
            records.append(KafkaRecord(topic, number, offset, timestamp, fault=reason, timestamp_type=kind))
            continue
        key = None if key_bytes < 0 else bytes(view[key_at : key_at + key_bytes])
        value = None if value_bytes < 0 else bytes(view[value_at : value_at + value_bytes])
        if not headers:
            records.append(KafkaRecord(topic, number, offset, timestamp, key, value, (), None, kind))
            continue
        try:
            found = _headers(view, headers_at, headers, left)
        except (UnicodeDecodeError, _TooLarge) as error:
            reason = TOO_LARGE if isinstance(error, _TooLarge) else HEADER_ENCODING
            records.append(KafkaRecord(topic, number, offset, timestamp, fault=reason, timestamp_type=kind))
        else:
            records.append(KafkaRecord(topic, number, offset, timestamp, key, value, found, None, kind))
    return records


def too_large(record: KafkaRecord) -> KafkaRecord:
    """What is left of a record that has more bytes than allowed."""
    topic, partition, offset, timestamp = record.topic, record.partition, record.offset, record.timestamp
    kind = record.timestamp_type
    return KafkaRecord(topic, partition, offset, timestamp, fault=TOO_LARGE, timestamp_type=kind)


def _headers(view: memoryview, at: int, count: int, most: int) -> tuple[tuple[str, bytes | None], ...]:
    """Names and values of headers whose structure was scanned, if they take no more bytes than `most`."""
    found: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        length, at = _varint(view, at)
        most -= length
        if most < 0:
            raise _TooLarge
        name = str(view[at : at + length], "utf-8")
        at += length
        length, at = _varint(view, at)
        most -= max(length, 0)
        if most < 0:
            raise _TooLarge
        found.append((name, None if length < 0 else bytes(view[at : at + length])))
        at += max(length, 0)
    return tuple(found)


def _varint(view: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = view[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return (value >> 1 & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1), at
        shift += 7


def plain_rows(rows: np.ndarray[Any, Any], found: int) -> list[list[int]]:
    """The first rows as Python integers."""
    return rows[:found].tolist()
