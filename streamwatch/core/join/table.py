"""Table of entries by id, queues by deadline, generations of dedup entries, and entries not committed yet."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import detached, entry, hot, inner, prefetch
from streamwatch.core.join.layout import FRONT, GENERATIONS_KEPT, POSITION_MASK, UNWRITTEN, Arrays

# Hash table from ids to the chains of their entries: open addressing, linear probing, no tombstones.
#
# An id's home slot is given by the upper bits of its digest. A slot stores the upper half of `low`, so that
# most other ids are recognised without accessing their entries, and the table can grow without accessing
# any.


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
def likely_first(slots, low, shift):
    """Find the first entry of the chain that is an id's by its slot alone; -1 without one.

    Nearly always it is that of `find_slot`, and no entry is read.
    """
    mask = slots.shape[0] - 1
    i = np.int64(low >> shift)
    tag = low & UPPER
    while slots[i] != EMPTY:
        if slots[i] & UPPER == tag:
            return first_of(slots[i])
        i = (i + 1) & mask
    return np.int64(-1)


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
        prefetch(entries, entries.itemsize * max(totals.free, 0))  # freed entries lie anywhere in the table
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


# Dedup entries of settled predictions are kept in generations, which are dropped whole.


GENERATIONS: Final = 8
"""Number of generations of a full dedup index; eviction drops one of them.

A generation is closed when the clock has moved by an eighth of the horizon since it was opened, or when it
holds an eighth of the maximum. It is dropped when the clock is the horizon past its newest dedup entry, or,
oldest first, when there are too many.
"""


class Generation(msgspec.Struct, gc=False, array_like=True):
    """Dedup entries that are dropped together."""

    number: int
    count: int
    newest_ms: int
    """Latest record time at which one of the entries settled."""


@dataclass(frozen=True, slots=True)
class DedupState:
    """State of a dedup index; `floor` and times as in `layout.TOTALS`, `clock_ms` being `dedup_clock_ms`."""

    closed: list[Generation]
    opened: Generation
    opened_ms: int
    clock_ms: int
    floor: int


# Queues of waiting entries, in the order in which they fall due, and generations of dedup entries.


NUMBERS = 2**31 - 1
"""Mask: generations are numbered modulo 2³¹ in entries; the numbers of live ones are close together."""


@hot
def deadline(record_ms, horizon_ms):
    """Time in whole seconds, rounded up, at which an entry falls due (as `counters.deadline`)."""
    return -(-(record_ms + horizon_ms) // 1000)


@hot
def enqueue(entries, totals, queue, x):
    """Append an entry to a queue."""
    last = totals.last[queue]
    entries[x].later = -1
    entries[x].earlier_or_generation = last
    if last >= 0:
        entries[last].later = x
    else:
        totals.first[queue] = x
    totals.last[queue] = x


@hot
def dequeue(entries, totals, queue, x):
    """Remove an entry from a queue."""
    e = entries[x]
    if e.earlier_or_generation >= 0:
        entries[e.earlier_or_generation].later = e.later
    else:
        totals.first[queue] = e.later
    if e.later >= 0:
        entries[e.later].earlier_or_generation = e.earlier_or_generation
    else:
        totals.last[queue] = e.earlier_or_generation


COUNT_BITS = 2**32 - 1
"""Mask of `Outcome.made`."""


@hot
def made_by(a):
    """Count the predictions that a model has made, whatever became of them, modulo 2³² (`Outcome.made`)."""
    return np.uint32((a.before + a.pending + a.joined + a.left) & COUNT_BITS)


@hot
def is_alive(totals, e):
    """Return whether the generation of a dedup entry has not been dropped."""
    return (e.earlier_or_generation - totals.floor) & NUMBERS < 2**30


@hot
def add_dedup_entry(t, x, state, record_ms):
    """Turn an entry that stopped waiting at `record_ms` into a dedup entry."""
    entries, totals, limits = t.entries, t.totals[0], t.limits[0]
    e = entries[x]
    e.state = state
    e.earlier_or_generation = totals.generation & NUMBERS
    e.later = -1
    if totals.open_last >= 0:
        entries[totals.open_last].later = x
    else:
        totals.open_first = x
    totals.open_last = x
    totals.open_entries += 1
    totals.open_newest_ms = max(totals.open_newest_ms, record_ms)
    share = max(1, limits.max_dedup_entries // GENERATIONS)
    if totals.open_entries >= min(share, limits.max_dedup_entries - totals.closed_entries + 1):
        rotate_generations(t, share)


@inner
def rotate_generations(t, share):
    """Close the open generation if it is full, and drop the oldest if there are too many entries."""
    totals = t.totals[0]
    if totals.open_entries >= share:
        close(totals, t.generations)
    if totals.closed_entries + totals.open_entries > t.limits[0].max_dedup_entries:
        if totals.closed == 0:
            close(totals, t.generations)
        t.counters[0].dedup_entries_evicted += drop(t)


@inner
def close(totals, generations):
    """Close the open generation and open a new one."""
    g = generations[(totals.closed_start + totals.closed) % generations.shape[0]]
    g.number = totals.generation
    g.count = totals.open_entries
    g.newest_ms = totals.open_newest_ms
    g.first = totals.open_first
    g.last = totals.open_last
    g.partners = totals.open_partners
    totals.closed += 1
    totals.closed_entries += totals.open_entries
    totals.open_entries = 0
    totals.open_newest_ms = -1
    totals.open_partners = 0
    totals.open_first = -1
    totals.open_last = -1
    totals.generation += 1
    totals.opened_ms = totals.dedup_clock_ms


@inner
def drop(t):
    """Drop the oldest generation, whose entries are freed later bit by bit; return their number."""
    totals = t.totals[0]
    g = t.generations[totals.closed_start % t.generations.shape[0]]
    totals.closed_start += 1
    totals.closed -= 1
    totals.closed_entries -= g.count
    totals.floor = g.number + 1
    t.counters[0].pairs_expired += max(0, g.partners)
    if g.first >= 0:
        if totals.dead_last >= 0:
            t.entries[totals.dead_last].later = g.first
        else:
            totals.dead_first = g.first
        totals.dead_last = g.last
    return g.count


@inner
def pass_dedup_time(t, clock_ms):
    """Close the open generation if it is old enough, and drop expired ones."""
    totals, horizon_ms = t.totals[0], t.limits[0].dedup_horizon_ms
    totals.dedup_clock_ms = clock_ms
    if totals.open_entries == 0:
        totals.opened_ms = clock_ms
    elif clock_ms - totals.opened_ms >= max(1000, horizon_ms // GENERATIONS):
        close(totals, t.generations)
    while totals.closed > 0:
        newest_ms = t.generations[totals.closed_start % t.generations.shape[0]].newest_ms
        if clock_ms // 1000 < deadline(newest_ms, horizon_ms):
            return
        drop(t)


@inner
def free_dead(slots, entries, totals, shift, most):
    """Free at most `most` dead dedup entries."""
    while most > 0 and totals.dead_first >= 0:
        x = totals.dead_first
        totals.dead_first = entries[x].later
        if totals.dead_first < 0:
            totals.dead_last = -1
        unchain(slots, entries, totals, x, shift)
        free_entry(entries, totals, x)
        most -= 1


# Entries that no commit has written yet: waiting ones and dedup entries, found along their lists.


class DedupMark(NamedTuple):
    """Position of the dedup entry that was written last; without arguments, before all entries."""

    generation: int = 0
    entry: int = -1
    """Index of the entry; -1 if none of that generation was written."""


@entry
def find_waiting(entries: Any, totals: Any, log_positions: Any, came_back: Any, found: Any) -> int:
    """Find the entries that no commit has written: the last ones of each queue; return their number.

    Of each queue, entries that were loaded to its front precede the others.

    Parameters
    ----------
    entries, totals, log_positions
        Fields of `Arrays`.
    came_back
        Whether entries may have been loaded to the front of a queue.
    found
        int32 (room for all that waits,), output: entries queue by queue, each in its order.
    """
    n = 0
    for queue in range(3):
        if came_back:
            x = totals[0]["first"][queue]
            while x >= 0 and log_positions[x] >= FRONT:
                if log_positions[x] & POSITION_MASK == 0:
                    found[n] = x
                    n += 1
                x = np.int64(entries[x]["later"])
        start = n
        x = np.int64(totals[0]["last"][queue])
        while x >= 0 and log_positions[x] == UNWRITTEN:
            found[n] = x
            n += 1
            x = np.int64(entries[x]["earlier_or_generation"])
        for k in range((n - start) // 2):
            found[start + k], found[n - 1 - k] = found[n - 1 - k], found[start + k]
    return n


@inner
def _append_list(entries, first, found, n):
    x = first
    while x >= 0:
        found[n] = x
        n += 1
        x = np.int64(entries[x]["later"])
    return n


@detached
def find_dedup(
    entries: Any, totals: Any, generations: Any, generation: int, last: int, found: Any, runs: Any
) -> int:
    """Find the dedup entries after the one written last, of generations that are not dropped.

    Parameters
    ----------
    entries, totals, generations
        Fields of `Arrays`.
    generation, last
        Fields of `DedupMark`.
    found
        int32 (room for all dedup entries,), output, in the order in which they settled.
    runs
        int64 (`GENERATIONS_KEPT` + 1, 2), output: number of each generation, and its end in `found`.

    Returns
    -------
    int
        Number of runs.
    """
    t = totals[0]
    n = 0
    written = 0
    for k in range(t.closed + 1):
        if k < t.closed:
            g = generations[(t.closed_start + k) % generations.shape[0]]
            number, first = g.number, g.first
        else:
            number, first = t.generation, t.open_first
        if number < generation:
            continue
        if number == generation and last >= 0:
            first = np.int64(entries[last]["later"])
        if first < 0:
            continue
        n = _append_list(entries, first, found, n)
        runs[written, 0] = number
        runs[written, 1] = n
        written += 1
    return written


def unwritten_waiting(arrays: Arrays, *, came_back: bool = False) -> NDArray[np.int32]:
    """Indices of entries that began to wait since the last commit, queue by queue, each in its order."""
    totals = arrays.totals[0]
    waiting = totals["pending"] + totals["early"] + totals["retained"] - totals["cold"].sum()
    found = np.empty(int(waiting), np.int32)
    count: int = find_waiting(arrays.entries, arrays.totals, arrays.log_positions, came_back, found)
    return found[:count]


def unwritten_dedup(arrays: Arrays, mark: DedupMark) -> tuple[list[tuple[int, NDArray[np.int32]]], DedupMark]:
    """Return the indices of the dedup entries after `mark`, by generation, and the mark after them.

    Those of one generation are in the order in which they settled.
    """
    totals = arrays.totals[0]
    found = np.empty(int(totals["closed_entries"] + totals["open_entries"]), np.int32)
    ends = np.empty((GENERATIONS_KEPT + 1, 2), np.int64)
    count = find_dedup(arrays.entries, arrays.totals, arrays.generations, *mark, found, ends)
    runs: list[tuple[int, NDArray[np.int32]]] = []
    start = 0
    for generation, end in ends[:count].tolist():
        runs.append((generation, found[start:end]))
        start = end
    return runs, DedupMark(int(totals["generation"]), int(totals["open_last"]))
