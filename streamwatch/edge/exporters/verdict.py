"""Is a model better than guessing what came last? Yes, no, or not shown by what was seen so far."""

from __future__ import annotations

from typing import Literal, TypeAlias

Verdict: TypeAlias = Literal["yes", "not shown", "no"]

LOWER = "hoeffding"
UPPER = "hoeffding_upper"
"""The bounds that assume least: any losses in [0, 1], as long as they are independent."""

RULE = (
    "yes: the lower Hoeffding bound of the accuracy is above the accuracy of guessing what came last "
    "(Persistent); no: the upper bound is below it; not shown: the bounds leave both open, or one of the "
    "numbers is not there yet"
)


def verdict(lower: float | None, upper: float | None, persistent: float | None) -> Verdict:
    """What the bounds allow to say."""
    if persistent is None:
        return "not shown"
    if lower is not None and lower > persistent:
        return "yes"
    if upper is not None and upper < persistent:
        return "no"
    return "not shown"
