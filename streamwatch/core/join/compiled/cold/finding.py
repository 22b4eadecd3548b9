"""Look-up of the entries of many ids in all runs."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry
from streamwatch.core.join.compiled.cold.block import ARRIVAL, PACKED_ENTRY, WORDS, Words
from streamwatch.core.join.compiled.cold.looking_up import distinct_blocks, find_candidates, search
from streamwatch.core.join.compiled.cold.reading import read_blocks
from streamwatch.core.join.compiled.cold.run import Run
from streamwatch.core.join.compiled.cold.store import RunStore

AT_ONCE: Final = 256
"""Number of ids whose blocks are read before they are searched, small enough for the processor's cache."""
_FEW: Final = 32
"""Largest number of entries of one id that are sorted by insertion."""


class FoundEntries(NamedTuple):
    """Living entries of the ids looked up, ordered as the ids were given, then by arrival; (n,) each."""

    entries: NDArray[np.void]
    """`PACKED_ENTRY`."""
    id_indices: NDArray[np.int64]
    """Index of the id that each entry belongs to."""
    runs: NDArray[np.int64]
    positions: NDArray[np.int64]


@entry
def arrange(words, places, order, ends, sequence, id_indices):
    """Order entries by the position of their id in the question, then by arrival.

    Returns False if one id has too many entries; the caller sorts then.

    Parameters
    ----------
    words, places
        uint64 (n, 8), int64 (n, 3): output of `search`.
    order
        int64 (ids,): position in the question of each of the sorted ids.
    ends
        int64 (ids,), all 0; output: end of the entries of each id.
    sequence, id_indices
        int64 (n,), `id_indices` all -1; output: index of the entry, and position of its id.
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
        id_indices[at] = i
        arrival = np.int64(words[k, ARRIVAL])
        while at > 0 and id_indices[at - 1] == i and np.int64(words[sequence[at - 1], ARRIVAL]) > arrival:
            sequence[at] = sequence[at - 1]
            at -= 1
        sequence[at] = k
    return True


class _Room(NamedTuple):
    """Arrays for the entries found; the last row is scratch space."""

    words: Words
    places: NDArray[np.int64]
    """Shape (n, 3): index among the sorted ids, position in the run, number of the run."""


def _room_for(entries: int) -> _Room:
    return _Room(np.empty((entries + 1, WORDS), np.uint64), np.empty((entries + 1, 3), np.int64))


def find_entries(
    store: RunStore, runs: Iterable[Run], low: NDArray[np.uint64], high: NDArray[np.uint64], floor: int
) -> FoundEntries:
    """Find the living entries of distinct ids, given by the halves of their digests, (n,).

    `floor` is the oldest generation of dedup entries that is not dropped.

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
        sought: int = find_candidates(low, high, run.bloom, run.fences, which, first, last)
        for start in range(0, sought, AT_ONCE):
            part = slice(start, min(sought, start + AT_ONCE))
            room, count = _search(
                store, run, low, high, which[part], first[part], last[part], floor, room, count
            )
    words, places = room.words[:count], room.places[:count]
    sequence, id_indices = np.empty(count, np.int64), np.full(count, -1, np.int64)
    if not arrange(words, places, order, np.zeros(len(low), np.int64), sequence, id_indices):
        id_of_each = order[places[:, 0]]
        sequence = np.lexsort((words[:, ARRIVAL].copy(), id_of_each))
        id_indices = id_of_each[sequence]
    entries = words[sequence].reshape(-1).view(PACKED_ENTRY)
    return FoundEntries(entries, id_indices, places[sequence, 2], places[sequence, 1])


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
    """Search the blocks of some ids.

    Return the arrays, enlarged if needed, and the number of entries so far.
    """
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
