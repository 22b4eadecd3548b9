"""Columns of the state of a model's first and last predictions."""

from __future__ import annotations

from typing import Final

WEIGHT, SQUARES, FIRST, GAINED, LOST, REVISED = range(6)
"""Columns of the sums.

Σw; Σw²; weight of outcomes whose first prediction was right; of those where only the last was right; of those
where only the first was right; of those whose last prediction is of another class.
"""
SUMS: Final = 6
ALL_OUTCOMES, ALL_GAINED, ALL_LOST, ALL_REVISED = range(4)
"""Columns of the counts, which do not fade."""
COUNTS: Final = 4
