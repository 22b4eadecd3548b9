"""State of a model's lead over one opponent, the dispersion of that lead, and changes of the verdict."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.memory import WIDTH
from streamwatch.core.jit import count_bits, hot, inner, lanes, lanes_of, lanes_where, sum_in_pairs

# State of a model's lead over one opponent: a record of scalars and 2 × 8 arrays, all zero at first.
#
# The lead of an outcome is d = u(y, ŷ) − u(y, b) ∈ [−1, 1]: utility of the model's answer ŷ minus that of
# the opponent's answer b (see `detector`). There is one step per outcome that the opponent answered.


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


# Dispersion of a lead: variance of its sums relative to independent outcomes, φ ≥ 1.
#
# Let S_i be the sums of consecutive blocks of b ∈ {16, 64, 256} steps, never reset. Each block but the
# first gives
#
#     x = min((S_i − S_(i−1))²/2, 8·max(x̄, b·Var d))        (unbounded while m < 8)
#
# x̄, the mean of x, and m, their number, fade by α^b (α = .9999). At the end of every 64 steps, after its
# blocks of 16 are counted, Var d is computed again (faded by α per step, at least 1e-6), and after the blocks
# of 64 and 256 are counted
#
#     v_b = x̄·m/(m − 3)/(b·Var d) where m ≥ 8,    φ* = max(1, max_b v_b)
#
# and φ ← φ* if |φ*/φ − 1| > .02, used from the next step.
#
# This is the long-run variance by batch means, from differences of neighbours (von Neumann 1941) instead of
# deviations from the mean. A lasting change of the lead, which a verdict is to find, enters a single
# difference, which the bound limits. Deviations from the mean would count every block before and
# after it, and a model that falls from .98 to .57 would go unnoticed for thousands of outcomes. The m − 3
# makes 1/φ, the power that is used, right on average: m differences have about 2m/3 degrees of freedom ν,
# and 1/χ² has the mean 1/(ν − 2).


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


# Changes of verdicts, as rows among the alarms.


@inner
def append_change(pace, v, p, detector, position, row, outcome, before, alarms, count):
    """Write a change of the verdict to row `count` of `alarms`; return the new number of rows."""
    alarm = alarms[count]
    alarm.position = position
    alarm.row = row
    alarm.detector = detector
    alarm.ordinal = v.changes
    alarm.outcome = outcome
    alarm.statistic = v.claimed
    alarm.threshold = p.threshold
    alarm.before = float(before)
    alarm.after = float(v.verdict)
    alarm.n_eff = float(pace.steps)
    alarm.since = v.since
    alarm.since_ms = v.since_ms
    alarm.errors = 0
    return count + 1
