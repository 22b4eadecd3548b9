"""State of ADWIN windows as values, independent of where their blocks are."""

from __future__ import annotations

from typing import Any

import numpy as np

from streamwatch.core.estimators.forgetting.adwin import FIRST_BLOCK_ROW
from streamwatch.core.estimators.kernel.pools import Pools
from streamwatch.core.estimators.memory.allocator import HEADER, SLOT

SCALARS = ("large", "last_drift", "kept", "statistic", "threshold", "before", "after", "rows")


def window_state(pools: Pools, window: Any) -> list[Any]:
    """(scalars, losses of buckets by row, blocks of large buckets) of a window."""
    buckets = window["buckets"][: int(window["rows"])].tolist()
    losses = [window["losses"][r, :k].tolist() for r, k in enumerate(buckets)]
    blocks = [
        _block(pools, int(slot))
        for r, k in enumerate(buckets[FIRST_BLOCK_ROW:])
        for slot in window["blocks"][r, :k]
    ]
    return [[window[name].item() for name in SCALARS], losses, blocks]


def resume_window(
    pools: Pools, window: Any, scalars: list[Any], losses: list[Any], blocks: list[Any]
) -> None:
    """Restore an empty window from what `window_state` returned."""
    for name, value in zip(SCALARS, scalars, strict=True):
        window[name] = value
    slots = iter([_restore_block(pools, *block) for block in blocks])
    for r, row in enumerate(losses):
        window["buckets"][r] = len(row)
        window["losses"][r, : len(row)] = row
        if r >= FIRST_BLOCK_ROW:
            window["blocks"][r - FIRST_BLOCK_ROW, : len(row)] = [next(slots) for _ in row]


def _block(pools: Pools, slot: int) -> tuple[list[int], int, bytes, bytes]:
    """(repeats and flags, classes of the block, classes with counts, their counts) of one block."""
    first = slot * SLOT
    span = 1 << int(pools.blocks[first + 1])
    counts = pools.blocks[first + HEADER : first + HEADER + 3 * span].reshape(-1, 3)
    counted = np.flatnonzero(counts.any(axis=1)).astype(np.int32)
    sums = pools.blocks[[first, *range(first + 2, first + HEADER)]].tolist()
    return sums, span, counted.tobytes(), counts[counted].tobytes()


def _restore_block(pools: Pools, sums: list[int], span: int, counted: bytes, counts: bytes) -> int:
    slot = pools.claim_block(span)
    first = slot * SLOT
    pools.blocks[[first, *range(first + 2, first + HEADER)]] = sums
    block = pools.blocks[first + HEADER : first + HEADER + 3 * span].reshape(-1, 3)
    block[np.frombuffer(counted, np.int32)] = np.frombuffer(counts, np.int32).reshape(-1, 3)
    return slot
