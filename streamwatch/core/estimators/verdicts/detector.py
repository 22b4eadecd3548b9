"""The e-detector of a lead: claims better or worse at a stated rate of false claims, watched at every step.

(Shiryaev-Roberts form: Shin, Ramdas, Rinaldo 2022.) With d a step's lead and φ its `dispersion`, the side
"better" uses f_λ = (1 + λd)^(1/φ), "worse" f_λ = (1 − λd)^(1/φ), for the λ of `STAKES`. M_λ = C_λ = g = 0 at
first. A step with d = 0: g ← g + 1, nothing else. One with d ≠ 0, on both sides:

    M_λ ← (M_λ + g + 1)·f_λ
    if C_λ ≤ 1: start_λ ← this outcome, C_λ ← 1;  C_λ ← C_λ·f_λ
    g ← 0
    claim when mean_λ M_λ ≥ A = 2N/δ and t ≥ 1,152; then that side's M = C = 0

A verdict holds until the opposite claim; it opens after N steps without a claim of its own side. *Since* is
the `start` of the λ with the largest C at the claim (ties: smallest λ); claiming a verdict that holds keeps
its *since*. Should both sides reach A at once, the one with more evidence is claimed (ties: worse), and both
start anew.

Guaranteed while E[d | past] ≥ 0 and for any predictable φ ≥ 1: P(false "worse" within N steps) ≤ N/A = δ/2,
and the same the other way round. The dispersion that is used answers for correlated losses approximately.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.verdicts.dispersion import FADES, end_block
from streamwatch.core.estimators.verdicts.factors import set_factors
from streamwatch.core.estimators.verdicts.state import BETTER, BLOCKS, FIRST_CLAIM, STAKES, WORSE
from streamwatch.core.jit import (
    bits_at_most,
    hot,
    inner,
    lanes,
    lanes_of,
    larger,
    put_lanes,
    sum_in_pairs,
    trailing_zeros,
    where_at_most,
)

LAST = BLOCKS[0] - 1
"""Of the steps of a block, numbered from 0; as a mask, where in its block a step is."""


@hot
def observe_lead(pace, v, p, lead, outcome, event_ms):
    """Take one step: the lead at an outcome (1-based, of the model); gives whether the verdict changed."""
    pace.steps += 1
    changed = False
    if lead != 0.0:
        changed = differ(pace, v, p, lead, outcome, event_ms)
    if (pace.steps & LAST) == 0 or pace.steps == pace.reopens:
        changed |= close_step(pace, v, outcome, event_ms)
    return changed


@inner
def differ(pace, v, p, lead, outcome, event_ms):
    """Take a step with d ≠ 0; gives whether it changed the verdict."""
    waited = float(pace.steps - v.differed)
    v.differed = pace.steps
    fade = fade_of(pace.steps)
    v.block += lead
    v.recent += fade * lead
    v.recent_squares += fade * lead * lead
    if abs(lead) != v.magnitude:
        set_factors(v, abs(lead))
    favours = int(lead > 0.0)
    none = lanes(-1.0)
    sums_better, maxima_better, starts_better = step_side(
        lanes_of(v.sums, BETTER),
        lanes_of(v.maxima, BETTER),
        none,
        lanes_of(v.factors, favours),
        float(2 * favours - 1),
        waited,
        0.0,
    )
    sums_worse, maxima_worse, starts_worse = step_side(
        lanes_of(v.sums, WORSE),
        lanes_of(v.maxima, WORSE),
        none,
        lanes_of(v.factors, 1 - favours),
        float(1 - 2 * favours),
        waited,
        0.0,
    )
    put_lanes(v.sums, BETTER, sums_better)
    put_lanes(v.sums, WORSE, sums_worse)
    put_lanes(v.maxima, BETTER, maxima_better)
    put_lanes(v.maxima, WORSE, maxima_worse)
    start_from(v, BETTER, bits_at_most(lanes(0.0), starts_better), outcome, event_ms)
    start_from(v, WORSE, bits_at_most(lanes(0.0), starts_worse), outcome, event_ms)
    better, worse = sum_in_pairs(sums_better), sum_in_pairs(sums_worse)
    if pace.steps < FIRST_CLAIM or max(better, worse) < p.threshold * len(STAKES):
        return False
    return claim_at(pace, v, p, lead, better, worse, outcome, event_ms)


@hot
def fade_of(step):
    """α^j of a step that lies j steps before the end of its block of 16."""
    return FADES[LAST - ((step - 1) & LAST)]


@hot
def step_side(sums, maxima, starts, factors, sign, waited, at):
    """Let M and C of one side take a step with d ≠ 0; gives M, C and where each C_λ has started, by λ.

    Where C_λ ≤ 1, the side that the lead favours (its sign is 1., not −1.) starts at `at`. On the other side
    the start is left as it was: C_λ falls below 1, and the side's next rise sets it.
    """
    starts = where_at_most(maxima, lanes(sign), lanes(at), starts)
    return (sums + lanes(waited)) * factors, larger(maxima, lanes(1.0)) * factors, starts


@inner
def start_from(v, side, started, outcome, event_ms):
    """Let every C_λ of the bits `started` start at this outcome."""
    while started != 0:
        k = trailing_zeros(np.uint64(started))
        v.starts[side, k] = outcome
        v.start_ms[side, k] = event_ms
        started &= started - 1


@hot
def total(v, side):
    """Σ_λ M_λ."""
    return sum_in_pairs(lanes_of(v.sums, side))


@inner
def claim_at(pace, v, p, lead, better, worse, outcome, event_ms):
    """Claim at a step whose lead took a side to A, given Σ_λ M_λ of both; gives whether it changed."""
    enough = p.threshold * len(STAKES)
    side = BETTER if better > worse else WORSE
    if lead < 0.0 if side == BETTER else lead > 0.0:
        restart_below_one(v, side, outcome, event_ms)
    changed = claim(pace, v, side, max(better, worse) / len(STAKES), p.outcomes)
    if better >= enough:
        start_anew(v, BETTER)
    if worse >= enough:
        start_anew(v, WORSE)
    return changed


@inner
def restart_below_one(v, side, outcome, event_ms):
    """Set the starts that `step_side` left in a side that claims by silence alone: after millions of g."""
    for k in range(len(STAKES)):
        if v.maxima[side, k] == v.factors[0, k]:
            v.starts[side, k] = outcome
            v.start_ms[side, k] = event_ms


@inner
def claim(pace, v, side, evidence, outcomes):
    """Let a side have the verdict for N steps; gives whether it changed."""
    pace.reopens = pace.steps + outcomes
    said = 1 if side == BETTER else -1
    if v.verdict == said:
        return False
    best = 0
    for k in range(1, len(STAKES)):
        if v.maxima[side, k] > v.maxima[side, best]:
            best = k
    change(pace, v, said, v.starts[side, best], v.start_ms[side, best], evidence)
    return True


@inner
def change(pace, v, verdict, outcome, event_ms, evidence):
    """Let another verdict hold, since an outcome; the interval of the mean lead starts anew."""
    v.verdict = verdict
    v.since = outcome
    v.since_ms = event_ms
    v.changed = pace.steps
    v.claimed = evidence
    v.changes += 1
    v.blocks = 0
    v.mean = 0.0
    v.spread = 0.0


@inner
def start_anew(v, side):
    """Forget the evidence of a side."""
    for k in range(len(STAKES)):
        v.sums[side, k] = 0.0
        v.maxima[side, k] = 0.0


@inner
def close_step(pace, v, outcome, event_ms):
    """Open a verdict that was not confirmed, end blocks; gives whether the verdict changed."""
    changed = False
    if pace.steps == pace.reopens:
        pace.reopens = 0
        change(pace, v, 0, outcome, event_ms, 0.0)
        changed = True
    if (pace.steps & LAST) == 0:
        end_block(v, pace.steps)
    return changed
