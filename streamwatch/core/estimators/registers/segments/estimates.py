"""Estimates of all values of a segment, as arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.measures.measures import Totals
from streamwatch.core.records.events import Name


class SegmentEstimates(NamedTuple):
    """Estimates of a segment's values; arrays of shape (n,)."""

    values: Sequence[str]
    outcomes: NDArray[np.int64]
    weights: NDArray[np.float64]
    before: NDArray[np.float64]
    now: NDArray[np.float64]
    shares: NDArray[np.float64]
    measured: Mapping[str, NDArray[np.float64]]

    def document(self, k: int) -> dict[str, object]:
        """Build the JSON object of one value for the API; undefined values are absent."""
        numbers = {name: float(values[k]) for name, values in self.measured.items()}
        numbers |= {
            "traffic_ratio": float(self.weights[k] / self.weights.sum()),
            "error_before_ratio": float(self.before[k]),
            "error_now_ratio": float(self.now[k]),
            "extra_errors_ratio": float(self.shares[k]),
        }
        return {
            "value": self.values[k],
            "outcomes": int(self.outcomes[k]),
            **{name: number for name, number in numbers.items() if math.isfinite(number)},
        }


def with_previous_of_stream(totals: Totals) -> Totals:
    """Replace the previous label of the same value by that of the model's stream.

    Outcomes of segments carry the latter in place of the label known at prediction, whose sums are NaN in
    the result. The autocorrelation of the loss stays that of the value's own successive outcomes:
    `lost_twice` is scaled to the new weight of pairs, which differs by the first outcome at most.
    """
    absent = np.full(totals.n.shape, np.nan)
    pairs = totals.label_at_prediction_pairs
    scale = np.divide(pairs, totals.pairs, out=absent.copy(), where=totals.pairs > 0)
    return replace(
        totals,
        repeats=totals.label_at_prediction_repeats,
        pairs=pairs,
        lost_twice=totals.lost_twice * scale,
        label_at_prediction_repeats=absent,
        label_at_prediction_pairs=absent,
    )


# Attribution of a changed error to the values of a segment: share of each in the additional errors.


EXPLAINS: Final = 0.5
"""Share of the additional errors from which a value is named."""
_BEYOND_TRAFFIC: Final = 1.5
"""Least ratio of that share to the share of traffic; it is about 1 if all values changed alike."""
_MIN_OUTCOMES: Final = 30
"""Number of outcomes of a value below which its error counts as unchanged."""


class SegmentChange(msgspec.Struct, frozen=True):
    """Segment value with most of a model's additional errors."""

    segment: Name
    value: Name
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
    """Name the value with the largest share of additional errors.

    None if no share is defined, or it does not exceed what the value's traffic explains.
    """
    if not len(shares) or np.isnan(shares).all():
        return None
    k = int(np.argmax(shares))
    traffic = float(weights[k] / weights.sum())
    share = float(shares[k])
    if share < EXPLAINS or share < _BEYOND_TRAFFIC * traffic:
        return None
    return SegmentChange(segment, values[k], share, traffic, float(before[k]), float(now[k]))
