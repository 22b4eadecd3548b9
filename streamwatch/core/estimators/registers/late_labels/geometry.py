"""Stretches of prediction time and of delay in which late labels are counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Integers: TypeAlias = NDArray[np.int64]
Counts: TypeAlias = NDArray[np.int32]

BUCKETS: Final = 64
"""Stretches of prediction time kept: one and a half horizons."""
BINS: Final = 23
"""Stretches of delay, each longer than the one before by the same factor."""
ERROR, HIT = 0, 1
"""Kinds of outcome."""
KINDS: Final = 2
_FIRST_EDGE: Final = 240
"""The first stretch of delay is this part of a horizon."""


@dataclass(frozen=True, slots=True)
class Geometry:
    """Buckets of prediction time, from the epoch on, and bins of delay, in milliseconds.

    Attributes
    ----------
    horizon_ms
        The longest that a label may take.
    width_ms
        Width of a bucket: 1.5 horizons / 64, rounded up.
    edges_ms
        Edges of the bins, shape (24,): 0, a 240th of the horizon, … the horizon. A delay d lies in bin k
        where edges_ms[k] < d ≤ edges_ms[k + 1]; no delay at all lies in bin 0.
    """

    horizon_ms: int
    width_ms: int
    edges_ms: Integers
    steps_ms: Integers
    """Edges for the search of a bin, (32,): those between bins at 1 … 22, never reached ones above."""

    @property
    def longest_ms(self) -> int:
        """Delay beyond which an outcome is left out: times of its events contradict the horizon."""
        return self.horizon_ms + self.width_ms


def geometry_of(horizon_ms: int) -> Geometry:
    """Lay out the buckets and bins of a horizon of at least a second."""
    width_ms = -(-3 * horizon_ms // (2 * BUCKETS))
    edges = np.geomspace(horizon_ms / _FIRST_EDGE, horizon_ms, BINS)
    edges_ms = np.concatenate(([0], np.rint(edges).astype(np.int64)))
    steps_ms = np.full(32, np.iinfo(np.int64).max)
    steps_ms[:BINS] = edges_ms[:BINS]
    return Geometry(horizon_ms, width_ms, edges_ms, steps_ms)
