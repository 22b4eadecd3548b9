"""Rows of a trace: of models after every outcome, or of pairs of models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records.events import Alarm

Cell: TypeAlias = str | float | int | None


def cells(values: NDArray[np.float64]) -> list[Cell]:
    """Convert values to Python floats, None where undefined."""
    return [v if v == v else None for v in values.tolist()]  # noqa: PLR0124 - false for NaN


@dataclass(frozen=True, slots=True)
class TraceChunk:
    """Consecutive rows of a trace, and the alarms raised in them."""

    columns: list[str]
    rows: list[list[Cell]]
    alarms: list[Alarm]
