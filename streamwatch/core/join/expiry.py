"""`Deadlines`: waiting entries by the second at which they expire, in order."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from streamwatch.core.join.entry import JoinEntry


def deadline(record_ms: int, horizon_ms: int) -> int:
    """Return the second of record time, rounded up, at which what waits for `horizon_ms` expires."""
    return -(-(record_ms + horizon_ms) // 1000)


class Deadlines:
    """Waiting entries ordered by (deadline, insertion), of one kind: states `first_state` … `last_state`.

    An entry that is settled stays in the index until its deadline, when it is skipped, or until `sweep`. A
    store in memory lends its whole index. One on disk lends the buckets whose deadline passes and as many of
    the oldest waiting entries as `ReadSet` asks for; afterwards it writes what was added to each bucket.
    """

    __slots__ = (
        "_dead",
        "_first_state",
        "_last_state",
        "_order",
        "_sweep",
        "buckets",
        "entries",
        "live",
    )

    def __init__(self, first_state: int, last_state: int) -> None:
        self._first_state = first_state
        self._last_state = last_state
        self.buckets: dict[int, list[JoinEntry]] = {}
        self._order: list[int] = []
        self._dead: dict[int, int] = {}  # settled records at the front of a bucket
        self._sweep: Iterator[int] | None = None
        self.live = 0
        """Records still waiting, as counted by the join at the end of a batch."""
        self.entries = 0
        """Records in the buckets, settled ones included; as of the end of a batch."""

    def add(self, deadline_s: int, record: JoinEntry) -> list[JoinEntry]:
        """Append an entry to the bucket of a second and return the bucket.

        The caller may append further entries to it until the clock passes that second.
        """
        bucket = self.buckets.get(deadline_s)
        if bucket is None:
            bucket = self.buckets[deadline_s] = []
            heappush(self._order, deadline_s)
        bucket.append(record)
        return bucket

    def _pop(self) -> list[JoinEntry]:
        deadline_s = heappop(self._order)
        bucket = self.buckets.pop(deadline_s, [])  # absent when a sweep had emptied it
        self._dead.pop(deadline_s, None)
        self.entries -= len(bucket)
        return bucket

    def due(self, limit_s: int) -> Iterator[tuple[int, JoinEntry]]:
        """Remove and yield the entries with a deadline up to `limit_s` that still wait, in order."""
        order = self._order
        first_state, last_state = self._first_state, self._last_state
        while order and order[0] <= limit_s:
            deadline_s = order[0]
            for record in self._pop():
                if first_state <= record.state <= last_state:
                    yield deadline_s, record

    def oldest(self) -> JoinEntry | None:
        """Return the waiting entry with the earliest deadline.

        It stays in the index until its state changes.
        """
        first_state, last_state = self._first_state, self._last_state
        while self._order:
            deadline_s = self._order[0]
            bucket = self.buckets.get(deadline_s, [])
            for position in range(self._dead.get(deadline_s, 0), len(bucket)):
                record = bucket[position]
                if first_state <= record.state <= last_state:
                    self._dead[deadline_s] = position
                    return record
            self._pop()
        return None

    def sweep(self, effort: int) -> None:
        """Remove settled entries, a bounded number per call, once they outnumber the waiting ones."""
        if self._sweep is None:
            if self.entries <= 2 * self.live + 4096:
                return
            self._sweep = iter(list(self.buckets))
        first_state, last_state = self._first_state, self._last_state
        while effort > 0:
            deadline_s = next(self._sweep, None)
            if deadline_s is None:
                self._sweep = None
                self._order = sorted(self.buckets)
                return
            bucket = self.buckets.get(deadline_s)
            effort -= 1
            if bucket is None:
                continue
            effort -= len(bucket)
            self.entries -= len(bucket)
            bucket[:] = [record for record in bucket if first_state <= record.state <= last_state]
            self.entries += len(bucket)
            self._dead.pop(deadline_s, None)
            if not bucket:
                del self.buckets[deadline_s]
