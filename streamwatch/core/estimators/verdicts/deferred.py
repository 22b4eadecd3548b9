"""Steps that wait: up to 16 outcomes of a model are noted as bits, then taken at once.

Taking a step costs little once M and C of a verdict are in registers; bringing them there costs memory, so
it is done for many steps together. They are taken in their order, with the same operations as one by one:
what a record holds afterwards does not depend on when that was.

Nothing is told later for it. `room_of` bounds how soon a verdict could be claimed, as if every outcome to
come spoke for one side with the largest lead: Σ_λ (M_λ + g + n)·(1 + λ)^n after n of them. The outcome at
which it could, at which a verdict would open, or at which a block of 16 ends, is the last that waits.

Models with folds, whose verdict is looked at over all folds, and those judged by costs, whose leads are of
another size for every opponent, take every step at once.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.verdicts.detector import (
    LAST,
    claim_at,
    close_step,
    fade_of,
    set_factors,
    step_side,
    total,
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
    put_lanes,
    sum_in_pairs,
    trailing_zeros,
)

MOST = BLOCKS[0]
"""Outcomes that wait."""

MARKS = np.dtype(
    [
        ("answered", "i4"),  # outcomes that wait and that the opponent had answered: bit 0 is the oldest
        ("better", "i4"),  # of them, those with d > 0
        ("worse", "i4"),  # … and with d < 0
    ]
)
"""What waits for one opponent; all zero but while an outcome waits."""

GROWN = (1.0 + STAKES) ** np.arange(MOST, dtype=np.float64)[:, None]
"""(1 + λ)^n, shape (16, 8)."""
MARGIN = 1.0 - 1e-6
"""Keeps a bound above what rounding makes of M."""


@inner
def take_steps(m, marks, pace, v, first):
    """Take an opponent's steps with d ≠ 0 that wait; the oldest is the model's outcome `first`."""
    steps = pace.steps
    differed = v.differed
    block = v.block
    recent = v.recent
    squares = v.recent_squares
    sums_better, sums_worse = lanes_of(v.sums, BETTER), lanes_of(v.sums, WORSE)
    maxima_better, maxima_worse = lanes_of(v.maxima, BETTER), lanes_of(v.maxima, WORSE)
    starts_better, starts_worse = lanes(-1.0), lanes(-1.0)
    answered, better = int(marks.answered), int(marks.better)
    left = better | int(marks.worse)
    while left != 0:
        slot = trailing_zeros(np.uint64(left))
        left &= left - 1
        magnitude = 1.0 if m.utility == ACCURACY else m.magnitudes[slot]
        if magnitude != v.magnitude:
            set_factors(v, magnitude)
        favours = (better >> slot) & 1
        lead = magnitude if favours else -magnitude
        step = steps + count_bits(answered & ((2 << slot) - 1))
        waited = float(step - differed)
        differed = step
        fade = fade_of(step)
        block += lead
        recent += fade * lead
        squares += fade * lead * lead
        at = float(slot)
        sums_better, maxima_better, starts_better = step_side(
            sums_better, maxima_better, starts_better, lanes_of(v.factors, favours), favours, waited, at
        )
        sums_worse, maxima_worse, starts_worse = step_side(
            sums_worse, maxima_worse, starts_worse, lanes_of(v.factors, 1 - favours), 1 - favours, waited, at
        )
    v.differed = differed
    v.block = block
    v.recent = recent
    v.recent_squares = squares
    put_lanes(v.sums, BETTER, sums_better)
    put_lanes(v.sums, WORSE, sums_worse)
    put_lanes(v.maxima, BETTER, maxima_better)
    put_lanes(v.maxima, WORSE, maxima_worse)
    write_starts(m, v, BETTER, starts_better, first)
    write_starts(m, v, WORSE, starts_worse, first)


@hot
def write_starts(m, v, side, starts, first):
    """Write down where a side's C_λ have started: places among what waits, −1 where none has."""
    started = bits_at_most(lanes(0.0), starts)
    while started != 0:
        k = trailing_zeros(np.uint64(started))
        started &= started - 1
        slot = int(lane(starts, k))
        v.starts[side, k] = first + slot
        v.start_ms[side, k] = m.event_ms[slot]


@inner
def take_all(m, j, p, outcome):
    """Take all that waits for opponent j, up to `outcome`; gives whether the last changed the verdict."""
    marks, pace, v = m.marks[j], m.pace[j], m.verdicts[j]
    newest = 1 << (m.waiting - 1)
    differs = int(marks.better) | int(marks.worse)
    answers = int(marks.answered) & newest
    if differs != 0:
        take_steps(m, marks, pace, v, outcome - m.waiting + 1)
    pace.steps += count_bits(int(marks.answered))
    changed = False
    if differs & newest and pace.steps >= FIRST_CLAIM:
        better, worse = total(v, BETTER), total(v, WORSE)
        if max(better, worse) >= p.threshold * len(STAKES):
            lead = float(marks.better & newest) - float(marks.worse & newest)
            changed = claim_at(pace, v, p, lead, better, worse, outcome, m.event_ms[m.waiting - 1])
    if answers and ((pace.steps & LAST) == 0 or pace.steps == pace.reopens):
        changed |= close_step(pace, v, outcome, m.event_ms[m.waiting - 1])
    marks.answered = 0
    marks.better = 0
    marks.worse = 0
    return changed


@inner
def room_of(pace, v, p):
    """Outcomes that may wait before the next look at an opponent's verdict, the one looked at among them."""
    room = MOST - (pace.steps & LAST)
    if pace.reopens > 0:
        room = min(room, pace.reopens - pace.steps)
    safe = room - 1
    if pace.steps + safe < FIRST_CLAIM:
        return room
    enough = p.threshold * len(STAKES) * MARGIN
    better, worse = lanes_of(v.sums, BETTER), lanes_of(v.sums, WORSE)
    while safe > 0:
        waited = lanes(float(pace.steps + safe - v.differed))
        grown = lanes_of(GROWN, safe)
        reached = max(sum_in_pairs((better + waited) * grown), sum_in_pairs((worse + waited) * grown))
        if reached < enough:
            break
        safe >>= 1
    return safe + 1
