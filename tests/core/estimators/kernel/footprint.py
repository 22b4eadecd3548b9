"""Bytes that a model holds in the pools of a table."""

from __future__ import annotations

from streamwatch.core.estimators.forgetting.adwin import FIRST_BLOCK_ROW
from streamwatch.core.estimators.kernel.pools import Pools, block_words
from streamwatch.core.estimators.kernel.shadow import shadow_words
from streamwatch.core.estimators.memory import SLOT


def footprint(pools: Pools, row: int) -> int:
    """Number of bytes held by the model in a row: record, ring, class rows, ADWIN blocks, shadow counts."""
    model = pools.models[row]
    words = 0
    for window in model["windows"]:
        for r in range(FIRST_BLOCK_ROW, int(window["rows"])):
            for k in range(int(window["buckets"][r])):
                slot = int(window["blocks"][r - FIRST_BLOCK_ROW, k])
                span = 1 << int(pools.blocks[slot * SLOT + 1])
                words += block_words(span)
    class_counts = int(pools.spans[row]) * pools.class_counts.shape[1] * 8
    shadow = sum(8 * shadow_words(int(s["span"])) for s in model["shadow"] if s["span"])
    return pools.models.itemsize + pools.rings[row].nbytes + class_counts + shadow + words * 4
