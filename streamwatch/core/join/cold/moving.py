"""Compiled moves of entries into the table and out of it."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from typing import Final, Protocol

import numpy as np

from streamwatch.core.jit import detached, entry, hot, prefetch
from streamwatch.core.join.counters import PENDING, RESOLVED
from streamwatch.core.join.layout import (
    EARLY_LABELS,
    FRONT,
    NO_TIME,
    POSITION_MASK,
    PREDICTIONS,
    RETAINED_LABELS,
    UNWRITTEN,
    Arrays,
)
from streamwatch.core.join.names import JoinNames
from streamwatch.core.join.table import (
    UPPER,
    allocate_entry,
    dequeue,
    find_slot,
    first_of,
    free_entry,
    unchain,
)

_AHEAD = 16


@hot
def has_room(t):
    """Return whether one more entry fits into the table."""
    totals = t.totals[0]
    return totals.chains < t.slots.shape[0] // 8 * 5 and (totals.free >= 0 or totals.top < t.entries.shape[0])


@hot
def insert(t, packed, values, k, position, shift, near):
    """Insert row k of `packed`, with its log position, and return the index of its entry, in no queue yet.

    Its side columns are row k of `values`, which has no columns for labels. In its chain it comes before the
    first prediction that never left the table. `near` is the entry inserted last: if it has the same id, the
    chain is followed from there, as an id may have an entry for each of many models. -1: there is none.
    """
    entries, packed = t.entries, packed[k]
    x = allocate_entry(entries, t.totals[0])
    e = entries[x]
    e.low = packed.low
    e.high = packed.high
    e.record_ms = packed.record_ms
    e.timestamp_ms = packed.timestamp_ms
    e.model = packed.model
    e.predicted_class = packed.predicted_class
    e.true_or_scores = packed.true_or_scores
    e.label_at_prediction = packed.label_at_prediction
    e.state = packed.state
    e.topic = packed.generation if packed.state < RESOLVED else 0
    e.later = -1
    e.earlier_or_generation = packed.generation
    for column in range(values.shape[1]):
        t.side[x, column] = values[k, column]
    t.log_positions[x] = position
    i = np.int64(-1)
    before = np.int64(-1)
    if near >= 0 and entries[near].low == e.low and entries[near].high == e.high:
        before = np.int64(near)
        behind = np.int64(entries[near].next)
    else:
        i = np.int64(find_slot(t.slots, entries, e.low, e.high, shift))
        behind = np.int64(first_of(t.slots[i]))
    while behind >= 0:
        if entries[behind].state == PENDING and 0 <= t.log_positions[behind] < FRONT:
            break
        before = behind
        behind = np.int64(entries[behind].next)
    e.next = behind
    if before >= 0:
        entries[before].next = x
    else:
        t.totals[0].chains += behind < 0
        t.slots[i] = (e.low & UPPER) | np.uint64(x + 1)
    return x


@entry
def add_guests(t, packed, values, start, at, shift):
    """Insert guests into their chains from `start` on while there is room; return the next one.

    Parameters
    ----------
    t
        `Arrays`.
    packed, values
        `PACKED_ENTRY` (n,), those of one id by arrival; their side columns, (n, columns).
    start
        Guest to start from.
    at
        int64 (n,), output: indices of their entries.
    shift
        See `loop.join_rows`.
    """
    near = np.int64(-1)
    for k in range(start, packed.shape[0]):
        if not has_room(t):
            return k
        if k + _AHEAD < packed.shape[0]:
            prefetch(t.slots, 8 * np.int64(packed[k + _AHEAD].low >> shift))
        near = np.int64(insert(t, packed, values, k, -1 - k, shift, near))
        at[k] = near
    return packed.shape[0]


@entry
def remove_guests(t, at, shift):
    """Remove guests from the table; those with entry -1 in `at` are gone already."""
    for x in at:
        if x >= 0:
            t.log_positions[x] = UNWRITTEN
            unchain(t.slots, t.entries, t.totals[0], x, shift)
            free_entry(t.entries, t.totals[0], x)


@entry
def bring_to_front(t, packed, values, start, queue, shift):
    """Insert entries into their queue after those that were loaded before, and before all others.

    Returns the position of the next entry if there is no more room. Parameters as for `add_guests`; `packed`
    is ordered by arrival.
    """
    entries, totals = t.entries, t.totals[0]
    near = np.int64(-1)
    before = -1
    behind = totals.first[queue]
    while behind >= 0 and t.log_positions[behind] >= FRONT:
        before = behind
        behind = entries[behind].later + 0
    for k in range(start, packed.shape[0]):
        if not has_room(t):
            return k
        x = insert(t, packed, values, k, FRONT, shift, near)
        near = np.int64(x)
        entries[x].later = behind
        entries[x].earlier_or_generation = before
        if before >= 0:
            entries[before].later = x
        else:
            totals.first[queue] = x
        if behind >= 0:
            entries[behind].earlier_or_generation = x
        else:
            totals.last[queue] = x
        totals.front[queue] += 1
        totals.cold[queue] -= 1
        before = x
    return packed.shape[0]


@entry
def pack_chosen(entries, chosen, arrival, packed):
    """Write entries of the table as `PACKED_ENTRY`, with arrivals from `arrival` on."""
    for k in range(chosen.shape[0]):
        if k + _AHEAD < chosen.shape[0]:
            prefetch(entries, entries.itemsize * chosen[k + _AHEAD])
        e = entries[chosen[k]]
        p = packed[k]
        p.low = e.low
        p.high = e.high
        p.record_ms = e.record_ms
        p.timestamp_ms = e.timestamp_ms
        p.arrival = arrival + k
        p.model = e.model
        p.predicted_class = e.predicted_class
        p.true_or_scores = e.true_or_scores
        p.label_at_prediction = e.label_at_prediction
        p.state = e.state
        p.generation = e.topic


@detached
def low_of_chosen(entries, chosen, low):
    """Write the lower halves of the digests of chosen entries."""
    for k in range(chosen.shape[0]):
        if k + _AHEAD < chosen.shape[0]:
            prefetch(entries, entries.itemsize * chosen[k + _AHEAD])
        low[k] = entries[chosen[k]].low


@detached
def pack_settled(entries, chosen, order, arrival, packed):
    """Write dedup entries as `PACKED_ENTRY`, with their generation and without times.

    `order`: indices, in `chosen`, of those to be written; the arrival of one is `arrival` plus its index.
    """
    for k in range(order.shape[0]):
        if k + _AHEAD < order.shape[0]:
            prefetch(entries, entries.itemsize * chosen[order[k + _AHEAD]])
        e = entries[chosen[order[k]]]
        p = packed[k]
        p.low = e.low
        p.high = e.high
        p.record_ms = 0
        p.timestamp_ms = NO_TIME
        p.arrival = arrival + order[k]
        p.model = e.model
        p.predicted_class = e.predicted_class
        p.true_or_scores = e.true_or_scores
        p.label_at_prediction = -1
        p.state = e.state
        p.generation = e.earlier_or_generation


@entry
def oldest_of(entries, totals, log_positions, queue, found):
    """Find the oldest entries of a queue that were not loaded from outside, as many as `found` has room for.

    Return the number.
    """
    x = totals[0]["first"][queue]
    while x >= 0 and log_positions[x] >= FRONT:
        x = entries[x]["later"] + 0
    n = 0
    while x >= 0 and n < found.shape[0]:
        found[n] = x
        n += 1
        x = entries[x]["later"] + 0
    return n


@hot
def look_ahead(slots, entries, chosen, shift, k):
    """Prefetch what is needed to remove the entries after the k-th: themselves first, then their slots."""
    n = chosen.shape[0]
    if k + 2 * _AHEAD < n:
        prefetch(entries, entries.itemsize * chosen[k + 2 * _AHEAD])
    if k + _AHEAD < n:
        prefetch(slots, 8 * np.int64(entries[chosen[k + _AHEAD]].low >> shift))


@entry
def remove_waiting(t, queue, chosen, shift):
    """Remove entries from their queue and the table, and note that their committed values are obsolete."""
    for k in range(chosen.shape[0]):
        look_ahead(t.slots, t.entries, chosen, shift, k)
        dequeue(t.entries, t.totals[0], queue, chosen[k])
        position = t.log_positions[chosen[k]]
        if position & POSITION_MASK != 0:
            t.obsolete_positions[t.totals[0].obsolete] = position
            t.totals[0].obsolete += 1
        t.log_positions[chosen[k]] = UNWRITTEN
        unchain(t.slots, t.entries, t.totals[0], chosen[k], shift)
        free_entry(t.entries, t.totals[0], chosen[k])
        t.totals[0].cold[queue] += 1


@entry
def remove_settled(t, chosen, shift):
    """Remove dedup entries from the table; their lists must be empty already."""
    for k in range(chosen.shape[0]):
        look_ahead(t.slots, t.entries, chosen, shift, k)
        unchain(t.slots, t.entries, t.totals[0], chosen[k], shift)
        free_entry(t.entries, t.totals[0], chosen[k])


# Interface of the join to what is outside its table.


WAITING_QUEUES: Final = (PREDICTIONS, EARLY_LABELS, RETAINED_LABELS)


class Table(Protocol):
    """Interface of the join that its overflow uses."""

    arrays: Arrays
    """Arrays that the loop reads and changes."""

    @property
    def names(self) -> JoinNames:
        """Names and scores that the join numbers."""
        ...

    @property
    def shift(self) -> np.uint64:
        """64 minus the binary logarithm of the number of slots."""
        ...

    def grow(self) -> None:
        """Make room for more entries."""
        ...
