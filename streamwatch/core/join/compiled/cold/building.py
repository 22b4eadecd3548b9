"""Building of a run: blocks, fences and a filter from sorted entries."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import detached, prefetch
from streamwatch.core.join.compiled.cold.block import (
    ARRIVAL,
    RECORD_MS,
    STATE_AND_GENERATION,
    WORDS,
    Words,
    most_bytes,
    pack_entries,
    words_of,
)
from streamwatch.core.join.compiled.cold.bloom import add_id, filter_of
from streamwatch.core.join.compiled.cold.names_used import NamesUsed
from streamwatch.core.join.compiled.cold.run import Run, RunManifest, new_run
from streamwatch.core.join.compiled.cold.spec import ColdSpec
from streamwatch.core.join.compiled.cold.store import ENTRIES, RunStore, key_of
from streamwatch.core.join.compiled.waiting import NUMBERS

BOUNDS: Final = (2**63 - 1, 2**63 - 1, 2**31, -1, -(2**63))
"""Initial bounds: smallest arrival, record time and age of a generation, largest age and arrival."""
NO_ID: Final = (np.uint64(2**64 - 1), np.uint64(2**64 - 1))
"""Halves of a digest that no id has."""
_AHEAD: Final = 16


@detached
def pack_blocks(words, block_entries, data, ends, bloom, floor, bounds):
    """Pack entries into consecutive blocks, and add their ids to the filter.

    `ends` receives the end of each block; `bounds` are updated, see `BOUNDS`.
    """
    at = 0
    count = words.shape[0]
    for b in range(ends.shape[0]):
        start = b * block_entries
        at = pack_entries(words, start, min(block_entries, count - start), data, at)
        ends[b] = at
    for i in range(count):
        if i == 0 or words[i, 0] != words[i - 1, 0] or words[i, 1] != words[i - 1, 1]:
            add_id(bloom, words[i, 0], words[i, 1])
        bounds[0] = min(bounds[0], np.int64(words[i, ARRIVAL]))
        bounds[1] = min(bounds[1], np.int64(words[i, RECORD_MS]))
        age = (np.int64(words[i, STATE_AND_GENERATION] >> np.uint64(32)) - floor) & NUMBERS
        bounds[2] = min(bounds[2], age)
        bounds[3] = max(bounds[3], age)
        bounds[4] = max(bounds[4], np.int64(words[i, ARRIVAL]))


@detached
def copy_in_order(words, order, out):
    """Copy entries in the order `order`."""
    for i in range(order.shape[0]):
        if i + _AHEAD < order.shape[0]:
            prefetch(words, 8 * WORDS * order[i + _AHEAD])
        for w in range(WORDS):
            out[i, w] = words[order[i], w]


@detached
def count_ids(words, low, high):
    """Count the distinct ids of sorted entries, without the given id, that of the entry before them."""
    count = 0
    for i in range(words.shape[0]):
        if words[i, 0] != low or words[i, 1] != high:
            low, high = words[i, 0], words[i, 1]
            count += 1
    return count


def sorted_entries(entries: NDArray[np.void]) -> Words:
    """Sort entries by `low`; returns words (n, 8)."""
    words = words_of(np.ascontiguousarray(entries))
    out = np.empty_like(words)
    copy_in_order(words, np.argsort(entries["low"]), out)
    return out


class RunWriter:
    """Writes the blocks of a run as sorted entries are added.

    Parameters
    ----------
    store
        Store for blocks, fences and filter; they are written before anything refers to them.
    spec
        Sizes of blocks and filter.
    number
        Number of the run.
    queue
        Queue of all its entries.
    ids
        Upper bound of the number of ids, for the size of the filter.
    floor
        Oldest generation of dedup entries that is not dropped.
    """

    def __init__(
        self, store: RunStore, spec: ColdSpec, number: int, queue: int, ids: int, floor: int
    ) -> None:
        self._store = store
        self._spec = spec
        self._number = number
        self._queue = queue
        self._floor = floor
        few = ids < spec.many_entries
        self._bloom = filter_of(ids, spec.filter_bits_of_few if few else spec.filter_bits)
        self._rest = np.empty((0, WORDS), np.uint64)
        self._fences: list[NDArray[np.uint64]] = []
        self._blocks = 0
        self._count = 0
        self._ids = 0
        self._last = NO_ID
        self._bounds = np.array(BOUNDS)
        self._names = NamesUsed()

    def add(self, words: Words) -> None:
        """Add entries, which must be sorted after those added before."""
        self._count += len(words)
        self._names.add(words)
        self._ids += int(count_ids(words, *self._last))
        if len(words):
            self._last = words[-1, 0], words[-1, 1]
        if len(self._rest):
            words = np.concatenate([self._rest, words])
        whole = len(words) // self._spec.block_entries * self._spec.block_entries
        self._write(words[:whole])
        self._rest = words[whole:].copy()

    def finish(self) -> Run | None:
        """Write the remaining entries, and return the run; None if no entry was added."""
        self._write(self._rest)
        if not self._count:
            return None
        fences = np.concatenate(self._fences)
        oldest_arrival, oldest_ms, smallest_age, largest_age, newest_arrival = self._bounds.tolist()
        run = new_run(
            RunManifest(
                self._number,
                self._queue,
                self._count,
                self._spec.block_entries,
                len(fences),
                len(self._bloom),
                oldest_arrival,
                oldest_ms,
                (self._floor + smallest_age) & NUMBERS,
                (self._floor + largest_age) & NUMBERS,
                newest_arrival,
                self._names.models(),
                self._names.classes(),
                self._names.segments(),
                self._ids,
            ),
            fences,
            self._bloom,
        )
        self._store.write(run.filter_values())
        return run

    def _write(self, words: Words) -> None:
        each = self._spec.block_entries
        step = each * self._spec.chunk_blocks
        for start in range(0, len(words), step):
            part = words[start : start + step]
            ends = np.empty(-(-len(part) // each), np.int64)
            data = np.empty(most_bytes(0) * len(ends) + part.nbytes, np.uint8)
            pack_blocks(part, each, data, ends, self._bloom, self._floor, self._bounds)
            self._fences.append(part[::each, 0].copy())
            packed, began = data[: int(ends[-1])].tobytes(), 0
            values: list[tuple[bytes, bytes]] = []
            for end in ends.tolist():
                values.append((key_of(ENTRIES, self._number, self._blocks), packed[began:end]))
                self._blocks += 1
                began = end
            self._store.write(values)
