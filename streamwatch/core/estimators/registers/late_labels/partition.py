"""Optimal partition of buckets into segments of constant error, at a penalty per boundary."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from math import log

import numpy as np

from streamwatch.core.jit import entry, hot

_NOTHING = 1e-9
"""Weight below which only rounding error is left."""


@hot
def log_likelihood(wrong, weight, start, stop):
    """Maximum log likelihood of the buckets from start to stop as binomials of one probability.

    `wrong`, `weight`: cumulative sums of errors and of outcomes before each bucket.
    """
    n = weight[stop] - weight[start]
    errors = wrong[stop] - wrong[start]
    hits = n - errors
    found = 0.0
    if errors > _NOTHING:
        found += errors * log(errors / n)
    if hits > _NOTHING:
        found += hits * log(hits / n)
    return found


@entry
def last_boundary(wrong, weight, price, best, before, lost):
    """Find the last two boundaries of the best partition of n buckets; among equals, that with the fewest.

    Optimal partitioning (Jackson et al. 2005), O(n²). Returns (boundary before the last, last boundary), with
    0 for one that does not exist.

    Parameters
    ----------
    wrong, weight
        float64 (n + 1,): cumulative sums of errors and outcomes before each bucket, and of all.
    price
        Log likelihood that a boundary must gain.
    best, before
        float64, int64 (n + 1,), output: value of the best partition of the buckets before each, and its last
        boundary.
    lost
        float64 (n + 1,), written between the boundary before the last and the end, if there is a last one:
        twice the log likelihood that is lost with this bucket as the last boundary.
    """
    end = wrong.shape[0] - 1
    best[0] = price
    before[0] = 0
    for stop in range(1, end + 1):
        best[stop] = -np.inf
        for start in range(stop):
            worth = best[start] + log_likelihood(wrong, weight, start, stop) - price
            if worth > best[stop]:
                best[stop] = worth
                before[stop] = start
    split = before[end]
    start = before[split]
    if split > 0:
        most = log_likelihood(wrong, weight, start, split) + log_likelihood(wrong, weight, split, end)
        for at in range(start + 1, end):
            own = log_likelihood(wrong, weight, start, at) + log_likelihood(wrong, weight, at, end)
            lost[at] = 2.0 * (most - own)
    return start, split
