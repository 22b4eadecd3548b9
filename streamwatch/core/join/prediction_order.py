"""`PredictionOrder`: puts outcomes back into the order of their predictions (`join.order: prediction_time`).

κ_per and every detector depend on the order in which outcomes are evaluated. The order of resolution means
nothing if labels are written in bulk, sorted by class; predictions come in the order in which they were made.

An outcome opens a window of `join.reorder_window` when it is resolved. When the clock reaches the end of the
window, the outcome is released together with all outcomes held whose prediction is not newer. So no outcome
is held longer than its window, and outcomes resolved within one window are released in the order of
predictions, ties in the order of resolution. An outcome resolved after newer ones were released is released
when the clock next moves. Beyond `join.max_reordered` the outcomes of the oldest predictions are released at
once.

Pairs are made when an outcome is resolved, and are held and released with it.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, hot, inner, prefetch, trailing_zeros
from streamwatch.core.join.held_scores import Carried, HeldScores, taken_scores
from streamwatch.core.join.layout import Records, lazy_zeros, room_for_pairs
from streamwatch.core.records.batch import copied, joined, taken, words_of_array
from streamwatch.core.records.outcomes import (
    NO_PAIRS,
    OUTCOME,
    PAIR_COLUMNS,
    SEGMENTS_FROM,
    OutcomeBatch,
    Pairs,
    moved,
    pairs_at,
)
from streamwatch.core.records.scores import ScoreLists

# Compiled half of `PredictionOrder`: outcomes held, and their release.
#
# Outcomes are in slots. Their order is by (prediction time, sequence). A binary heap of all of them would
# miss the cache at each of its levels, so only the oldest are in one: time is cut into buckets of equal
# width, each a chain of slots in no order, and a bucket is moved to the heap when its outcomes may be
# released. A bit for each bucket is set if it has any slot, so that empty ones are skipped 64 at a time; the
# slots of the next buckets are prefetched, as hardly any is in the cache. Outcomes too new for the ring of
# buckets are in a heap of their own (`distant`). A ring keeps the windows, which end in the order in which
# they were opened. A window is left out if one that ends no later is of a newer prediction, as it would
# change nothing. The pairs of an outcome are a chain in a pool. An outcome without a model (-1) is held
# elsewhere: here it only opens its window.


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
`clock_ms`: the clock at which outcomes were last released;
`held_since`: the sequence of the first outcome held after that; `overflow…`: the newest (prediction time,
sequence) released since then because too many were held. `releasing`: 1 while outcomes remain to be released
at `clock_ms`. `early`: number of outcomes released because too many were held, since it was read last.
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


class Released(NamedTuple):
    """Room for outcomes that are released, shape (room,) each."""

    outcomes: Records
    """Dtype `OUTCOME`."""
    words: NDArray[np.int64]
    """The same memory, shape (room, `OUTCOME_WORDS`)."""
    runs: NDArray[np.int64]
    """Number of the stored run that contains each, -1 for none."""
    pair: NDArray[np.int32]
    """First pair of each in the pool, which stays there until `free_pairs`; -1 for none."""
    early: NDArray[np.bool_]
    """Whether each was released because too many were held."""


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
def open_window(h, prediction_ms, sequence, end_ms):
    """Open the window of an outcome, unless it would change nothing."""
    totals, windows = h.totals[0], h.windows
    while totals.windows > 0:  # drop those that change nothing any more
        w = totals.first_window
        if is_before(totals.bound_ms, totals.bound_sequence, windows[w, MS], windows[w, SEQUENCE]):
            break
        totals.first_window = (w + 1) & (windows.shape[0] - 1)
        totals.windows -= 1
    newest_ms, newest = totals.bound_ms, totals.bound_sequence
    if totals.windows > 0:
        w = (totals.first_window + totals.windows - 1) & (windows.shape[0] - 1)
        newest_ms, newest = windows[w, MS], windows[w, SEQUENCE]
    if is_before(newest_ms, newest, prediction_ms, sequence):
        w = (totals.first_window + totals.windows) & (windows.shape[0] - 1)
        windows[w, MS], windows[w, SEQUENCE], windows[w, LAST] = prediction_ms, sequence, end_ms
        totals.windows += 1


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
def hold(h, words, i, assumed, pair, prediction_ms, opened_ms, window_ms):
    """Hold the outcome of row i of `words`, whose pairs are in the pool; there must be a free slot."""
    totals = h.totals[0]
    slot = totals.free
    if slot >= 0:
        totals.free = np.int64(h.slots[slot].next)
        listed = h.slots[slot].run == NO_RUN
    else:
        slot = totals.top
        totals.top += 1
        listed = False
    if not listed:
        h.fresh[totals.fresh] = slot
        totals.fresh += 1
    s = h.slots[slot]
    for k in range(OUTCOME_WORDS):
        s.outcome[k] = words[i, k]
    s.prediction_ms = prediction_ms
    s.sequence = totals.sequence
    s.opened_ms = opened_ms
    s.run = NO_RUN
    s.pair = pair
    put_into_order(h, slot)
    open_window(h, prediction_ms, totals.sequence, opened_ms + window_ms)
    totals.sequence += 1
    totals.assumed += assumed


@hot
def release_first(h, released, count, early):
    """Move the first outcome of the heap, that of the oldest prediction, to row `count` of `released`.

    Returns `count` + 1.
    """
    totals = h.totals[0]
    slot = pop(h.heap, totals.in_heap)
    s = h.slots[slot]
    for k in range(OUTCOME_WORDS):
        released.words[count, k] = s.outcome[k]
    released.runs[count] = s.run
    released.pair[count] = s.pair
    released.early[count] = early
    totals.in_heap -= 1
    totals.count -= 1
    totals.assumed -= released.outcomes[count].assumed
    s.sequence = -1
    s.next = totals.free
    totals.free = slot
    return count + 1


@hot
def release(h, clock_ms, released, count):
    """Release the outcomes due at this clock, as far as there is room; return the number in `released`.

    Outcomes held since the clock reached this time wait until it moves.
    """
    totals = h.totals[0]
    if not totals.releasing and clock_ms > totals.clock_ms:
        while totals.windows > 0:
            w = totals.first_window
            if h.windows[w, LAST] > clock_ms:
                break
            if is_before(totals.bound_ms, totals.bound_sequence, h.windows[w, MS], h.windows[w, SEQUENCE]):
                totals.bound_ms, totals.bound_sequence = h.windows[w, MS], h.windows[w, SEQUENCE]
            totals.first_window = (w + 1) & (h.windows.shape[0] - 1)
            totals.windows -= 1
        totals.clock_ms = clock_ms
        totals.releasing = 1
    while totals.releasing:
        if totals.in_heap == 0:
            fill_heap(h, totals.bound_ms)
        if totals.in_heap == 0 or is_before(
            totals.bound_ms, totals.bound_sequence, h.heap[0, MS], h.heap[0, SEQUENCE]
        ):
            totals.releasing = 0
            totals.held_since = totals.sequence
            totals.overflow_ms = NEVER
        elif count == released.runs.shape[0]:
            break
        else:
            count = release_first(h, released, count, False)
    return count


@hot
def release_excess(h, most, released, count):
    """Release the outcomes of the oldest predictions beyond `most`, as far as there is room."""
    totals = h.totals[0]
    while totals.count > most and count < released.runs.shape[0]:
        if totals.in_heap == 0:
            fill_heap(h, ALWAYS)
        ms, sequence = h.heap[0, MS], h.heap[0, SEQUENCE]
        if is_before(totals.bound_ms, totals.bound_sequence, ms, sequence):
            totals.bound_ms, totals.bound_sequence = ms, sequence
        if is_before(totals.overflow_ms, totals.overflow_sequence, ms, sequence):
            totals.overflow_ms, totals.overflow_sequence = ms, sequence
        totals.early += 1
        count = release_first(h, released, count, True)
    return count


@entry
def put_in_order(h, outcomes, words, timing, pairs, start, clock_ms, window_ms, most, released):
    """Hold outcomes from `start` on, and release outcomes that are due, up to the clock after them.

    Stops when there is no room for further released outcomes.

    Parameters
    ----------
    h
        `Held`, with free slots for all outcomes, and room for all pairs.
    outcomes, words, timing
        Records `OUTCOME`, the same memory as rows of words, and `TIMING`, (n,), in the order in which they
        were resolved.
    pairs
        `Pairs` of the outcomes from `start` on.
    start
        Outcome at which to start or continue.
    clock_ms
        Clock at the end of the outcomes.
    window_ms, most
        `join.reorder_window` in milliseconds and `join.max_reordered`.
    released
        Output: `Released`.

    Returns
    -------
    tuple[int, int]
        Outcome at which to continue, n + 1 when nothing is left to do; and the number released.
    """
    room = released.runs.shape[0]
    count = release_excess(h, most, released, 0)
    paired = 0
    for i in range(start, outcomes.shape[0]):
        if count == room:
            return i, count
        t = timing[i]
        count = release(h, t.clock_ms, released, count)
        if h.totals[0].releasing or count == room:
            return i, count
        o = outcomes[i]
        # A window never ends before one that was opened earlier, not even when settings have changed.
        opened_ms = max(t.clock_ms, o.event_ms) if o.assumed == 1 else t.clock_ms
        if o.model < 0:
            open_window(h, t.prediction_ms, h.totals[0].sequence, opened_ms + window_ms)
            h.totals[0].sequence += 1
            continue
        end = end_of_pairs(pairs, paired, i)
        pair = chain_pairs(h, pairs, paired, end)
        hold(h, words, i, o.assumed, pair, t.prediction_ms, opened_ms, window_ms)
        paired = end
        count = release_excess(h, most, released, count)
        if h.totals[0].count > most:
            return i + 1, count
    if count == room:
        return outcomes.shape[0], count
    count = release(h, clock_ms, released, count)
    return outcomes.shape[0] + (not h.totals[0].releasing), count


@entry
def release_any(h, released):
    """Release outcomes in the order of predictions, whatever the clock; return their number."""
    totals = h.totals[0]
    count = 0
    while totals.count > 0 and count < released.runs.shape[0]:
        if totals.in_heap == 0:
            fill_heap(h, ALWAYS)
        ms, sequence = h.heap[0, MS], h.heap[0, SEQUENCE]
        if is_before(totals.bound_ms, totals.bound_sequence, ms, sequence):
            totals.bound_ms, totals.bound_sequence = ms, sequence
        count = release_first(h, released, count, False)
    if totals.count == 0:
        totals.windows = 0
        totals.held_since = totals.sequence
        totals.overflow_ms = NEVER
        totals.releasing = 0
    return count


@entry
def hold_again(h, outcomes, words, pairs, prediction_ms, opened_ms, sequences, runs, window_ms):
    """Hold the outcomes of a state, in the order of their sequences; all totals but the counts must be set.

    `prediction_ms`, `opened_ms`, `sequences` and `runs` have the shape (n,), as `outcomes`, whose words are
    `words` and whose `Pairs` are `pairs`; there is room for all of it.
    """
    totals = h.totals[0]
    paired = 0
    for i in range(outcomes.shape[0]):
        end = end_of_pairs(pairs, paired, i)
        s = h.slots[i]
        for k in range(OUTCOME_WORDS):
            s.outcome[k] = words[i, k]
        s.prediction_ms = prediction_ms[i]
        s.sequence = sequences[i]
        s.opened_ms = opened_ms[i]
        s.run = runs[i]
        if runs[i] == NO_RUN:
            h.fresh[totals.fresh] = i
            totals.fresh += 1
        s.pair = chain_pairs(h, pairs, paired, end)
        paired = end
        put_into_order(h, i)
        open_window(h, prediction_ms[i], sequences[i], opened_ms[i] + window_ms)
        totals.assumed += outcomes[i].assumed
    totals.top = outcomes.shape[0]


@entry
def open_again(h, windows, window_ms):
    """Replace all windows by these: prediction time, sequence, time of opening, int64 (n, 3), ascending."""
    h.totals[0].windows = h.totals[0].first_window = 0
    for i in range(windows.shape[0]):
        open_window(h, windows[i, MS], windows[i, SEQUENCE], windows[i, LAST] + window_ms)


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


ROOM: Final = 4_096
"""Largest number of outcomes released at a time."""
_FIRST_SLOTS: Final = 1_024


class OrderTotals(msgspec.Struct, array_like=True, frozen=True):
    """State of the order without the outcomes held, as a commit contains it; see `TOTALS`."""

    sequence: int = 0
    bound: tuple[int, int] = (NEVER, 0)
    clock_ms: int = NEVER
    held_since: int = 0
    overflow: tuple[int, int] = (NEVER, 0)


class HeldRows(NamedTuple):
    """Outcomes that a state holds, shape (n,) each, in the order of `sequence`, and their pairs."""

    outcomes: Records
    pairs: Pairs
    prediction_ms: NDArray[np.int64]
    opened_ms: NDArray[np.int64]
    sequence: NDArray[np.int64]
    run: NDArray[np.int64]

    def at(self, chosen: NDArray[np.int64]) -> HeldRows:
        """Rows at these positions."""
        return HeldRows(
            taken(self.outcomes, chosen),
            pairs_at(self.pairs, chosen, len(self.outcomes)),
            self.prediction_ms[chosen],
            self.opened_ms[chosen],
            self.sequence[chosen],
            self.run[chosen],
        )


def joined_rows(parts: Sequence[HeldRows]) -> HeldRows:
    """Rows of all parts, one after another; at least one part."""
    starts = np.cumsum([0, *(len(part.outcomes) for part in parts)]).tolist()
    return HeldRows(
        joined([part.outcomes for part in parts]),
        np.concatenate([moved(part.pairs, start) for start, part in zip(starts, parts, strict=False)]),
        np.concatenate([part.prediction_ms for part in parts]),
        np.concatenate([part.opened_ms for part in parts]),
        np.concatenate([part.sequence for part in parts]),
        np.concatenate([part.run for part in parts]),
    )


class Leaving(NamedTuple):
    """Outcomes released in order, at most `ROOM`."""

    outcomes: OutcomeBatch
    runs: NDArray[np.int64]
    """Number of the stored run of each, -1 for none."""
    early: NDArray[np.bool_]
    """Whether each was released because too many were held."""


class PredictionOrder:
    """Holds outcomes until it is their turn in the order of predictions.

    Parameters
    ----------
    window_ms
        `join.reorder_window` in milliseconds.
    maximum
        `join.max_reordered`: largest number of outcomes held.
    """

    __slots__ = ("_by_model", "_held", "_maximum", "_released", "_scores", "_window_ms")

    def __init__(self, window_ms: int, maximum: int) -> None:
        self._window_ms = window_ms
        self._maximum = maximum
        self._held = _held(_FIRST_SLOTS, OrderTotals(), window_ms)
        self._by_model = np.zeros(0, np.int64)
        self._scores = HeldScores()
        released = np.empty(ROOM, OUTCOME)
        self._released = Released(
            released,
            words_of_array(released),
            np.empty(ROOM, np.int64),
            np.empty(ROOM, np.int32),
            np.empty(ROOM, np.bool_),
        )

    def __len__(self) -> int:
        return int(self._held.totals["count"][0])

    @property
    def assumed(self) -> int:
        """Number of outcomes held that were assumed at expiry."""
        return int(self._held.totals["assumed"][0])

    def put(self, outcomes: OutcomeBatch, timing: Records, clock_ms: int) -> Iterator[Leaving]:
        """Hold outcomes, and release outcomes that are due, up to the clock after them.

        Exhaust the iterator before anything else is done with the order.

        Parameters
        ----------
        outcomes
            Outcomes in the order in which they were resolved. Those with model -1 are held elsewhere, and
            only open their windows.
        timing
            Records `TIMING` of the outcomes, (n,).
        clock_ms
            Clock after the outcomes.

        Yields
        ------
        Leaving
            Outcomes released.
        """
        records = self._with_own_scores(outcomes)
        words = words_of_array(records)
        pairs = NO_PAIRS if outcomes.pairs is None else outcomes.pairs
        self._make_room(len(records), len(pairs))
        self._count_models(records, 1)
        at = 0
        while at <= len(records):
            window = self._window_ms, self._maximum
            coming = pairs[np.searchsorted(pairs[:, 0], at) :]
            at, count = put_in_order(
                self._held, records, words, timing, coming, at, clock_ms, *window, self._released
            )
            if count:
                yield self._take(outcomes, count)

    def release_all(self, names: OutcomeBatch) -> Iterator[Leaving]:
        """Release everything in order, as `put` does; `names` is a batch with the present names by number."""
        while len(self):
            yield self._take(names, release_any(self._held, self._released))

    def _take(self, names: OutcomeBatch, count: int) -> Leaving:
        released = self._released
        records = copied(released.outcomes[:count])
        self._count_models(records, -1)
        scores = taken_scores(records, self._scores)
        pairs = self._pairs_of(released.pair[:count])
        free_pairs(self._held, released.pair[:count])
        batch = OutcomeBatch(records, names.models, names.classes, scores, names.segments, pairs)
        return Leaving(batch, released.runs[:count].copy(), released.early[:count].copy())

    def _pairs_of(self, first: NDArray[np.int32]) -> Pairs:
        """Pairs in the chains that begin at these rows of the pool, -1 for none, by chain."""
        if not self._held.totals["pairs"][0]:
            return NO_PAIRS
        pairs = np.empty((count_pairs(self._held, first), PAIR_COLUMNS), np.int32)
        read_pairs(self._held, first, pairs)
        return pairs

    def _with_own_scores(self, outcomes: OutcomeBatch) -> Records:
        """Hold the scores of outcomes here; return the records with the numbers that the scores have here."""
        records = outcomes.records
        scored, lists = outcomes.own_scores()
        if len(scored):
            records = copied(records)
            records["scores"][scored] = self._scores.add(lists)
        return records

    def take_early(self) -> int:
        """Return how many outcomes were released because too many were held, since the last call."""
        early = int(self._held.totals["early"][0])
        self._held.totals["early"] = 0
        return early

    def held_by_model(self, models: int) -> NDArray[np.int64]:
        """Count the outcomes held by model number, shape (models,) or longer."""
        counts = np.zeros(max(models, len(self._by_model)), np.int64)
        counts[: len(self._by_model)] = self._by_model
        return counts

    def _count_models(self, records: Records, sign: int) -> None:
        """Add outcomes to the numbers held by model, or with `sign` -1 subtract them."""
        numbers = records["model"]
        counts = np.bincount(numbers[numbers >= 0], minlength=len(self._by_model))
        counts[: len(self._by_model)] = self._by_model + sign * counts[: len(self._by_model)]
        self._by_model = counts

    def records(self) -> Records:
        """Outcomes held, in no order; the numbers of their scores are those of this order."""
        return self._outcomes_at(self._slots())

    def _outcomes_at(self, slots: NDArray[np.int64]) -> Records:
        """Copy the outcomes in these slots."""
        return self._held.slots["outcome"][slots].reshape(-1).view(OUTCOME)

    def pairs(self) -> Pairs:
        """Pairs of the outcomes held, by their indices in `records`."""
        return self._pairs_of(self._held.slots["pair"][self._slots()])

    def carried_names(self, classes: int, segments: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the numbers of the classes of scores, and of the segments, of outcomes held.

        All are below `classes` and `segments`; negative ones stand for none.
        """
        of_scores, beside = self._scores.used(classes, segments)
        return of_scores, np.concatenate([self.records()["scores"] - SEGMENTS_FROM, beside])

    def _slots(self) -> NDArray[np.int64]:
        """Slots of the outcomes held, ascending."""
        held = self._held
        return np.flatnonzero(held.slots["sequence"][: int(held.totals["top"][0])] >= 0)

    def take_fresh(self) -> NDArray[np.int64]:
        """Return the slots of the outcomes that no stored run contains; the caller must set their run."""
        held, totals = self._held, self._held.totals
        listed = held.fresh[: int(totals["fresh"][0])].astype(np.int64)
        totals["fresh"] = 0
        is_held = held.slots["sequence"][listed] >= 0
        held.slots["run"][listed[~is_held]] = UNLISTED
        return listed[is_held]

    def slots_of(self, run: int) -> NDArray[np.int64]:
        """Return the slots of the outcomes of a stored run that are still held."""
        slots = self._slots()
        return slots[self._held.slots["run"][slots] == run]

    def rows(self, slots: NDArray[np.int64]) -> tuple[NDArray[np.int64], HeldRows]:
        """Return slots of outcomes held, sorted by sequence, and their rows."""
        slots = slots[np.argsort(self._held.slots["sequence"][slots])]
        about = taken(self._held.slots, slots)
        outcomes = about["outcome"].copy().reshape(-1).view(OUTCOME)
        times = (about[name].copy() for name in ("prediction_ms", "opened_ms", "sequence", "run"))
        return slots, HeldRows(outcomes, self._pairs_of(about["pair"].copy()), *times)

    def set_run(self, slots: NDArray[np.int64], number: int) -> None:
        """Note the stored run that contains these outcomes."""
        self._held.slots["run"][slots] = number

    def forget_run(self, run: int) -> None:
        """Note that no stored run contains the outcomes of this run that are still held."""
        slots, totals = self.slots_of(run), self._held.totals
        self.set_run(slots, NO_RUN)
        listed = int(totals["fresh"][0])
        self._held.fresh[listed : listed + len(slots)] = slots
        totals["fresh"] += len(slots)

    def forget_runs(self) -> None:
        """Note that no stored run contains any outcome."""
        top = int(self._held.totals["top"][0])
        self._held.slots["run"][:top] = NO_RUN
        self._held.fresh[:top] = np.arange(top)
        self._held.totals["fresh"] = top

    def windows(self) -> NDArray[np.int64]:
        """Return the open windows: prediction time, sequence and time of opening, int64 (n, 3), ascending."""
        t, ring = self._held.totals[0], self._held.windows
        at = (int(t["first_window"]) + np.arange(int(t["windows"]))) % len(ring)
        return ring[at] - (0, 0, self._window_ms)

    def open_windows(self, windows: NDArray[np.int64]) -> None:
        """Replace the open windows by these, which must include those of all outcomes held."""
        self._make_room(len(windows), 0)
        open_again(self._held, windows, self._window_ms)

    def carried(self, outcomes: Records) -> Carried:
        """Scores and segments of outcomes that are held."""
        return self._scores.carried(outcomes["scores"])

    def totals(self) -> OrderTotals:
        """Return the state of the order without the outcomes held."""
        t = self._held.totals[0]
        overflow_ms = int(t["overflow_ms"])
        return OrderTotals(
            int(t["sequence"]),
            (int(t["bound_ms"]), int(t["bound_sequence"])),
            int(t["clock_ms"]),
            int(t["held_since"]),
            (overflow_ms, 0 if overflow_ms == NEVER else int(t["overflow_sequence"])),
        )

    def restore(
        self, totals: OrderTotals, rows: HeldRows, scored: NDArray[np.int64], scores: ScoreLists
    ) -> None:
        """Continue from a state.

        Parameters
        ----------
        totals
            State without the outcomes held.
        rows
            Outcomes held; their column `scores` holds `SEGMENTS_FROM` plus the number of segments, -1 without
            any.
        scored, scores
            Positions of the rows with scores, and these scores, with the numbers of segments beside them.
        """
        self._scores = HeldScores()
        outcomes = copied(rows.outcomes)
        outcomes["scores"][scored] = self._scores.add(scores)
        slots = max(_FIRST_SLOTS, 1 << (len(outcomes) - 1).bit_length() if len(outcomes) else 0)
        self._held = _held(slots, totals, self._window_ms)
        self._by_model = np.zeros(0, np.int64)
        self._count_models(outcomes, 1)
        self._make_room(0, len(rows.pairs))
        arrays = rows.prediction_ms, rows.opened_ms, rows.sequence, rows.run
        words = words_of_array(outcomes)
        hold_again(self._held, outcomes, words, rows.pairs, *arrays, self._window_ms)

    def _make_room(self, coming: int, pairs: int) -> None:
        """Double the slots, and the room for pairs, until there is room for so many more."""
        held, count = self._held, max(len(self), int(self._held.totals["windows"][0]))
        needed = int(held.totals["pairs"][0]) + pairs
        if needed > len(held.pairs):
            pool = room_for_pairs(max(_FIRST_SLOTS, 1 << (needed - 1).bit_length()))
            pool[: len(held.pairs)] = held.pairs
            self._held = held = held._replace(pairs=pool)
        slots = len(held.slots)
        while count + coming > slots:
            slots *= 2
        if slots == len(held.slots):
            return
        larger = _held(slots, OrderTotals(), self._window_ms)
        used = held.totals[0]
        for name, top in (
            ("slots", used["top"]),
            ("fresh", used["fresh"]),
            ("heap", used["in_heap"]),
            ("distant", used["in_distant"]),
        ):
            getattr(larger, name)[:top] = getattr(held, name)[:top]
        first, windows = int(held.totals["first_window"][0]), int(held.totals["windows"][0])
        larger.windows[:windows] = np.roll(held.windows, -first, axis=0)[:windows]
        held.totals["first_window"] = 0
        kept = {"buckets": held.buckets, "marks": held.marks, "pairs": held.pairs, "totals": held.totals}
        self._held = larger._replace(**kept)


def _held(slots: int, totals: OrderTotals, window_ms: int) -> Held:
    """Build the arrays of an order that holds nothing and has `slots` free slots."""
    record = np.zeros(1, TOTALS)
    record["width_bits"] = (window_ms // BUCKETS_PER_WINDOW).bit_length()
    record["free"] = record["pairs_free"] = -1
    record["sequence"], record["clock_ms"] = totals.sequence, totals.clock_ms
    record["bound_ms"], record["bound_sequence"] = totals.bound
    record["held_since"] = totals.held_since
    record["overflow_ms"], record["overflow_sequence"] = totals.overflow
    return Held(
        lazy_zeros(slots, SLOT),
        np.zeros((slots, 3), np.int64),
        np.zeros((slots, 3), np.int64),
        lazy_zeros(BUCKETS, np.dtype(np.int32)),
        np.zeros(BUCKETS // BUCKETS_PER_MARK, np.uint64),
        np.zeros(slots, np.int32),
        np.zeros((slots, 3), np.int64),
        NO_PAIRS,
        record,
    )
