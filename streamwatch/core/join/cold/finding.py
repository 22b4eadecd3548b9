"""Look-up of the entries of many ids in all runs."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import detached, entry, hot, prefetch, word_at
from streamwatch.core.join.cold.block import (
    ARRIVAL,
    PADDING,
    SMALLEST_AT,
    WIDTHS_AT,
    WORDS,
    Bits,
    Bytes,
    Words,
    count_at,
    data_at,
    end_of_block,
    entries_of,
    is_dropped,
    is_set,
    mask_of,
    side_of,
    unpack_entries,
)
from streamwatch.core.join.cold.run import Run, line_of, may_have
from streamwatch.core.join.cold.store import ENTRIES, ColdDamaged, RunStore, keys_of

# Look-up of ids in one run: by filter, then by fences, then in the blocks that may contain them.


_AHEAD = 12


@hot
def fences_below(fences, low):
    """Count the fences smaller than `low`."""
    a, b = 0, fences.shape[0]
    while a < b:
        middle = (a + b) >> 1
        if fences[middle] < low:
            a = middle + 1
        else:
            b = middle
    return a


@entry
def mark_candidates(low, high, bloom, marks):
    """Mark the ids, in any order, that may be in the run."""
    n = low.shape[0]
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(bloom, 8 * line_of(bloom, low[i + _AHEAD]))
        if may_have(bloom, low[i], high[i]):
            marks[i] = True


@entry
def find_candidates(low, high, bloom, fences, which, first, last):
    """Find which ids (sorted by `low`) may be in the run, and in which blocks; return their number."""
    count = 0
    n = low.shape[0]
    for i in range(n):
        if i + _AHEAD < n:
            prefetch(bloom, 8 * line_of(bloom, low[i + _AHEAD]))
        if not may_have(bloom, low[i], high[i]):
            continue
        end = fences_below(fences, low[i])
        which[count] = i
        first[count] = max(end - 1, 0)
        while end < fences.shape[0] and fences[end] == low[i]:
            end += 1
        last[count] = max(end - 1, 0)
        count += 1
    return count


@hot
def first_at_least(data, at, low):
    """Position in the block at byte `at` of the first entry whose `low` is not smaller."""
    width = np.int64(data[at + WIDTHS_AT])
    smallest = word_at(data, at + SMALLEST_AT)
    mask = mask_of(width)
    a, b = 0, count_at(data, at)
    if low <= smallest:
        return a
    sought = low - smallest
    while a < b:
        middle = (a + b) >> 1
        if word_at(data, data_at(data, at) + middle * width) & mask < sought:
            a = middle + 1
        else:
            b = middle
    return a


@hot
def low_at(data, at, i):
    """Field `low` of entry i of the block at byte `at`."""
    width = np.int64(data[at + WIDTHS_AT])
    value = word_at(data, data_at(data, at) + i * width) & mask_of(width)
    return value + word_at(data, at + SMALLEST_AT)


@entry
def distinct_blocks(first, last, numbers, slots):
    """Write the distinct numbers of the blocks of ids, sorted by `low`; return how many they are.

    `slots` receives the index in `numbers` of the first block of each id; its other blocks follow.
    """
    count = 0
    for m in range(first.shape[0]):
        # Blocks shared with earlier ids are the last ones written.
        known = 0 if count == 0 else max(numbers[count - 1] - first[m] + 1, 0)
        slots[m] = count - known
        for number in range(first[m] + known, last[m] + 1):
            numbers[count] = number
            count += 1
    return count


@entry
def search(
    low,
    high,
    asked,
    slots,
    more,
    data,
    begins,
    numbers,
    block_entries,
    dead,
    floor,
    run,
    into,
    words,
    origins,
    count,
):
    """Append the living entries of ids to the `count` entries found before; return the new number.

    If the result is not less than the length of `words`, some were not written for lack of room.

    Parameters
    ----------
    low, high
        uint64 (ids,): all ids.
    asked
        int64 (n,): indices of those that may be in the run.
    slots, more
        int64 (n,): first block of each, as an index of `numbers`, and how many further blocks to search.
    data, begins, numbers
        Consecutive blocks, where each begins (and the last ends), and their numbers in the run.
    block_entries, dead, floor
        Block size and dead bits of the run; oldest generation of dedup entries that is not dropped.
    run, into
        Number of the run; columns into which its side columns are read, see `unpack_entries`.
    words, origins
        uint64 (room, words); int64 (room, 3), output: entry; index of the id, position in the run, the run.
    """
    room = words.shape[0] - 1
    for m in range(asked.shape[0]):
        sought = low[asked[m]]
        for slot in range(slots[m], slots[m] + more[m] + 1):
            at = begins[slot]
            size = count_at(data, at)
            for i in range(first_at_least(data, at, sought), size):
                if low_at(data, at, i) != sought:
                    break
                position = numbers[slot] * block_entries + i
                if is_set(dead, position):
                    continue
                k = min(count, room)
                unpack_entries(data, at, i, 1, words, k, into)
                if words[k, 1] == high[asked[m]] and not is_dropped(words, k, floor):
                    origins[k, 0] = asked[m]
                    origins[k, 1] = position
                    origins[k, 2] = run
                    count += 1
    return count


# Reading of a run's blocks, for a look-up or completely.


class Blocks(NamedTuple):
    """Consecutive blocks of one run."""

    data: Bytes
    begins: NDArray[np.int64]
    """Start of each block, and end of the last, (n + 1,)."""
    numbers: NDArray[np.int64]
    """Numbers of the blocks in the run, (n,)."""


class Living(NamedTuple):
    """Living entries of one run, in its order."""

    words: Words
    positions: NDArray[np.int64]


@detached
def whole_blocks(data, begins, block_entries, count, numbers):
    """Return whether the data are whole blocks with as many entries as blocks of these numbers must have."""
    for b in range(numbers.shape[0]):
        if end_of_block(data, begins[b], begins[b + 1]) != begins[b + 1]:
            return False
        if count_at(data, begins[b]) != min(block_entries, count - numbers[b] * block_entries):
            return False
    return True


@detached
def unpack_living(data, begins, first, block_entries, dead, floor, into, words, positions):
    """Unpack the living entries of consecutive blocks, from block `first` on; return their number."""
    count = 0
    for b in range(begins.shape[0] - 1):
        size = count_at(data, begins[b])
        unpack_entries(data, begins[b], 0, size, words, count, into)
        kept = count
        for i in range(size):
            position = (first + b) * block_entries + i
            if not is_set(dead, position) and not is_dropped(words, count + i, floor):
                if kept != count + i:
                    for w in range(words.shape[1]):
                        words[kept, w] = words[count + i, w]
                positions[kept] = position
                kept += 1
        count = kept
    return count


def read_blocks(store: RunStore, run: Run, numbers: NDArray[np.int64]) -> Blocks:
    """Read blocks in the order of `numbers`.

    Raises
    ------
    ColdDamaged
        If one is missing, or is not a block of this run.
    """
    values = store.get_all(keys_of(ENTRIES, run.manifest.number, numbers))
    begins = np.zeros(len(values) + 1, np.int64)
    try:
        np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=begins[1:])  # type: ignore[arg-type]
    except TypeError:
        missing = numbers[[value is None for value in values]].tolist()
        raise ColdDamaged(f"run {run.manifest.number} of cold entries lacks blocks {missing[:5]}") from None
    data = np.frombuffer(bytearray().join([*values, bytes(PADDING)]), np.uint8)  # type: ignore[list-item]
    if not whole_blocks(data, begins, run.manifest.block_entries, run.manifest.count, numbers):
        raise ColdDamaged(f"a block of run {run.manifest.number} of cold entries is not what was written")
    return Blocks(data, begins, numbers)


def read_living_blocks(store: RunStore, run: Run, dead: Bits, step: int) -> Iterator[Blocks]:
    """Read the blocks of a run, `step` at a time; steps without living entries are skipped."""
    each, count = run.manifest.block_entries, run.manifest.count
    dead_bits = np.unpackbits(dead.view(np.uint8), bitorder="little", count=count)
    starts = np.arange(0, count, each)
    alive = np.add.reduceat(1 - dead_bits, starts, dtype=np.int64)
    for first in range(0, len(starts), step):
        if alive[first : first + step].any():
            yield read_blocks(store, run, np.arange(first, min(first + step, len(starts))))


def read_living(store: RunStore, run: Run, dead: Bits, floor: int, step: int) -> Iterator[Living]:
    """Read the living entries of a run by the given dead bits, `step` blocks at a time.

    Each result is overwritten by the next.
    """
    each = run.manifest.block_entries
    words = np.empty((step * each, WORDS + run.columns), np.uint64)
    positions = np.empty(step * each, np.int64)
    for data, begins, numbers in read_living_blocks(store, run, dead, step):
        count: int = unpack_living(
            data, begins, int(numbers[0]), each, dead, floor, run.into, words, positions
        )
        yield Living(words[:count], positions[:count])


AT_ONCE: Final = 256
"""Number of ids whose blocks are read before they are searched, small enough for the processor's cache."""


class FoundEntries(NamedTuple):
    """Living entries of the ids looked up, ordered as the ids were given, then by arrival; (n,) each."""

    entries: NDArray[np.void]
    """`PACKED_ENTRY`."""
    side: NDArray[np.int32]
    """Side columns, shape (n, columns)."""
    id_indices: NDArray[np.int64]
    """Index of the id that each entry belongs to, among those of the same look-up."""
    runs: NDArray[np.int64]
    positions: NDArray[np.int64]


def joined_found(parts: list[FoundEntries]) -> FoundEntries:
    """Join what was found of ids that were looked up one part after the other; at least one part."""
    if len(parts) == 1:
        return parts[0]
    return FoundEntries(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


class _Room(NamedTuple):
    """Arrays for the entries found; the last row is scratch space."""

    words: Words
    origins: NDArray[np.int64]
    """Shape (n, 3): index among the sorted ids, position in the run, number of the run."""


def _room_for(entries: int, words: int) -> _Room:
    return _Room(np.empty((entries + 1, words), np.uint64), np.empty((entries + 1, 3), np.int64))


def find_entries(
    store: RunStore,
    runs: Iterable[Run],
    low: NDArray[np.uint64],
    high: NDArray[np.uint64],
    floor: int,
    columns: int,
) -> FoundEntries:
    """Find the living entries of distinct ids, given by the halves of their digests, (n,).

    `floor`: oldest generation of dedup entries that is not dropped. `columns`: number of side columns.

    Raises
    ------
    ColdDamaged
        If a block is not what was written.
    """
    order = np.argsort(low, kind="stable")
    low, high = low[order], high[order]
    which, first, last = (np.empty(len(low), np.int64) for _ in range(3))
    room, count = _room_for(4 * len(low) + 64, WORDS + columns), 0
    for run in runs:
        if not run.alive:
            continue
        sought: int = find_candidates(low, high, run.bloom, run.fences, which, first, last)
        for start in range(0, sought, AT_ONCE):
            part = slice(start, min(sought, start + AT_ONCE))
            room, count = _search(
                store, run, low, high, which[part], first[part], last[part], floor, room, count
            )
    words, origins = room.words[:count], room.origins[:count]
    id_of_each = order[origins[:, 0]]
    sequence = np.lexsort((words[:, ARRIVAL].copy(), id_of_each))
    words = words[sequence]
    return FoundEntries(
        entries_of(words), side_of(words), id_of_each[sequence], origins[sequence, 2], origins[sequence, 1]
    )


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
            run.manifest.number,
            run.into,
            room.words,
            room.origins,
            count,
        )
        if found < len(room.words):
            return room, found
        larger = _room_for(2 * found, room.words.shape[1])
        larger.words[:count], larger.origins[:count] = room.words[:count], room.origins[:count]
        room = larger
