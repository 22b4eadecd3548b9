"""Sizes of a compiled join's table and of what is outside."""

from __future__ import annotations

from dataclasses import dataclass

from streamwatch.core.join.compiled.cold.spec import ColdSpec


@dataclass(frozen=True, slots=True)
class OverflowSpec:
    """Limits of the table, and sizes of what is outside."""

    entries: int
    """Number of entries between two batches above which the oldest leave the table."""
    loaded_at_once: int = 65_536
    """Number of oldest entries that are loaded at once when they are about to fall due."""
    cold: ColdSpec = ColdSpec()  # noqa: RUF009 - it is frozen
