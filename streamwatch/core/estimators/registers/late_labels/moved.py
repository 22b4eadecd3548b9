"""Test whether labels take longer, or less long, than those half a horizon earlier.

The delay-corrected accuracy and early verdicts by cohorts assume that the distribution of delays is stable.
Here the delays of two neighbouring halves of a horizon are compared, for hits and errors separately:
predictions one half to one horizon old with those one to one and a half horizons old. Both halves have all
their labels with a delay below half a horizon, and only these are compared.

With x the logarithm of the delay (the number of its bin, as bins are geometric), the two means differ by

    t = (x̄_after − x̄_before)/√(v_before + v_after)

v is the variance of the mean, the largest of four estimates: from single outcomes, and from blocks of 1, 3
and 7 buckets of prediction time, as for a ratio of block totals (Cochran 1977, §6.3). So batches of labels
and rhythms up to the length of the longest block, a sixth of the horizon, do not look like a change. Delays
have moved if |t| ≥ 5 and the typical delay, the geometric mean, has changed by a twentieth or more.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.late_labels.observe import (
    HALF,
    KINDS,
    Geometry,
    Integers,
    mean_bins,
)
from streamwatch.core.estimators.registers.late_labels.ring import Counted

Floats: TypeAlias = NDArray[np.float64]

LEAST_OUTCOMES: Final = 100
"""Number of outcomes of a kind in each half from which they are compared."""
CRITICAL: Final = 5.0
"""Least |t| at which delays have moved."""
LEAST_CHANGE: Final = 0.05
"""Least change of the typical delay, as a part of it."""
BLOCKS: Final = np.array([1, 3, 7])
"""Numbers of buckets that are counted as one."""


class TypicalDelays(NamedTuple):
    """Geometric means of the delays of m models, of labels that take less than half a horizon, by kind."""

    before_ms: Floats
    """Mean delay of predictions 1 to 1.5 horizons old, (m, 2)."""
    after_ms: Floats
    """Mean delay of predictions half a horizon to one horizon old, (m, 2)."""
    moved: NDArray[np.bool_]
    """Whether they differ by more than chance explains, (m, 2); False where too few are known."""


def typical_delays(counted: Counted, geometry: Geometry) -> TypicalDelays:
    """Compare the delays of two neighbouring halves of a horizon."""
    edges = geometry.edges_ms[1:].astype(np.float64)
    step = float(np.log(edges[-1] / edges[0])) / (len(edges) - 1)
    whole = counted.newest_ages_ms >= geometry.edges_ms[geometry.early_bins]
    last = whole.sum(axis=1) - 1  # ages fall from bucket to bucket
    halves = [_half(counted.early, last - shift) for shift in (HALF, 0)]
    (mean_before, error_before, n_before), (mean_after, error_after, n_after) = halves
    change = mean_after - mean_before
    error = np.sqrt(error_before + error_after)
    enough = np.minimum(n_before, n_after) >= LEAST_OUTCOMES
    moved = enough & (np.abs(change) >= CRITICAL * error) & (np.abs(change) * step >= np.log1p(LEAST_CHANGE))
    before_ms, after_ms = (edges[0] * np.exp((mean - 0.5) * step) for mean in (mean_before, mean_after))
    return TypicalDelays(before_ms, after_ms, moved & (error > 0.0))


def _half(early: Integers, last: Integers) -> tuple[Floats, Floats, Floats]:
    """Mean bin number, its variance, and number of outcomes in the 21 buckets up to `last`; (m, 2) each."""
    mean, variance, outcomes = (np.zeros((len(last), KINDS)) for _ in range(3))
    mean_bins(early, last, BLOCKS, mean, variance, outcomes)
    return mean, variance, outcomes
