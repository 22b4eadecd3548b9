"""Steps that wait: up to 16 outcomes in which a lead is not 0 are noted, then taken at once.

An outcome with d = 0 for every opponent leaves no trace but its number. Taking a step costs little once M and
C of a verdict are in registers; bringing them there costs memory, so it is done for many steps together. They
are taken in their order, with the same operations as one by one, ends of blocks between them: what a record
holds afterwards does not depend on when that was.

Nothing is told later for it. `room_of` bounds how soon a verdict could be claimed, as if every note to come
spoke for one side with the largest lead: Σ_λ (M_λ + g + 64)·(1 + λ)^n after n of them. The note at which it
could is the last that waits, and so is the outcome at which a verdict would open, and the first at which one
may be claimed. Nothing waits for more than 64 outcomes, nor beyond an outcome that other opponents answer.

Models with folds, whose verdict is looked at over all folds, and those judged by costs, whose leads are of
another size for every opponent, take every step at once.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.verdicts.detector import LAST, claim_at, close_step, fade_of, step_side
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
"""Outcomes that are noted before their steps are taken."""
LONGEST = 64
"""Outcomes after which steps are taken, however few are noted."""

NOTE = np.dtype(
    [
        ("outcome", "i8"),  # 1-based, of the model
        ("event_ms", "i8"),
        ("magnitude", "f8"),  # |d|; not written where every |d| is 1
    ]
)
"""An outcome in which the lead over some opponent is not 0."""

WAITING = np.dtype(
    [
        ("due", "i8"),  # the outcome at which steps are taken, however few are noted
        ("noted", "i4"),  # notes
        ("full", "i4"),  # notes with which some opponent's steps are taken
        ("answering", "i8"),  # a bit for each opponent that answers the outcomes since
    ]
)
"""What waits for a model."""

MARKS = np.dtype(
    [
        ("steps", "i8"),  # bits of notes: see `HALF`
        ("settled", "i8"),  # the outcome up to which all steps are taken
        ("full", "i8"),  # notes with which steps are taken
    ]
)
"""What waits for one opponent."""

HALF = 32
"""Bit k of `steps` is set if note k is a step with d > 0, bit 32 + k if it is one with d < 0."""

GROWN = (1.0 + STAKES) ** np.arange(NOTES, dtype=np.float64)[:, None]
"""(1 + λ)^n, shape (16, 8)."""
MARGIN = 1.0 - 1e-6
"""Keeps a bound above what rounding makes of M."""


@hot
def close_blocks(v, closed, ended):
    """End every block of 16 after the first `closed` up to the first `ended`; gives their number."""
    while closed < ended:
        closed += 1
        end_block(v, closed * BLOCKS[0])
    return closed


@inner
def take_unit_steps(m, marks, v, first, closed):
    """`take_steps` where every |d| is 1."""
    return take_steps(m, marks, v, first, closed, False)


@inner
def take_sized_steps(m, marks, v, first, closed):
    """`take_steps` where |d| differs."""
    return take_steps(m, marks, v, first, closed, True)


@hot
def take_steps(m, marks, v, first, closed, sized):
    """Take an opponent's steps that are noted, as marked; gives the number of blocks that have ended.

    An outcome k of the model is step k − `first`; `closed` blocks of 16 have ended before.
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
        if closed < (step - 1) >> 4:
            closed = close_blocks(v, closed, (step - 1) >> 4)
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
        fade = fade_of(step)
        v.block += lead
        v.recent += fade * lead
        v.recent_squares += fade * lead * lead
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
    """Write down where a side's C_λ have started: numbers of notes, −1 where none has."""
    started = bits_at_most(lanes(0.0), starts)
    while started != 0:
        k = trailing_zeros(np.uint64(started))
        started &= started - 1
        note = m.notes[int(lane(starts, k))]
        v.starts[side, k] = note.outcome
        v.start_ms[side, k] = note.event_ms


@hot
def take_all(m, j, w, p, outcome, event_ms):
    """Take all steps of opponent j that wait, up to `outcome`; gives whether the last changed the verdict."""
    pace, v = m.pace[j], m.verdicts[j]
    marks = m.marks[j].steps
    first = m.marks[j].settled - pace.steps
    closed = pace.steps >> 4
    pace.steps = outcome - first
    m.marks[j].settled = outcome
    changed = False
    if marks != 0:
        if m.utility == ACCURACY:
            closed = take_unit_steps(m, marks, v, first, closed)
        else:
            closed = take_sized_steps(m, marks, v, first, closed)
        m.marks[j].steps = 0
        if v.differed == pace.steps:
            closed = close_blocks(v, closed, (pace.steps - 1) >> 4)
            better, worse = sum_in_pairs(lanes_of(v.sums, BETTER)), sum_in_pairs(lanes_of(v.sums, WORSE))
            if pace.steps >= FIRST_CLAIM and max(better, worse) >= p.threshold * len(STAKES):
                lead = 1.0 if (marks >> (w.noted - 1)) & 1 else -1.0
                changed = claim_at(pace, v, p, lead, better, worse, outcome, event_ms)
    close_blocks(v, closed, (pace.steps - 1) >> 4)
    if (pace.steps & LAST) == 0 or pace.steps == pace.reopens:
        changed |= close_step(pace, v, outcome, event_ms)
    return changed


@hot
def due_of(pace):
    """Steps of an opponent before the next look at its verdict, however few differ."""
    due = LONGEST
    if pace.steps < FIRST_CLAIM:
        due = min(due, FIRST_CLAIM - pace.steps)
    if pace.reopens > 0:
        due = min(due, pace.reopens - pace.steps)
    return due


@hot
def room_of(pace, v, p):
    """Notes before the next look at an opponent's verdict, the one looked at among them."""
    if pace.steps < FIRST_CLAIM:
        return NOTES
    enough = p.threshold * len(STAKES) * MARGIN
    waited = lanes(float(pace.steps + LONGEST - v.differed))
    sums = larger(lanes_of(v.sums, BETTER), lanes_of(v.sums, WORSE)) + waited
    if sum_in_pairs(sums * lanes_of(GROWN, NOTES - 1)) < enough:
        return NOTES
    safe = 0
    for more in (8, 4, 2, 1):
        safe += more * int(sum_in_pairs(sums * lanes_of(GROWN, safe + more)) < enough)
    return safe + 1
