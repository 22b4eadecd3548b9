"""What commits say of entries outside the table beside the runs."""

from __future__ import annotations

import msgspec


class OutsideCounts(msgspec.Struct, frozen=True):
    """Counts of entries outside the table that nobody else has."""

    settled: dict[int, int] = {}
    """Dedup entries by generation."""
    unmatched: int = 0
    """Labels without a model that have met nobody."""
