"""Limits of the merge, and the rank of topics by the kind of their events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from streamwatch.core.records.events import Side

RANKS: Final[Mapping[Side, int]] = {"prediction": 0, "both": 1, "label": 2}


@dataclass(frozen=True, slots=True)
class MergeSpec:
    """Limits of how long and how many records are held; times in milliseconds."""

    settle_ms: int = 1_000
    max_future_ms: int = 300_000
    max_hold_back_ms: int = 600_000
    max_held_bytes: int = 67_108_864
    max_held_records: int = 400_000
    """Most records of one partition that are held. While another topic is at its end, a backlog is read no
    faster than so many records per `settle_ms` plus the time of a fetch, so it should be more than a
    processor evaluates in that time."""
    records_per_turn: int = 16_384
    """Records that are released at a time; their evaluation takes some milliseconds."""
