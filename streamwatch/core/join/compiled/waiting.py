"""Queues of waiting entries, in the order in which they fall due, and generations of dedup entries."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.jit import hot, inner
from streamwatch.core.join.compiled.table import free_entry, unchain
from streamwatch.core.join.dedup import GENERATIONS

NUMBERS = 2**31 - 1
"""Mask: generations are numbered modulo 2³¹ in entries; the numbers of live ones are close together."""


@hot
def deadline(record_ms, horizon_ms):
    """Time in whole seconds, rounded up, at which an entry falls due (`expiry.deadline`)."""
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


@hot
def is_alive(totals, e):
    """Tell whether the generation of a dedup entry has not been dropped."""
    return (e.earlier_or_generation - totals.floor) & NUMBERS < 2**30


@hot
def add_dedup_entry(entries, totals, generations, counters, limits, settled, x, state, record_ms):
    """Turn an entry that stopped waiting at `record_ms` into a dedup entry (`DedupIndex.add`)."""
    if 0 <= totals.settled < settled.shape[0]:
        settled[totals.settled] = x
        totals.settled += 1
    else:
        totals.settled = -1
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
        rotate_generations(entries, totals, generations, counters, limits, share)


@inner
def rotate_generations(entries, totals, generations, counters, limits, share):
    """Close the open generation if it is full, and drop the oldest if there are too many entries."""
    if totals.open_entries >= share:
        close(totals, generations)
    if totals.closed_entries + totals.open_entries > limits.max_dedup_entries:
        if totals.closed == 0:
            close(totals, generations)
        counters.dedup_entries_evicted += drop(entries, totals, generations, counters)


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
def drop(entries, totals, generations, counters):
    """Drop the oldest generation, whose entries are freed later bit by bit; return their number."""
    g = generations[totals.closed_start % generations.shape[0]]
    totals.closed_start += 1
    totals.closed -= 1
    totals.closed_entries -= g.count
    totals.floor = g.number + 1
    counters.pairs_expired += max(0, g.partners)
    if g.first >= 0:
        if totals.dead_last >= 0:
            entries[totals.dead_last].later = g.first
        else:
            totals.dead_first = g.first
        totals.dead_last = g.last
    return g.count


@inner
def pass_dedup_time(entries, totals, generations, counters, limits, clock_ms):
    """Close the open generation if it is old enough, and drop expired ones (`DedupIndex.pass_time`)."""
    totals.dedup_clock_ms = clock_ms
    if totals.open_entries == 0:
        totals.opened_ms = clock_ms
    elif clock_ms - totals.opened_ms >= max(1000, limits.dedup_horizon_ms // GENERATIONS):
        close(totals, generations)
    while totals.closed > 0:
        newest_ms = generations[totals.closed_start % generations.shape[0]].newest_ms
        if clock_ms // 1000 < deadline(newest_ms, limits.dedup_horizon_ms):
            return
        drop(entries, totals, generations, counters)


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
