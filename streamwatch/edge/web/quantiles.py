"""Quantiles of a histogram, as Prometheus's `histogram_quantile` estimates them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from streamwatch.core.metrics.series import Histogram


def quantile(share: float, histogram: Histogram, bounds: Sequence[float]) -> float | None:
    """Return the value below which `share` of the observations lie, interpolated linearly within buckets.

    It is the highest finite bound if the quantile is beyond that; None without observations or bounds.
    """
    rank, at = _bucket(share, histogram)
    if rank <= 0 or not bounds:
        return None
    if at >= len(bounds):
        return bounds[-1]
    below = histogram.counts[at - 1] if at else 0
    start = bounds[at - 1] if at else 0.0
    inside = histogram.counts[at] - below
    return start + (bounds[at] - start) * (rank - below) / inside if inside else bounds[at]


def within(share: float, histogram: Histogram, bounds: Sequence[float]) -> float | None:
    """Return the least bound that at least `share` of the observations do not exceed.

    None if it is beyond the highest finite bound, and without observations. Unlike `quantile`, which may be
    anywhere in a wide bucket, this is true of the observations themselves.
    """
    rank, at = _bucket(share, histogram)
    return bounds[at] if rank > 0 and at < len(bounds) else None


def _bucket(share: float, histogram: Histogram) -> tuple[float, int]:
    """Rank of the quantile, 0 without observations, and the bucket that contains it."""
    rank = share * histogram.counts[-1]
    return rank, bisect_left(histogram.counts, rank)
