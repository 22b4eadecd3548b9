"""Counts of entries outside the table that commits write in addition to the runs."""

from __future__ import annotations

import msgspec


class OutsideCounts(msgspec.Struct, frozen=True):
    """Counts of entries outside the table that are stored nowhere else."""

    settled: dict[int, int] = {}
    """Number of dedup entries by generation."""
    unmatched: int = 0
    """Number of labels without a model that have met no prediction."""
