"""Where a changed error sits: what each value of a segment adds to the model's errors of late."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

EXPLAINS: Final = 0.5
"""Share of the extra errors from which on a value is named."""
_BEYOND_TRAFFIC: Final = 1.5
"""So many times its share of the traffic: a change that all values have alike is in none of them."""
_MIN_OUTCOMES: Final = 30
"""Outcomes of a value below which nothing is said of its change."""


class SegmentChange(msgspec.Struct, frozen=True):
    """A value of a segment in which most of a changed error sits."""

    segment: str
    value: str
    share: float
    """Of the model's extra errors, in (0, 1]."""
    traffic: float
    """Its share of the model's outcomes of late, in (0, 1]."""
    before: float
    """Its error over its whole past."""
    now: float
    """Its error of late."""


def extra_errors(
    weights: NDArray[np.float64],
    outcomes: NDArray[np.int64],
    before: NDArray[np.float64],
    now: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Compute each value's share of the extra errors of a segment, shape (n,).

    Parameters
    ----------
    weights
        Faded outcomes of each value, on the segment's own clock.
    outcomes
        All outcomes of each value; with fewer than 30 its error counts as unchanged.
    before, now
        Errors of each value without forgetting, and of late.

    Returns
    -------
    numpy.ndarray
        w·(now − before), where positive, as a share of the sum of these; NaN if no value errs more.
    """
    extra = weights * np.maximum(now - before, 0.0)
    extra = np.where((outcomes >= _MIN_OUTCOMES) & np.isfinite(extra), extra, 0.0)
    total = float(extra.sum())
    return extra / total if total > 0 else np.full(len(extra), np.nan)


def named_change(
    segment: str,
    values: Sequence[str],
    weights: NDArray[np.float64],
    shares: NDArray[np.float64],
    before: NDArray[np.float64],
    now: NDArray[np.float64],
) -> SegmentChange | None:
    """Name the value that has most of the extra errors, and more of them than its traffic explains."""
    if not len(shares) or np.isnan(shares).all():
        return None
    k = int(np.argmax(shares))
    traffic = float(weights[k] / weights.sum())
    share = float(shares[k])
    if share < EXPLAINS or share < _BEYOND_TRAFFIC * traffic:
        return None
    return SegmentChange(segment, values[k], share, traffic, float(before[k]), float(now[k]))
