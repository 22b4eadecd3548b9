"""Deferred steps of the e-detectors: outcomes with a non-zero lead are buffered and applied together.

Loading M and C of a verdict from memory costs more than a step. So up to 16 outcomes in which the lead over
some opponent is not 0 are buffered per model as notes, and then the steps of many outcomes are taken at once.
They are taken in order, with the same operations as one by one and with the ends of blocks between them, so
the resulting record does not depend on when they are taken. Outcomes with d = 0 for every opponent need no
note; only their number counts.

Deferring delays no result. `room_of` bounds how soon another verdict could be claimed, assuming that every
further note favours its side with the largest possible lead: Σ_λ (M_λ + g + 64)·(1 + λ)^n after n of them.
Steps are taken no later than at the first note with which such a claim would be possible, at an outcome at
which a verdict opens, and at the first at which one may be claimed. No step waits for more than 64 outcomes,
or beyond a change in which opponents answer.

Steps are not deferred for models with folds, whose verdict depends on all folds, and for models judged by
costs, whose leads differ in size between opponents.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.verdicts.detector import LAST, claim_at, close_step, count_lead, step_side
from streamwatch.core.estimators.verdicts.dispersion import end_block
from streamwatch.core.estimators.verdicts.factors import (
    anchors,
    cell_of,
    factors_of,
    keep_factors,
    moved,
    plain,
    power_of,
    set_factors,
)
from streamwatch.core.estimators.verdicts.state import BETTER, BLOCKS, FIRST_CLAIM, STAKES, WORSE
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
)

NOTES = 16
"""Largest number of notes before their steps are taken."""
LONGEST = 64
"""Number of outcomes after which steps are taken, however few notes there are."""
BLOCK_BITS = BLOCKS[1].bit_length() - 1
"""Step t, numbered from 0, lies in block number t >> `BLOCK_BITS` of 64."""

NOTE = np.dtype(
    [
        ("outcome", "i8"),  # number of the outcome in the model, from 1
        ("event_ms", "i8"),
        ("magnitude", "f8"),  # |d|; not written if every |d| is 1
    ]
)
"""Note of an outcome in which the lead over some opponent is not 0."""

WAITING = np.dtype(
    [
        ("due", "i8"),  # number of the outcome at which steps are taken, however few notes there are
        ("noted", "i4"),  # number of notes
        ("full", "i4"),  # number of notes at which some opponent's steps are taken
        ("answering", "i8"),  # one bit per opponent that answers the outcomes of these notes
    ]
)
"""Deferred outcomes of a model."""

MARKS = np.dtype(
    [
        ("steps", "i8"),  # one or two bits per note, see `HALF`
        ("settled", "i8"),  # number of the outcome up to which all steps are taken
        ("full", "i8"),  # number of notes at which steps are taken
    ]
)
"""Deferred steps of one opponent."""

HALF = 32
"""Offset of negative steps: bit k of `steps` is set if note k has d > 0, bit 32 + k if it has d < 0."""

GROWN = (1.0 + STAKES) ** np.arange(NOTES + 1, dtype=np.float64)[:, None]
"""(1 + λ)^n by (n, λ), shape (17, 8)."""
MARGIN = 1.0 - 1e-6
"""Factor that keeps a bound on the safe side of rounding errors in M."""


@hot
def close_blocks(v, closed, ended):
    """End every block of 64 steps after the first `closed` up to the first `ended`.

    Return the number of blocks ended so far.
    """
    while closed < ended:
        closed += 1
        end_block(v, closed * BLOCKS[1])
    return closed


@inner
def take_unit_steps(m, marks, v, first, closed):
    """Call `take_steps` for leads that all have |d| = 1."""
    return take_steps(m, marks, v, first, closed, False)


@inner
def take_sized_steps(m, marks, v, first, closed):
    """Call `take_steps` for leads of differing |d|."""
    return take_steps(m, marks, v, first, closed, True)


@hot
def take_steps(m, marks, v, first, closed, sized):
    """Take an opponent's deferred steps given by `marks`; return the number of blocks of 64 that have ended.

    Outcome number k of the model is step k − `first`; `closed` blocks of 64 had ended before.
    """
    better = marks & ((1 << HALF) - 1)
    left = better | (marks >> HALF)
    sums_better, sums_worse = lanes_of(v.sums, BETTER), lanes_of(v.sums, WORSE)
    maxima_better, maxima_worse = lanes_of(v.maxima, BETTER), lanes_of(v.maxima, WORSE)
    starts_better, starts_worse = lanes(-1.0), lanes(-1.0)
    none = lanes(0.0)
    unit, has_unit, cell = (none, none), False, -1
    of_dispersion, power = -1.0, 1.0
    near = (none, none, none, none)
    while left != 0:
        slot = trailing_zeros(np.uint64(left))
        left &= left - 1
        step = m.notes[slot].outcome - first
        if closed < (step - 1) >> BLOCK_BITS:
            closed = close_blocks(v, closed, (step - 1) >> BLOCK_BITS)
        magnitude = m.notes[slot].magnitude if sized else 1.0
        if magnitude != v.magnitude:
            if sized:
                if of_dispersion != v.dispersion:
                    of_dispersion, power = v.dispersion, power_of(v)
                    has_unit, cell = False, -1
                if magnitude == 1.0:
                    if not has_unit:
                        unit, has_unit = factors_of(1.0, power), True
                    fallen, risen = unit
                elif power == 1.0:
                    fallen, risen = plain(magnitude)
                else:
                    if cell != cell_of(magnitude):
                        cell = cell_of(magnitude)
                        near = anchors(cell, power)
                    fallen, risen = moved(near, magnitude, cell, power)
                keep_factors(v, magnitude, fallen, risen)
            else:
                set_factors(v, 1.0)
        favours = (better >> slot) & 1
        sign = float(2 * favours - 1)
        lead = magnitude * sign
        waited = float(step - v.differed)
        v.differed = step
        count_lead(v, step, lead)
        at = float(slot)
        sums_better, maxima_better, starts_better = step_side(
            sums_better, maxima_better, starts_better, lanes_of(v.factors, favours), sign, waited, at
        )
        sums_worse, maxima_worse, starts_worse = step_side(
            sums_worse, maxima_worse, starts_worse, lanes_of(v.factors, 1 - favours), -sign, waited, at
        )
    put_lanes(v.sums, BETTER, sums_better)
    put_lanes(v.sums, WORSE, sums_worse)
    put_lanes(v.maxima, BETTER, maxima_better)
    put_lanes(v.maxima, WORSE, maxima_worse)
    write_starts(m, v, BETTER, starts_better)
    write_starts(m, v, WORSE, starts_worse)
    return closed


@hot
def write_starts(m, v, side, starts):
    """Write the starts of C_λ of one side.

    `starts` holds numbers of notes, −1 for a C_λ that did not start.
    """
    started = bits_at_most(lanes(0.0), starts)
    while started != 0:
        k = trailing_zeros(np.uint64(started))
        started &= started - 1
        note = m.notes[int(lane(starts, k))]
        v.starts[side, k] = note.outcome
        v.start_ms[side, k] = note.event_ms


@hot
def take_all(m, j, p, outcome, event_ms):
    """Take all deferred steps of opponent j up to `outcome`; return whether the verdict changed."""
    pace, v = m.pace[j], m.verdicts[j]
    marks = m.marks[j].steps
    first = m.marks[j].settled - pace.steps
    closed = pace.steps >> BLOCK_BITS
    pace.steps = outcome - first
    m.marks[j].settled = outcome
    changed = False
    if marks != 0:
        m.marks[j].steps = 0
        left = (marks | (marks >> HALF)) & ((1 << HALF) - 1)
        one_by_one = may_confirm(pace, v, p, count_bits(left))
        last = pace.steps
        while left != 0:
            taken = left & -left if one_by_one else left
            left &= ~taken
            some = marks & (taken | (taken << HALF))
            if m.utility == ACCURACY:
                closed = take_unit_steps(m, some, v, first, closed)
            else:
                closed = take_sized_steps(m, some, v, first, closed)
            pace.steps = v.differed
            better, worse = sum_in_pairs(lanes_of(v.sums, BETTER)), sum_in_pairs(lanes_of(v.sums, WORSE))
            if pace.steps >= FIRST_CLAIM and max(better, worse) >= p.threshold * len(STAKES):
                closed = close_blocks(v, closed, (pace.steps - 1) >> BLOCK_BITS)
                lead = 1.0 if (some & ((1 << HALF) - 1)) > (some >> HALF) else -1.0  # that of the last step
                at, at_ms = outcome, event_ms
                if one_by_one:
                    note = m.notes[trailing_zeros(np.uint64(taken))]
                    at, at_ms = note.outcome, note.event_ms
                changed |= claim_at(pace, v, p, lead, better, worse, at, at_ms)
        pace.steps = last
    close_blocks(v, closed, (pace.steps - 1) >> BLOCK_BITS)
    if (pace.steps & LAST) == 0 or pace.steps == pace.reopens:
        changed |= close_step(pace, v, outcome, event_ms)
    return changed


@hot
def may_confirm(pace, v, p, steps):
    """Tell whether this number of deferred steps, up to the present one, may claim a verdict that holds.

    Such a claim changes nothing that is shown, so the steps up to it and after it may be deferred; but it
    resets M and C, so they are then taken one by one.
    """
    if v.verdict == 0:
        return False
    side = BETTER if v.verdict > 0 else WORSE
    sums = lanes_of(v.sums, side) + lanes(float(pace.steps - v.differed))
    return sum_in_pairs(sums * lanes_of(GROWN, steps)) >= p.threshold * len(STAKES) * MARGIN


@hot
def due_of(pace):
    """Number of steps after which an opponent's verdict must be checked, however few have d ≠ 0."""
    due = LONGEST
    if pace.steps < FIRST_CLAIM:
        due = min(due, FIRST_CLAIM - pace.steps)
    if pace.reopens > 0:
        due = min(due, pace.reopens - pace.steps)
    return due


@hot
def room_of(pace, v, p):
    """Number of notes up to and including the one at which an opponent's verdict must be checked.

    A verdict that holds need not be checked for a claim of its own side, see `may_confirm`.
    """
    if pace.steps < FIRST_CLAIM:
        return NOTES
    enough = p.threshold * len(STAKES) * MARGIN
    waited = lanes(float(pace.steps + LONGEST - v.differed))
    sums = waited
    if v.verdict <= 0:
        sums = larger(sums, lanes_of(v.sums, BETTER) + waited)
    if v.verdict >= 0:
        sums = larger(sums, lanes_of(v.sums, WORSE) + waited)
    if sum_in_pairs(sums * lanes_of(GROWN, NOTES - 1)) < enough:
        return NOTES
    safe = 0
    for more in (8, 4, 2, 1):
        safe += more * int(sum_in_pairs(sums * lanes_of(GROWN, safe + more)) < enough)
    return safe + 1
