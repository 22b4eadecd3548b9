"""The memory of one model's estimators, and how a consumer of memory or disk is named."""

from __future__ import annotations

from dataclasses import dataclass

from streamwatch.core.estimators.kernel.layout import layout_of
from streamwatch.core.estimators.kernel.shadow import shadow_words
from streamwatch.core.estimators.memory.allocator import HEADER
from streamwatch.core.specs import MonitorsSpec

BLOCK_ROWS = 22
BLOCKS_PER_ROW = 6
"""An ADWIN window of 2^31 outcomes keeps counts of at most this many large buckets."""


@dataclass(frozen=True, slots=True)
class Part:
    """One consumer of memory or disk at its limit."""

    what: str
    bytes: int


def model_bytes(spec: MonitorsSpec) -> int:
    """One model that has seen `max_classes` classes and never drifted: record, ring, counts, buckets."""
    layout = layout_of(spec)
    span = 1 << (layout.max_classes - 1).bit_length()
    buckets = len(layout.windows) * BLOCK_ROWS * BLOCKS_PER_ROW * 4 * (HEADER + 3 * span)
    shadow = 8 * shadow_words(min(layout.shadow_classes, layout.max_classes))
    ring = layout.ring.itemsize * layout.ring_size
    return layout.model.itemsize + ring + 24 * layout.columns * span + buckets + shadow
