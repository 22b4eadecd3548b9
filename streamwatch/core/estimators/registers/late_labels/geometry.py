"""Buckets of prediction time and bins of delay in which late labels are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[np.int64]
Counts: TypeAlias = NDArray[np.int32]

BUCKETS: Final = 64
"""Number of buckets of prediction time kept; together they span one and a half horizons."""
BINS: Final = 23
"""Number of bins of delay, whose widths grow geometrically."""
ERROR, HIT = 0, 1
"""Kinds of outcomes."""
KINDS: Final = 2
_FIRST_EDGE: Final = 240
"""The first bin of delay is the horizon divided by this."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Buckets of prediction time, counted from the epoch, and bins of delay, in milliseconds.

    Attributes
    ----------
    horizon_ms
        Longest time that a label may take.
    width_ms
        Width of a bucket: 1.5 horizons / 64, rounded up.
    edges_ms
        Edges of the bins, shape (24,): 0, a 240th of the horizon, … the horizon. A delay d lies in bin k
        where edges_ms[k] < d ≤ edges_ms[k + 1]; a delay of 0 lies in bin 0.
    """

    horizon_ms: int
    width_ms: int
    edges_ms: Integers
    steps_ms: Integers
    """Edges for the binary search of a bin, (32,): inner edges at 1 … 22, padded by values never reached."""

    @property
    def longest_ms(self) -> int:
        """Delay beyond which an outcome is ignored, as the times of its events contradict the horizon."""
        return self.horizon_ms + self.width_ms


def geometry_of(horizon_ms: int) -> Geometry:
    """Compute the buckets and bins of a horizon of at least a second."""
    width_ms = -(-3 * horizon_ms // (2 * BUCKETS))
    edges = np.geomspace(horizon_ms / _FIRST_EDGE, horizon_ms, BINS)
    edges_ms = np.concatenate(([0], np.rint(edges).astype(np.int64)))
    steps_ms = np.full(32, np.iinfo(np.int64).max)
    steps_ms[:BINS] = edges_ms[:BINS]
    return Geometry(horizon_ms, width_ms, edges_ms, steps_ms)
