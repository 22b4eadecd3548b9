"""Distinct ids of rows."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry


@entry
def write_distinct(lows, highs, order, low, high):
    """Write the distinct ids in the order `order`, which is by `low`; return their number."""
    n = 0
    for k in order:
        known = False
        m = n - 1
        while m >= 0 and low[m] == lows[k] and not known:
            known = high[m] == highs[k]
            m -= 1
        if not known:
            low[n] = lows[k]
            high[n] = highs[k]
            n += 1
    return n


def distinct_ids(
    lows: NDArray[np.uint64], highs: NDArray[np.uint64]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Halves of the distinct ones of these digests, (n,), ordered by `low`."""
    low, high = np.empty_like(lows), np.empty_like(highs)
    count: int = write_distinct(lows, highs, np.argsort(lows), low, high)
    return low[:count], high[:count]
