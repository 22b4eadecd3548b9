"""How much wilder the sums of a lead are than those of independent outcomes: φ ≥ 1.

For blocks of b ∈ {16, 64, 256} consecutive steps, never reset: at each block's end count m, mean and variance
of the block sums fade by α^b (α = .9999). With the variance of d faded by α a step and m ≥ 8,

    v_b = variance·m/(m − 1) / (b·max(Var d, 1e-6)),        φ* = max(1, max_b v_b)

and φ ← φ* only if |φ*/φ − 1| > .02. It is updated last in its step, once all blocks that end there are
counted, and used from the next. This is the long-run variance by batch means.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.verdicts.state import BLOCKS
from streamwatch.core.jit import inner

ALPHA = 0.9999
LEAST_BLOCKS = 8.0
LEAST_VARIANCE = 1e-6
HYSTERESIS = 0.02

FADES = ALPHA ** np.arange(BLOCKS[0], dtype=np.float64)
"""α^j: what a step weighs at the end of its block of 16, j steps later."""
BLOCK_WEIGHT = float(FADES.sum())
BLOCK_FADES = np.array([ALPHA**b for b in BLOCKS])


@inner
def count_block(v, k, total):
    """Count the sum of a block of the k-th length; mean and variance fade as West (1979) updates them."""
    v.weights[k] = BLOCK_FADES[k] * v.weights[k] + 1.0
    delta = total - v.means[k]
    v.means[k] += delta / v.weights[k]
    v.spreads[k] = BLOCK_FADES[k] * v.spreads[k] + delta * (total - v.means[k])


@inner
def count_interval(v, steps, total):
    """Count a block of 64 that lies wholly after the last change of verdict; others are left out."""
    if steps - BLOCKS[1] < v.changed:
        return
    lead = total / BLOCKS[1]
    v.blocks += 1
    delta = lead - v.mean
    v.mean += delta / v.blocks
    v.spread += delta * (lead - v.mean)


@inner
def end_block(v, steps):
    """End a block of 16, and those of 64 and 256 that end with it; then update φ."""
    v.weight = BLOCK_FADES[0] * v.weight + BLOCK_WEIGHT
    v.total = BLOCK_FADES[0] * v.total + v.recent
    v.squares = BLOCK_FADES[0] * v.squares + v.recent_squares
    v.recent = 0.0
    v.recent_squares = 0.0
    count_block(v, 0, v.block)
    v.longer[0] += v.block
    v.block = 0.0
    if steps % BLOCKS[1] == 0:
        count_block(v, 1, v.longer[0])
        count_interval(v, steps, v.longer[0])
        v.longer[1] += v.longer[0]
        v.longer[0] = 0.0
        if steps % BLOCKS[2] == 0:
            count_block(v, 2, v.longer[1])
            v.longer[1] = 0.0
    mean = v.total / v.weight
    variance = max(v.squares / v.weight - mean * mean, LEAST_VARIANCE)
    found = 1.0
    for k in range(len(BLOCKS)):
        if v.weights[k] >= LEAST_BLOCKS:
            found = max(found, v.spreads[k] / (v.weights[k] - 1.0) / (BLOCKS[k] * variance))
    if abs(found / max(v.dispersion, 1.0) - 1.0) > HYSTERESIS:
        v.dispersion = found
        v.magnitude = 0.0
