"""Columns of what is kept of a model's first and last predictions."""

from __future__ import annotations

from typing import Final

WEIGHT, SQUARES, FIRST, GAINED, LOST, REVISED = range(6)
"""Columns of the sums: Σw, Σw², and of outcomes whose first prediction was right, whose last one alone was,
whose first one alone was, and whose last one is of another class."""
SUMS: Final = 6
ALL_OUTCOMES, ALL_GAINED, ALL_LOST, ALL_REVISED = range(4)
"""Columns of the counts, which forget nothing."""
COUNTS: Final = 4
