"""Reads a broker's answer for one partition, some records at a time; invalid contents never raise.

A record that cannot be read has a `fault`; a batch that cannot be read is reported as `Damage`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from streamwatch.core.records.events import Partition
from streamwatch.core.records.fetched import OFFSET
from streamwatch.edge.sources.kafka.batches.frames import (
    CONTROL,
    AbortedTransactions,
    Batch,
    Broken,
    Cause,
    Damage,
    next_batch,
    offset_after,
)
from streamwatch.edge.sources.kafka.batches.opened import (
    Contradictory,
    OpenBatch,
    Oversized,
    Scanner,
    Undecompressable,
    open_compressed,
    open_plain,
)
from streamwatch.edge.sources.kafka.batches.record import (
    KafkaRecords,
    Piece,
    divided,
    gathered,
    in_place,
)
from streamwatch.edge.sources.kafka.batches.scan import with_padding

AT_ONCE_BYTES: Final = 1 << 20
"""A batch that decompresses to more than this is decompressed in a thread."""
AT_ONCE_COMPRESSED: Final = 1 << 18
TAKEN_BYTES: Final = 1 << 22
"""Approximate bytes of records that one `take` returns; copying takes a millisecond or two for each MiB."""

UNLIMITED: Final = 1 << 31
"""Limit on the bytes of a record that none exceeds."""


class PartitionReader:
    """Reads one answer, from an offset on.

    Parameters
    ----------
    partition
        Partition that was fetched.
    data
        The answer: batches, of which the last may be cut off.
    position
        Offset from which it was fetched.
    high_watermark
        High watermark in the answer; -1 if unknown.
    aborted
        (producer id, first offset) of aborted transactions.
    scanner
        Scanner of batches, which no other thread may use during a call.
    max_batch_bytes
        Limit on the decompressed bytes of a batch; a larger one is reported as damage.
    max_record_bytes
        Limit on the bytes of key, value and headers of a record; a larger one has a fault and no content.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what an answer is, and the limits on it
        self,
        partition: Partition,
        data: bytes | memoryview,
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
        """Damage of the next batch, at which reading of this answer ends; None without any."""
        self.heavy = False
        """Whether the next batch has to be decompressed by `unpack`, in a thread, before it can be taken."""
        self.done = False
        """Whether all records were taken."""
        self._partition = partition
        self._data = memoryview(data)
        self._bytes = np.frombuffer(data, np.uint8)
        self._padded = with_padding(data)
        self._at = 0
        self._high_watermark = high_watermark
        self._aborted = AbortedTransactions(aborted)
        self._scanner = scanner
        self._max_batch_bytes = max_batch_bytes
        self._max_record_bytes = max_record_bytes
        self._least = position
        self._batch: Batch | None = None
        self._open: OpenBatch | None = None

    @property
    def held_bytes(self) -> int:
        """Bytes of the decompressed batch that is in memory; 0 without one."""
        return 0 if self._open is None or not self._open.batch.codec else self._open.data.nbytes

    def take(self, room: int) -> KafkaRecords:
        """Return up to `room` records from `position` on, and at least one if there is one.

        Fewer are returned where they are large, or where `done`, `heavy` or `damage` is set.

        Raises
        ------
        CodecMissing
            Records are compressed with a codec whose package is not installed.
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
            most = min(room, max(1, left_bytes // opened.record_bytes))
            found = [piece for piece in self._from(opened, most) if len(piece[0])]
            if found:
                left_bytes -= opened.at - first
            pieces += found
            room -= sum(len(rows) for rows, *_ in found)
        found = in_place(self._partition, pieces, self._padded) if self._padded is not None else None
        return found if found is not None else gathered(self._partition, pieces)

    def unpack(self) -> None:
        """Decompress the next batch, up to `max_batch_bytes`.

        Raises
        ------
        CodecMissing
            The package of its codec is not installed.
        """
        if self._batch is not None:
            self._decompress(self._batch, self._max_batch_bytes)
        self.heavy = False

    def release(self) -> None:
        """Free the memory of a large decompressed batch; it becomes `heavy`, and is decompressed again."""
        if self.held_bytes > AT_ONCE_BYTES:
            self._open, self.heavy = None, True

    def _plain(self, room: int) -> Piece | None:
        """Read the next batches in one compiled pass, as long as they are plain; None if the first is not."""
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
        batch = next_batch(self._data, self._at, self._least, self._high_watermark)
        if batch is None:
            self._end()
            return
        if isinstance(batch, Broken):
            after = offset_after(batch, self._data, self._at, self.position, self._high_watermark)
            self.damage = Damage("corrupt_batch", self.position, after, batch.reason, certain=False)
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
        if not batch.codec:
            self._open = open_plain(batch, self._data)
        elif batch.end - batch.body > AT_ONCE_COMPRESSED:
            self.heavy = True
        else:
            self._decompress(batch, min(AT_ONCE_BYTES, self._max_batch_bytes))

    def _decompress(self, batch: Batch, most: int) -> None:
        try:
            self._open = open_compressed(batch, self._data, most)
        except Oversized:
            if most < self._max_batch_bytes:
                self.heavy = True
            else:
                reason = f"decompresses to more than {self._max_batch_bytes} bytes"
                self._damage("oversized_batch", batch, reason)
        except (Undecompressable, Contradictory) as error:
            self._corrupt(batch, str(error))

    def _from(self, opened: OpenBatch, room: int) -> list[Piece]:
        batch, first = opened.batch, opened.at
        rows, broken = opened.scan(self._scanner, room)
        if len(rows) and rows[0, OFFSET] < self.position:  # reading began within the batch
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

    def _pass(self, batch: Batch) -> None:
        """Continue after this batch, all of whose records were taken or are to be skipped."""
        self._open = self._batch = None
        self.position = self._least = max(self.position, batch.next_offset)
        self._at = batch.end

    def _end(self) -> None:
        """End the answer, as no complete batch is left; an answer without any is damaged."""
        if self._at == 0 and len(self._data):
            self.damage = Damage("corrupt_batch", self.position, -1, "no batch is whole", certain=False)
        self.done = self.damage is None

    def _corrupt(self, batch: Batch, reason: str) -> None:
        self._damage("corrupt_batch", batch, reason)

    def _damage(self, cause: Cause, batch: Batch, reason: str) -> None:
        first = max(self.position, batch.base_offset if batch.magic == 2 else self.position)
        self._open = self._batch = None
        self.damage = Damage(cause, first, batch.next_offset, reason, certain=True)
