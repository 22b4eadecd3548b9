"""Compiled loops over queues of records, one for each partition: one pass queues records, another merges.

A queue is a linked list (`NEXT`) in the pool of all records, and slots of released records are used again:
the cost of adding records, or of releasing some, depends on their number alone, not on how many are held.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, hot
from streamwatch.core.merge.partitions import Bounds
from streamwatch.core.merge.timestamps import BELIEVED, FARTHEST, TIMELESS
from streamwatch.core.records.batch import ROW, rows_of, words_of

COLUMNS: Final = 5
TIME, ARRIVED, NEXT, PARTITION, REASON = range(COLUMNS)
"""Columns of the pool: timestamp, or time once it is queued; time of arrival; next record in its queue, -1
for none; index of its partition; index into `timestamps.REASONS`."""

IN_ORDER: Final = -1
LATENESS_UNKNOWN: Final = -2
"""Values of lateness; see `Released`."""

BOUNDS: Final = 10
(
    READ_MS,
    READ_INDEX,
    RESTED_MS,
    RESTED_INDEX,
    FETCHED_MS,
    REST_MS,
    WAITED_MS,
    LATE_MS,
    LATE_INDEX,
    CLOCK_MS,
) = range(BOUNDS)
"""Bounds of the records that may be released, by (time, index). Up to READ, no record that is yet to be read
can precede them. Beyond RESTED, partitions at their end may still deliver one that does; such a record is
released only if it arrived by FETCHED, and has a time up to REST or arrived by WAITED. A record that precedes
LATE is released at once. CLOCK is the largest time released so far."""


@hot
def _precedes(pool, firsts, a, b):
    """Return whether the head of queue a precedes that of queue b."""
    mine, other = pool[firsts[a], TIME], pool[firsts[b], TIME]
    return mine < other or (mine == other and a < b)


@hot
def _sift(pool, firsts, heap, size):
    """Sift the top of a heap of queues down."""
    top = heap[0]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= size:
            break
        if child + 1 < size and _precedes(pool, firsts, heap[child + 1], heap[child]):
            child += 1
        if not _precedes(pool, firsts, heap[child], top):
            break
        heap[i] = heap[child]
        i = child
    heap[i] = top


@hot
def _append(pool, firsts, lasts, index, i):
    """Put record i at the end of a queue."""
    pool[i, NEXT] = -1
    if firsts[index] < 0:
        firsts[index] = i
    else:
        pool[lasts[index], NEXT] = i
    lasts[index] = i


@entry
def put(pool, words, indices_free, block, stamps, decodable, partitions, arrived, ids):
    """Put records into free slots of the pool; they have no time yet and are not queued.

    Parameters
    ----------
    pool
        int64, shape (n, COLUMNS).
    words
        int64, shape (n, 8): rows of the same records.
    indices_free
        int64: slots to take, the last one first; one for each record.
    block
        int64, shape (m, 8): rows of the records.
    stamps, decodable, partitions
        Timestamp of each, whether it could be decoded, and the index of its partition.
    arrived
        Time of their arrival.
    ids
        int64, shape (m,), output: slots of the records in the pool.
    """
    count = stamps.shape[0]
    for k in range(count):
        i = indices_free[count - 1 - k]
        ids[k] = i
        pool[i, TIME] = stamps[k]
        pool[i, ARRIVED] = arrived
        pool[i, PARTITION] = partitions[k]
        pool[i, REASON] = BELIEVED if decodable[k] else TIMELESS
        for j in range(words.shape[1]):
            words[i, j] = block[k, j]


@entry
def queue_plain(pool, ids, running, reached, odd, firsts, lasts, held, max_future_ms):
    """Give times to the records of partitions without a doubtful timestamp, and queue them.

    A timestamp is doubtful if it is not positive, too far ahead of the time known before it, or if no time is
    known before it. Of a partition either all of the records are queued or none. Returns how many records
    remain.

    Parameters
    ----------
    pool
        int64, shape (n, COLUMNS).
    ids
        int64: which of its records; those of a partition are in offset order.
    running
        int64: newest time of each partition, -1 if there is none; updated.
    reached
        int64, equally long: work space.
    odd
        bool, equally long: partitions of which nothing may be queued; those with a doubtful record become so.
    firsts, lasts, held
        int64, equally long: ends of the queues, and how many records each has.
    max_future_ms
        How far a timestamp may be ahead without being doubted.
    """
    for partition in range(running.shape[0]):
        reached[partition] = running[partition]
    for i in ids:
        index = pool[i, PARTITION]
        before = reached[index]
        if before < 0:
            odd[index] = True
        elif pool[i, REASON] != TIMELESS:
            stamp = pool[i, TIME]
            if stamp <= 0 or stamp >= FARTHEST or stamp - before > max_future_ms:
                odd[index] = True
            elif stamp > before:
                reached[index] = stamp
    left = 0
    for i in ids:
        index = pool[i, PARTITION]
        if odd[index]:
            left += 1
            continue
        if pool[i, REASON] != TIMELESS and pool[i, TIME] > running[index]:
            running[index] = pool[i, TIME]
        pool[i, TIME] = running[index]
        held[index] += 1
        _append(pool, firsts, lasts, index, i)
    return left


@entry
def queue_judged(pool, ids, times, reasons, index, firsts, lasts):
    """Queue records of one partition with these times and reasons, after the records queued before."""
    for k in range(ids.shape[0]):
        i = ids[k]
        pool[i, TIME] = times[k]
        pool[i, REASON] = reasons[k]
        _append(pool, firsts, lasts, index, i)


@entry
def release(pool, firsts, lasts, heap, bounds, ids, indices, times, clocks, lateness, reasons):
    """Take records off the heads of their queues, in order, as long as they may be released.

    Parameters
    ----------
    pool, firsts, lasts
        The queues.
    heap
        int64, room for every partition.
    bounds
        int64 (`BOUNDS`,).
    ids, indices, times, clocks, lateness, reasons
        Written to, one of each for every record: where it is in the pool, its partition, its time, the clock
        at it, its lateness, and the reason. No more are taken than there is room for.

    Returns
    -------
    count, late, head
        How many are released, how many of these came too late, and the partition of the next one; -1: there
        is none.
    """
    size = 0
    for index in range(firsts.shape[0]):
        if firsts[index] < 0:
            continue
        i = size
        size += 1
        while i > 0 and _precedes(pool, firsts, index, heap[(i - 1) // 2]):
            heap[i] = heap[(i - 1) // 2]
            i = (i - 1) // 2
        heap[i] = index
    clock = bounds[CLOCK_MS]
    count = late = 0
    is_free = True
    room = ids.shape[0]
    while size > 0 and count < room:
        index = heap[0]
        i = firsts[index]
        time = pool[i, TIME]
        is_late = time < bounds[LATE_MS] or (time == bounds[LATE_MS] and index < bounds[LATE_INDEX])
        if time > bounds[READ_MS] or (time == bounds[READ_MS] and index > bounds[READ_INDEX]):
            is_free = False
        elif time > bounds[RESTED_MS] or (time == bounds[RESTED_MS] and index > bounds[RESTED_INDEX]):
            arrived = pool[i, ARRIVED]
            waits = arrived > bounds[WAITED_MS] and time > bounds[REST_MS]
            is_free = is_free and arrived <= bounds[FETCHED_MS] and not waits
        if not (is_late or is_free):
            break
        clock = max(clock, time)
        ids[count] = i
        indices[count] = index
        times[count] = time
        clocks[count] = clock
        reasons[count] = pool[i, REASON]
        lateness[count] = IN_ORDER
        if is_late:
            late += 1
            lateness[count] = LATENESS_UNKNOWN if pool[i, REASON] == TIMELESS else clock - time
        count += 1
        firsts[index] = pool[i, NEXT]
        if firsts[index] < 0:
            lasts[index] = -1
            size -= 1
            heap[0] = heap[size]
        if size > 1:
            _sift(pool, firsts, heap, size)
    return count, late, heap[0] if size > 0 else -1


@entry
def walk(pool, firsts, ids):
    """Write the ids of the records of all queues, one queue after another."""
    k = 0
    for index in range(firsts.shape[0]):
        i = firsts[index]
        while i >= 0:
            ids[k] = i
            k += 1
            i = pool[i, NEXT]


# Pool of the records held: queued by partition once they have a time, unqueued before.


_FEWEST: Final = 1_024
_MOST_EMPTY: Final = 1 << 16
"""Most slots kept while no record is held."""


class TakenRecords(NamedTuple):
    """Records taken out, in order; columns of one length."""

    ids: NDArray[np.int64]
    indices: NDArray[np.int64]
    times_ms: NDArray[np.int64]
    clock_ms: NDArray[np.int64]
    lateness_ms: NDArray[np.int64]
    reasons: NDArray[np.uint8]
    late: int
    """Number of records that came too late: these are the first."""


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
        self._free = np.empty(0, np.int64)  # the first `_unused` are free slots
        self._unused = 0
        self._firsts = self._lasts = self._heap = np.empty(0, np.int64)
        self._columns = np.empty((5, 0), np.int64)  # what `take` writes, except the reasons
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
        """Time and partition index of the next record to be released, as of the last `take`."""
        return int(self._pool[self._firsts[self.head], TIME]), self.head

    def last_key(self, indices: NDArray[np.int64]) -> tuple[int, int] | None:
        """Time and partition index of the last record queued of these partitions; None if there is none."""
        ends = [(int(self._pool[self._lasts[p], TIME]), p) for p in indices.tolist() if self._lasts[p] >= 0]
        return max(ends, default=None)

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Return whether a queued record arrived at or before the given time."""
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
        indices: NDArray[np.int64],
        arrived_ms: int,
    ) -> NDArray[np.int64]:
        """Put records of partitions, with their rows as words, into the pool; they are not queued yet.

        Returns
        -------
        ids
            Id of each record.
        """
        count = len(stamps_ms)
        if count > self._unused:
            self._make_room(count)
        self._unused = left = self._unused - count
        free = self._free[left : left + count]
        ids = np.empty(count, np.int64)
        put(self._pool, self._words, free, words, stamps_ms, decodable, indices, arrived_ms, ids)
        return ids

    def _make_room(self, count: int) -> None:
        """Enlarge the pool to four times its slots, or more until `count` are free; contents are copied.

        Memory of slots is touched only as they are used, the lowest first.
        """
        before = len(self._free)
        room = max(4 * before, before + count, _FEWEST)
        pool, words = np.empty((room, COLUMNS), np.int64), words_of(np.empty(room, ROW))
        pool[:before], words[:before] = self._pool, self._words
        free = np.empty(room, np.int64)
        unused = self._unused + room - before
        free[room - before : unused] = self._free[: self._unused]
        free[: room - before] = np.arange(room - 1, before - 1, -1)
        self._pool, self._words, self._free, self._unused = pool, words, free, unused

    def put_elsewhere(self, ids: NDArray[np.int64], indices: NDArray[np.int64]) -> None:
        """Replace the partition indices of unqueued records by new ones, given by the old."""
        self._pool[ids, PARTITION] = indices[self._pool[ids, PARTITION]]

    def ids_of(self, ids: NDArray[np.int64], index: int) -> NDArray[np.int64]:
        """Find the records of one partition among these."""
        return ids[self._pool[ids, PARTITION] == index]

    def rows(self, ids: NDArray[np.int64]) -> NDArray[np.void]:
        """Copy rows of records that wait, or were taken out since the last `put`."""
        return rows_of(self._words.take(ids, axis=0))

    def replace_rows(self, ids: NDArray[np.int64], rows: NDArray[np.void]) -> None:
        """Replace the rows of these records."""
        self._words[ids] = words_of(rows)

    def arrived_ms(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Times at which records arrived."""
        return self._pool[ids, ARRIVED]

    def moving_ms(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Timestamps of unqueued records, -1 where one could not be decoded; and whether it could."""
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
        self, ids: NDArray[np.int64], times_ms: NDArray[np.int64], reasons: NDArray[np.uint8], index: int
    ) -> None:
        """Queue records of one partition with the times that they were given."""
        queue_judged(self._pool, ids, times_ms, reasons, index, self._firsts, self._lasts)
        self._count += len(ids)

    def take(self, bounds: Bounds, late: tuple[int, int], clock_ms: int, most: int) -> TakenRecords:
        """Take out records that may be released, in order, at most `most`.

        Parameters
        ----------
        bounds
            Bounds up to which records may be released.
        late
            Time and partition index of the last record released; records before it are late, and taken first.
        clock_ms
            The clock before them.
        """
        values = np.empty(BOUNDS, np.int64)
        values[READ_MS], values[READ_INDEX] = bounds.read
        values[RESTED_MS], values[RESTED_INDEX] = bounds.rested
        values[FETCHED_MS], values[REST_MS], values[WAITED_MS] = bounds[2:]
        values[LATE_MS], values[LATE_INDEX] = late
        values[CLOCK_MS] = clock_ms
        room = min(self._count, most)
        if room > len(self._reasons):
            self._columns = np.empty((5, min(2 * room, most)), np.int64)
            self._reasons = np.empty(min(2 * room, most), np.uint8)
        ids, indices, times_ms, clocks_ms, lateness_ms = self._columns[:, :most]
        count, too_late, head = release(
            self._pool,
            self._firsts,
            self._lasts,
            self._heap,
            values,
            ids,
            indices,
            times_ms,
            clocks_ms,
            lateness_ms,
            self._reasons[:most],
        )
        self._count -= count
        self.head = head
        self._free[self._unused : self._unused + count] = ids[:count][::-1]
        self._unused += count
        ids, indices, times_ms, clocks_ms, lateness_ms = self._columns[:, :count].copy()
        return TakenRecords(
            ids, indices, times_ms, clocks_ms, lateness_ms, self._reasons[:count].copy(), too_late
        )

    def reorder(self, indices: NDArray[np.int64], width: int) -> None:
        """Move queues to the partitions' new indices, given by the old; -1 for removed partitions.

        `width` is the new number of partitions. No record of a removed partition may be queued.
        """
        firsts, lasts = np.full(width, -1), np.full(width, -1)
        here = indices >= 0
        firsts[indices[here]], lasts[indices[here]] = self._firsts[here], self._lasts[here]
        self._firsts, self._lasts = firsts, lasts
        self._heap = np.empty(width, np.int64)

    def ids(self) -> NDArray[np.int64]:
        """Ids of all queued records, one queue behind the other."""
        ids = np.empty(self._count, np.int64)
        walk(self._pool, self._firsts, ids)
        return ids
