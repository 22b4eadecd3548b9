"""Messages of formats v0 and v1, which logs written before Kafka 0.11 may still hold.

A message that is compressed holds a set of messages. Theirs are the offsets in v0; in v1 they count from 0,
and the last of them stands at the offset of the message around them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from streamwatch.core.events import Partition
from streamwatch.edge.sources.kafka.batches.frames import (
    APPEND_TIME,
    LEGACY_CHECKED_FROM,
    LEGACY_HEAD,
    LEGACY_LEAST,
    LOG_OVERHEAD,
    Batch,
)
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord

BAD_MESSAGE = "record_structure"


class Content(NamedTuple):
    """Content of one message."""

    timestamp: int
    """-1 in v0, which has none."""
    key: bytes | None
    value: memoryview | None


def content_of(batch: Batch, data: memoryview) -> Content | None:
    """The content of one message; None if its lengths do not fit it."""
    at, timestamp = batch.body, -1
    if batch.magic == 1:
        if batch.end - at < 8:
            return None
        (timestamp,) = struct.unpack_from(">q", data, at)
        at += 8
    parts: list[memoryview | None] = []
    for _ in range(2):
        if batch.end - at < 4:
            return None
        (length,) = struct.unpack_from(">i", data, at)
        at += 4
        if length > batch.end - at:
            return None
        parts.append(None if length < 0 else data[at : at + length])
        at += max(length, 0)
    key, value = parts
    return Content(timestamp, None if key is None else bytes(key), value) if at == batch.end else None


def message_of(partition: Partition, batch: Batch, data: memoryview) -> KafkaRecord:
    """The record that an uncompressed message is."""
    content = content_of(batch, data)
    if content is None:
        return KafkaRecord(*partition, batch.base_offset, -1, fault=BAD_MESSAGE)
    timestamp, key, value = content
    said = None if value is None else bytes(value)
    appended = int(bool(batch.attributes & APPEND_TIME))
    return KafkaRecord(*partition, batch.base_offset, timestamp, key, said, timestamp_type=appended)


def messages_within(
    partition: Partition, outer: Batch, data: memoryview, outer_ms: int
) -> Sequence[KafkaRecord]:
    """The records that a compressed message holds, as far as they can be told apart.

    Parameters
    ----------
    partition
        Where the message was read.
    outer
        The message around them.
    data
        Its value, decompressed.
    outer_ms
        Its timestamp, which is theirs where the broker set it.
    """
    inner: list[tuple[int, KafkaRecord]] = []
    at = 0
    while len(data) - at >= LOG_OVERHEAD + LEGACY_LEAST:
        offset, length, crc, magic, attributes = LEGACY_HEAD.unpack_from(data, at)
        end = at + LOG_OVERHEAD + length
        if length < LEGACY_LEAST or end > len(data):
            break
        batch = Batch(magic, offset, 0, attributes, -1, -1, -1, 1, at + LEGACY_HEAD.size, end)
        sound = magic == outer.magic and zlib.crc32(data[at + LEGACY_CHECKED_FROM : end]) == crc
        record = message_of(partition, batch, data) if sound else _unreadable(partition, offset)
        inner.append((offset, record))
        at = end
    if not inner:
        return []
    shift = outer.base_offset - inner[-1][0] if outer.magic == 1 else 0
    appended = outer.magic == 1 and outer.attributes & APPEND_TIME
    return [_placed(record, offset + shift, outer_ms if appended else None) for offset, record in inner]


def _placed(record: KafkaRecord, offset: int, timestamp: int | None) -> KafkaRecord:
    topic, partition = record.topic, record.partition
    if timestamp is None:
        at_ms, kind = record.timestamp, record.timestamp_type
    else:
        at_ms, kind = timestamp, 1
    return KafkaRecord(topic, partition, offset, at_ms, record.key, record.value, (), record.fault, kind)


def _unreadable(partition: Partition, offset: int) -> KafkaRecord:
    return KafkaRecord(*partition, offset, -1, fault=BAD_MESSAGE)
