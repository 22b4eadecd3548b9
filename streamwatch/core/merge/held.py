"""Records that wait: those that have a time in a queue for each partition, the others beside them."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge.queues import (
    ARRIVED,
    BOUNDS,
    CLOCK_MS,
    COLUMNS,
    FETCHED_MS,
    LATE_MS,
    LATE_PLACE,
    NEXT,
    PLACE,
    READ_MS,
    READ_PLACE,
    REASON,
    REST_MS,
    RESTED_MS,
    RESTED_PLACE,
    TIME,
    WAITED_MS,
    queue_judged,
    queue_plain,
    release,
    walk,
)
from streamwatch.core.merge.timestamps import BELIEVED, TIMELESS

EVER: Final = 2**63 - 1
"""Beyond every time, and every place."""


class Bounds(NamedTuple):
    """Bounds up to which records may be released, times in milliseconds; by default all of them may."""

    read: tuple[int, int] = (EVER, EVER)
    """Time and place up to which no record that is yet to be read can precede."""
    rested: tuple[int, int] = (EVER, EVER)
    """Beyond this a partition that was found at its end may deliver what precedes; so what is beyond must
    have arrived up to `fetched_ms`, and be of a time up to `rest_ms` or have arrived up to `waited_ms`."""
    fetched_ms: int = EVER
    rest_ms: int = EVER
    waited_ms: int = EVER


class Taken(NamedTuple):
    """Records taken out, in order; columns of one length."""

    ids: NDArray[np.int64]
    places: NDArray[np.int64]
    times_ms: NDArray[np.int64]
    clock_ms: NDArray[np.int64]
    lateness_ms: NDArray[np.int64]
    reasons: NDArray[np.uint8]
    late: int
    """The first of them, so many, came too late."""


class Held:
    """Pool of records, known by where `Kept` has their rows, and the queues through it.

    Attributes
    ----------
    head
        Partition of the record that is next, as of the last `take`; -1 without one.
    """

    __slots__ = ("_columns", "_count", "_firsts", "_heap", "_lasts", "_pool", "_reasons", "head")

    def __init__(self) -> None:
        self._pool = np.empty((0, COLUMNS), np.int64)
        self._firsts = self._lasts = self._heap = np.empty(0, np.int64)
        self._columns = np.empty((5, 0), np.int64)  # what `take` writes, but for the reasons
        self._reasons = np.empty(0, np.uint8)
        self._count = 0
        self.head = -1

    def __len__(self) -> int:
        return self._count

    @property
    def first_arrived_ms(self) -> int:
        """Time at which the record arrived that is next, as of the last `take`."""
        return int(self._pool[self._firsts[self.head], ARRIVED])

    @property
    def first_key(self) -> tuple[int, int]:
        """Time and place of the record that is next, as of the last `take`."""
        return int(self._pool[self._firsts[self.head], TIME]), self.head

    def last_key(self, places: NDArray[np.int64]) -> tuple[int, int] | None:
        """Time and place of the last record queued of these partitions; None if there is none."""
        ends = [(int(self._pool[self._lasts[p], TIME]), p) for p in places.tolist() if self._lasts[p] >= 0]
        return max(ends, default=None)

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Tell whether one of the queued had arrived by then."""
        heads = self._firsts[self._firsts >= 0]
        return bool((self._pool[heads, ARRIVED] <= arrived_ms).any())

    def put(
        self,
        first: int,
        stamps_ms: NDArray[np.int64],
        decodable: NDArray[np.bool_],
        places: NDArray[np.int64],
        arrived_ms: int,
    ) -> None:
        """Put records of partitions into the pool, from `first` on; they have no time and no turn yet."""
        stop = first + len(stamps_ms)
        if stop > len(self._pool):
            pool = np.empty((max(2 * stop, 1_024), COLUMNS), np.int64)
            pool[:first] = self._pool[:first]
            self._pool = pool
        part = self._pool[first:stop]
        part[:, TIME] = stamps_ms
        part[:, ARRIVED] = arrived_ms
        part[:, PLACE] = places
        part[:, REASON] = np.where(decodable, BELIEVED, TIMELESS)

    def put_elsewhere(self, first: int, stop: int, places: NDArray[np.int64]) -> None:
        """Follow the partitions of records without a turn to their new places."""
        part = self._pool[first:stop]
        part[:, PLACE] = places[part[:, PLACE]]

    def ids_of(self, first: int, stop: int, place: int) -> NDArray[np.int64]:
        """Find the records of one partition among those from `first` up to `stop`."""
        return np.flatnonzero(self._pool[first:stop, PLACE] == place) + first

    def arrived_ms(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times at which records arrived."""
        return self._pool[ids, ARRIVED]

    def moving_ms(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Timestamps of records without a turn, -1 where one could not be decoded; and whether it could."""
        decodable = self._pool[ids, REASON] != TIMELESS
        return np.where(decodable, self._pool[ids, TIME], -1), decodable

    def queue_plain(
        self,
        span: tuple[int, int],
        running_ms: NDArray[np.int64],
        odd: NDArray[np.bool_],
        held: NDArray[np.int64],
        max_future_ms: int,
    ) -> int:
        """Queue the records from the first of `span` up to the second, as `queues.queue_plain` does."""
        left = queue_plain(
            self._pool,
            *span,
            running_ms,
            np.empty_like(running_ms),
            odd,
            self._firsts,
            self._lasts,
            held,
            max_future_ms,
        )
        self._count += span[1] - span[0] - left
        return left

    def queue_judged(
        self, ids: NDArray[np.int64], times_ms: NDArray[np.int64], reasons: NDArray[np.uint8], place: int
    ) -> None:
        """Queue records of one partition with the times that they were given."""
        queue_judged(self._pool, ids, times_ms, reasons, place, self._firsts, self._lasts)
        self._count += len(ids)

    def take(self, bounds: Bounds, late: tuple[int, int], clock_ms: int) -> Taken:
        """Take out what may go, in order.

        Parameters
        ----------
        bounds
            How far records may go.
        late
            Time and place; what precedes them goes at once.
        clock_ms
            The clock before them.
        """
        values = np.empty(BOUNDS, np.int64)
        values[READ_MS], values[READ_PLACE] = bounds.read
        values[RESTED_MS], values[RESTED_PLACE] = bounds.rested
        values[FETCHED_MS], values[REST_MS], values[WAITED_MS] = bounds[2:]
        values[LATE_MS], values[LATE_PLACE] = late
        values[CLOCK_MS] = clock_ms
        if self._count > len(self._reasons):
            self._columns = np.empty((5, 2 * self._count), np.int64)
            self._reasons = np.empty(2 * self._count, np.uint8)
        ids, places, times_ms, clocks_ms, lateness_ms = self._columns
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
            self._reasons,
        )
        self._count -= count
        self.head = head
        ids, places, times_ms, clocks_ms, lateness_ms = self._columns[:, :count].copy()
        return Taken(ids, places, times_ms, clocks_ms, lateness_ms, self._reasons[:count].copy(), too_late)

    def reorder(self, places: NDArray[np.int64], width: int) -> None:
        """Partitions were added or removed: `places` are the new ones by the old, -1 for those that are gone.

        Of the latter nothing is queued.
        """
        firsts, lasts = np.full(width, -1), np.full(width, -1)
        here = places >= 0
        firsts[places[here]], lasts[places[here]] = self._firsts[here], self._lasts[here]
        self._firsts, self._lasts = firsts, lasts
        self._heap = np.empty(width, np.int64)

    def ids(self) -> NDArray[np.int64]:
        """Places of the queued, one queue behind the other."""
        ids = np.empty(self._count, np.int64)
        walk(self._pool, self._firsts, ids)
        return ids

    def moved(self, ids: NDArray[np.int64], others: NDArray[np.int64]) -> None:
        """Follow records to the front of the pool: first those of `ids`, as that gave them, then others."""
        self._pool = pool = self._pool[np.concatenate((ids, others))]
        if not (count := len(ids)):
            return
        ends = np.flatnonzero(pool[:count, NEXT] < 0)
        pool[:count, NEXT] = np.arange(1, count + 1)
        pool[ends, NEXT] = -1
        queued = self._firsts >= 0
        self._firsts[queued] = np.concatenate(([0], ends[:-1] + 1))
        self._lasts[queued] = ends
