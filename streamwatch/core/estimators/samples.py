"""Types used in reporting series of models: the model to report, and the labels of a sample."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from streamwatch.core.estimators.names import Classes

Key: TypeAlias = tuple[str, ...]
"""Label values, in the order in which the metric lists its labels."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Model to report: its name, its row in the table, and its classes."""

    model: str
    row: int
    classes: Classes
