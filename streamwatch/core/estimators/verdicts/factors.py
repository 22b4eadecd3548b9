"""Factors of a step, (1 ∓ λ|d|)^(1/φ) for every λ, computed from stored logarithms for 257 values of d.

With c the multiple of 1/256 nearest to |d|, 1 ∓ λ|d| = (1 ∓ λc)·(1 + x), x = ∓λ(|d| − c)/(1 ∓ λc), |x| ≤
1/128,

    (1 ∓ λ|d|)^p = exp(p·ln(1 ∓ λc))·(1 + px + p(p − 1)/2·x² + … up to x⁶),        p = 1/φ

to a few units in the last place; the remaining terms of the binomial series are below 1e-16. If φ = 1,
factors are 1 ∓ λ|d| themselves. A factor depends on |d| and φ only, not on earlier steps.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.verdicts.state import STAKES
from streamwatch.core.jit import exp_lanes, hot, inner, lanes, lanes_of, put_lanes

CELLS = 256
"""Number of intervals between the values of |d| with stored logarithms."""

_SIZES = np.arange(CELLS + 1)[:, None, None] / CELLS
LOGS = np.log1p(np.array([-1.0, 1.0])[:, None] * STAKES * _SIZES).reshape(-1, len(STAKES))
"""ln(1 − λc) in even rows and ln(1 + λc) in odd rows, shape (514, 8)."""


@hot
def power_of(v):
    """Power 1/φ of a record."""
    return 1.0 / max(v.dispersion, 1.0)


@hot
def cell_of(magnitude):
    """Index of the stored value nearest to |d|."""
    return int(magnitude * CELLS + 0.5)


@inner
def factors_of_cell(cell, power):
    """Compute (1 ∓ λc)^p, and the factors that turn |d| − c into x: four vectors, minus signs first."""
    change = lanes_of(STAKES, 0) * lanes(cell / CELLS)
    return (
        exp_lanes(lanes_of(LOGS, 2 * cell) * lanes(power)),
        exp_lanes(lanes_of(LOGS, 2 * cell + 1) * lanes(power)),
        lanes_of(STAKES, 0) / (change - lanes(1.0)),
        lanes_of(STAKES, 0) / (change + lanes(1.0)),
    )


@hot
def factors_near(of_cell, magnitude, cell, power):
    """Compute the factors of |d| from the `factors_of_cell` of its cell."""
    fallen, risen, slope_fallen, slope_risen = of_cell
    off = lanes(magnitude - cell / CELLS)
    return (
        fallen * power_near_one(off * slope_fallen, power),
        risen * power_near_one(off * slope_risen, power),
    )


@hot
def power_near_one(x, power):
    """Compute (1 + x)^p for small x: the binomial series up to x⁶."""
    second = power * (power - 1.0) / 2.0
    third = second * (power - 2.0) / 3.0
    fourth = third * (power - 3.0) / 4.0
    fifth = fourth * (power - 4.0) / 5.0
    series = lanes(fifth) + x * lanes(fifth * (power - 5.0) / 6.0)
    series = lanes(fourth) + x * series
    series = lanes(third) + x * series
    series = lanes(second) + x * series
    series = lanes(power) + x * series
    return lanes(1.0) + x * series


@hot
def linear_factors(magnitude):
    """Factors for φ = 1: 1 ∓ λ|d|."""
    change = lanes_of(STAKES, 0) * lanes(magnitude)
    return lanes(1.0) - change, lanes(1.0) + change


@inner
def factors_of(magnitude, power):
    """Compute the factors of a step from |d| and 1/φ: two vectors, the one with the minus sign first."""
    if power == 1.0:
        return linear_factors(magnitude)
    cell = cell_of(magnitude)
    return factors_near(factors_of_cell(cell, power), magnitude, cell, power)


@inner
def set_factors(v, magnitude):
    """Compute the factors of a step and store them in its record: valid while |d| and φ stay the same."""
    fallen, risen = factors_of(magnitude, power_of(v))
    v.magnitude = magnitude
    put_lanes(v.factors, 0, fallen)
    put_lanes(v.factors, 1, risen)
