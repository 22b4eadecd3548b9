"""What a broker answered for one partition, read a few records at a time; no content of it raises.

What cannot be read is passed over and named: a record by its `fault`, a batch as `Damage`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import numpy as np

from streamwatch.core.events import Partition
from streamwatch.core.fetched import APPENDED, OFFSET
from streamwatch.edge.sources.kafka.batches.aborted import AbortedTransactions
from streamwatch.edge.sources.kafka.batches.codecs import Oversized, Undecompressable, decompress
from streamwatch.edge.sources.kafka.batches.frames import (
    APPEND_TIME,
    CONTROL,
    Batch,
    Broken,
    batch_at,
    following,
)
from streamwatch.edge.sources.kafka.batches.legacy import content_of, message_of, messages_within
from streamwatch.edge.sources.kafka.batches.plain_batches import PlainBatches
from streamwatch.edge.sources.kafka.batches.record import (
    KafkaRecord,
    KafkaRecords,
    Piece,
    divided,
    gathered,
    piece_of,
    too_large,
)
from streamwatch.edge.sources.kafka.batches.scan import Scanned, new_rows

AT_ONCE_BYTES: Final = 1 << 20
"""A batch that decompresses to more than this is decompressed in a thread."""
AT_ONCE_COMPRESSED: Final = 1 << 18
TAKEN_BYTES: Final = 1 << 22
"""Bytes of records that one `take` gives, about: they are copied, a millisecond or two for each MiB."""

UNLIMITED: Final = 1 << 31
"""Bytes of a record: no batch has more."""

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


class Scanner:
    """A scan function, one for several batches that are plain, where there is one, and rows they write to."""

    def __init__(self, scan: Callable[..., Scanned], room: int, plain: PlainBatches | None = None) -> None:
        self.scan = scan
        self.plain = plain
        self.rows = new_rows(room)
        self.room = room


class _Open:
    """A batch that is being read."""

    def __init__(self, batch: Batch, data: np.ndarray[Any, np.dtype[np.uint8]]) -> None:
        self.batch = batch
        self.data = data
        self.at = 0
        self.delta = -1
        self.found = 0
        self.inner: list[KafkaRecord] | None = None
        """The messages of a compressed one of format v0 or v1."""


class PartitionReader:
    """Reads one answer from `position` on.

    Parameters
    ----------
    partition
        Of which this is the answer.
    data
        Batches, the last of which may be cut off.
    position
        Offset that was asked for.
    high_watermark
        As it came with the answer; -1 if it is not known.
    aborted
        (producer id, first offset) of aborted transactions.
    scanner
        Used by nobody else during a call.
    max_batch_bytes
        A batch that decompresses to more is passed over.
    max_record_bytes
        A record with more in key, value and headers is passed over.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what an answer is, and the limits on it
        self,
        partition: Partition,
        data: bytes,
        position: int,
        high_watermark: int,
        aborted: Iterable[tuple[int, int]] | None,
        scanner: Scanner,
        max_batch_bytes: int,
        max_record_bytes: int = UNLIMITED,
    ) -> None:
        self.position = position
        """Offset of the next record to be taken."""
        self.damage: Damage | None = None
        """What stands next and cannot be read; nothing after it is."""
        self.heavy = False
        """What stands next is to be decompressed by `unpack`, in a thread, before it can be taken."""
        self.done = False
        """Everything was taken."""
        self._partition = partition
        self._data = memoryview(data)
        self._bytes = np.frombuffer(data, np.uint8)
        self._at = 0
        self._high_watermark = high_watermark
        self._aborted = AbortedTransactions(aborted)
        self._scanner = scanner
        self._max_batch_bytes = max_batch_bytes
        self._max_record_bytes = max_record_bytes
        self._least = position
        self._batch: Batch | None = None
        self._open: _Open | None = None

    @property
    def held_bytes(self) -> int:
        """Decompressed bytes that are waiting to be taken."""
        return 0 if self._open is None or not self._open.batch.codec else self._open.data.nbytes

    def take(self, room: int) -> KafkaRecords:
        """Up to `room` records from `position` on, one at least if there is one.

        Fewer than that: they are large, or see `done`, `heavy` and `damage`.

        Raises
        ------
        CodecMissing
            They are compressed with a codec whose package is not installed.
        """
        pieces: list[Piece] = []
        left_bytes = TAKEN_BYTES
        while room > 0 and left_bytes > 0 and not (self.done or self.heavy or self.damage):
            if self._open is None:
                if (piece := self._plain(room)) is None:
                    self._next_batch()
                else:
                    pieces.append(piece)
                    room -= len(piece[0])
                continue
            opened, first = self._open, self._open.at
            most = room
            if opened.inner is None:
                size_bytes = len(opened.data) // max(1, opened.batch.records) + 1
                most = min(room, max(1, left_bytes // size_bytes))
            found = [piece for piece in self._from(opened, most) if len(piece[0])]
            if found:
                left_bytes -= opened.at - first
            pieces += found
            room -= sum(len(rows) for rows, *_ in found)
        return gathered(self._partition, pieces)

    def unpack(self) -> None:
        """Decompress the batch that stands next, whatever size is allowed.

        Raises
        ------
        CodecMissing
            As from `take`.
        """
        if self._batch is not None:
            self._decompress(self._batch, self._max_batch_bytes)
        self.heavy = False

    def release(self) -> None:
        """Give back the memory of a batch that is large; it is decompressed again when it is wanted."""
        if self.held_bytes > AT_ONCE_BYTES:
            self._open, self.heavy = None, True

    def _plain(self, room: int) -> Piece | None:
        """Take the batches that stand next as far as they are plain; None if the first is not."""
        scanner, start = self._scanner, self._at
        if scanner.plain is None or self._aborted.coming or self.position != self._least:
            return None
        found, self._at, position = scanner.plain(
            self._bytes,
            start,
            min(room, scanner.room),
            self._least,
            self._high_watermark,
            self._max_record_bytes,
            scanner.rows,
        )
        self.position = self._least = position
        return (scanner.rows[:found].copy(), self._bytes[start : self._at], 0) if self._at > start else None

    def _next_batch(self) -> None:
        batch = batch_at(self._data, self._at, self._least, self._high_watermark)
        if batch is None:
            self._end()
            return
        if isinstance(batch, Batch) and batch.base_offset > self._least and batch.magic == 2:
            after = following(self._data, self._at)  # a gap, or an offset that is wrong
            if after is not None and after < batch.next_offset:
                batch = Broken(f"offset {batch.base_offset} is not where it stands", -1)
        if isinstance(batch, Broken):
            self._break(batch)
            return
        covered = self._aborted.covers(batch)
        if batch.attributes & CONTROL:
            self._aborted.end_at(batch, self._data[batch.body : batch.end])
            self._pass(batch)
        elif covered:
            self._pass(batch)
        else:
            self._batch = batch
            self._begin(batch)

    def _begin(self, batch: Batch) -> None:
        if batch.codec:
            if batch.end - batch.body > AT_ONCE_COMPRESSED:
                self.heavy = True
            else:
                self._decompress(batch, min(AT_ONCE_BYTES, self._max_batch_bytes))
        else:
            body = self._data[batch.body : batch.end]
            self._open = opened = _Open(batch, np.frombuffer(body, np.uint8))
            if batch.magic < 2:
                opened.inner = [message_of(self._partition, batch, self._data)]

    def _decompress(self, batch: Batch, most: int) -> None:
        data, outer_ms = self._data[batch.body : batch.end], -1
        if batch.magic < 2:
            content = content_of(batch, self._data)
            if content is None or content.value is None:
                self._corrupt(batch, "a message without content")
                return
            outer_ms, data = content.timestamp, content.value
        try:
            plain = decompress(batch.codec, data, most)
        except Oversized:
            if most < self._max_batch_bytes:
                self.heavy = True
            else:
                reason = f"decompresses to more than {self._max_batch_bytes} bytes"
                self._damage("oversized_batch", batch, reason)
            return
        except Undecompressable as error:
            self._corrupt(batch, str(error))
            return
        opened = _Open(batch, plain)
        if batch.magic < 2:
            inner = list(messages_within(self._partition, batch, memoryview(plain.data), outer_ms))
            offsets = [record.offset for record in inner]
            if offsets != sorted(set(offsets)) or offsets[-1:] != [batch.base_offset]:
                self._corrupt(batch, "messages that do not fit it")
                return
            opened.inner = inner
        self._open = opened

    def _from(self, opened: _Open, room: int) -> list[Piece]:
        if opened.inner is not None:
            return [self._from_legacy(opened, room)]
        batch, scanner = opened.batch, self._scanner
        append_ms = max(batch.max_ms, 0) if batch.attributes & APPEND_TIME else -1
        first = opened.at
        found, opened.at, opened.delta, broken = scanner.scan(
            opened.data,
            opened.at,
            min(room, scanner.room),
            batch.base_offset,
            batch.last_delta,
            opened.delta,
            batch.first_ms,
            append_ms,
            scanner.rows,
        )
        opened.found += found
        rows = scanner.rows[:found].copy()
        rows[:, APPENDED] = append_ms >= 0
        if found and rows[0, OFFSET] < self.position:  # asked for from within the batch
            rows = rows[rows[:, OFFSET] >= self.position]
        if len(rows):
            self.position = int(rows[-1, OFFSET]) + 1
        pieces = divided(rows, opened.data, first, opened.at, self._max_record_bytes)
        if broken:
            self._corrupt(batch, "records that do not fit it")
        elif opened.at == len(opened.data):
            if opened.found < batch.records:
                self._corrupt(batch, f"{opened.found} records of {batch.records}")
            else:
                self._pass(batch)
        return pieces

    def _from_legacy(self, opened: _Open, room: int) -> Piece:
        inner = opened.inner or []
        piece, opened.inner = inner[:room], inner[room:]
        records: list[KafkaRecord] = []
        for record in piece:
            if self.position <= record.offset:
                size = len(record.key or b"") + len(record.value or b"")
                records.append(record if size <= self._max_record_bytes else too_large(record))
                self.position = record.offset + 1
        if not opened.inner:
            self._pass(opened.batch)
        return piece_of(records)

    def _pass(self, batch: Batch) -> None:
        """Everything of this batch was taken, or nothing of it is to be."""
        self._open = self._batch = None
        self.position = self._least = max(self.position, batch.next_offset)
        self._at = batch.end

    def _end(self) -> None:
        """No whole batch is left; an answer that holds none at all stands at one whose length is wrong."""
        if self._at == 0 and len(self._data):
            self.damage = Damage("corrupt_batch", self.position, -1, "no batch is whole", certain=False)
        self.done = self.damage is None

    def _break(self, broken: Broken) -> None:
        claimed = broken.next_offset if self.position < broken.next_offset else -1
        if claimed > self._high_watermark >= 0:
            claimed = -1
        after = following(self._data, self._at)
        if after is not None and after > self.position and not self.position < claimed <= after:
            claimed = after
        self.damage = Damage("corrupt_batch", self.position, claimed, broken.reason, certain=False)

    def _corrupt(self, batch: Batch, reason: str) -> None:
        self._damage("corrupt_batch", batch, reason)

    def _damage(self, cause: Cause, batch: Batch, reason: str) -> None:
        first = max(self.position, batch.base_offset if batch.magic == 2 else self.position)
        self._open = self._batch = None
        self.damage = Damage(cause, first, batch.next_offset, reason, certain=True)
