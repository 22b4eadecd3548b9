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
def has_room(slots, entries, totals):
    """Return whether one more entry fits into the table."""
    return totals.chains < slots.shape[0] // 8 * 5 and (totals.free >= 0 or totals.top < entries.shape[0])


@hot
def unpacked(entries, totals, side, packed, values, k):
    """Allocate an entry with the contents of `packed`, in no chain and no queue, and return its index.

    Its side columns are row k of `values`, which has no columns for labels.
    """
    x = allocate_entry(entries, totals)
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
        side[x, column] = values[k, column]
    return x


@hot
def insert_in_chain(slots, entries, totals, log_positions, x, shift):
    """Insert an entry from outside into its chain, before the first prediction that never left the table."""
    e = entries[x]
    i = find_slot(slots, entries, e.low, e.high, shift)
    before = -1
    behind = first_of(slots[i])
    while behind >= 0:
        position = log_positions[behind]
        if entries[behind].state == PENDING and position >= 0 and position < FRONT:
            break
        before = behind
        behind = entries[behind].next + 0
    e.next = behind
    if before >= 0:
        entries[before].next = x
        return
    if behind < 0:
        totals.chains += 1
    slots[i] = (e.low & UPPER) | np.uint64(x + 1)


@entry
def add_guests(slots, entries, totals, log_positions, side, packed, values, start, at, shift):
    """Insert guests into their chains from `start` on while there is room; return the next one.

    Parameters
    ----------
    slots, entries, totals, log_positions, side
        Fields of `Arrays`.
    packed, values
        `PACKED_ENTRY` (n,), those of one id by arrival; their side columns, (n, columns).
    start
        Guest to start from.
    at
        int64 (n,), output: indices of their entries.
    shift
        See `loop.join_rows`.
    """
    t = totals[0]
    for k in range(start, packed.shape[0]):
        if not has_room(slots, entries, t):
            return k
        if k + _AHEAD < packed.shape[0]:
            prefetch(slots, slots.itemsize * np.int64(packed[k + _AHEAD].low >> shift))
        x = unpacked(entries, t, side, packed[k], values, k)
        log_positions[x] = -1 - k
        insert_in_chain(slots, entries, t, log_positions, x, shift)
        at[k] = x
    return packed.shape[0]


@entry
def remove_guests(slots, entries, totals, log_positions, at, shift):
    """Remove guests from the table; those with entry -1 in `at` are gone already."""
    t = totals[0]
    for k in range(at.shape[0]):
        x = at[k]
        if x >= 0:
            log_positions[x] = UNWRITTEN
            unchain(slots, entries, t, x, shift)
            free_entry(entries, t, x)


@entry
def bring_to_front(slots, entries, totals, log_positions, side, packed, values, start, queue, shift):
    """Insert entries into their queue after those that were loaded before, and before all others.

    Returns the position of the next entry if there is no more room. Parameters as for `add_guests`; `packed`
    is ordered by arrival.
    """
    t = totals[0]
    before = -1
    behind = t.first[queue]
    while behind >= 0 and log_positions[behind] >= FRONT:
        before = behind
        behind = entries[behind].later + 0
    for k in range(start, packed.shape[0]):
        if not has_room(slots, entries, t):
            return k
        x = unpacked(entries, t, side, packed[k], values, k)
        log_positions[x] = FRONT
        insert_in_chain(slots, entries, t, log_positions, x, shift)
        entries[x].later = behind
        entries[x].earlier_or_generation = before
        if before >= 0:
            entries[before].later = x
        else:
            t.first[queue] = x
        if behind >= 0:
            entries[behind].earlier_or_generation = x
        else:
            t.last[queue] = x
        t.front[queue] += 1
        t.cold[queue] -= 1
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
def remove_waiting(slots, entries, totals, log_positions, obsolete_positions, queue, chosen, shift):
    """Remove entries from their queue and the table, and note that their committed values are obsolete."""
    t = totals[0]
    for k in range(chosen.shape[0]):
        look_ahead(slots, entries, chosen, shift, k)
        x = chosen[k]
        position = log_positions[x]
        if position & POSITION_MASK != 0:
            obsolete_positions[t.obsolete] = position
            t.obsolete += 1
        log_positions[x] = UNWRITTEN
        dequeue(entries, t, queue, x)
        unchain(slots, entries, t, x, shift)
        free_entry(entries, t, x)
        t.cold[queue] += 1


@entry
def remove_settled(slots, entries, totals, chosen, shift):
    """Remove dedup entries from the table; their lists must be empty already."""
    t = totals[0]
    for k in range(chosen.shape[0]):
        look_ahead(slots, entries, chosen, shift, k)
        unchain(slots, entries, t, chosen[k], shift)
        free_entry(entries, t, chosen[k])


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
