"""Outcomes that are held until there are a few dozen of a model, or until one may change a verdict.

With many models, a model's records are not in the cache when an outcome comes, and are slow to load. So
outcomes are held first, each in half a cache line, and taken in together. Results do not depend on when that
happens: all held outcomes are taken in before any read, and an outcome that may change a verdict (see
`life.changes_from`) is taken in at once, after all held before it.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.registers.cohorts.counting import take_in
from streamwatch.core.estimators.registers.cohorts.life import changes_after, changes_from
from streamwatch.core.estimators.registers.cohorts.state import HELD
from streamwatch.core.jit import hot, inner

ALWAYS = np.iinfo(np.int64).min


@hot
def hold(h, at_ms, waited_ms, made, true_class, predicted_class, known, assumed):
    """Hold an outcome; return whether all held outcomes must be taken in now."""
    number = h.number
    x = h.outcomes[np.uint32(number)]
    x.at_ms = at_ms
    x.waited_ms = waited_ms
    x.made = made
    x.true_class = true_class
    x.predicted_class = predicted_class
    x.known = 2 * (known + 1) + assumed
    h.number = number + 1
    comes = at_ms >= h.from_ms
    counts = ((np.int64(made) - h.made) & 0xFFFFFFFF) >= h.more
    if comes:
        h.from_ms = ALWAYS  # a later outcome may have an earlier clock, or fewer predictions
    if counts:
        h.more = 0
    return (comes and counts) or number + 1 == HELD


@inner
def take_held(models, kinds, held, labels, by_costs, cost_classes, costs, p, row, position, changes, count):
    """Take in all outcomes of a model that are held; return the new number of changes of verdicts."""
    h, m = held[row], models[row]
    own = np.uint32(row * p.by_costs)
    b, own_classes = by_costs[own], cost_classes[own]
    count = take_in(
        m, b, kinds, h.outcomes, h.number, labels, own_classes, costs, p, row, position, changes, count
    )
    h.number = 0
    h.from_ms = changes_from(m, p)
    h.more = changes_after(m, p)
    h.made = m.last_made
    return count
