"""State of a model's lead over one opponent: a record of scalars and 2 × 8 arrays, all zero at first.

The lead of an outcome is d = u(y, ŷ) − u(y, b) ∈ [−1, 1]: utility of the model's answer ŷ minus that of the
opponent's answer b (see `utility`). There is one step per outcome that the opponent answered.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import inner

VERSION = 4
"""Incremented when the meaning of the state changes."""

STAKES = np.array([0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8])
"""Values of λ: small ones find small leads late, large ones find large leads early."""

BETTER, WORSE = 0, 1
"""Sides of a verdict; first index of `sums`, `maxima`, `starts` and `start_ms`."""

BLOCKS = (16, 64, 256)
"""Lengths in steps of the blocks whose sums measure how the lead is correlated; each divides the next."""

START = 2_000
"""Number of steps per unit of φ before evidence starts: until then φ comes from too few blocks."""

_SIDES = (2, len(STAKES))

PACE = np.dtype(
    [
        ("steps", "i8"),  # t, number of steps
        ("due", "i8"),  # step that starts the evidence or, later, opens an unconfirmed verdict; 0 for none
    ]
)
"""All fields that a step with d = 0 changes; those of all opponents share a cache line."""

VERDICT = np.dtype(
    [
        ("started", "i8"),  # step at which the evidence started; 0 before
        ("differed", "i8"),  # last step with d ≠ 0, or the start if that is later, so that g = t − differed
        ("verdict", "i8"),  # 1 better, −1 worse, 0 open
        ("better", "i8"),  # bit i: step i of the current block of 64, numbered from 0, has d = 1
        ("worse", "i8"),  # … has d = −1
        ("recent", "f8"),  # of its steps with other leads, Σ α^(steps left in the block)·d …
        ("recent_squares", "f8"),  # … and ·d²
        ("magnitude", "f8"),  # |d| for which `factors` are valid; 0 for none
        ("factors", "f8", _SIDES),  # (1 − λ|d|)^(1/φ), (1 + λ|d|)^(1/φ)
        ("sums", "f8", _SIDES),  # M_λ of each side, without g; before the start, S_λ up to the last block
        ("maxima", "f8", _SIDES),  # C_λ; before the start, Π(1 ± λd) over the current block of 64
        ("starts", "i8", _SIDES),  # number of the outcome from which C_λ has grown
        ("start_ms", "i8", _SIDES),  # its event time
        ("since", "i8"),  # number of the outcome from which the verdict holds; 0 before the first
        ("since_ms", "i8"),  # its event time
        ("changed", "i8"),  # number of the step at which the verdict last changed
        ("changes", "i8"),  # number of changes of the verdict
        ("claimed", "f8"),  # mean M_λ at the last change; 0 if it was no claim
        ("dispersion", "f8"),  # φ; 0 stands for 1
        ("parts", "f8", (BLOCKS[1] // BLOCKS[0],)),  # Σ of these leads by block of 16
        ("whole", "f8"),  # Σ d of the whole blocks of 64 in the current 256
        ("last", "f8", (len(BLOCKS),)),  # S of the last block of each length
        ("weights", "f8", (len(BLOCKS),)),  # m, number of the differences, faded
        ("spreads", "f8", (len(BLOCKS),)),  # m times the faded mean of x
        ("weight", "f8"),  # number of steps up to the end of the last block of 64, faded
        ("total", "f8"),  # Σ d of these steps, faded
        ("squares", "f8"),  # Σ d² of these steps, faded
        ("variance", "f8"),  # Var d, as of the last block of 64
        ("blocks", "i8"),  # number of whole blocks of 64 since the verdict last changed
        ("mean", "f8"),  # mean of the block means: the mean lead
        ("spread", "f8"),  # number of blocks times the variance of the block means
    ]
)

REPORTED = np.dtype(
    [
        ("steps", PACE["steps"]),
    ]
    + [
        (name, VERDICT[name])
        for name in (
            "started",
            "verdict",
            "since",
            "since_ms",
            "dispersion",
            "blocks",
            "mean",
            "spread",
            "sums",
        )
    ]
)
"""Fields of a record that `readout` uses."""

VERDICT_PARAMETERS = np.dtype(
    [
        ("threshold", "f8"),  # A, evidence that a claim needs
        ("outcomes", "i8"),  # N, number of steps that a verdict holds without a new claim
    ]
)


@inner
def copy_reported(pace, v, reported):
    """Copy the fields that `readout` uses."""
    reported.steps = pace.steps
    reported.started = v.started
    reported.verdict = v.verdict
    reported.since = v.since
    reported.since_ms = v.since_ms
    reported.dispersion = v.dispersion
    reported.blocks = v.blocks
    reported.mean = v.mean
    reported.spread = v.spread
    for side in range(2):
        for k in range(len(STAKES)):
            reported.sums[side, k] = v.sums[side, k]


def verdict_parameters(outcomes: int, delta: float) -> NDArray[np.void]:
    """Parameters of verdicts, shape (): N = `outcomes` and the threshold A = 2N/δ (see `detector`).

    Raises
    ------
    ValueError
        If `outcomes` is not positive or `delta` not in (0, 1).
    """
    if outcomes < 1:
        raise ValueError(f"outcomes of a verdict must be at least 1, got {outcomes!r}")
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta of a verdict must be in (0, 1), got {delta!r}")
    return np.array((2.0 * outcomes / delta, outcomes), VERDICT_PARAMETERS)
