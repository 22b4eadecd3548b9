"""Invalid records that replicas keep in their state until the holder has written them to their topic.

Each has a position in the sequence of evaluation, the same in all replicas: the clock at which it was
evaluated, and its number among the invalid records of that millisecond. The ledger records the position up to
which the holder has written. Unlike a count since the beginning, a position does not depend on when a replica
began to keep records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from streamwatch.core.ports import Record
from streamwatch.core.records.events import Name

RecordPosition: TypeAlias = tuple[int, int]
"""(clock in ms, number among the invalid records of that millisecond, from 1); larger ones come later."""
BEGINNING: Final[RecordPosition] = (-1, 0)
"""Position before the first record."""
MOST_BYTES: Final = 8_388_608
"""Number of bytes of invalid records from which a commit is made for them alone."""


class KeptRecord(msgspec.Struct, frozen=True, array_like=True):
    """One invalid record (a `ports.Record`), with its position and the reason why it is invalid."""

    position: RecordPosition
    reason: Name
    topic: Name
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]
    timestamp: int
    timestamp_type: int
    fault: Name | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes of key, value and headers."""
        headers = sum(len(name) + len(value or b"") for name, value in self.headers)
        return len(self.key or b"") + len(self.value or b"") + headers


class RecordKeeper:
    """Assigns positions to invalid records, and keeps them until they are taken for a commit.

    Parameters
    ----------
    reached
        Position up to which the evaluation had come at the last commit.
    clock_ms
        Function that returns the clock of the evaluation at the last record evaluated.
    """

    def __init__(self, reached: RecordPosition, clock_ms: Callable[[], int]) -> None:
        self._reached = reached
        self._clock_ms = clock_ms
        self._kept: list[KeptRecord] = []
        self._bytes = 0

    @property
    def filled(self) -> float:
        """Bytes kept for the next commit, as a share of `MOST_BYTES`; may exceed 1 until the commit."""
        return self._bytes / MOST_BYTES

    def keep(self, record: Record, reason: str, clock_ms: int) -> None:
        """Keep a record when it is evaluated, at `clock_ms`."""
        self._reach(clock_ms)
        self._reached = (self._reached[0], self._reached[1] + 1)
        kept = KeptRecord(
            self._reached,
            reason,
            record.topic,
            record.partition,
            record.offset,
            record.key,
            record.value,
            list(record.headers),
            record.timestamp,
            record.timestamp_type,
            record.fault,
        )
        self._kept.append(kept)
        self._bytes += kept.size_bytes

    def take(self) -> list[KeptRecord]:
        """Return the records kept since the last call, and set `reached` to the position after them."""
        self._reach(self._clock_ms())
        kept, self._kept, self._bytes = self._kept, [], 0
        return kept

    @property
    def reached(self) -> RecordPosition:
        """Position up to which the evaluation had come at the last `take`, or `keep` since."""
        return self._reached

    def _reach(self, clock_ms: int) -> None:
        if clock_ms > self._reached[0]:
            self._reached = (clock_ms, 0)
