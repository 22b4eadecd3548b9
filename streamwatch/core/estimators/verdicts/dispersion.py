"""Dispersion of a lead: variance of its sums relative to independent outcomes, φ ≥ 1.

Let S_i be the sums of consecutive blocks of b ∈ {16, 64, 256} steps, never reset. Each block but the first
gives

    x = min((S_i − S_(i−1))²/2, 8·max(x̄, b·Var d))        (unbounded while m < 8)

x̄, the mean of x, and m, their number, fade by α^b (α = .9999). At the end of every 64 steps, after its block
of 16 is counted, Var d is computed again (faded by α per step, at least 1e-6), and after the blocks of 64 and
256 are counted

    v_b = x̄·m/(m − 3)/(b·Var d) where m ≥ 8,        φ* = max(1, max_b v_b)

and φ ← φ* if |φ*/φ − 1| > .02, used from the next step.

This is the long-run variance by batch means, from differences of neighbours (von Neumann 1941) instead of
deviations from the mean. A lasting change of the lead, which a verdict is to find, enters a single
difference, and the bound limits that one. Deviations from the mean would count every block before and after
it, and a model that falls from .98 to .57 would go unnoticed for thousands of outcomes. The m − 3 makes 1/φ,
the power that is used, right on average: m differences have about 2m/3 degrees of freedom ν, and 1/χ² has the
mean 1/(ν − 2).
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.verdicts.state import BLOCKS
from streamwatch.core.jit import count_bits, hot, inner, lanes, lanes_of, lanes_where, sum_in_pairs

ALPHA = 0.9999
LEAST_BLOCKS = 8.0
LEAST_VARIANCE = 1e-6
HYSTERESIS = 0.02
BOUND = 8.0
OVERLAP = 3.0

FADES = ALPHA ** np.arange(BLOCKS[1] - 1, -1, -1.0)
"""Weight of each step of a block of 64 at its end: α^63, α^62, …, 1."""
BLOCK_WEIGHT = float(FADES.sum())
BLOCK_FADES = np.array([ALPHA**b for b in BLOCKS])
PARTS = BLOCKS[1] // BLOCKS[0]
WIDTH = 8
"""Number of doubles in a vector."""
SURE = 1.0 - 1e-9
"""Factor that keeps a comparison of products on the safe side of rounding errors."""


@inner
def count_block(v, k, total, steps):
    """Count the sum of a block of the k-th length that ends at step `steps`."""
    if steps > BLOCKS[k]:
        change = total - v.last[k]
        x = 0.5 * change * change
        m = v.weights[k]
        if m >= LEAST_BLOCKS and x * m > SURE * BOUND * max(v.spreads[k], BLOCKS[k] * v.variance * m):
            x = min(x, BOUND * max(v.spreads[k] / m, BLOCKS[k] * v.variance))
        v.weights[k] = BLOCK_FADES[k] * m + 1.0
        v.spreads[k] = BLOCK_FADES[k] * v.spreads[k] + x
    v.last[k] = total


@inner
def count_interval(v, steps, total):
    """Count a block of 64 for the mean lead, unless it began before the last change of verdict."""
    if steps - BLOCKS[1] < v.changed:
        return
    lead = total / BLOCKS[1]
    v.blocks += 1
    delta = lead - v.mean
    v.mean += delta / v.blocks
    v.spread += delta * (lead - v.mean)


@hot
def sum_of_bits(v, part):
    """Sum of the leads ±1 of one block of 16 of the current 64."""
    first = part * BLOCKS[0]
    mask = (1 << BLOCKS[0]) - 1
    return float(count_bits((v.better >> first) & mask) - count_bits((v.worse >> first) & mask))


@hot
def faded_bits(v):
    """Σ α^(steps left in the block)·d and ·d² of the leads ±1 of a block of 64."""
    leads, squares = lanes(0.0), lanes(0.0)
    for k in range(BLOCKS[1] // WIDTH):
        fades = lanes_of(FADES, k)
        better = lanes_where(v.better >> (k * WIDTH), fades)
        worse = lanes_where(v.worse >> (k * WIDTH), fades)
        leads = leads + (better - worse)
        squares = squares + (better + worse)
    return sum_in_pairs(leads), sum_in_pairs(squares)


@inner
def end_block(v, steps):
    """End a block of 64 at step `steps`, with its blocks of 16, and one of 256 if it ends too; update φ."""
    total = 0.0
    for part in range(PARTS):
        lead = v.parts[part] + sum_of_bits(v, part)
        count_block(v, 0, lead, steps - (PARTS - 1 - part) * BLOCKS[0])
        total += lead
        v.parts[part] = 0.0
    leads, squares = faded_bits(v)
    v.weight = BLOCK_FADES[1] * v.weight + BLOCK_WEIGHT
    v.total = BLOCK_FADES[1] * v.total + (leads + v.recent)
    v.squares = BLOCK_FADES[1] * v.squares + (squares + v.recent_squares)
    v.better = 0
    v.worse = 0
    v.recent = 0.0
    v.recent_squares = 0.0
    mean = v.total / v.weight
    v.variance = max(v.squares / v.weight - mean * mean, LEAST_VARIANCE)
    count_block(v, 1, total, steps)
    count_interval(v, steps, total)
    v.whole += total
    if steps % BLOCKS[2] == 0:
        count_block(v, 2, v.whole, steps)
        v.whole = 0.0
    found = 1.0
    for k in range(len(BLOCKS)):
        if v.weights[k] >= LEAST_BLOCKS:
            found = max(found, v.spreads[k] / ((v.weights[k] - OVERLAP) * BLOCKS[k] * v.variance))
    if abs(found / max(v.dispersion, 1.0) - 1.0) > HYSTERESIS:
        v.dispersion = found
        v.magnitude = 0.0
