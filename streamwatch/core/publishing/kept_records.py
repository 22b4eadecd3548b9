"""Invalid records as a state keeps them where several replicas read the same, of which one writes them.

Each has a position in the sequence of evaluation that all replicas give it: the clock at which its turn
came, and its number among the invalid records of that millisecond. The ledger records the position up to
which the holder has written. Unlike a count since the beginning, a position does not depend on when a replica
began to keep any.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import msgspec

from streamwatch.core.events import Name
from streamwatch.core.ports import Record

RecordPosition: TypeAlias = tuple[int, int]
"""(clock in ms, number among invalid records of that millisecond); larger ones come later."""
BEGINNING: Final[RecordPosition] = (-1, 0)
"""Before the first record."""
MOST_BYTES: Final = 8_388_608
"""Bytes of invalid records that one commit has; a commit is made for them alone."""


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
    """Gives invalid records their positions and keeps them until they are taken for a commit.

    Parameters
    ----------
    reached
        Position up to which the last commit came.
    clock_ms
        Returns the clock of the evaluation: at the last record evaluated.
    """

    def __init__(self, reached: RecordPosition, clock_ms: Callable[[], int]) -> None:
        self._reached = reached
        self._clock_ms = clock_ms
        self._kept: list[KeptRecord] = []
        self._bytes = 0

    @property
    def filled(self) -> float:
        """Share of `MOST_BYTES` that is kept for the next commit; more than 1 where that is late."""
        return self._bytes / MOST_BYTES

    def keep(self, record: Record, reason: str, clock_ms: int) -> None:
        """Keep a record whose turn has come, with the clock at it."""
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
        """Hand over the records since the last call; `reached` is the position after them."""
        self._reach(self._clock_ms())
        kept, self._kept, self._bytes = self._kept, [], 0
        return kept

    @property
    def reached(self) -> RecordPosition:
        """Position up to which the evaluation had come at the last `take`."""
        return self._reached

    def _reach(self, clock_ms: int) -> None:
        if clock_ms > self._reached[0]:
            self._reached = (clock_ms, 0)
