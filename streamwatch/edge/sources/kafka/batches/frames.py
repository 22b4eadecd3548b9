"""Batches in what a broker answers: where each begins and ends, and whether it is what was written.

| what is wrong                                  | found by                                               |
|------------------------------------------------|--------------------------------------------------------|
| anything from the attributes on                | CRC-32C                                                |
| length                                         | bounds, else CRC                                       |
| magic byte                                     | only 0, 1 and 2 are known; between them by CRC         |
| offset of the batch (no checksum covers it)    | order: batches rise, and none ends behind the log      |
| leader epoch (no checksum covers it)           | not used                                               |
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, Final, NamedTuple

from aiokafka.record.util import calc_crc32c

HEAD: Final = struct.Struct(">qiibIhiqqqhii")
"""Offset, length, leader epoch, magic, CRC, attributes, last offset delta, first and newest timestamp,
producer id and epoch, first sequence number, records."""
LOG_OVERHEAD: Final = 12
"""Bytes of offset and length, which `length` does not count."""
CHECKED_FROM: Final = 21
"""The first byte that the CRC of a batch of format v2 is over."""
LEGACY_HEAD: Final = struct.Struct(">qiIbb")
"""Offset, length, CRC, magic, attributes of a message of format v0 or v1."""
LEGACY_CHECKED_FROM: Final = 16
LEGACY_LEAST: Final = 14
"""The shortest length of a message: CRC, magic, attributes, two lengths."""

_crc32c: Any = calc_crc32c
"""Takes any buffer."""

CODEC, APPEND_TIME, TRANSACTIONAL, CONTROL = 0x07, 0x08, 0x10, 0x20


class Batch(NamedTuple):
    """The header of a sound batch, and where its records are."""

    magic: int
    base_offset: int
    last_delta: int
    attributes: int
    first_ms: int
    max_ms: int
    producer_id: int
    records: int
    """As it claims."""
    body: int
    """Where its records (v0, v1: its message) begin in the answer."""
    end: int

    @property
    def next_offset(self) -> int:
        """Offset after the last one that belonged to it, be that one compacted away."""
        return self.base_offset + self.last_delta + 1

    @property
    def codec(self) -> int:
        """0 for none."""
        return self.attributes & CODEC


class Broken(NamedTuple):
    """Bytes that are no batch."""

    reason: str
    next_offset: int
    """Offset after it as far as its header can be believed; -1 if not at all."""


def batch_at(  # noqa: PLR0911 - one for each line of the table
    data: memoryview, at: int, least: int, most: int
) -> Batch | Broken | None:
    """The batch that begins at `at`; None if the answer ends before it does, as the last one in it may.

    Parameters
    ----------
    data
        A broker's answer for one partition.
    at
        Where the batch begins.
    least
        Its last offset is at least this: what was asked for, or the offset after the batch before.
    most
        High watermark, behind which there are no batches; -1 if it is not known.
    """
    if len(data) - at < LOG_OVERHEAD + LEGACY_LEAST:
        return None
    base, length, _, magic = struct.unpack_from(">qiib", data, at)
    end = at + LOG_OVERHEAD + length
    if length < (HEAD.size - LOG_OVERHEAD if magic == 2 else LEGACY_LEAST):
        return Broken(f"no batch has a length of {length}", -1)
    if end > len(data):
        return None
    if magic == 2:
        batch = _batch(data, at, end)
    elif magic in (0, 1):
        batch = _message(data, at, end)
    else:
        return Broken(f"unknown format {magic}", -1)
    if isinstance(batch, Broken):
        return batch
    beyond = batch.next_offset > most >= 0
    if base < 0 or batch.next_offset <= least or beyond:
        return Broken(f"offset {base} is not where it stands", -1)
    return batch


def next_batch(data: memoryview, at: int, least: int, most: int) -> Batch | Broken | None:
    """As `batch_at`, and broken too if a sound batch behind it shows that its offset is wrong.

    Only offsets after a gap are doubted: a log that was compacted has gaps, and a batch whose head was
    damaged may claim one.
    """
    batch = batch_at(data, at, least, most)
    if isinstance(batch, Batch) and batch.base_offset > least and batch.magic == 2:
        after = following(data, at)
        if after is not None and after < batch.next_offset:
            return Broken(f"offset {batch.base_offset} is not where it stands", -1)
    return batch


def offset_after(broken: Broken, data: memoryview, at: int, position: int, most: int) -> int:
    """Offset at which reading can go on behind bytes that are no batch; -1 if that is not known.

    That of the sound batch which follows, unless the head names one between `position` and it.
    """
    claimed = broken.next_offset if position < broken.next_offset else -1
    if claimed > most >= 0:
        claimed = -1
    after = following(data, at)
    if after is not None and after > position and not position < claimed <= after:
        claimed = after
    return claimed


def _batch(data: memoryview, at: int, end: int) -> Batch | Broken:
    head = HEAD.unpack_from(data, at)
    base, _, _, magic, crc, attributes, last_delta, first_ms, max_ms, producer, _, _, count = head
    if _crc32c(data[at + CHECKED_FROM : end]) != crc:
        return Broken("checksum", base + last_delta + 1 if base >= 0 and last_delta >= 0 else -1)
    if last_delta < 0 or count < 0:
        return Broken(f"{count} records up to offset delta {last_delta}", -1)
    body = at + HEAD.size
    return Batch(magic, base, last_delta, attributes, first_ms, max_ms, producer, count, body, end)


def _message(data: memoryview, at: int, end: int) -> Batch | Broken:
    base, _, crc, magic, attributes = LEGACY_HEAD.unpack_from(data, at)
    if zlib.crc32(data[at + LEGACY_CHECKED_FROM : end]) != crc:
        return Broken("checksum", -1)
    return Batch(magic, base, 0, attributes & 0x0F, -1, -1, -1, 1, at + LEGACY_HEAD.size, end)


def following(data: memoryview, at: int) -> int | None:
    """Offset of the sound batch that follows the one at `at` by its length; None if none is there to see."""
    if len(data) - at < LOG_OVERHEAD:
        return None
    (length,) = struct.unpack_from(">i", data, at + 8)
    if length < 0:
        return None
    found = batch_at(data, at + LOG_OVERHEAD + length, -1, -1)
    return found.base_offset if isinstance(found, Batch) else None
