"""Outcomes held for the order of predictions, and the queue that finds the one of the oldest prediction.

Outcomes are in slots. Their order is by (prediction time, sequence). A binary heap of all of them would
miss the cache at each of its levels, so only the oldest are in one: time is cut into buckets of equal
width, each a chain of slots in no order, and a bucket is moved to the heap when its outcomes may be
released. A bit for each bucket is set if it has any slot, so that empty ones are skipped 64 at a time; the
slots of the next buckets are prefetched, as hardly any is in the cache. Outcomes too new for the ring of
buckets are in a heap of their own (`distant`). The pairs of an outcome are a chain in a pool.

When outcomes are held and released is decided in `join.reorder_windows`.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, hot, inner, prefetch, trailing_zeros
from streamwatch.core.join.layout import Records
from streamwatch.core.records.outcomes import OUTCOME, PAIR_COLUMNS

NEVER: Final = -(2**62)
ALWAYS: Final = 2**62
NO_RUN: Final = -1
UNLISTED: Final = -2
OUTCOME_WORDS: Final = OUTCOME.itemsize // 8
BUCKETS: Final = 1 << 18
"""Length of the ring of buckets, a power of two."""
BUCKETS_PER_WINDOW: Final = BUCKETS // 4
"""Number of buckets into which a window is cut, at most."""
BUCKETS_PER_MARK: Final = 64
LINE: Final = 64
"""Bytes of a line of the cache."""
FIRST_AHEAD, SECOND_AHEAD, ALL_AHEAD = 16, 11, 6
"""Number of buckets ahead at which a bucket's first slot, its second, and its others are prefetched."""
MS, SEQUENCE, LAST = range(3)
"""Columns of `heap`, `distant` and `windows`; the last is a slot in heaps, and the end of a window."""
PARTNER, ANSWER, MADE, NEXT = range(PAIR_COLUMNS)
"""Columns of the pool of pairs: those of `Pairs` about the partner, and the next pair, -1 for none."""
TOTALS: Final = np.dtype(
    [
        ("count", np.int64),
        ("in_heap", np.int64),
        ("in_distant", np.int64),
        ("width_bits", np.int64),
        ("front", np.int64),
        ("top", np.int64),
        ("free", np.int64),
        ("fresh", np.int64),
        ("assumed", np.int64),
        ("first_window", np.int64),
        ("windows", np.int64),
        ("sequence", np.int64),
        ("bound_ms", np.int64),
        ("bound_sequence", np.int64),
        ("clock_ms", np.int64),
        ("held_since", np.int64),
        ("overflow_ms", np.int64),
        ("overflow_sequence", np.int64),
        ("releasing", np.int64),
        ("early", np.int64),
        ("pairs", np.int64),
        ("pairs_top", np.int64),
        ("pairs_free", np.int64),
    ]
)
"""State of the order besides the outcomes it holds.

`count`, `assumed`: numbers of outcomes held, and of those that were assumed at expiry. `in_heap`,
`in_distant`: how many of them are in these heaps, the others being in buckets. `width_bits`: binary logarithm
of a bucket's width in milliseconds. `front`: the last bucket, counted from the epoch, that went into the
heap. `top`, `free`: number of slots ever used, and the first of those free again. `fresh`: number of slots
that are listed as in no stored run. `bound…`: the newest (prediction time, sequence) whose window is over.
`clock_ms`: the clock at which outcomes were last released; `held_since`: the sequence of the first outcome
held after that; `overflow…`: the newest (prediction time, sequence) released since then because too many were
held. `releasing`: 1 while outcomes remain to be released at `clock_ms`. `early`: number of outcomes released
because too many were held, since it was read last.
`pairs`, `pairs_top`, `pairs_free`: number of rows of the pool that are in use, of those ever used, and the
first that is free again.
"""
SLOT: Final = np.dtype(
    [
        ("prediction_ms", np.int64),
        ("sequence", np.int64),
        ("opened_ms", np.int64),
        ("run", np.int64),
        ("pair", np.int32),
        ("next", np.int32),
        ("outcome", np.int64, (OUTCOME_WORDS,)),
    ],
    align=True,
)
"""Slot for an outcome that is held, in two cache lines.

`sequence`: -1 for a free slot. `opened_ms`: time at which its window was opened. `run`: number of the stored
run that contains it, -1 for none; every slot with -1 is listed in `Held.fresh`, also one that has become free
since, and a free one may have -2, which is not listed. `pair`: its first pair in the pool, -1 for none.
`next`: next slot of its bucket, or next free slot; -1 at the end. `outcome`: the words of its `OUTCOME`.
"""
SLOT_BYTES: Final = SLOT.itemsize


class Held(NamedTuple):
    """Arrays of the outcomes held; `slots`, `heap`, `distant` and `windows` have room for equally many."""

    slots: Records
    """Dtype `SLOT`."""
    heap: NDArray[np.int64]
    """Outcomes of buckets up to `front`, shape (slots, 3): prediction time, sequence and slot."""
    distant: NDArray[np.int64]
    """Heap of outcomes that were too new for the ring of buckets, as `heap`."""
    buckets: NDArray[np.int32]
    """First slot of each bucket after `front`, shape (`BUCKETS`,), by bucket modulo that, if it has any."""
    marks: NDArray[np.uint64]
    """A bit for each of `buckets`, from the lowest on: whether it has any slot."""
    fresh: NDArray[np.int32]
    """Slots that were filled since the last commit, each once, in no order."""
    windows: NDArray[np.int64]
    """Ring, shape (slots, 3), a power of two: prediction time, sequence and end, all ascending."""
    pairs: NDArray[np.int32]
    """Pool, shape (room, 4): columns of `Pairs` about the partner, and the next pair of the outcome."""
    totals: Records
    """Dtype `TOTALS`, (1,)."""


@hot
def is_before(ms, sequence, other_ms, other_sequence):
    """Compare two outcomes by prediction time, then sequence."""
    return (ms < other_ms) | ((ms == other_ms) & (sequence < other_sequence))


@hot
def sift_up(heap, i, ms, sequence, slot):
    """Put an outcome into a heap whose index i is free, there or at an ancestor that moves down."""
    while i > 0:
        parent = (i - 1) >> 1
        if is_before(heap[parent, MS], heap[parent, SEQUENCE], ms, sequence):
            break
        heap[i, MS] = heap[parent, MS]
        heap[i, SEQUENCE] = heap[parent, SEQUENCE]
        heap[i, LAST] = heap[parent, LAST]
        i = parent
    heap[i, MS], heap[i, SEQUENCE], heap[i, LAST] = ms, sequence, slot


@hot
def pop(heap, count):
    """Remove the first outcome of a heap of `count`, and return its slot.

    The free index sinks to the bottom first, where the outcome of the last index most often belongs.
    """
    slot = heap[0, LAST]
    last = count - 1
    i = 0
    child = 1
    while child < last:
        other = child + 1
        # Without a branch: which of the two it is cannot be predicted.
        child += (other < last) & is_before(
            heap[other, MS], heap[other, SEQUENCE], heap[child, MS], heap[child, SEQUENCE]
        )
        heap[i, MS] = heap[child, MS]
        heap[i, SEQUENCE] = heap[child, SEQUENCE]
        heap[i, LAST] = heap[child, LAST]
        i = child
        child = 2 * i + 1
    sift_up(heap, i, heap[last, MS], heap[last, SEQUENCE], heap[last, LAST])
    return slot


@hot
def first_of_bucket(h, bucket):
    """First slot of a bucket in the ring, -1 if it has none."""
    index = bucket & (BUCKETS - 1)
    bits = h.marks[index // BUCKETS_PER_MARK] >> np.uint64(index % BUCKETS_PER_MARK)
    return np.int64(h.buckets[index]) if bits & np.uint64(1) else np.int64(-1)


@hot
def put_into_order(h, slot):
    """Put the outcome of a slot into the heap, its bucket, or the heap of distant ones."""
    totals, s = h.totals[0], h.slots[slot]
    bucket = s.prediction_ms >> totals.width_bits
    if totals.count == 0:
        totals.front = max(bucket - BUCKETS // 2, totals.bound_ms >> totals.width_bits)
    ahead = bucket - totals.front
    if ahead <= 0:
        sift_up(h.heap, totals.in_heap, s.prediction_ms, s.sequence, slot)
        totals.in_heap += 1
    elif ahead < BUCKETS:
        s.next = first_of_bucket(h, bucket)
        index = bucket & (BUCKETS - 1)
        h.buckets[index] = slot
        h.marks[index // BUCKETS_PER_MARK] |= np.uint64(1) << np.uint64(index % BUCKETS_PER_MARK)
    else:
        sift_up(h.distant, totals.in_distant, s.prediction_ms, s.sequence, slot)
        totals.in_distant += 1
    totals.count += 1


@hot
def next_bucket(h, last):
    """Find the first bucket after `front` that has outcomes, or `last` if none has before it."""
    totals = h.totals[0]
    found = last
    if totals.count > totals.in_distant:  # none is in the heap
        bucket = totals.front + 1
        end = min(last, totals.front + BUCKETS - 1)
        while bucket <= end:
            index = bucket & (BUCKETS - 1)
            bits = h.marks[index // BUCKETS_PER_MARK] >> np.uint64(index % BUCKETS_PER_MARK)
            if bits != 0:
                found = min(found, bucket + trailing_zeros(bits))
                break
            bucket += BUCKETS_PER_MARK - index % BUCKETS_PER_MARK
    if totals.in_distant > 0:
        found = min(found, h.distant[0, MS] >> totals.width_bits)
    return found


@hot
def prefetch_slot(h, slot):
    """Prefetch a slot, -1 for none."""
    if slot >= 0:
        prefetch(h.slots, SLOT_BYTES * slot)
        prefetch(h.slots, SLOT_BYTES * slot + LINE)


@inner
def prefetch_ahead(h, before):
    """Prefetch slots of the next buckets, after `front` has moved from bucket `before`."""
    front = h.totals[0].front
    for at in range(max(before, front - FIRST_AHEAD) + 1, front + 1):
        prefetch_slot(h, first_of_bucket(h, at + FIRST_AHEAD))
        slot = first_of_bucket(h, at + SECOND_AHEAD)
        if slot >= 0:
            prefetch_slot(h, np.int64(h.slots[slot].next))
        slot = first_of_bucket(h, at + ALL_AHEAD)
        while slot >= 0:
            slot = np.int64(h.slots[slot].next)
            prefetch_slot(h, slot)


@inner
def fill_heap(h, until_ms):
    """Fill the heap, if it is empty, from the next bucket with outcomes that begins by `until_ms`."""
    totals = h.totals[0]
    last = until_ms >> totals.width_bits
    while totals.in_heap == 0 and totals.front < last and totals.count > 0:
        before = totals.front
        totals.front = next_bucket(h, last)
        prefetch_ahead(h, before)
        slot = first_of_bucket(h, totals.front)
        index = totals.front & (BUCKETS - 1)
        h.marks[index // BUCKETS_PER_MARK] &= ~(np.uint64(1) << np.uint64(index % BUCKETS_PER_MARK))
        while slot >= 0:
            s = h.slots[slot]
            sift_up(h.heap, totals.in_heap, s.prediction_ms, s.sequence, slot)
            totals.in_heap += 1
            slot = np.int64(s.next)
        while totals.in_distant > 0 and h.distant[0, MS] >> totals.width_bits <= totals.front:
            slot = pop(h.distant, totals.in_distant)
            totals.in_distant -= 1
            s = h.slots[slot]
            sift_up(h.heap, totals.in_heap, s.prediction_ms, s.sequence, slot)
            totals.in_heap += 1


@hot
def end_of_pairs(pairs, first, outcome):
    """Return the row after the pairs of an outcome, which begin at row `first` if it has any."""
    while first < pairs.shape[0] and pairs[first, 0] == outcome:
        first += 1
    return first


@hot
def chain_pairs(h, pairs, first, end):
    """Chain rows `first` to `end` of pairs in the pool, which has room; return the first row, or -1."""
    totals = h.totals[0]
    chained = -1
    for k in range(end - 1, first - 1, -1):
        at = totals.pairs_free
        if at >= 0:
            totals.pairs_free = h.pairs[at, NEXT]
        else:
            at = totals.pairs_top
            totals.pairs_top += 1
        h.pairs[at, PARTNER] = pairs[k, 1]
        h.pairs[at, ANSWER] = pairs[k, 2]
        h.pairs[at, MADE] = pairs[k, 3]
        h.pairs[at, NEXT] = chained
        chained = at
    totals.pairs += end - first
    return chained


@entry
def count_pairs(h, first):
    """Count the pairs of chains that begin at these rows of the pool, int32 (n,), -1 for none."""
    count = 0
    for i in range(first.shape[0]):
        at = first[i]
        while at >= 0:
            count += 1
            at = h.pairs[at, NEXT]
    return count


@entry
def read_pairs(h, first, pairs):
    """Write the pairs of these chains, with the number of the chain, into `pairs`, which has room."""
    count = 0
    for i in range(first.shape[0]):
        at = first[i]
        while at >= 0:
            pairs[count, 0] = i
            pairs[count, 1] = h.pairs[at, PARTNER]
            pairs[count, 2] = h.pairs[at, ANSWER]
            pairs[count, 3] = h.pairs[at, MADE]
            count += 1
            at = h.pairs[at, NEXT]


@entry
def free_pairs(h, first):
    """Free the rows of these chains."""
    totals = h.totals[0]
    for i in range(first.shape[0]):
        at = first[i]
        while at >= 0:
            following = h.pairs[at, NEXT]
            h.pairs[at, NEXT] = totals.pairs_free
            totals.pairs_free = at
            totals.pairs -= 1
            at = following
