"""A batch whose records are at hand: as they came, or decompressed."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from streamwatch.core.events import Partition
from streamwatch.core.fetched import APPENDED
from streamwatch.edge.sources.kafka.batches.codecs import decompress
from streamwatch.edge.sources.kafka.batches.frames import APPEND_TIME, Batch
from streamwatch.edge.sources.kafka.batches.legacy import content_of, message_of, messages_within
from streamwatch.edge.sources.kafka.batches.record import KafkaRecord, too_large
from streamwatch.edge.sources.kafka.batches.scanner import Scanner

Octets: TypeAlias = np.ndarray[Any, np.dtype[np.uint8]]
Rows: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


class Contradictory(Exception):  # noqa: N818 - it names what is the case
    """A batch whose content is not as its head says."""


class OpenBatch:
    """A batch that is being read.

    Parameters
    ----------
    batch
        Its head.
    data
        Bytes of its records, in plain.
    messages
        Those of a batch of format v0 or v1; None for one of v2.
    """

    def __init__(self, batch: Batch, data: Octets, messages: list[KafkaRecord] | None = None) -> None:
        self.batch = batch
        self.data = data
        self.messages = messages
        """Yet to be taken."""
        self.at = 0
        """Bytes of `data` that were read."""
        self.delta = -1
        """Offset, from the first of the batch, of the last record that was read."""
        self.found = 0
        """Records that were read."""

    @property
    def record_bytes(self) -> int:
        """Bytes of a record, about; at least one."""
        return len(self.data) // max(1, self.batch.records) + 1

    def scan(self, scanner: Scanner, room: int) -> tuple[Rows, bool]:
        """Read up to `room` records from `at` on; their rows, and whether there is one that does not fit."""
        batch = self.batch
        append_ms = max(batch.max_ms, 0) if batch.attributes & APPEND_TIME else -1
        found, self.at, self.delta, broken = scanner.scan(
            self.data,
            self.at,
            min(room, scanner.room),
            batch.base_offset,
            batch.last_delta,
            self.delta,
            batch.first_ms,
            append_ms,
            scanner.rows,
        )
        self.found += found
        rows = scanner.rows[:found].copy()
        rows[:, APPENDED] = append_ms >= 0
        return rows, bool(broken)

    def take_messages(self, room: int, position: int, most_bytes: int) -> list[KafkaRecord]:
        """Take up to `room` messages of format v0 or v1, without those before `position`.

        Of one with more than `most_bytes` in key and value only the place is given.
        """
        messages = self.messages or []
        taken, self.messages = messages[:room], messages[room:]
        records: list[KafkaRecord] = []
        for record in taken:
            if position <= record.offset:
                size = len(record.key or b"") + len(record.value or b"")
                records.append(record if size <= most_bytes else too_large(record))
        return records


def open_plain(partition: Partition, batch: Batch, answer: memoryview) -> OpenBatch:
    """Open a batch that is not compressed; `answer` is what it stands in."""
    data = np.frombuffer(answer[batch.body : batch.end], np.uint8)
    return OpenBatch(batch, data, [message_of(partition, batch, answer)] if batch.magic < 2 else None)


def open_compressed(partition: Partition, batch: Batch, answer: memoryview, most: int) -> OpenBatch:
    """Decompress a batch to no more than `most` bytes.

    Raises
    ------
    Oversized
        It has more.
    Undecompressable
        Its bytes are none of its codec.
    Contradictory
        Of a batch of format v0 or v1: it has no content, or messages that do not fit it.
    CodecMissing
        The package of its codec is not installed.
    """
    if batch.magic == 2:
        return OpenBatch(batch, decompress(batch.codec, answer[batch.body : batch.end], most))
    content = content_of(batch, answer)
    if content is None or content.value is None:
        raise Contradictory("a message without content")
    data = decompress(batch.codec, content.value, most)
    inner = list(messages_within(partition, batch, memoryview(data.data), content.timestamp))
    offsets = [record.offset for record in inner]
    if offsets != sorted(set(offsets)) or offsets[-1:] != [batch.base_offset]:
        raise Contradictory("messages that do not fit it")
    return OpenBatch(batch, data, inner)
