"""Entries of many ids at once, out of all runs."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry
from streamwatch.core.join.compiled.cold.block import ARRIVAL, PACKED_ENTRY, WORDS, Words
from streamwatch.core.join.compiled.cold.looking_up import candidates, distinct_blocks, search
from streamwatch.core.join.compiled.cold.reading import read_blocks
from streamwatch.core.join.compiled.cold.run import Run
from streamwatch.core.join.compiled.cold.store import RunStore

AT_ONCE: Final = 256
"""Ids whose blocks are read before they are searched: these are still in the processor's cache then."""
_FEW: Final = 32
"""Entries of one id that are sorted as they come."""


class Found(NamedTuple):
    """Living entries of some ids, by the order in which the ids were given, then by arrival; (n,) each."""

    entries: NDArray[np.void]
    """`PACKED_ENTRY`."""
    asked: NDArray[np.int64]
    """Which of the ids each belongs to."""
    runs: NDArray[np.int64]
    positions: NDArray[np.int64]


@entry
def arrange(words, places, order, ends, sequence, asked):
    """Write the sequence of entries by the id as it was asked for, then by arrival; False: too many of one.

    Parameters
    ----------
    words, places
        uint64 (n, 8), int64 (n, 3): of `search`.
    order
        int64 (ids,): as which each of the sorted ids was asked for.
    ends
        int64 (ids,), all 0: set to where the entries of each end.
    sequence, asked
        int64 (n,), `asked` all -1: set.
    """
    for k in range(places.shape[0]):
        ends[order[places[k, 0]]] += 1
    end = 0
    for i in range(ends.shape[0]):
        if ends[i] > _FEW:
            return False
        begin = end
        end += ends[i]
        ends[i] = begin
    for k in range(places.shape[0]):
        i = order[places[k, 0]]
        at = ends[i]
        ends[i] += 1
        asked[at] = i
        arrival = np.int64(words[k, ARRIVAL])
        while at > 0 and asked[at - 1] == i and np.int64(words[sequence[at - 1], ARRIVAL]) > arrival:
            sequence[at] = sequence[at - 1]
            at -= 1
        sequence[at] = k
    return True


class _Room(NamedTuple):
    """Room for what is found; the last of it stays free."""

    words: Words
    places: NDArray[np.int64]
    """Of each the id by its place among the sorted ones, its position in the run, the run; (n, 3)."""


def _room_for(entries: int) -> _Room:
    return _Room(np.empty((entries + 1, WORDS), np.uint64), np.empty((entries + 1, 3), np.int64))


def find(
    store: RunStore, runs: Iterable[Run], low: NDArray[np.uint64], high: NDArray[np.uint64], floor: int
) -> Found:
    """Find the living entries of ids, given by the halves of their digests, (n,), each but once.

    `floor` is the oldest generation of dedup entries that counts.

    Raises
    ------
    ColdDamaged
        If a block is not what was written.
    """
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    which, first, last = (np.empty(len(low), np.int64) for _ in range(3))
    room, count = _room_for(4 * len(low) + 64), 0
    for run in runs:
        if not run.alive:
            continue
        sought: int = candidates(low, high, run.bloom, run.fences, which, first, last)
        for start in range(0, sought, AT_ONCE):
            some = slice(start, min(sought, start + AT_ONCE))
            room, count = _search(
                store, run, low, high, which[some], first[some], last[some], floor, room, count
            )
    words, places = room.words[:count], room.places[:count]
    sequence, asked = np.empty(count, np.int64), np.full(count, -1, np.int64)
    if not arrange(words, places, order, np.zeros(len(low), np.int64), sequence, asked):
        of = order[places[:, 0]]
        sequence = np.lexsort((words[:, ARRIVAL].copy(), of))
        asked = of[sequence]
    entries = words[sequence].reshape(-1).view(PACKED_ENTRY)
    return Found(entries, asked, places[sequence, 2], places[sequence, 1])


def _search(
    store: RunStore,
    run: Run,
    low: NDArray[np.uint64],
    high: NDArray[np.uint64],
    which: NDArray[np.int64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    floor: int,
    room: _Room,
    count: int,
) -> tuple[_Room, int]:
    """Search the blocks of some ids: what there is room for, and how many were found so far."""
    numbers = np.empty(len(which) + int((last - first).sum()), np.int64)
    slots = np.empty(len(which), np.int64)
    numbers = numbers[: distinct_blocks(first, last, numbers, slots)]
    blocks = read_blocks(store, run, numbers)
    while True:
        found: int = search(
            low,
            high,
            which,
            slots,
            last - first,
            *blocks,
            run.manifest.block_entries,
            run.dead,
            floor,
            run.number,
            room.words,
            room.places,
            count,
        )
        if found < len(room.words):
            return room, found
        larger = _room_for(2 * found)
        larger.words[:count], larger.places[:count] = room.words[:count], room.places[:count]
        room = larger
