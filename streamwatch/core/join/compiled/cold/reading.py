"""Reading of a run's blocks, for a look-up or completely."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import detached
from streamwatch.core.join.compiled.cold.bits import Bits, is_set
from streamwatch.core.join.compiled.cold.block import (
    PADDING,
    WORDS,
    Bytes,
    Words,
    count_at,
    end_of_block,
    unpack_entries,
)
from streamwatch.core.join.compiled.cold.dropped import is_dropped
from streamwatch.core.join.compiled.cold.run import Run
from streamwatch.core.join.compiled.cold.store import ENTRIES, ColdDamaged, RunStore, keys_of


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
    """Tell whether the data are whole blocks with as many entries as blocks of these numbers must have."""
    for b in range(numbers.shape[0]):
        if end_of_block(data, begins[b], begins[b + 1]) != begins[b + 1]:
            return False
        if count_at(data, begins[b]) != min(block_entries, count - numbers[b] * block_entries):
            return False
    return True


@detached
def unpack_living(data, begins, first, block_entries, dead, floor, words, positions):
    """Unpack the living entries of consecutive blocks, from block `first` on; return their number."""
    count = 0
    for b in range(begins.shape[0] - 1):
        size = count_at(data, begins[b])
        unpack_entries(data, begins[b], 0, size, words, count)
        kept = count
        for i in range(size):
            position = (first + b) * block_entries + i
            if not is_set(dead, position) and not is_dropped(words, count + i, floor):
                if kept != count + i:
                    for w in range(WORDS):
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
    values = store.get_all(keys_of(ENTRIES, run.number, numbers))
    begins = np.zeros(len(values) + 1, np.int64)
    try:
        np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=begins[1:])  # type: ignore[arg-type]
    except TypeError:
        missing = numbers[[value is None for value in values]].tolist()
        raise ColdDamaged(f"run {run.number} of cold entries lacks blocks {missing[:5]}") from None
    data = np.frombuffer(bytearray().join([*values, bytes(PADDING)]), np.uint8)  # type: ignore[list-item]
    if not whole_blocks(data, begins, run.manifest.block_entries, run.manifest.count, numbers):
        raise ColdDamaged(f"a block of run {run.number} of cold entries is not what was written")
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
    words = np.empty((step * each, WORDS), np.uint64)
    positions = np.empty(step * each, np.int64)
    for data, begins, numbers in read_living_blocks(store, run, dead, step):
        count: int = unpack_living(data, begins, int(numbers[0]), each, dead, floor, words, positions)
        yield Living(words[:count], positions[:count])
