"""Compiled half of `PredictionOrder`: outcomes held, and their release.

Outcomes lie in slots; a binary heap orders the slots by (prediction time, sequence), and a ring keeps the
windows, which end in the order in which they were opened. A window is left out if one that ends no later is
of a newer prediction, as it would change nothing.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, hot, inner, without_refcount
from streamwatch.core.join.compiled.layout import Records

NEVER: Final = -(2**62)
NO_RUN: Final = -1

MS, SEQUENCE, LAST = range(3)
"""Columns of `heap`, whose last is a slot, and of `windows`, whose last is the end of the window."""

TOTALS: Final = np.dtype(
    [
        ("count", np.int64),
        ("top", np.int64),
        ("free", np.int64),
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
    ]
)
"""State of the order besides the outcomes it holds.

`count`, `assumed`: numbers of outcomes held, and of those that were assumed at expiry. `top`, `free`: number
of slots ever used, and the first of those free again. `bound…`: the newest (prediction time, sequence) whose
window is over. `clock_ms`: the clock at which outcomes were last released; `held_since`: the sequence of the
first outcome held after that; `overflow…`: the newest (prediction time, sequence) that left since then
because there were too many. `releasing`: 1 while outcomes are left to release at `clock_ms`. `early`: number
of outcomes that left because there were too many, since it was read last.
"""


class Held(NamedTuple):
    """Arrays of the outcomes held; all but `totals` have room for equally many."""

    outcomes: Records
    """Dtype `OUTCOME`, by slot."""
    opened_ms: NDArray[np.int64]
    """Time at which the window of the outcome was opened, by slot."""
    run: NDArray[np.int64]
    """Number of the stored run that contains the outcome, by slot; -1 for none. For free slots, the next."""
    heap: NDArray[np.int64]
    """Shape (slots, 3): prediction time, sequence and slot."""
    windows: NDArray[np.int64]
    """Ring, shape (slots, 3): prediction time, sequence and end, all ascending."""
    totals: Records
    """Dtype `TOTALS`, (1,)."""


@inner
def without_refcounts(h):
    """Arrays whose references are not counted at every call."""
    return Held(
        without_refcount(h.outcomes),
        without_refcount(h.opened_ms),
        without_refcount(h.run),
        without_refcount(h.heap),
        without_refcount(h.windows),
        without_refcount(h.totals),
    )


@hot
def is_before(ms, sequence, other_ms, other_sequence):
    """Compare two outcomes by prediction time, then sequence."""
    return (ms < other_ms) | ((ms == other_ms) & (sequence < other_sequence))


@hot
def sift_up(heap, i, ms, sequence, slot):
    """Put an outcome at a place of the heap that is free, or above it."""
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

    The free place sinks to the bottom first, where most outcomes belong that the last place held.
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


@inner
def open_window(h, prediction_ms, sequence, end_ms):
    """Open the window of an outcome, unless it would change nothing."""
    totals, windows = h.totals[0], h.windows
    while totals.windows > 0:  # those that change nothing any more
        w = totals.first_window
        if is_before(totals.bound_ms, totals.bound_sequence, windows[w, MS], windows[w, SEQUENCE]):
            break
        totals.first_window = (w + 1) % windows.shape[0]
        totals.windows -= 1
    newest_ms, newest = totals.bound_ms, totals.bound_sequence
    if totals.windows > 0:
        w = (totals.first_window + totals.windows - 1) % windows.shape[0]
        newest_ms, newest = windows[w, MS], windows[w, SEQUENCE]
    if is_before(newest_ms, newest, prediction_ms, sequence):
        w = (totals.first_window + totals.windows) % windows.shape[0]
        windows[w, MS], windows[w, SEQUENCE], windows[w, LAST] = prediction_ms, sequence, end_ms
        totals.windows += 1


@inner
def hold(h, outcome, prediction_ms, opened_ms, window_ms):
    """Hold an outcome; there must be a free slot."""
    totals = h.totals[0]
    slot = totals.free
    if slot >= 0:
        totals.free = h.run[slot]
    else:
        slot = totals.top
        totals.top += 1
    h.outcomes[slot] = outcome
    h.opened_ms[slot] = opened_ms
    h.run[slot] = NO_RUN
    sequence = totals.sequence
    sift_up(h.heap, totals.count, prediction_ms, sequence, slot)
    open_window(h, prediction_ms, sequence, opened_ms + window_ms)
    totals.sequence += 1
    totals.count += 1
    totals.assumed += outcome.assumed


@inner
def let_go(h, released, runs, count):
    """Move the outcome of the oldest prediction to the released ones; return their number."""
    totals = h.totals[0]
    slot = pop(h.heap, totals.count)
    released[count] = h.outcomes[slot]
    runs[count] = h.run[slot]
    totals.count -= 1
    totals.assumed -= h.outcomes[slot].assumed
    h.run[slot] = totals.free
    totals.free = slot
    return count + 1


@inner
def release(h, clock_ms, released, runs, count):
    """Release what may leave at this clock, as far as there is room; return the number released.

    What was held since this clock was reached waits until the clock moves.
    """
    totals = h.totals[0]
    if not totals.releasing and clock_ms > totals.clock_ms:
        while totals.windows > 0:
            w = totals.first_window
            if h.windows[w, LAST] > clock_ms:
                break
            if is_before(totals.bound_ms, totals.bound_sequence, h.windows[w, MS], h.windows[w, SEQUENCE]):
                totals.bound_ms, totals.bound_sequence = h.windows[w, MS], h.windows[w, SEQUENCE]
            totals.first_window = (w + 1) % h.windows.shape[0]
            totals.windows -= 1
        totals.clock_ms = clock_ms
        totals.releasing = 1
    while totals.releasing:
        if totals.count == 0 or is_before(
            totals.bound_ms, totals.bound_sequence, h.heap[0, MS], h.heap[0, SEQUENCE]
        ):
            totals.releasing = 0
            totals.held_since = totals.sequence
            totals.overflow_ms = NEVER
        elif count == released.shape[0]:
            break
        else:
            count = let_go(h, released, runs, count)
    return count


@inner
def release_excess(h, most, released, runs, count):
    """Release the outcomes of the oldest predictions beyond `most`, as far as there is room."""
    totals = h.totals[0]
    while totals.count > most and count < released.shape[0]:
        ms, sequence = h.heap[0, MS], h.heap[0, SEQUENCE]
        if is_before(totals.bound_ms, totals.bound_sequence, ms, sequence):
            totals.bound_ms, totals.bound_sequence = ms, sequence
        if is_before(totals.overflow_ms, totals.overflow_sequence, ms, sequence):
            totals.overflow_ms, totals.overflow_sequence = ms, sequence
        totals.early += 1
        count = let_go(h, released, runs, count)
    return count


@entry
def put_in_order(h, outcomes, timing, start, clock_ms, window_ms, most, released, runs):
    """Hold outcomes from `start` on, and release those whose turn it is, up to the clock after them.

    Stops when there is no room for further released outcomes.

    Parameters
    ----------
    h
        `Held`, with free slots for all outcomes.
    outcomes, timing
        Records `OUTCOME` and `TIMING`, (n,), in the order in which they were resolved.
    start
        Outcome at which to start or continue.
    clock_ms
        Clock at the end of the outcomes.
    window_ms, most
        `join.reorder_window` in milliseconds and `join.max_reordered`.
    released, runs
        Output: records `OUTCOME`, (room,), and the number of the stored run of each, -1 for none.

    Returns
    -------
    tuple[int, int]
        Outcome at which to continue, n + 1 when nothing is left to do; and the number released.
    """
    h, outcomes, timing = without_refcounts(h), without_refcount(outcomes), without_refcount(timing)
    released, runs = without_refcount(released), without_refcount(runs)
    count = release_excess(h, most, released, runs, 0)
    for i in range(start, outcomes.shape[0]):
        if count == released.shape[0]:
            return i, count
        t = timing[i]
        count = release(h, t.clock_ms, released, runs, count)
        if h.totals[0].releasing or count == released.shape[0]:
            return i, count
        o = outcomes[i]
        # A window never ends before one that was opened earlier, not even when settings have changed.
        opened_ms = max(t.clock_ms, o.event_ms) if o.assumed == 1 else t.clock_ms
        hold(h, o, t.prediction_ms, opened_ms, window_ms)
        count = release_excess(h, most, released, runs, count)
        if h.totals[0].count > most:
            return i + 1, count
    if count == released.shape[0]:
        return outcomes.shape[0], count
    count = release(h, clock_ms, released, runs, count)
    return outcomes.shape[0] + (not h.totals[0].releasing), count


@entry
def release_any(h, released, runs):
    """Release outcomes in the order of predictions, whatever the clock; return their number."""
    h, released, runs = without_refcounts(h), without_refcount(released), without_refcount(runs)
    totals = h.totals[0]
    count = 0
    while totals.count > 0 and count < released.shape[0]:
        ms, sequence = h.heap[0, MS], h.heap[0, SEQUENCE]
        if is_before(totals.bound_ms, totals.bound_sequence, ms, sequence):
            totals.bound_ms, totals.bound_sequence = ms, sequence
        count = let_go(h, released, runs, count)
    if totals.count == 0:
        totals.windows = 0
        totals.held_since = totals.sequence
        totals.overflow_ms = NEVER
        totals.releasing = 0
    return count


@entry
def hold_again(h, outcomes, prediction_ms, opened_ms, sequences, runs, window_ms):
    """Hold what a state held, in the order of the sequences; the totals but for the counts are set.

    `prediction_ms`, `opened_ms`, `sequences` and `runs` have the shape (n,), as `outcomes`.
    """
    totals = h.totals[0]
    for i in range(outcomes.shape[0]):
        h.outcomes[i] = outcomes[i]
        h.opened_ms[i] = opened_ms[i]
        h.run[i] = runs[i]
        sift_up(h.heap, i, prediction_ms[i], sequences[i], i)
        open_window(h, prediction_ms[i], sequences[i], opened_ms[i] + window_ms)
        totals.assumed += outcomes[i].assumed
    totals.count = totals.top = outcomes.shape[0]
