"""Numbers of the API's documents as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

UNKNOWN: Final = "–"
"""What is undefined."""
_YEAR_2000: Final = 946_684_800.0


def leaf(tree: Any, *path: str) -> Any:
    """Value at a path of names in a document; None where there is none."""
    for name in path:
        if not isinstance(tree, Mapping):
            return None
        tree = tree.get(name)  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    return tree


def ratio(value: Any) -> str:
    """A share, lead or statistic with four decimals; large ones as they are."""
    if not isinstance(value, int | float) or math.isnan(value):
        return UNKNOWN
    return f"{value:,.4f}" if abs(value) < 1_000 else f"{value:,.4g}"


def count(value: Any) -> str:
    """A whole number."""
    return f"{value:,.0f}" if isinstance(value, int | float) and math.isfinite(value) else UNKNOWN


def moment(seconds: Any) -> str:
    """Date and time in UTC; a recording without timestamps has none worth showing."""
    if not isinstance(seconds, int | float) or seconds < _YEAR_2000:
        return UNKNOWN
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat(sep=" ", timespec="seconds")


def span(seconds: float) -> str:
    """A length of time: 90 s, 15 min, 4 h, 14 d."""
    for unit, size in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * size or (seconds >= size and seconds % size == 0):
            return f"{seconds / size:,.4g} {unit}"
    return f"{seconds:,.4g} s"
