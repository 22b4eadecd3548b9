"""Quantiles of a histogram, as Prometheus's `histogram_quantile` estimates them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from streamwatch.core.metrics.series import Histogram


def quantile(share: float, histogram: Histogram, bounds: Sequence[float]) -> float | None:
    """Return the value below which `share` of the observations lie, interpolated linearly within buckets.

    It is the highest finite bound if the quantile is beyond that; None without observations or bounds.
    """
    total = histogram.counts[-1]
    if total <= 0 or not bounds:
        return None
    rank = share * total
    at = bisect_left(histogram.counts, rank)
    if at >= len(bounds):
        return bounds[-1]
    below = histogram.counts[at - 1] if at else 0
    start = bounds[at - 1] if at else 0.0
    inside = histogram.counts[at] - below
    return start + (bounds[at] - start) * (rank - below) / inside if inside else bounds[at]
