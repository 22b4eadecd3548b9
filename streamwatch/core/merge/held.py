"""Pool of the records held: queued by partition once they have a time, unqueued before."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge.bounds import Bounds
from streamwatch.core.merge.queues import (
    ARRIVED,
    BOUNDS,
    CLOCK_MS,
    COLUMNS,
    FETCHED_MS,
    LATE_MS,
    LATE_PLACE,
    PLACE,
    READ_MS,
    READ_PLACE,
    REASON,
    REST_MS,
    RESTED_MS,
    RESTED_PLACE,
    TIME,
    WAITED_MS,
    put,
    queue_judged,
    queue_plain,
    release,
    walk,
)
from streamwatch.core.merge.timestamps import TIMELESS
from streamwatch.core.records import ROW, rows_of, words_of

_FEWEST: Final = 1_024
_MOST_EMPTY: Final = 1 << 16
"""Places for which room is kept while nothing waits."""


class TakenRecords(NamedTuple):
    """Records taken out, in order; columns of one length."""

    ids: NDArray[np.int64]
    places: NDArray[np.int64]
    times_ms: NDArray[np.int64]
    clock_ms: NDArray[np.int64]
    lateness_ms: NDArray[np.int64]
    reasons: NDArray[np.uint8]
    late: int
    """The first of them, so many, came too late."""


class HeldRecords:
    """Pool of the records held, with their rows, and a queue of them for each partition.

    A record is identified by its index in the pool ("id" here) until it is taken out, which frees the index.

    Attributes
    ----------
    head
        Partition of the record that is next, as of the last `take`; -1 without one.
    """

    __slots__ = (
        "_columns",
        "_count",
        "_firsts",
        "_free",
        "_heap",
        "_lasts",
        "_pool",
        "_reasons",
        "_unused",
        "_words",
        "head",
    )

    def __init__(self) -> None:
        self._pool = np.empty((0, COLUMNS), np.int64)
        self._words = words_of(np.empty(0, ROW))
        self._free = np.empty(0, np.int64)  # so many as are unused, from the first on
        self._unused = 0
        self._firsts = self._lasts = self._heap = np.empty(0, np.int64)
        self._columns = np.empty((5, 0), np.int64)  # what `take` writes, but for the reasons
        self._reasons = np.empty(0, np.uint8)
        self._count = 0
        self.head = -1

    def __len__(self) -> int:
        return self._count

    @property
    def first_arrived_ms(self) -> int:
        """Arrival time of the next record to be released, as of the last `take`."""
        return int(self._pool[self._firsts[self.head], ARRIVED])

    @property
    def first_key(self) -> tuple[int, int]:
        """Time and partition place of the next record to be released, as of the last `take`."""
        return int(self._pool[self._firsts[self.head], TIME]), self.head

    def last_key(self, places: NDArray[np.int64]) -> tuple[int, int] | None:
        """Time and place of the last record queued of these partitions; None if there is none."""
        ends = [(int(self._pool[self._lasts[p], TIME]), p) for p in places.tolist() if self._lasts[p] >= 0]
        return max(ends, default=None)

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Tell whether a queued record arrived at or before the given time."""
        heads = self._firsts[self._firsts >= 0]
        return bool((self._pool[heads, ARRIVED] <= arrived_ms).any())

    def clear(self) -> None:
        """Free the memory of the pool, if it is large; the pool must be empty."""
        if len(self._free) > _MOST_EMPTY:
            self._pool, self._words = np.empty((0, COLUMNS), np.int64), words_of(np.empty(0, ROW))
            self._free, self._unused = np.empty(0, np.int64), 0

    def put(
        self,
        words: NDArray[np.int64],
        stamps_ms: NDArray[np.int64],
        decodable: NDArray[np.bool_],
        places: NDArray[np.int64],
        arrived_ms: int,
    ) -> NDArray[np.int64]:
        """Put records of partitions, with their rows as words, into the pool; they have no turn yet.

        Returns
        -------
        ids
            Of each.
        """
        count = len(stamps_ms)
        if count > self._unused:
            self._make_room(count)
        self._unused = left = self._unused - count
        free = self._free[left : left + count]
        return put(self._pool, self._words, free, words, stamps_ms, decodable, places, arrived_ms)

    def _make_room(self, count: int) -> None:
        """Give the pool at least so many places that are free, and twice as many as it has."""
        before = len(self._free)
        room = max(2 * before, before + count, _FEWEST)
        pool, words = np.empty((room, COLUMNS), np.int64), words_of(np.empty(room, ROW))
        pool[:before], words[:before] = self._pool, self._words
        free = np.empty(room, np.int64)
        unused = self._unused + room - before
        free[room - before : unused] = self._free[: self._unused]
        free[: room - before] = np.arange(room - 1, before - 1, -1)
        self._pool, self._words, self._free, self._unused = pool, words, free, unused

    def put_elsewhere(self, ids: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        """Change the partition places of unqueued records after partitions were added or removed."""
        self._pool[ids, PLACE] = places[self._pool[ids, PLACE]]

    def ids_of(self, ids: NDArray[np.int64], place: int) -> NDArray[np.int64]:
        """Find the records of one partition among these."""
        return ids[self._pool[ids, PLACE] == place]

    def rows(self, ids: NDArray[np.int64]) -> NDArray[np.void]:
        """Copy rows of records that wait, or were taken out since the last `put`."""
        return rows_of(self._words.take(ids, axis=0))

    def replace_rows(self, ids: NDArray[np.int64], rows: NDArray[np.void]) -> None:
        """Put other rows in place of these."""
        self._words[ids] = words_of(rows)

    def arrived_ms(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times at which records arrived."""
        return self._pool[ids, ARRIVED]

    def moving_ms(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Timestamps of records without a turn, -1 where one could not be decoded; and whether it could."""
        decodable = self._pool[ids, REASON] != TIMELESS
        return np.where(decodable, self._pool[ids, TIME], -1), decodable

    def queue_plain(
        self,
        ids: NDArray[np.int64],
        running_ms: NDArray[np.int64],
        odd: NDArray[np.bool_],
        held: NDArray[np.int64],
        max_future_ms: int,
    ) -> int:
        """Queue records as `queues.queue_plain` does."""
        left = queue_plain(
            self._pool,
            ids,
            running_ms,
            np.empty_like(running_ms),
            odd,
            self._firsts,
            self._lasts,
            held,
            max_future_ms,
        )
        self._count += len(ids) - left
        return left

    def queue_judged(
        self, ids: NDArray[np.int64], times_ms: NDArray[np.int64], reasons: NDArray[np.uint8], place: int
    ) -> None:
        """Queue records of one partition with the times that they were given."""
        queue_judged(self._pool, ids, times_ms, reasons, place, self._firsts, self._lasts)
        self._count += len(ids)

    def take(self, bounds: Bounds, late: tuple[int, int], clock_ms: int, most: int) -> TakenRecords:
        """Take out records that may be released, in order, at most `most`.

        Parameters
        ----------
        bounds
            Bounds up to which records may be released.
        late
            Time and place of the last record released; records before it are late and go at once.
        clock_ms
            The clock before them.
        """
        values = np.empty(BOUNDS, np.int64)
        values[READ_MS], values[READ_PLACE] = bounds.read
        values[RESTED_MS], values[RESTED_PLACE] = bounds.rested
        values[FETCHED_MS], values[REST_MS], values[WAITED_MS] = bounds[2:]
        values[LATE_MS], values[LATE_PLACE] = late
        values[CLOCK_MS] = clock_ms
        room = min(self._count, most)
        if room > len(self._reasons):
            self._columns = np.empty((5, min(2 * room, most)), np.int64)
            self._reasons = np.empty(min(2 * room, most), np.uint8)
        ids, places, times_ms, clocks_ms, lateness_ms = self._columns[:, :most]
        count, too_late, head = release(
            self._pool,
            self._firsts,
            self._lasts,
            self._heap,
            values,
            ids,
            places,
            times_ms,
            clocks_ms,
            lateness_ms,
            self._reasons[:most],
        )
        self._count -= count
        self.head = head
        self._free[self._unused : self._unused + count] = ids[:count][::-1]
        self._unused += count
        ids, places, times_ms, clocks_ms, lateness_ms = self._columns[:, :count].copy()
        return TakenRecords(
            ids, places, times_ms, clocks_ms, lateness_ms, self._reasons[:count].copy(), too_late
        )

    def reorder(self, places: NDArray[np.int64], width: int) -> None:
        """Follow an added or removed partition: `places` are the new places by the old, -1 for removed ones.

        Nothing of a removed partition may be queued.
        """
        firsts, lasts = np.full(width, -1), np.full(width, -1)
        here = places >= 0
        firsts[places[here]], lasts[places[here]] = self._firsts[here], self._lasts[here]
        self._firsts, self._lasts = firsts, lasts
        self._heap = np.empty(width, np.int64)

    def ids(self) -> NDArray[np.int64]:
        """Ids of all queued records, one queue behind the other."""
        ids = np.empty(self._count, np.int64)
        walk(self._pool, self._firsts, ids)
        return ids
