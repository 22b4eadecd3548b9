"""The memory that limits in the settings allow, worked out from what one of each was measured to take."""

from __future__ import annotations

from dataclasses import dataclass

from streamwatch.core.kernel.records import layout_of
from streamwatch.core.kernel.room import HEADER
from streamwatch.core.kernel.shadow import shadow_words
from streamwatch.core.specs import JoinSpec, MonitorsSpec

# Resident bytes each: measured over 200,000 of them with ids of 36 characters (260 to 295), and raised for
# ids of 128 and for the doubling of a dictionary.
PROCESS_BYTES = 220_000_000
PENDING_BYTES = LABEL_BYTES = TOMBSTONE_BYTES = 420
REORDERED_BYTES = 420
SERIES_BYTES = 600
"""Value, label texts and the last rendering of one series."""

BLOCK_ROWS = 22
BLOCKS_PER_ROW = 6
"""An ADWIN window of 2^31 outcomes keeps counts of at most this many large buckets."""


@dataclass(frozen=True, slots=True)
class Part:
    """One consumer of memory at its limit."""

    what: str
    bytes: int


def worst_case(join: JoinSpec, monitors: MonitorsSpec) -> list[Part]:
    """Every bounded thing at its bound, the largest first."""
    models = monitors.max_models
    parts = [
        Part("the process itself", PROCESS_BYTES),
        Part(
            f"{join.max_pending:,} pending predictions (join.max_pending)", join.max_pending * PENDING_BYTES
        ),
        Part(f"{join.max_labels:,} waiting labels (join.max_labels)", join.max_labels * LABEL_BYTES),
        Part(
            f"{join.max_tombstones:,} resolved predictions remembered (join.max_tombstones)",
            join.max_tombstones * TOMBSTONE_BYTES,
        ),
        Part(
            f"{models:,} models of {monitors.max_classes:,} classes each (monitors.max_models, max_classes)",
            models * model_bytes(monitors),
        ),
        Part(f"{monitors.max_series:,} series (monitors.max_series)", monitors.max_series * SERIES_BYTES),
    ]
    if join.order == "prediction_time":
        held = f"{join.max_reordered:,} outcomes held for their order (join.max_reordered)"
        parts.append(Part(held, join.max_reordered * REORDERED_BYTES))
    return sorted(parts, key=lambda part: -part.bytes)


def model_bytes(spec: MonitorsSpec) -> int:
    """One model that has seen `max_classes` classes and never drifted: record, ring, counts, buckets."""
    layout = layout_of(spec)
    span = 1 << (layout.max_classes - 1).bit_length()
    buckets = len(layout.windows) * BLOCK_ROWS * BLOCKS_PER_ROW * 4 * (HEADER + 3 * span)
    shadow = 8 * shadow_words(min(layout.shadow_classes, layout.max_classes))
    ring = layout.ring.itemsize * layout.ring_size
    return layout.model.itemsize + ring + 24 * layout.columns * span + buckets + shadow
