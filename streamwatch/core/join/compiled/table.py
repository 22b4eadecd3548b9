"""Hash table from ids to the chains of their entries: open addressing, linear probing, no tombstones.

An id's home is in the upper bits of its digest, and a slot holds the upper half of it: so most foreign ids
are told without a look at their entries, and growing needs no look at any.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.jit import detached, hot

UPPER = np.uint64(0xFFFFFFFF00000000)
LOWER = np.uint64(0xFFFFFFFF)
EMPTY = np.uint64(0)
FREE = -1
"""State of an entry that is not in use."""


@hot
def first_of(slot):
    """First entry of the chain in a slot, -1 in an empty one."""
    return np.int64(slot & LOWER) - 1


@hot
def find_slot(slots, entries, low, high, shift):
    """Slot of an id: the one that has its chain, or the free one where it would be."""
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
    """Empty a slot, and move up those behind it that would not be found any more."""
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
    """Hang entry x behind the last of its chain, or into the free slot i where there is none (-1)."""
    entries[x].next = -1
    if last >= 0:
        entries[last].next = x
    else:
        slots[i] = (entries[x].low & UPPER) | np.uint64(x + 1)
        totals.chains += 1


@hot
def unchain(slots, entries, totals, x, shift):
    """Take entry x out of its chain."""
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
def take_entry(entries, totals):
    """Index of an unused entry; there is one."""
    totals.used += 1
    x = totals.free
    if x >= 0:
        totals.free = np.int64(entries[x].next)
        return x
    x = totals.top
    totals.top += 1
    return x


@hot
def give_entry(entries, totals, x):
    """Give an entry back that is in no chain, queue or list; nobody takes it for one that is in use."""
    totals.used -= 1
    entries[x].state = FREE
    entries[x].next = totals.free
    totals.free = x


@detached
def rehash(old, slots, shift):
    """Bring all chains of a table into a larger, empty one; of the old one nothing changes."""
    mask = slots.shape[0] - 1
    for k in range(old.shape[0]):
        if old[k] != EMPTY:
            i = np.int64(old[k] >> shift)
            while slots[i] != EMPTY:
                i = (i + 1) & mask
            slots[i] = old[k]
