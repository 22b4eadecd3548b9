"""Rows of a trace: of models after every outcome, or of pairs of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from streamwatch.core.events import Alarm

Cell: TypeAlias = str | float | int | None


@dataclass(frozen=True, slots=True)
class TraceChunk:
    """Consecutive rows of a trace, and the alarms raised in them."""

    columns: list[str]
    rows: list[list[Cell]]
    alarms: list[Alarm]
