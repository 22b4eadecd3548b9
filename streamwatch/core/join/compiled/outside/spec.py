"""Sizes of what a compiled join has in its table, and outside."""

from __future__ import annotations

from dataclasses import dataclass

from streamwatch.core.join.compiled.cold.spec import ColdSpec


@dataclass(frozen=True, slots=True)
class OverflowSpec:
    """Limits of the table, and sizes of what lies outside."""

    entries: int
    """Beyond so many entries between two batches the oldest leave the table."""
    taken: int = 65_536
    """So many of the oldest come back at once, when they are about to fall due."""
    cold: ColdSpec = ColdSpec()  # noqa: RUF009 - it is frozen
