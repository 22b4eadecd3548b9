"""Windows of outcomes held for the order of predictions: when an outcome is held, and when it is released.

An outcome opens a window of `join.reorder_window` when it is resolved. When the clock reaches the end of the
window, the outcome is released together with all outcomes held whose prediction is not newer. So no outcome
is held longer than its window, and outcomes resolved within one window are released in the order of
predictions, ties in the order of resolution. An outcome resolved after newer ones were released is released
when the clock next moves. Beyond `join.max_reordered` the outcomes of the oldest predictions are released at
once.

A ring keeps the windows, which end in the order in which they were opened. A window is left out if one that
ends no later is of a newer prediction, as it would change nothing. An outcome without a model (-1) is held
elsewhere: here it only opens its window.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, hot
from streamwatch.core.join.held_outcomes import (
    ALWAYS,
    LAST,
    MS,
    NEVER,
    NO_RUN,
    OUTCOME_WORDS,
    SEQUENCE,
    chain_pairs,
    end_of_pairs,
    fill_heap,
    is_before,
    pop,
    put_into_order,
)
from streamwatch.core.join.layout import Records


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
