"""Attribution of a changed error to the values of a segment: share of each in the additional errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

EXPLAINS: Final = 0.5
"""Share of the additional errors from which a value is named."""
_BEYOND_TRAFFIC: Final = 1.5
"""Least ratio of that share to the share of traffic; it is about 1 if all values changed alike."""
_MIN_OUTCOMES: Final = 30
"""Number of outcomes of a value below which its error counts as unchanged."""


class SegmentChange(msgspec.Struct, frozen=True):
    """Segment value with most of a model's additional errors."""

    segment: str
    value: str
    share: float
    """Share in the model's additional errors, in (0, 1]."""
    traffic: float
    """Share in the model's recent outcomes, in (0, 1]."""
    before: float
    """Error of the value over its whole past."""
    now: float
    """Recent error of the value."""


def extra_errors(
    weights: NDArray[np.float64],
    outcomes: NDArray[np.int64],
    before: NDArray[np.float64],
    now: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Compute each value's share of the additional errors of a segment, shape (n,).

    Parameters
    ----------
    weights
        Faded outcomes of each value, with one step per outcome of the segment.
    outcomes
        Number of all outcomes of each value; with fewer than 30 its error counts as unchanged.
    before, now
        Errors of each value without forgetting, and recently.

    Returns
    -------
    numpy.ndarray
        w·(now − before), where positive, as a share of the sum of these; NaN if no error rose.
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
    """Name the value with the largest share of additional errors, if it exceeds what its traffic explains."""
    if not len(shares) or np.isnan(shares).all():
        return None
    k = int(np.argmax(shares))
    traffic = float(weights[k] / weights.sum())
    share = float(shares[k])
    if share < EXPLAINS or share < _BEYOND_TRAFFIC * traffic:
        return None
    return SegmentChange(segment, values[k], share, traffic, float(before[k]), float(now[k]))
