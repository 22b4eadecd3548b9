"""E-detector of a lead: claims "better" or "worse", with a bounded rate of false claims under a condition.

Shiryaev-Roberts form (Shin, Ramdas, Rinaldo 2022). With d a step's lead and φ its `dispersion`, the side
"better" uses f_λ = (1 + λd)^(1/φ), "worse" f_λ = (1 − λd)^(1/φ), for each λ in `STAKES`. Until the first step
t ≥ 2,000·φ, only S_λ = Σ ln(1 ± λd) is kept. At that step, the start,

    M_λ = t·e^(S_λ/φ),  C_λ = e^(S_λ/φ),  start_λ = the outcome of step 1,  g = 0

as if the φ known by then had been used from the first step on. With the φ of the time, which is 1 at first,
M would grow on the dependence of the losses alone. After the start, at a step with d = 0: g ← g + 1, nothing
else. At a step with d ≠ 0, on both sides:

    M_λ ← (M_λ + g + 1)·f_λ
    if C_λ ≤ 1: start_λ ← this outcome, C_λ ← 1;  C_λ ← C_λ·f_λ
    g ← 0

Then, and at the start, claim when mean_λ M_λ ≥ A = 2N/δ; then that side's M = C = 0.

A verdict holds until the opposite claim, and opens after N steps without a new claim of its side. *Since* is
the `start` of the λ with the largest C at the claim (ties: smallest λ); a new claim of the side that already
holds keeps its *since*. If both sides reach A at once, the one with more evidence is claimed (ties: worse),
and both are reset.

Guarantee, for one model and one opponent: while E[d | past] ≥ 0 and for any predictable φ ≥ 1, a false
"worse" within N steps has probability at most N/A = δ/2, and likewise "better". Where losses depend on
earlier ones, E[d | past] is below 0 at times though its mean is not, and there is no guarantee. φ is meant
for that case; `docs/verdicts.md` says how often it fails.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from math import ceil

import numpy as np

from streamwatch.core.estimators.verdicts.dispersion import FADES, end_block
from streamwatch.core.estimators.verdicts.factors import power_of, set_factors
from streamwatch.core.estimators.verdicts.state import BETTER, BLOCKS, STAKES, START, WORSE
from streamwatch.core.jit import (
    bits_at_most,
    exp_lanes,
    hot,
    inner,
    lanes,
    lanes_of,
    larger,
    log_lanes,
    put_lanes,
    sum_in_pairs,
    trailing_zeros,
    where_at_most,
)

LAST = BLOCKS[1] - 1
"""Last step of a block of 64, numbered from 0; as a bit mask it gives the position of a step in its block."""
LARGEST = 600.0
"""Bound of |S_λ/φ| at the start, so that M stays finite: e^600 is far more than any claim needs."""


@hot
def observe_lead(pace, v, p, lead, outcome, event_ms):
    """Take one step: `lead` at an outcome (numbered from 1 in its model).

    Return whether the verdict changed.
    """
    pace.steps += 1
    if pace.steps == 1:
        take_first(v, outcome, event_ms)
    changed = False
    if lead != 0.0:
        changed = take_step(pace, v, p, lead, outcome, event_ms)
    if (pace.steps & LAST) == 0 or pace.steps == pace.due:
        changed |= close_step(pace, v, p, outcome, event_ms)
    return changed


@inner
def take_first(v, outcome, event_ms):
    """Take note of the outcome of step 1, the start of every C_λ; no factor is multiplied yet."""
    for side in range(2):
        put_lanes(v.maxima, side, lanes(1.0))
        for k in range(len(STAKES)):
            v.starts[side, k] = outcome
            v.start_ms[side, k] = event_ms


@inner
def take_step(pace, v, p, lead, outcome, event_ms):
    """Take a step with d ≠ 0; return whether it changed the verdict."""
    count_lead(v, pace.steps, lead)
    if v.started == 0:
        better, worse = with_factors(lanes_of(v.maxima, BETTER), lanes_of(v.maxima, WORSE), lead)
        put_lanes(v.maxima, BETTER, better)
        put_lanes(v.maxima, WORSE, worse)
        return False
    waited = float(pace.steps - v.differed)
    v.differed = pace.steps
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
    set_starts(v, BETTER, bits_at_most(lanes(0.0), starts_better), outcome, event_ms)
    set_starts(v, WORSE, bits_at_most(lanes(0.0), starts_worse), outcome, event_ms)
    better, worse = sum_in_pairs(sums_better), sum_in_pairs(sums_worse)
    if max(better, worse) < p.threshold * len(STAKES):
        return False
    return claim_at(pace, v, p, lead, better, worse, outcome, event_ms)


@hot
def count_lead(v, step, lead):
    """Count a lead for the current block of 64: one of ±1 as a bit, another in sums."""
    at = (step - 1) & LAST
    if lead == 1.0:
        v.better |= 1 << at
    elif lead == -1.0:
        v.worse |= 1 << at
    else:
        v.parts[at // BLOCKS[0]] += lead
        v.recent += FADES[at] * lead
        v.recent_squares += FADES[at] * lead * lead


@hot
def with_factors(better, worse, lead):
    """Multiply the products of a block before the start by the factors 1 ± λd of a step."""
    change = lanes_of(STAKES, 0) * lanes(lead)
    return better * (lanes(1.0) + change), worse * (lanes(1.0) - change)


@inner
def add_logarithms(v):
    """Add to S_λ, before the start, what the current block of 64 has brought.

    A product of 64 factors from .2 to 1.8 is far from the bounds of a double.
    """
    for side in range(2):
        put_lanes(v.sums, side, lanes_of(v.sums, side) + log_lanes(lanes_of(v.maxima, side)))
        put_lanes(v.maxima, side, lanes(1.0))


@inner
def start(pace, v, p, outcome, event_ms):
    """Start the evidence at this step; return whether that changed the verdict."""
    add_logarithms(v)
    for side in range(2):
        grown = larger(lanes_of(v.sums, side) * lanes(power_of(v)), lanes(-LARGEST))
        grown = exp_lanes(where_at_most(grown, lanes(LARGEST), grown, lanes(LARGEST)))
        put_lanes(v.maxima, side, grown)
        put_lanes(v.sums, side, grown * lanes(float(pace.steps)))
    v.started = pace.steps
    v.differed = pace.steps
    better, worse = total(v, BETTER), total(v, WORSE)
    if max(better, worse) < p.threshold * len(STAKES):
        return False
    return claim_at(pace, v, p, 0.0, better, worse, outcome, event_ms)


@hot
def step_side(sums, maxima, starts, factors, sign, waited, at):
    """Update M and C of one side by a step with d ≠ 0; return M, C and the start of each C_λ, by λ.

    For λ with C_λ ≤ 1, the side that the lead favours (`sign` 1., not −1.) starts at `at`. The start of the
    other side is left as it was: its C_λ falls below 1, and its next rise sets the start.
    """
    starts = where_at_most(maxima, lanes(sign), lanes(at), starts)
    return (sums + lanes(waited)) * factors, larger(maxima, lanes(1.0)) * factors, starts


@inner
def set_starts(v, side, started, outcome, event_ms):
    """Set the start of every C_λ in the bit mask `started` to this outcome."""
    while started != 0:
        k = trailing_zeros(np.uint64(started))
        v.starts[side, k] = outcome
        v.start_ms[side, k] = event_ms
        started &= started - 1


@hot
def total(v, side):
    """Σ_λ M_λ of a side."""
    return sum_in_pairs(lanes_of(v.sums, side))


@inner
def claim_at(pace, v, p, lead, better, worse, outcome, event_ms):
    """Claim at a step that took a side to A, given Σ_λ M_λ of both sides.

    Return whether the verdict changed.
    """
    enough = p.threshold * len(STAKES)
    side = BETTER if better > worse else WORSE
    if lead < 0.0 if side == BETTER else lead > 0.0:
        set_missing_starts(v, side, outcome, event_ms)
    changed = claim(pace, v, side, max(better, worse) / len(STAKES), p.outcomes)
    if better >= enough:
        reset_side(v, BETTER)
    if worse >= enough:
        reset_side(v, WORSE)
    return changed


@inner
def set_missing_starts(v, side, outcome, event_ms):
    """Set the starts that `step_side` left unchanged, for a claim at a step that does not favour the side.

    That happens only when g alone, after millions of steps with d = 0, takes the side to A.
    """
    for k in range(len(STAKES)):
        if v.maxima[side, k] == v.factors[0, k]:
            v.starts[side, k] = outcome
            v.start_ms[side, k] = event_ms


@inner
def claim(pace, v, side, evidence, outcomes):
    """Give a side the verdict for N steps; return whether the verdict changed."""
    pace.due = pace.steps + outcomes
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
    """Set another verdict, holding since an outcome, and restart the interval of the mean lead."""
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
def reset_side(v, side):
    """Reset the evidence of a side."""
    for k in range(len(STAKES)):
        v.sums[side, k] = 0.0
        v.maxima[side, k] = 0.0


@inner
def close_step(pace, v, p, outcome, event_ms):
    """Start the evidence or open a verdict that was not confirmed, if due, and end blocks.

    Return whether the verdict changed.
    """
    changed = False
    if pace.steps == pace.due:
        pace.due = 0
        if v.started == 0:
            changed = start(pace, v, p, outcome, event_ms)
        else:
            change(pace, v, 0, outcome, event_ms, 0.0)
            changed = True
    if (pace.steps & LAST) == 0:
        end_block(v, pace.steps)
        if v.started == 0:
            add_logarithms(v)
            first = max(ceil(START * max(v.dispersion, 1.0)), pace.steps + 1)
            if first <= pace.steps + BLOCKS[1]:  # φ stays the same until then
                pace.due = first
    return changed
