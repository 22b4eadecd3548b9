"""Rows of a trace, whatever they tell of: models after every outcome, or pairs of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from streamwatch.core.events import Alarm

Cell: TypeAlias = str | float | int | None


@dataclass(frozen=True, slots=True)
class TraceChunk:
    """Consecutive rows of a trace, and the alarms in them."""

    columns: list[str]
    rows: list[list[Cell]]
    alarms: list[Alarm]
