"""The SEA concepts (Street, Kim 2001): abrupt drifts that differ in size.

Three attributes uniform in [0, 10], of which two matter: class 1 if x1 + x2 ≤ θ. A tenth of the labels is
wrong.
"""

from __future__ import annotations

import numpy as np

from streamwatch.lab.streams.gaussians import Floats, Indices

THRESHOLDS = (8.0, 9.0, 7.0, 9.5)
NOISE = 0.1


def sea(
    rng: np.random.Generator, per_concept: int = 15_000, thresholds: tuple[float, ...] = THRESHOLDS
) -> tuple[Floats, Indices]:
    """Attributes (n, 3) and classes (n,), each concept for as many instances."""
    n = per_concept * len(thresholds)
    x = 10.0 * rng.random((n, 3))
    true_class = (x[:, 0] + x[:, 1] <= np.repeat(thresholds, per_concept)) ^ (rng.random(n) < NOISE)
    return x, true_class.astype(np.int64)


def drifts(per_concept: int = 15_000, thresholds: tuple[float, ...] = THRESHOLDS) -> tuple[int, ...]:
    """Instances (0-based) at which a concept begins, but for the first."""
    return tuple(per_concept * k for k in range(1, len(thresholds)))
