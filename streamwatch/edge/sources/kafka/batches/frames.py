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
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from aiokafka.record.util import calc_crc32c

from streamwatch.core.records import KEY, KEY_BYTES
from streamwatch.edge.sources.kafka.batches.scan import new_rows, scan

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
    """Number of records in the header."""
    body: int
    """Where its records (v0, v1: its message) begin in the answer."""
    end: int

    @property
    def next_offset(self) -> int:
        """Offset after its last record, even if that was compacted away."""
        return self.base_offset + self.last_delta + 1

    @property
    def codec(self) -> int:
        """Number of the codec; 0 for none."""
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
        after = following(data, at, most)
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
    after = following(data, at, most)
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


def following(data: memoryview, at: int, most: int) -> int | None:
    """Offset of the sound batch that follows the one at `at` by its length; None if none is there to see.

    Checksums do not cover offsets, so one beyond `most`, the high watermark, is not believed.
    """
    if len(data) - at < LOG_OVERHEAD:
        return None
    (length,) = struct.unpack_from(">i", data, at + 8)
    if length < 0:
        return None
    found = batch_at(data, at + LOG_OVERHEAD + length, -1, most)
    return found.base_offset if isinstance(found, Batch) else None


# Transactions that were aborted: whose batches are passed over, and until when.


_ABORT = b"\x00\x00"


class AbortedTransactions:
    """Aborted transactions that a broker names in one answer.

    Parameters
    ----------
    named
        (producer id, first offset) of each; None if there are none.
    """

    def __init__(self, named: Iterable[tuple[int, int]] | None) -> None:
        self._coming = sorted(named or (), key=lambda transaction: -transaction[1])
        self._producers: set[int] = set()

    @property
    def coming(self) -> bool:
        """Return whether transactions begin that were not met yet."""
        return bool(self._coming)

    def covers(self, batch: Batch) -> bool:
        """Return whether this batch, met after all before it, belongs to an aborted transaction."""
        while self._coming and self._coming[-1][1] <= batch.base_offset:
            self._producers.add(self._coming.pop()[0])
        return bool(batch.attributes & TRANSACTIONAL) and batch.producer_id in self._producers

    def end_at(self, batch: Batch, data: Any) -> None:
        """End the transaction of a control batch's producer if the batch holds the marker of an abort.

        Parameters
        ----------
        batch
            Its header.
        data
            Its records: bytes-like.
        """
        rows = new_rows(1)
        found, *_ = scan(data, 0, 1, 0, batch.last_delta, -1, 0, -1, rows)
        if found:
            at, length = int(rows[0, KEY]), int(rows[0, KEY_BYTES])
            if length >= 4 and bytes(data[at + 2 : at + 4]) == _ABORT:
                self._producers.discard(batch.producer_id)


# Where a log can be read again, after damaged bytes of unknown length.
#
# Brokers find a batch by an index with an entry every few kilobytes, then batch by batch: beyond the next
# entry they find what follows the damage. Where that begins is searched by doubling, then by halving. A
# batch may be reached from its last offset only, where the index points to it: `asked` then lies behind
# `position`.


Look: TypeAlias = int | Literal["unreadable", "end"]
"""What fetching from an offset brings: the offset at which a sound batch begins; an error, or bytes that are
no batch; nothing, at the end of the log."""


class ResumePositions(NamedTuple):
    """Positions at which reading goes on."""

    position: int
    """Offset of the first record that can be read."""
    asked: int
    """Offset by which a broker finds it."""


async def next_readable(
    look: Callable[[int], Awaitable[Look]], damaged: int, end: int, *, to_the_end: bool = True
) -> ResumePositions | None:
    """Find where reading goes on after `damaged`; None if it cannot yet.

    Parameters
    ----------
    look
        Tries an offset; raises what a lost connection raises.
    damaged
        Cannot be read.
    end
        Where the log ends.
    to_the_end
        Reading goes on there if nothing before can be read and that can; else it waits for a sound batch.
    """
    bad, step = damaged, 1
    found: ResumePositions | None = None
    while found is None and bad + step < end:
        candidate = bad + step
        seen = await look(candidate)
        if seen == "unreadable" or (seen == "end" and not to_the_end):
            bad, step = candidate, step * 2
        else:
            found = _from(seen, candidate, damaged)
    if found is None:
        if not to_the_end or end <= damaged or await look(end) == "unreadable":
            return None
        found = ResumePositions(end, end)
    least = min(found)
    while least - bad > 1:
        middle = (bad + least) // 2
        seen = await look(middle)
        if seen == "unreadable":
            bad = middle
        else:
            found = _from(seen, middle, damaged)
            least = min(middle, *found)
    return found


def _from(seen: Look, asked: int, damaged: int) -> ResumePositions:
    return ResumePositions(max(seen, damaged) if isinstance(seen, int) else asked, asked)


# Offsets of a partition that cannot be read, and why.


Cause: TypeAlias = Literal["corrupt_batch", "oversized_batch"]


class Damage(NamedTuple):
    """Offsets that cannot be read."""

    cause: Cause
    first: int
    next_offset: int
    """Where reading can go on; -1 if that is not known."""
    reason: str
    certain: bool
    """The checksum is right, so fetching again would bring the same."""
    asked: int = -1
    """Later offset by which brokers find `next_offset`; -1 for that itself."""

    @property
    def records(self) -> int:
        """Offsets passed over, each a record unless compacted away."""
        return max(0, self.next_offset - self.first)
