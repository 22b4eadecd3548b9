"""Steps of many outcomes at once: what the e-detector does step by step, with M and C held in registers.

The outcomes all lie in one block of 64 steps, which may end with the last of them. Steps are taken in order
and with the same operations as one by one, so a record does not depend on how many are taken together. Two
bounds tell how long steps may be deferred without any result being late:

`notes_until_check` assumes that every further step with d ≠ 0 favours a side with the largest possible lead:
after n of them Σ_λ M_λ is at most Σ_λ (M_λ + w)·f_λ^n, w the number of steps until the block ends. A verdict
could be claimed only once this reaches 8A.

A claim of the side that already holds the verdict changes nothing that is shown, and so is not waited for.
But it resets M and C. `may_confirm` tells whether some steps may contain one; evidence is then compared after
each of them.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.verdicts.detector import (
    LAST,
    claim_at,
    close_step,
    count_lead,
    step_side,
    take_first,
    with_factors,
)
from streamwatch.core.estimators.verdicts.factors import (
    cell_of,
    factors_near,
    factors_of_cell,
    linear_factors,
    power_of,
    set_factors,
)
from streamwatch.core.estimators.verdicts.state import BETTER, BLOCKS, STAKES, WORSE
from streamwatch.core.estimators.verdicts.utility import ACCURACY
from streamwatch.core.jit import (
    bits_at_most,
    count_bits,
    hot,
    inner,
    lane,
    lanes,
    lanes_of,
    larger,
    put_lanes,
    sum_in_pairs,
    trailing_zeros,
    where_at_most,
)

LONGEST = BLOCKS[1]
"""Largest number of outcomes whose steps are taken together."""
USUAL = 20
"""Number of notes that usually cannot make a claim; whether more could is not looked at."""
MARGIN = 1.0 - 1e-6
"""Factor that keeps a bound on the safe side of rounding errors in M."""
GROWN = (1.0 + STAKES) ** np.arange(LONGEST + 1, dtype=np.float64)[:, None]
"""(1 + λ)^n by (n, λ), shape (65, 8)."""


@inner
def take_steps(m, j, p, differing, hits, number, outcome, event_ms):
    """Take the steps of the last `number` outcomes of a model, up to `outcome`, over opponent j.

    Return whether the verdict changed.

    Bit k of `differing` tells whether d ≠ 0 at the k-th of these outcomes, bit k of `hits` whether the model
    was right, which makes d positive.
    """
    pace, v = m.pace[j], m.verdicts[j]
    first, settled = pace.steps, outcome - number
    changed = False
    if first == 0:
        take_first(v, settled + 1, m.noted_ms[0])
    if differing != 0 and m.utility == ACCURACY:
        v.better |= (differing & hits) << (first & LAST)
        v.worse |= (differing & ~hits) << (first & LAST)
    if v.started == 0:
        take_steps_before_start(m, v, differing, hits, first)
    elif differing != 0:
        confirms = may_confirm(v, p, first + number, count_bits(differing))
        left = differing
        while left != 0:
            if m.utility == ACCURACY:
                left = take_unit_steps(m, v, p, left, hits, first, settled, confirms)
            else:
                left = take_sized_steps(m, v, p, left, hits, first, settled, confirms)
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


@inner
def take_steps_before_start(m, v, left, hits, first):
    """Take the steps in the bits `left` while no evidence is kept; leads of another size are counted."""
    better, worse = lanes_of(v.maxima, BETTER), lanes_of(v.maxima, WORSE)
    while left != 0:
        k = trailing_zeros(np.uint64(left))
        left &= left - 1
        lead = float(2 * ((hits >> k) & 1) - 1)
        if m.utility != ACCURACY:
            lead *= m.magnitudes[k]
            count_lead(v, first + k + 1, lead)
        better, worse = with_factors(better, worse, lead)
    put_lanes(v.maxima, BETTER, better)
    put_lanes(v.maxima, WORSE, worse)


@hot
def take_unit_steps(m, v, p, left, hits, first, settled, confirms):
    """Take the steps in the bits `left`, all with |d| = 1; bit k is step `first` + k + 1.

    Return those not taken because, if `confirms`, the side that holds the verdict reached A before them.
    """
    if v.magnitude != 1.0:
        set_factors(v, 1.0)
    enough = p.threshold * len(STAKES)
    sums_better, sums_worse = lanes_of(v.sums, BETTER), lanes_of(v.sums, WORSE)
    maxima_better, maxima_worse = lanes_of(v.maxima, BETTER), lanes_of(v.maxima, WORSE)
    starts_better, starts_worse = lanes(-1.0), lanes(-1.0)
    before = v.differed - first
    while left != 0:
        k = trailing_zeros(np.uint64(left))
        left &= left - 1
        favours = (hits >> k) & 1
        sign, at = float(2 * favours - 1), float(k)
        waited = float(k + 1 - before)
        before = k + 1
        sums_better, maxima_better, starts_better = step_side(
            sums_better, maxima_better, starts_better, lanes_of(v.factors, favours), sign, waited, at
        )
        sums_worse, maxima_worse, starts_worse = step_side(
            sums_worse, maxima_worse, starts_worse, lanes_of(v.factors, 1 - favours), -sign, waited, at
        )
        if confirms and sum_in_pairs(sums_better if v.verdict > 0 else sums_worse) >= enough:
            break
    v.differed = first + before
    write_side(m, v, BETTER, sums_better, maxima_better, starts_better, settled)
    write_side(m, v, WORSE, sums_worse, maxima_worse, starts_worse, settled)
    return left


@inner
def take_sized_steps(m, v, p, left, hits, first, settled, confirms):
    """Take steps as `take_unit_steps` does, with |d| from the notes; count their leads."""
    if v.magnitude != 1.0:
        set_factors(v, 1.0)
    enough = p.threshold * len(STAKES)
    power = power_of(v)
    unit_fallen, unit_risen = lanes_of(v.factors, 0), lanes_of(v.factors, 1)
    sums_better, sums_worse = lanes_of(v.sums, BETTER), lanes_of(v.sums, WORSE)
    maxima_better, maxima_worse = lanes_of(v.maxima, BETTER), lanes_of(v.maxima, WORSE)
    starts_better, starts_worse = lanes(-1.0), lanes(-1.0)
    before = v.differed - first
    enough_now = False
    while left != 0 and not enough_now:
        cell = cell_of(m.magnitudes[trailing_zeros(np.uint64(left))])
        of_cell = factors_of_cell(cell, power)
        while left != 0 and not enough_now:  # without calls, so that vectors stay in registers
            k = trailing_zeros(np.uint64(left))
            magnitude = m.magnitudes[k]
            if magnitude == 1.0:
                fallen, risen = unit_fallen, unit_risen
            elif power == 1.0:
                fallen, risen = linear_factors(magnitude)
            elif cell_of(magnitude) == cell:
                fallen, risen = factors_near(of_cell, magnitude, cell, power)
            else:
                break
            left &= left - 1
            sign, at = float(2 * ((hits >> k) & 1) - 1), float(k)
            count_lead(v, first + k + 1, magnitude * sign)
            waited = float(k + 1 - before)
            before = k + 1
            favoured = where_at_most(lanes(0.0), lanes(sign), risen, fallen)
            other = where_at_most(lanes(0.0), lanes(sign), fallen, risen)
            sums_better, maxima_better, starts_better = step_side(
                sums_better, maxima_better, starts_better, favoured, sign, waited, at
            )
            sums_worse, maxima_worse, starts_worse = step_side(
                sums_worse, maxima_worse, starts_worse, other, -sign, waited, at
            )
            enough_now = confirms and sum_in_pairs(sums_better if v.verdict > 0 else sums_worse) >= enough
    v.differed = first + before
    write_side(m, v, BETTER, sums_better, maxima_better, starts_better, settled)
    write_side(m, v, WORSE, sums_worse, maxima_worse, starts_worse, settled)
    return left


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
def may_confirm(v, p, until, steps):
    """Tell whether the next steps up to step `until`, so many with d ≠ 0, may claim a verdict that holds."""
    if v.verdict == 0:
        return False
    sums = lanes_of(v.sums, BETTER if v.verdict > 0 else WORSE) + lanes(float(until - v.differed))
    return sum_in_pairs(sums * lanes_of(GROWN, steps)) >= p.threshold * len(STAKES) * MARGIN


@hot
def outcomes_until_check(pace):
    """Number of outcomes until a block of 64 ends, the evidence starts or a verdict opens."""
    until = LONGEST - (pace.steps & LAST)
    return min(until, pace.due - pace.steps) if pace.due > 0 else until


@hot
def notes_until_check(pace, v, p):
    """Number of steps with d ≠ 0 up to and including the one that could change a verdict in this block."""
    if v.started == 0:
        return LONGEST
    enough = p.threshold * len(STAKES) * MARGIN
    waited = lanes(float((pace.steps | LAST) + 1 - v.differed))
    sums = waited
    if v.verdict <= 0:
        sums = larger(sums, lanes_of(v.sums, BETTER) + waited)
    if v.verdict >= 0:
        sums = larger(sums, lanes_of(v.sums, WORSE) + waited)
    if sum_in_pairs(sums * lanes_of(GROWN, USUAL)) < enough:
        return USUAL + 1
    safe = 0
    for more in (16, 8, 4, 2, 1):
        safe += more * int(sum_in_pairs(sums * lanes_of(GROWN, safe + more)) < enough)
    return safe + 1
