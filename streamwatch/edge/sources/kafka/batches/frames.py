"""Batches in a broker's answer: where each begins and ends, and whether it is intact.

| damage to                                      | detected by                                            |
|------------------------------------------------|--------------------------------------------------------|
| anything from the attributes on                | CRC-32C                                                |
| length                                         | bounds, else CRC                                       |
| magic byte                                     | values other than 0, 1, 2; among these by CRC          |
| offset of the batch (no checksum covers it)    | order: offsets rise, and none is beyond the log's end  |
| leader epoch (no checksum covers it)           | not used                                               |
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from aiokafka.record.util import calc_crc32c

from streamwatch.core.records.fetched import KEY, KEY_BYTES
from streamwatch.edge.sources.kafka.batches.scan import new_rows, scan

HEAD: Final = struct.Struct(">qiibIhiqqqhii")
"""Header of a batch of format v2: offset, length, leader epoch, magic, CRC, attributes, last offset delta,
first and newest timestamp, producer id and epoch, first sequence number, number of records."""
LOG_OVERHEAD: Final = 12
"""Bytes of the fields offset and length, which `length` does not count."""
CHECKED_FROM: Final = 21
"""Position in a batch of format v2 of the first byte that its CRC covers."""
LEGACY_HEAD: Final = struct.Struct(">qiIbb")
"""Header of a message of format v0 or v1: offset, length, CRC, magic, attributes."""
LEGACY_CHECKED_FROM: Final = 16
LEGACY_LEAST: Final = 14
"""Least `length` of a message: CRC, magic, attributes, two lengths."""

crc32c: Any = calc_crc32c
"""CRC-32C of any buffer; typed for bytes only."""

CODEC, APPEND_TIME, TRANSACTIONAL, CONTROL = 0x07, 0x08, 0x10, 0x20


class Batch(NamedTuple):
    """Header of an intact batch, and the position of its records."""

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
    """Position in the answer of its records (v0, v1: of its message)."""
    end: int

    @property
    def next_offset(self) -> int:
        """Offset after its last record, also if compaction removed that record."""
        return self.base_offset + self.last_delta + 1

    @property
    def codec(self) -> int:
        """Number of its compression codec; 0 for none."""
        return self.attributes & CODEC

    @property
    def first_offset(self) -> int | None:
        """Offset before which it has no record; None for compressed v0 and v1, which name their last only."""
        return self.base_offset if self.magic == 2 or not self.codec else None


class Broken(NamedTuple):
    """Bytes that are no intact batch."""

    reason: str
    next_offset: int
    """Offset after it by its header; -1 if the header cannot be trusted."""


def batch_at(  # noqa: PLR0911 - one for each line of the table
    data: memoryview, at: int, least: int, most: int
) -> Batch | Broken | None:
    """Return the batch that begins at `at`; None if the answer ends within it, as it may in the last one.

    Parameters
    ----------
    data
        A broker's answer for one partition.
    at
        Position of the batch.
    least
        Least value of its last offset: the offset that was requested, or the one after the previous batch.
    most
        High watermark, beyond which there are no batches; -1 if unknown.
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
    """Return the batch at `at`, as `batch_at` does; also Broken if the next batch contradicts its offset.

    Only an offset after a gap is checked: compacted logs have gaps, and a batch with a damaged header may
    seem to follow one.
    """
    batch = batch_at(data, at, least, most)
    if isinstance(batch, Batch) and batch.first_offset is not None and batch.first_offset > least:
        after = following(data, at, most)
        if after is not None and after < batch.next_offset:
            return Broken(f"offset {batch.base_offset} is not where it stands", -1)
    return batch


def offset_after(broken: Broken, data: memoryview, at: int, position: int, most: int) -> int:
    """Return the offset at which reading can continue after bytes that are no batch; -1 if unknown.

    It is the offset of the intact batch that follows, unless the broken header names one between `position`
    and it. Where none follows, the header is believed only if it names the end of the log: any other offset
    might lie beyond intact batches.
    """
    claimed = broken.next_offset if position < broken.next_offset else -1
    after = following(data, at, most)
    if after is None or after <= position:
        return claimed if claimed == most else -1
    return claimed if position < claimed <= after else after


def _batch(data: memoryview, at: int, end: int) -> Batch | Broken:
    head = HEAD.unpack_from(data, at)
    base, _, _, magic, crc, attributes, last_delta, first_ms, max_ms, producer, _, _, count = head
    if crc32c(data[at + CHECKED_FROM : end]) != crc:
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
    """Return the first offset of the intact batch that follows the one at `at` by its length.

    None without one, and where its header does not name it. Checksums do not cover offsets, so an offset
    beyond `most`, the high watermark, is not trusted.
    """
    if len(data) - at < LOG_OVERHEAD:
        return None
    (length,) = struct.unpack_from(">i", data, at + 8)
    if length < 0:
        return None
    found = batch_at(data, at + LOG_OVERHEAD + length, -1, most)
    return found.first_offset if isinstance(found, Batch) else None


# Aborted transactions, whose batches are skipped.


_ABORT = b"\x00\x00"


class AbortedTransactions:
    """Aborted transactions in one answer.

    Parameters
    ----------
    named
        (producer id, first offset) of each aborted transaction, from the broker; None if there are none.
    """

    def __init__(self, named: Iterable[tuple[int, int]] | None) -> None:
        self._coming = sorted(named or (), key=lambda transaction: -transaction[1])
        self._producers: set[int] = set()

    @property
    def coming(self) -> bool:
        """Tell whether aborted transactions begin in later batches."""
        return bool(self._coming)

    def covers(self, batch: Batch) -> bool:
        """Tell whether a batch belongs to an aborted transaction; call it for batches in their order."""
        while self._coming and self._coming[-1][1] <= batch.base_offset:
            self._producers.add(self._coming.pop()[0])
        return bool(batch.attributes & TRANSACTIONAL) and batch.producer_id in self._producers

    def end_at(self, batch: Batch, data: Any) -> None:
        """End the aborted transaction of a control batch's producer, if the batch is an abort marker.

        Parameters
        ----------
        batch
            Header of the control batch.
        data
            Bytes of its records.
        """
        rows = new_rows(1)
        found, *_ = scan(data, 0, 1, 0, batch.last_delta, -1, 0, -1, rows)
        if found:
            at, length = int(rows[0, KEY]), int(rows[0, KEY_BYTES])
            if length >= 4 and bytes(data[at + 2 : at + 4]) == _ABORT:
                self._producers.discard(batch.producer_id)


# Search for the offset from which a log can be read again, after damage of unknown length.
#
# Brokers find a batch by an index with an entry every few kilobytes, then batch by batch: from offsets beyond
# the next entry they find the batches after the damage. The first such offset is searched by doubling, then
# halving the step. A batch may be found only by its last offset, to which the index points: `asked` then is
# greater than `position`.


Look: TypeAlias = int | Literal["unreadable", "end"]
"""Result of fetching from an offset: the offset of an intact batch; `unreadable` for an error, or bytes that
are no batch; `end` for nothing, at the end of the log."""


class ResumePositions(NamedTuple):
    """Offsets from which reading continues."""

    position: int
    """Offset of the first record that can be read."""
    asked: int
    """Offset to request, by which a broker finds that record."""


async def next_readable(
    look: Callable[[int], Awaitable[Look]], damaged: int, end: int, *, to_the_end: bool = True
) -> ResumePositions | None:
    """Find the offsets from which reading continues after damage; None if it cannot continue yet.

    Parameters
    ----------
    look
        Fetches from an offset; raises the errors of a lost connection.
    damaged
        Offset that cannot be read.
    end
        Offset at which the log ends.
    to_the_end
        Whether reading may continue at `end` if nothing before can be read; if not, it waits for an intact
        batch.
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
    again = await look(damaged)  # a broker's failure may have been temporary
    return found if again == "unreadable" else _from(again, damaged, damaged)


def _from(seen: Look, asked: int, damaged: int) -> ResumePositions:
    return ResumePositions(max(seen, damaged) if isinstance(seen, int) else asked, asked)


# Unreadable offsets of a partition, and the cause.


Cause: TypeAlias = Literal["corrupt_batch", "oversized_batch"]


class Damage(NamedTuple):
    """A range of offsets that cannot be read."""

    cause: Cause
    first: int
    next_offset: int
    """Offset at which reading can continue; -1 if unknown."""
    reason: str
    certain: bool
    """Whether the checksum fits, so that fetching again would bring the same bytes."""
    asked: int = -1
    """Later offset by which brokers find `next_offset`; -1: `next_offset` itself."""

    @property
    def records(self) -> int:
        """Number of offsets skipped; each is a record unless compaction removed it."""
        return max(0, self.next_offset - self.first)
