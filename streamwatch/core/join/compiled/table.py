"""Hash table from ids to the chains of their entries: open addressing, linear probing, no tombstones.

An id's home slot is given by the upper bits of its digest. A slot stores the upper half of `low`, so that
most other ids are recognised without accessing their entries, and the table can grow without accessing any.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.jit import detached, hot

UPPER = np.uint64(0xFFFFFFFF00000000)
LOWER = np.uint64(0xFFFFFFFF)
EMPTY = np.uint64(0)
FREE = -1
"""State of an unused entry."""


@hot
def first_of(slot):
    """First entry of the chain in a slot; -1 for an empty slot."""
    return np.int64(slot & LOWER) - 1


@hot
def find_slot(slots, entries, low, high, shift):
    """Find the slot of an id: the one with its chain, or the free one where it belongs."""
    mask = slots.shape[0] - 1
    i = np.int64(low >> shift)
    tag = low & UPPER
    while slots[i] != EMPTY:
        if slots[i] & UPPER == tag:
            e = entries[first_of(slots[i])]
            if e.low == low and e.high == high:
                return i
        i = (i + 1) & mask
    return i


@hot
def free_slot(slots, i, shift):
    """Empty a slot, and move up those behind it that could not be found otherwise."""
    mask = slots.shape[0] - 1
    j = i
    while True:
        slots[i] = EMPTY
        while True:
            j = (j + 1) & mask
            if slots[j] == EMPTY:
                return
            home = np.int64(slots[j] >> shift)
            if (j - home) & mask >= (j - i) & mask:
                break
        slots[i] = slots[j]
        i = j


@hot
def append(slots, entries, totals, i, last, x):
    """Append entry x to the chain whose last entry is `last`.

    If that is -1, start a chain in the free slot i.
    """
    entries[x].next = -1
    if last >= 0:
        entries[last].next = x
    else:
        slots[i] = (entries[x].low & UPPER) | np.uint64(x + 1)
        totals.chains += 1


@hot
def unchain(slots, entries, totals, x, shift):
    """Remove entry x from its chain."""
    e = entries[x]
    i = find_slot(slots, entries, e.low, e.high, shift)
    first = first_of(slots[i])
    if first != x:
        while entries[first].next != x:
            first = np.int64(entries[first].next)
        entries[first].next = e.next
    elif e.next >= 0:
        slots[i] = (slots[i] & UPPER) | np.uint64(e.next + 1)
    else:
        free_slot(slots, i, shift)
        totals.chains -= 1


@hot
def allocate_entry(entries, totals):
    """Allocate an entry and return its index; there must be an unused one."""
    totals.used += 1
    x = totals.free
    if x >= 0:
        totals.free = np.int64(entries[x].next)
        return x
    x = totals.top
    totals.top += 1
    return x


@hot
def free_entry(entries, totals, x):
    """Free an entry, which must be in no chain, queue or list."""
    totals.used -= 1
    entries[x].state = FREE
    entries[x].next = totals.free
    totals.free = x


@detached
def rehash(old, slots, shift):
    """Copy all chains of a table to a larger, empty one; the old one stays as it is."""
    mask = slots.shape[0] - 1
    for k in range(old.shape[0]):
        if old[k] != EMPTY:
            i = np.int64(old[k] >> shift)
            while slots[i] != EMPTY:
                i = (i + 1) & mask
            slots[i] = old[k]
