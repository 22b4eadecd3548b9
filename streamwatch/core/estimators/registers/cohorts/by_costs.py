"""Leads of a model that is judged by costs: they differ in size, so bets are multiplied as labels come.

A lead d is the utility of the model's class less that of the opponent's, from −1 to 1 (see `verdicts.costs`).
Every cohort has, for each opponent, Σ d·w and Σ (d·w)², w = 1/G of the outcome's kind, and for either side
Σ ln(1 ± λ·d·a/c) by λ: the logarithm of the product of its bets (a and c: see `claims`). A, G, a and c are
fixed when a cohort opens, so that an outcome is added to these sums and not kept, and the result does not
depend on when they are read.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.registers.cohorts.settled import lower_limit, upper_limit
from streamwatch.core.estimators.registers.cohorts.state import OPPONENTS, SETTLED_RULE, SIDES
from streamwatch.core.estimators.verdicts.state import BETTER, STAKES
from streamwatch.core.jit import inner, lanes, lanes_of, log_lanes, put_lanes

LEAD_UNIT = 1 << 24
"""Leads are summed by stretch of prediction time as integers, leads by costs in units of 1/`LEAD_UNIT`."""


@inner
def unit_of(b):
    """Integer that stands for a lead of 1 in the sums of a stretch."""
    return LEAD_UNIT if b.table > 0 else 1


@inner
def lead_by_costs(b, costs, label, own, other):
    """Lead of the answer `own` over the answer `other`; classes are indices in the model's table of costs."""
    of_label = costs[b.table - 1, label]
    return of_label[own] - of_label[other]


@inner
def in_units(value):
    """Convert a lead, or its square, to the integer that is added to a stretch."""
    return np.int64(np.floor(value * LEAD_UNIT + 0.5))


@inner
def empty_bets(b, slot):
    """Set the sums of a new cohort to zero."""
    for j in range(len(OPPONENTS)):
        bets = b.bets[slot * len(OPPONENTS) + j]
        bets.total = 0.0
        bets.squares = 0.0
        for side in range(SIDES):
            put_lanes(bets.logarithms, side, lanes(0.0))


@inner
def count_bet(b, c, u, j, slot, side, lead):
    """Count the lead over opponent j of an outcome of the cohort c, whose kind is a side of the class u."""
    bets = b.bets[slot * len(OPPONENTS) + j]
    share, lower, upper = 1.0, 1.0, 1.0
    if c.rule == SETTLED_RULE:
        share = u.share[slot, side]
        lower = lower_limit(share, u.band[slot, side])
        upper = upper_limit(share, u.band[slot, side])
    weighted = lead / share
    bets.total += weighted
    bets.squares += weighted * weighted
    for claimed in range(SIDES):
        favours = (lead > 0.0) == (claimed == BETTER)
        bet = abs(lead) * c.scale / upper if favours else -abs(lead) * c.scale / lower
        factors = lanes(1.0) + lanes_of(STAKES, 0) * lanes(bet)
        put_lanes(bets.logarithms, claimed, lanes_of(bets.logarithms, claimed) + log_lanes(factors))
