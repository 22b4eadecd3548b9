"""What whoever reports series of models takes and gives: a model of a slice, and a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from streamwatch.core.estimators.names import Classes
from streamwatch.core.series import Histogram

Key: TypeAlias = tuple[str, ...]
"""Label values, in the order in which their metric names the labels."""
Sample: TypeAlias = tuple[Key, float | Histogram]


@dataclass(frozen=True, slots=True)
class Slice:
    """A model to report: its name, its row, and the names of its classes."""

    model: str
    row: int
    classes: Classes
