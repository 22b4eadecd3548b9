"""Compiled loops over the queues of the partitions: judged and queued in one pass, merged in another.

A queue is a list through the pool of all records (`NEXT`), and a record leaves its place in the pool to the
next that comes: what it costs to add records, or to release some, depends on their number alone, not on how
many others wait.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from typing import Final

import numpy as np

from streamwatch.core.jit import entry, hot, without_refcount
from streamwatch.core.merge.timestamps import BELIEVED, FARTHEST, TIMELESS

COLUMNS: Final = 5
TIME, ARRIVED, NEXT, PLACE, REASON = range(COLUMNS)
"""Columns of the pool: timestamp, later the time; when it arrived; the record behind it in its queue, -1 for
none; the place of its partition; index into `timestamps.REASONS`."""

IN_ORDER: Final = -1
NO_PLACE: Final = -2
"""Values of lateness; see `Released`."""

BOUNDS: Final = 10
(
    READ_MS,
    READ_PLACE,
    RESTED_MS,
    RESTED_PLACE,
    FETCHED_MS,
    REST_MS,
    WAITED_MS,
    LATE_MS,
    LATE_PLACE,
    CLOCK_MS,
) = range(BOUNDS)
"""Bounds of what may go, by (time, place): up to READ nothing unread precedes it; beyond RESTED partitions at
their end may still deliver what does, so it goes if it arrived up to FETCHED, and its time is up to REST or
it arrived up to WAITED. What precedes LATE goes at once. CLOCK is the clock so far."""


@hot
def _precedes(pool, firsts, a, b):
    """Tell whether the head of queue a precedes that of queue b."""
    mine, other = pool[firsts[a], TIME], pool[firsts[b], TIME]
    return mine < other or (mine == other and a < b)


@hot
def _sift(pool, firsts, heap, size):
    """Bring the top of a heap of queues to where it belongs."""
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
def _append(pool, firsts, lasts, place, i):
    """Put record i at the end of a queue."""
    pool[i, NEXT] = -1
    if firsts[place] < 0:
        firsts[place] = i
    else:
        pool[lasts[place], NEXT] = i
    lasts[place] = i


@entry
def put(pool, words, places_free, block, stamps, decodable, partitions, arrived):
    """Put records into free places of the pool; they have no time and no turn yet.

    Parameters
    ----------
    pool
        int64, shape (n, COLUMNS).
    words
        int64, shape (n, 8): rows of the same records.
    places_free
        int64: places to take, the last one first; one for each record.
    block
        int64, shape (m, 8): rows of the records.
    stamps, decodable, partitions
        Timestamp of each, whether it could be decoded, and the place of its partition.
    arrived
        When they arrived.

    Returns
    -------
    ids
        int64, shape (m,): where they are.
    """
    count = stamps.shape[0]
    ids = np.empty(count, np.int64)
    for k in range(count):
        i = places_free[count - 1 - k]
        ids[k] = i
        pool[i, TIME] = stamps[k]
        pool[i, ARRIVED] = arrived
        pool[i, PLACE] = partitions[k]
        pool[i, REASON] = BELIEVED if decodable[k] else TIMELESS
        for j in range(words.shape[1]):
            words[i, j] = block[k, j]
    return ids


@entry
def queue_plain(pool, ids, running, reached, odd, firsts, lasts, held, max_future_ms):
    """Give records their times and queue them, as far as there is nothing to judge; how many were left.

    Plain is a timestamp that is positive and does not run ahead of a known time. Partition by partition it is
    all or nothing.

    Parameters
    ----------
    pool
        int64, shape (n, COLUMNS).
    ids
        int64: which of its records; those of a partition are in offset order.
    running
        int64: newest time of each partition, -1 if there is none; brought up to date.
    reached
        int64, equally long: room to work in.
    odd
        bool, equally long: partitions of which nothing may be queued; those with a doubtful record become so.
    firsts, lasts, held
        int64, equally long: ends of the queues, and how many records each has.
    max_future_ms
        How far a timestamp may run ahead without being asked.
    """
    pool = without_refcount(pool)
    reached[:] = running
    for i in ids:
        place = pool[i, PLACE]
        before = reached[place]
        if before < 0:
            odd[place] = True
        elif pool[i, REASON] != TIMELESS:
            stamp = pool[i, TIME]
            if stamp <= 0 or stamp >= FARTHEST or stamp - before > max_future_ms:
                odd[place] = True
            elif stamp > before:
                reached[place] = stamp
    left = 0
    for i in ids:
        place = pool[i, PLACE]
        if odd[place]:
            left += 1
            continue
        if pool[i, REASON] != TIMELESS and pool[i, TIME] > running[place]:
            running[place] = pool[i, TIME]
        pool[i, TIME] = running[place]
        held[place] += 1
        _append(pool, firsts, lasts, place, i)
    return left


@entry
def queue_judged(pool, ids, times, reasons, place, firsts, lasts):
    """Queue records of one partition with the times that they were given, behind those held of it."""
    for k in range(ids.shape[0]):
        i = ids[k]
        pool[i, TIME] = times[k]
        pool[i, REASON] = reasons[k]
        _append(pool, firsts, lasts, place, i)


@entry
def release(pool, firsts, lasts, heap, bounds, ids, places, times, clocks, lateness, reasons):
    """Take records off the heads of their queues, in order, as long as they may go.

    Parameters
    ----------
    pool, firsts, lasts
        The queues.
    heap
        int64, room for every partition.
    bounds
        int64 (`BOUNDS`,).
    ids, places, times, clocks, lateness, reasons
        Written to, one of each for every record: where it is in the pool, its partition, its time, the clock
        at it, its lateness, and the reason. No more are taken than there is room for.

    Returns
    -------
    count, late, head
        How many go, how many of these came too late, and the partition whose record is next; -1: none is.
    """
    pool = without_refcount(pool)
    size = 0
    for place in range(firsts.shape[0]):
        if firsts[place] < 0:
            continue
        i = size
        size += 1
        while i > 0 and _precedes(pool, firsts, place, heap[(i - 1) // 2]):
            heap[i] = heap[(i - 1) // 2]
            i = (i - 1) // 2
        heap[i] = place
    clock = bounds[CLOCK_MS]
    count = late = 0
    is_free = True
    room = ids.shape[0]
    while size > 0 and count < room:
        place = heap[0]
        i = firsts[place]
        time = pool[i, TIME]
        is_late = time < bounds[LATE_MS] or (time == bounds[LATE_MS] and place < bounds[LATE_PLACE])
        if time > bounds[READ_MS] or (time == bounds[READ_MS] and place > bounds[READ_PLACE]):
            is_free = False
        elif time > bounds[RESTED_MS] or (time == bounds[RESTED_MS] and place > bounds[RESTED_PLACE]):
            arrived = pool[i, ARRIVED]
            waits = arrived > bounds[WAITED_MS] and time > bounds[REST_MS]
            is_free = is_free and arrived <= bounds[FETCHED_MS] and not waits
        if not (is_late or is_free):
            break
        clock = max(clock, time)
        ids[count] = i
        places[count] = place
        times[count] = time
        clocks[count] = clock
        reasons[count] = pool[i, REASON]
        lateness[count] = IN_ORDER
        if is_late:
            late += 1
            lateness[count] = NO_PLACE if pool[i, REASON] == TIMELESS else clock - time
        count += 1
        firsts[place] = pool[i, NEXT]
        if firsts[place] < 0:
            lasts[place] = -1
            size -= 1
            heap[0] = heap[size]
        if size > 1:
            _sift(pool, firsts, heap, size)
    return count, late, heap[0] if size > 0 else -1


@entry
def walk(pool, firsts, ids):
    """Write where the records of all queues are, one queue behind the other."""
    k = 0
    for place in range(firsts.shape[0]):
        i = firsts[place]
        while i >= 0:
            ids[k] = i
            k += 1
            i = pool[i, NEXT]


@entry
def lower_medians(stamps, counted, counts, found):
    """Write of each stretch of `stamps`, as long as `counts` says, how many count and their lower median."""
    chosen = np.empty_like(stamps)
    start = 0
    for part in range(counts.shape[0]):
        count = 0
        is_sorted = True
        for i in range(start, start + counts[part]):
            if counted[i]:
                chosen[count] = stamps[i]
                is_sorted = is_sorted and (count == 0 or chosen[count - 1] <= stamps[i])
                count += 1
        start += counts[part]
        found[part, 0] = count
        middle = (count - 1) // 2
        if count == 0:
            found[part, 1] = -1
        else:
            found[part, 1] = chosen[middle] if is_sorted else np.sort(chosen[:count])[middle]
