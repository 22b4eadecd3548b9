"""Compiled loops over the columns of `Partitions`: bounds of release, counts, and waiting for partitions.

Each is one pass. As expressions of numpy they took a dozen passes of a microsecond each, whatever the number
of partitions, and that was a third of what a small poll cost.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from typing import Final

import numpy as np

from streamwatch.core.jit import entry

EVER: Final = 2**63 - 1
"""Beyond every time, and every place."""


@entry
def find_bounds(running, held, at_end, left_behind, waiting):
    """Find how far reading has come in partitions that are waited for, and in those at their end.

    Parameters
    ----------
    running, held, at_end, left_behind
        Columns of `Partitions`.
    waiting
        bool, equally long: partitions of which records have no time yet.

    Returns
    -------
    read_ms, read_place
        Least time, and the first place that has it, of the partitions that may hold others back; `EVER` twice
        if there is none.
    rested_ms, rested_place
        The same of the partitions that were found at their end and of which nothing waits.
    fetched_ms
        When the earliest of the fetches was sent that found the latter at their end; `EVER` without them.
    """
    read = rested = read_place = rested_place = fetched = EVER
    for place in range(running.shape[0]):
        if left_behind[place]:
            continue
        time = running[place]
        if at_end[place] < 0 or held[place] != 0 or waiting[place]:
            if time < read:
                read, read_place = time, place
        else:
            if time < rested:
                rested, rested_place = time, place
            fetched = min(fetched, at_end[place])
    return read, read_place, rested, rested_place, fetched


@entry
def let_go(held, size_bytes, places):
    """Subtract released records and their share of the bytes held from the columns of their partitions.

    Parameters
    ----------
    held, size_bytes
        Columns of `Partitions`, brought up to date.
    places
        int64: partition of each record released.
    """
    released = np.zeros(held.shape[0], np.int64)
    for place in places:
        released[place] += 1
    for place in range(held.shape[0]):
        if released[place]:
            size_bytes[place] -= size_bytes[place] * released[place] // max(held[place], 1)
            held[place] -= released[place]


@entry
def note_waiting(
    running,
    held,
    at_end,
    left_behind,
    seen_end,
    holds_since,
    time,
    first_place,
    rested,
    now,
    longest,
    connected,
):
    """Note which partitions the first held record waits for, and leave behind those that take too long.

    Parameters
    ----------
    running, held, at_end, left_behind, seen_end, holds_since
        Columns of `Partitions`; `left_behind` and `holds_since` are brought up to date.
    time, first_place
        The record's time, and the place of its partition.
    rested, now, longest, connected
        As of `Partitions.wait`.

    Returns
    -------
    left
        bool, one for each partition: whether it was left behind just now.
    count
        How many were.
    """
    left = np.zeros(running.shape[0], np.bool_)
    count = 0
    for place in range(running.shape[0]):
        precedes = running[place] < time or (running[place] == time and place < first_place)
        if not (precedes and held[place] == 0 and not left_behind[place] and at_end[place] < rested):
            holds_since[place] = -1
            continue
        if holds_since[place] < 0 or not connected:
            holds_since[place] = now
        if seen_end[place] and now - holds_since[place] >= longest:
            left[place] = left_behind[place] = True
            holds_since[place] = -1
            count += 1
    return left, count
