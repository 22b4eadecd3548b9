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
for that case; `docs/verdicts.md` has how often it fails.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from math import ceil

import numpy as np

from streamwatch.core.estimators.memory import WIDTH
from streamwatch.core.estimators.verdicts.state import BETTER, BLOCKS, FADES, STAKES, START, WORSE, end_block
from streamwatch.core.jit import (
    bits_at_most,
    exp_lanes,
    hot,
    inner,
    lane,
    lanes,
    lanes_of,
    larger,
    log_lanes,
    put_lanes,
    sum_in_pairs,
    trailing_zeros,
    where_at_most,
)

# Factors of a step, (1 ∓ λ|d|)^(1/φ) for every λ, computed from stored logarithms for 257 values of d.
#
# With c the multiple of 1/256 nearest to |d|, 1 ∓ λ|d| = (1 ∓ λc)·(1 + x), x = ∓λ(|d| − c)/(1 ∓ λc), |x| ≤
# 1/128,
#
#     (1 ∓ λ|d|)^p = exp(p·ln(1 ∓ λc))·(1 + px + p(p − 1)/2·x² + … up to x⁶),    p = 1/φ
#
# to a few units in the last place; the remaining terms of the binomial series are below 1e-16. If φ = 1,
# factors are 1 ∓ λ|d| themselves. A factor depends on |d| and φ only, not on earlier steps.


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
    """Record the outcome of step 1 as the start of every C_λ; no factor is multiplied yet."""
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
        lanes(waited),
        lanes(POSITIONS[favours, 0]),
    )
    sums_worse, maxima_worse, starts_worse = step_side(
        lanes_of(v.sums, WORSE),
        lanes_of(v.maxima, WORSE),
        none,
        lanes_of(v.factors, 1 - favours),
        lanes(waited),
        lanes(POSITIONS[1 - favours, 0]),
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
    """Add the current block of 64 to S_λ, before evidence starts.

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


POSITIONS = np.array([np.full(BLOCKS[1], -1.0), np.arange(BLOCKS[1], dtype=np.float64)])
"""`at` of `step_side` at the k-th outcome: row 1 for the side that the lead favours, row 0 for the other."""


@hot
def step_side(sums, maxima, starts, factors, waited, at):
    """Update M and C of one side by a step with d ≠ 0; return M, C and the start of each C_λ, by λ.

    For λ with C_λ ≤ 1, the side that the lead favours starts at `at`, later than any start before. For the
    other side `at` is −1, and starts are left as they were: its C_λ falls below 1; its next rise sets them.
    """
    one = lanes(1.0)
    starts = where_at_most(maxima, one, larger(starts, at), starts)
    return (sums + waited) * factors, larger(maxima, one) * factors, starts


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
    verdict = 1 if side == BETTER else -1
    if v.verdict == verdict:
        return False
    best = 0
    for k in range(1, len(STAKES)):
        if v.maxima[side, k] > v.maxima[side, best]:
            best = k
    change(pace, v, verdict, v.starts[side, best], v.start_ms[side, best], evidence)
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


# Utility of an answer, in [0, 1]: by accuracy, balanced over the classes, or by a cost table.
#
#     accuracy   u = 1[answer = y]
#     balanced   u = 1[answer = y]·min_k s_k/s_y over the classes present and y, with
#                s_k = max((c_k + 1)/(Σc + K), .005), c the counts of earlier labels faded by .9999, K classes
#     costs      u = (Cmax − C[y, answer])/(Cmax − Cmin)
#
# All are fixed before the label counts, so the guarantee of a verdict holds for each of them.


ACCURACY, BALANCED, COSTS = 0, 1, 2
"""Numbers of utilities; cost tables are numbered upward from `COSTS`."""

ALPHA = 0.9999
PRESENT = 0.05
"""Weight, in outcomes, from which a class is present."""
LEAST_SHARE = 0.005


@inner
def balanced_weight(counts, first, classes, column, unit, true_class):
    """Utility of a right answer, min_k s_k/s_y ∈ (0, 1].

    `counts[first + k, column]` is c_k times `unit`, for k below `classes`. Both shares have the denominator
    Σc + K, which cancels. O(K).
    """
    present = PRESENT * unit
    total, number = 0.0, 0
    own = counts[first + true_class, column]
    fewest = own
    for k in range(classes):
        c = counts[first + k, column]
        if c >= present or k == true_class:
            total += c
            number += 1
            fewest = min(fewest, c)
    least = LEAST_SHARE * (total + number * unit)
    return max(fewest + unit, least) / max(own + unit, least)


# Steps of many outcomes at once: what the e-detector does step by step, with M and C held in registers.
#
# The outcomes all lie in one block of 64 steps, which may end with the last of them. Steps are taken in
# order and with the same operations as one by one, so a record does not depend on how many are taken
# together. Two bounds limit how long steps may be deferred without any result being late:
#
# `leads_until_check` counts the leads of each sign by opponent: those of one sign favour one side. After n
# of them, each the largest possible, Σ_λ M_λ of the side is at most Σ_λ (M_λ + w)·(1 + λ)^n, w the number of
# steps until the block ends; the other steps only lower it. A verdict could be claimed only once this reaches
# 8A.
#
# A claim of the side that already holds the verdict changes nothing that is shown, and so is not waited
# for. But it resets M and C, so the evidence of that side is compared with A after each step.


LONGEST = BLOCKS[1]
"""Largest number of outcomes whose steps are taken together."""
USUAL = 20
"""Number of leads tried first: if so many cannot make a claim, the next check is after one more."""
MARGIN = 1.0 - 1e-6
"""Factor that keeps a bound on the safe side of rounding errors in M."""
GROWN = (1.0 + STAKES) ** np.arange(LONGEST + 1, dtype=np.float64)[:, None]
"""(1 + λ)^n by (n, λ), shape (65, 8)."""


@inner
def take_steps(m, j, p, differing, hits, number, outcome, event_ms):
    """Take the steps of the last `number` outcomes of a model, up to `outcome`, over opponent j.

    Return whether the verdict changed.

    Bit k of `differing` is set if d ≠ 0 at the k-th of these outcomes, bit k of `hits` if the model was
    right, which makes d positive.
    """
    pace, v = m.pace[j], m.verdicts[j]
    first, settled = pace.steps, outcome - number
    changed = False
    if first == 0:
        take_first(v, settled + 1, m.noted_ms[0])
    if differing != 0:
        if m.utility == ACCURACY:
            v.better |= (differing & hits) << (first & LAST)
            v.worse |= (differing & ~hits) << (first & LAST)
        else:
            count_leads(m, v, differing, hits, first)
    if v.started == 0:
        take_steps_before_start(m, v, differing, hits)
    elif differing != 0:
        left = differing
        while left != 0:
            if m.utility == ACCURACY:
                left = take_unit_steps(m, v, p, left, hits, first, settled)
            else:
                left = take_sized_steps(m, v, p, left, hits, first, settled)
            better, worse = sum_in_pairs(lanes_of(v.sums, BETTER)), sum_in_pairs(lanes_of(v.sums, WORSE))
            if max(better, worse) >= p.threshold * len(STAKES):
                pace.steps = v.differed
                at = v.differed - first - 1
                if m.utility != ACCURACY:
                    set_factors(v, m.magnitudes[at])
                lead = 1.0 if (hits >> at) & 1 else -1.0
                changed |= claim_at(pace, v, p, lead, better, worse, settled + 1 + at, m.noted_ms[at])
    pace.steps = first + number
    if (pace.steps & LAST) == 0 or pace.steps == pace.due:
        changed |= close_step(pace, v, p, outcome, event_ms)
    return changed


@hot
def count_leads(m, v, differing, hits, first):
    """Count the leads of the steps in the bits `differing`, with |d| from the notes, as `count_lead` does."""
    units = 0
    for k in range(LONGEST // WIDTH):  # |d| is at most 1
        units |= bits_at_most(lanes(1.0), lanes_of(m.magnitudes, k)) << (k * WIDTH)
    units &= differing
    v.better |= (units & hits) << (first & LAST)
    v.worse |= (units & ~hits) << (first & LAST)
    recent, recent_squares = v.recent, v.recent_squares
    left = differing & ~units
    while left != 0:
        k = trailing_zeros(np.uint64(left)) & LAST
        left &= left - 1
        at = (first + k) & LAST
        lead = m.magnitudes[k] * float(2 * ((hits >> k) & 1) - 1)
        v.parts[at // BLOCKS[0]] += lead
        recent += FADES[at] * lead
        recent_squares += FADES[at] * lead * lead
    v.recent, v.recent_squares = recent, recent_squares


@inner
def take_steps_before_start(m, v, left, hits):
    """Take the steps in the bits `left` while no evidence is kept."""
    better, worse = lanes_of(v.maxima, BETTER), lanes_of(v.maxima, WORSE)
    while left != 0:
        k = trailing_zeros(np.uint64(left))
        left &= left - 1
        lead = float(2 * ((hits >> k) & 1) - 1)
        if m.utility != ACCURACY:
            lead *= m.magnitudes[k]
        better, worse = with_factors(better, worse, lead)
    put_lanes(v.maxima, BETTER, better)
    put_lanes(v.maxima, WORSE, worse)


@hot
def take_unit_steps(m, v, p, steps, hits, first, settled):
    """Take the steps in the bits `steps`, all with |d| = 1; bit k is step `first` + k + 1.

    Return those not taken because the side that holds the verdict reached A before them.
    """
    own, other, favouring, before, waited = begin_steps(v, steps, hits, first)
    enough = p.threshold * len(STAKES)
    sums_own, sums_other = lanes_of(v.sums, own), lanes_of(v.sums, other)
    maxima_own, maxima_other = lanes_of(v.maxima, own), lanes_of(v.maxima, other)
    starts_own, starts_other = lanes(-1.0), lanes(-1.0)
    left = steps
    while left != 0:
        k = trailing_zeros(np.uint64(left)) & LAST
        left &= left - 1
        before = k + 1
        favours = (favouring >> k) & 1
        at_own, at_other = lanes(POSITIONS[favours, k]), lanes(POSITIONS[1 - favours, k])
        sums_own, maxima_own, starts_own = step_side(
            sums_own, maxima_own, starts_own, lanes_of(v.factors, favours), waited, at_own
        )
        sums_other, maxima_other, starts_other = step_side(
            sums_other, maxima_other, starts_other, lanes_of(v.factors, 1 - favours), waited, at_other
        )
        waited = until_next(left, k)
        if reaches(sums_own, enough):
            break
    v.differed = first + before
    write_side(m, v, own, sums_own, maxima_own, starts_own, settled)
    write_side(m, v, other, sums_other, maxima_other, starts_other, settled)
    return left


@inner
def take_sized_steps(m, v, p, steps, hits, first, settled):
    """Take steps as `take_unit_steps` does, with |d| from the notes."""
    own, other, favouring, before, waited = begin_steps(v, steps, hits, first)
    enough = p.threshold * len(STAKES)
    sums_own, sums_other = lanes_of(v.sums, own), lanes_of(v.sums, other)
    maxima_own, maxima_other = lanes_of(v.maxima, own), lanes_of(v.maxima, other)
    starts_own, starts_other = lanes(-1.0), lanes(-1.0)
    power = power_of(v)
    unit_fallen, unit_risen = lanes_of(v.factors, 0), lanes_of(v.factors, 1)
    cell, of_cell = -1, (unit_fallen, unit_risen, unit_fallen, unit_risen)  # of no size yet
    left = steps
    enough_now = False
    wanted = cell
    while left != 0 and not enough_now:
        if wanted != cell:
            cell = wanted
            of_cell = factors_of_cell(cell, power)
        while left != 0 and not enough_now:  # without calls, so that vectors stay in registers
            k = trailing_zeros(np.uint64(left)) & LAST
            magnitude = m.magnitudes[k]
            if magnitude == 1.0:
                fallen, risen = unit_fallen, unit_risen
            elif power == 1.0:
                fallen, risen = linear_factors(magnitude)
            elif cell_of(magnitude) == cell:
                fallen, risen = factors_near(of_cell, magnitude, cell, power)
            else:
                wanted = cell_of(magnitude)
                break
            left &= left - 1
            before = k + 1
            favours = (favouring >> k) & 1
            sign = lanes(float(2 * favours - 1))
            at_own, at_other = lanes(POSITIONS[favours, k]), lanes(POSITIONS[1 - favours, k])
            factors_own = where_at_most(lanes(0.0), sign, risen, fallen)
            factors_other = where_at_most(lanes(0.0), sign, fallen, risen)
            sums_own, maxima_own, starts_own = step_side(
                sums_own, maxima_own, starts_own, factors_own, waited, at_own
            )
            sums_other, maxima_other, starts_other = step_side(
                sums_other, maxima_other, starts_other, factors_other, waited, at_other
            )
            waited = until_next(left, k)
            enough_now = reaches(sums_own, enough)
    v.differed = first + before
    write_side(m, v, own, sums_own, maxima_own, starts_own, settled)
    write_side(m, v, other, sums_other, maxima_other, starts_other, settled)
    return left


@hot
def begin_steps(v, steps, hits, first):
    """Prepare the steps in the bits `steps`; the record's factors are those of |d| = 1.

    Return the side that holds the verdict (any if none does), the other side, the bits of the steps that
    favour the former, the last step with d ≠ 0 counted from `first`, and the first step's g + 1 as a vector.
    """
    if v.magnitude != 1.0:
        set_factors(v, 1.0)
    own = BETTER if v.verdict > 0 else WORSE
    before = v.differed - first
    waited = lanes(float(trailing_zeros(np.uint64(steps)) + 1 - before))
    return own, 1 - own, hits ^ -own, before, waited


@hot
def until_next(left, k):
    """Number of steps from the k-th to the next in the bits `left`, as a vector; any number if none is."""
    return lanes(POSITIONS[1, (trailing_zeros(np.uint64(left)) - k) & LAST])


@hot
def write_side(m, v, side, sums, maxima, starts, settled):
    """Write M, C and the starts of C_λ of one side to its record.

    `starts` holds numbers of outcomes after `settled`, from 0; −1 for a C_λ that did not start.
    """
    put_lanes(v.sums, side, sums)
    put_lanes(v.maxima, side, maxima)
    started = bits_at_most(lanes(0.0), starts)
    while started != 0:
        k = trailing_zeros(np.uint64(started))
        started &= started - 1
        at = int(lane(starts, k))
        v.starts[side, k] = settled + 1 + at
        v.start_ms[side, k] = m.noted_ms[at]


@hot
def reaches(sums, enough):
    """Tell whether Σ_λ M_λ is at least `enough`; not if each of the eight M_λ is below an eighth of it."""
    return bits_at_most(lanes(enough / len(STAKES)), sums) != 0 and sum_in_pairs(sums) >= enough


@hot
def outcomes_until_check(pace):
    """Number of outcomes until a block of 64 ends, the evidence starts or a verdict opens."""
    until = LONGEST - (pace.steps & LAST)
    return min(until, pace.due - pace.steps) if pace.due > 0 else until


@hot
def leads_until_check(pace, v, p):
    """Number of leads above 0 in this block of which only the last could change a verdict, and below 0.

    Each is at least 1, and `LONGEST` if no number could.
    """
    if v.started == 0:
        return LONGEST, LONGEST
    waited = lanes(float((pace.steps | LAST) + 1 - v.differed))
    better, worse = LONGEST, LONGEST
    if v.verdict <= 0:
        better = favours_until_check(lanes_of(v.sums, BETTER) + waited, p)
    if v.verdict >= 0:
        worse = favours_until_check(lanes_of(v.sums, WORSE) + waited, p)
    if min(better, worse) == 0:  # g alone may take a side to A at any step with d ≠ 0
        return 1, 1
    return better, worse


@hot
def favours_until_check(sums, p):
    """Number of steps that favour a side of which only the last could take it to A; 0 if no step need do so.

    `sums` is M_λ + w of the side.
    """
    enough = p.threshold * len(STAKES) * MARGIN
    if sum_in_pairs(sums * lanes_of(GROWN, USUAL)) < enough:
        return USUAL + 1
    if sum_in_pairs(sums) >= enough:
        return 0
    safe = 0
    for more in (16, 8, 4, 2, 1):
        safe += more * int(sum_in_pairs(sums * lanes_of(GROWN, safe + more)) < enough)
    return safe + 1
