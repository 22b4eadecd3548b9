"""Dispersion of a stream of 0/1 losses: how much more their sums vary than those of independent losses would.

Losses are summed in blocks of b = 16, 64 and 256. With S the sum of a block that ends, S' that of the block
of the same length before it, α = .9999 and p the faded mean of all losses,

    x = ½(S − S')², at most 8·max(x̄, b·p(1 − p)), x̄ the faded mean of those before
    m ← α^b·m + 1,  Σx ← α^b·Σx + x,  x̄ = Σx/m

and at the end of every block of 16, φ = max(1, max_b Σx/((m − 3)·b·p(1 − p))) over the b with m ≥ 8; φ is 1
while there is no such b. p fades by α^16 per block of 16, and p(1 − p) is at least 10⁻⁶.

This is the long-run variance by batch means from differences of neighbours (von Neumann 1941), as for the
leads of verdicts (`verdicts.state`, where the bound and the 3 are explained): a lasting change of the error
enters a single difference, which the bound limits. The bound applies from the first difference on: otherwise
a change before the 2,304th loss would keep detectors blunt for thousands of outcomes. Dependence over more
than some 256 losses, such as a daily cycle of thousands of outcomes, is detected only in part.

A detector whose bound is for the sum or mean of n independent losses raises as many false alarms on dependent
losses as on independent ones if n/φ replaces n.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from typing import Final

import numpy as np

from streamwatch.core.jit import hot, inner

BLOCKS: Final = (16, 64, 256)
"""Numbers of losses in a block."""
ALPHA: Final = 0.9999
LEAST_BLOCKS: Final = 8.0
"""Faded number m of differences from which a block length is used for φ."""
BOUND: Final = 8.0
OVERLAP: Final = 3.0
LEAST_VARIANCE: Final = 1e-6
_FADES = np.array([ALPHA**b for b in BLOCKS])
_SIZES = np.array(BLOCKS)

DEPENDENCE = np.dtype(
    [
        ("recent", "i4"),  # number of losses in the block of 16 that has not ended
        ("losses", "i4"),  # their sum
        ("dispersion", "f8"),  # φ; 0 for 1 before the first block ends
        ("ended", "i8"),  # number of blocks of 16
        ("weight", "f8"),  # number and Σ of the losses, faded
        ("total", "f8"),
        ("sums", "f8", (len(BLOCKS),)),  # sum of the block of each length that has not ended
        ("last", "f8", (len(BLOCKS),)),  # sum of the last block of each length
        ("weights", "f8", (len(BLOCKS),)),  # m
        ("spreads", "f8", (len(BLOCKS),)),  # Σx
    ]
)
HOT_BYTES: Final = 16
"""Bytes at the start of the record that every loss accesses."""


@hot
def dispersion_of(d):
    """Dispersion φ ≥ 1 of the losses so far, as of the last block of 16."""
    return max(d.dispersion, 1.0)


@hot
def count_loss(d, loss):
    """Count a loss, 0 or 1."""
    d.losses += loss
    d.recent += 1
    if d.recent == BLOCKS[0]:
        end_block(d)


@inner
def end_block(d):
    """End a block of 16, with those of 64 and 256 that end with it, and update φ."""
    d.ended += 1
    d.weight = _FADES[0] * d.weight + BLOCKS[0]
    d.total = _FADES[0] * d.total + d.losses
    mean = d.total / d.weight
    variance = max(mean * (1.0 - mean), LEAST_VARIANCE)
    found = 1.0
    for k in range(len(BLOCKS)):
        size = float(_SIZES[k])
        d.sums[k] += d.losses
        outcomes = d.ended * BLOCKS[0]
        if outcomes % _SIZES[k] == 0:
            if outcomes > _SIZES[k]:
                change = d.sums[k] - d.last[k]
                m = d.weights[k]
                usual = size * variance
                if m > 0.0:
                    usual = max(usual, d.spreads[k] / m)
                d.weights[k] = _FADES[k] * m + 1.0
                d.spreads[k] = _FADES[k] * d.spreads[k] + min(0.5 * change * change, BOUND * usual)
            d.last[k] = d.sums[k]
            d.sums[k] = 0.0
        if d.weights[k] >= LEAST_BLOCKS:
            found = max(found, d.spreads[k] / ((d.weights[k] - OVERLAP) * size * variance))
    d.dispersion = found
    d.recent = 0
    d.losses = 0
