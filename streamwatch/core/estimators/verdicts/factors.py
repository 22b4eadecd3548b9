"""Factors of a step, (1 ∓ λ|d|)^(1/φ) for every λ, from logarithms that are kept for 129 sizes of d.

With c the multiple of 1/128 next to |d|, 1 ∓ λ|d| = (1 ∓ λc)·(1 + x), x = ∓λ(|d| − c)/(1 ∓ λc), |x| ≤ 1/64,

    (1 ∓ λ|d|)^p = exp(p·ln(1 ∓ λc))·(1 + px + p(p − 1)/2·x² + … up to x⁸),        p = 1/φ

to a few units in the last place; the rest of the binomial series is below 1e-17. Where φ = 1, factors are
1 ∓ λ|d| themselves. A factor depends on |d| and φ alone, on none of the steps before.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.verdicts.state import STAKES
from streamwatch.core.jit import exp_lanes, hot, inner, lanes, lanes_of, put_lanes

CELLS = 128
"""Steps between sizes of a lead for which logarithms are kept."""
TERMS = 8
INVERSES = 1.0 / np.maximum(np.arange(TERMS + 1.0), 1.0)

_SIZES = np.arange(CELLS + 1)[:, None, None] / CELLS
LOGS = np.log1p(np.array([-1.0, 1.0])[:, None] * STAKES * _SIZES).reshape(-1, len(STAKES))
"""ln(1 − λc) in even rows and ln(1 + λc) in odd ones, shape (258, 8)."""


@hot
def power_of(v):
    """1/φ of a record."""
    return 1.0 / max(v.dispersion, 1.0)


@hot
def cell_of(magnitude):
    """Number of the size next to |d|."""
    return int(magnitude * CELLS + 0.5)


@inner
def anchors(cell, power):
    """Give (1 ∓ λc)^p, and what |d| − c is multiplied with to be x: four vectors, each fallen one first."""
    change = lanes_of(STAKES, 0) * lanes(cell / CELLS)
    return (
        exp_lanes(lanes_of(LOGS, 2 * cell) * lanes(power)),
        exp_lanes(lanes_of(LOGS, 2 * cell + 1) * lanes(power)),
        lanes_of(STAKES, 0) / (change - lanes(1.0)),
        lanes_of(STAKES, 0) / (change + lanes(1.0)),
    )


@hot
def moved(near, magnitude, cell, power):
    """Factors of |d| from the `anchors` of its cell."""
    fallen, risen, slope_fallen, slope_risen = near
    off = lanes(magnitude - cell / CELLS)
    x_fallen, x_risen = off * slope_fallen, off * slope_risen
    one = lanes(1.0)
    series_fallen, series_risen = one, one
    for k in range(TERMS, 0, -1):
        share = lanes((power - (k - 1)) * INVERSES[k])
        series_fallen = one + x_fallen * share * series_fallen
        series_risen = one + x_risen * share * series_risen
    return fallen * series_fallen, risen * series_risen


@hot
def plain(magnitude):
    """1 ∓ λ|d|."""
    change = lanes_of(STAKES, 0) * lanes(magnitude)
    return lanes(1.0) - change, lanes(1.0) + change


@inner
def factors_of(magnitude, power):
    """Factors of a step by |d| and 1/φ: two vectors, the fallen one first."""
    if power == 1.0:
        return plain(magnitude)
    cell = cell_of(magnitude)
    return moved(anchors(cell, power), magnitude, cell, power)


@hot
def keep_factors(v, magnitude, fallen, risen):
    """Keep the factors of a step in its record, where they stay as long as |d| and φ do."""
    v.magnitude = magnitude
    put_lanes(v.factors, 0, fallen)
    put_lanes(v.factors, 1, risen)


@inner
def set_factors(v, magnitude):
    """Prepare the factors of a step in its record."""
    fallen, risen = factors_of(magnitude, power_of(v))
    keep_factors(v, magnitude, fallen, risen)
