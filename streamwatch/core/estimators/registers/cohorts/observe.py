"""Loops over outcomes of all models, which are held until there are a few dozen of a model, then taken in."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.registers.cohorts.counting import take_in
from streamwatch.core.estimators.registers.cohorts.life import changes_after, changes_from
from streamwatch.core.estimators.registers.cohorts.settled import slot_of
from streamwatch.core.estimators.registers.cohorts.state import (
    CLASS,
    CLASSES,
    HELD,
    HELD_OUTCOMES,
    HITS,
    LIVE,
    MISSES,
    MODEL,
    MOST_CHANGES,
    OUTCOME,
    SIDES,
    STRETCH,
)
from streamwatch.core.estimators.registers.cohorts.trackers import stretch_of
from streamwatch.core.jit import entry, hot, inner, prefetch

# Outcomes that are held until there are a few dozen of a model, or until one may change a verdict.
#
# With many models, a model's records are not in the cache when an outcome comes, and are slow to load. So
# outcomes are held first, each in half a cache line, and taken in together. Results do not depend on when
# that happens: all held outcomes are taken in before any read, and an outcome that may change a verdict (see
# `life.changes_from`) is taken in at once, after all held before it.


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


# Prefetching: with many models, records would otherwise be waited for, line by line.
#
# The first line of a model's held outcomes is prefetched 16 outcomes ahead, the slot of the outcome among
# them 8 ahead; if that is the last slot, so is what every outcome needs of the model's record. Before
# outcomes are taken in, the lines that they count in are prefetched.


LINE = 64
NEAR_BYTES = 1 << 21
"""Size of all records of models up to which they stay in a core's cache, and nothing is prefetched."""
AHEAD = 16
NEXT = 8


_AT = {kind: kind.fields or {} for kind in (MODEL, CLASS, HELD_OUTCOMES)}
MODEL_BYTES = MODEL.itemsize
CLASS_BYTES = CLASS.itemsize
HELD_BYTES = HELD_OUTCOMES.itemsize
OUTCOME_BYTES = OUTCOME.itemsize
STRETCH_BYTES = STRETCH.itemsize
OUTCOMES_START = _AT[HELD_OUTCOMES]["outcomes"][1]
STRETCHES_START = _AT[MODEL]["stretches"][1]
POOLED_START = _AT[MODEL]["pooled"][1]
COUNTS_START = _AT[CLASS]["counts"][1]
SUMS_START = _AT[CLASS]["sums"][1]
SUMS_BYTES = CLASS["sums"].itemsize
SIDE_BYTES = CLASS["counts"].itemsize // (LIVE * SIDES)


@hot
def prefetch_ahead(models, held, rows, i):
    """Prefetch the records that the outcomes after position i will need."""
    n = rows.shape[0]
    if i + AHEAD < n:
        prefetch(held, rows[i + AHEAD] * HELD_BYTES)
    if i + NEXT < n:
        row = rows[i + NEXT]
        number = held[row].number
        prefetch(held, row * HELD_BYTES + OUTCOMES_START + number * OUTCOME_BYTES)
        if number + 1 == HELD:
            prefetch_model(models, held, row)


@inner
def prefetch_model(models, held, row):
    """Prefetch the part of a model's record that every outcome needs, and all held outcomes."""
    for offset in range(0, STRETCHES_START, LINE):
        prefetch(models, row * MODEL_BYTES + offset)
    for offset in range(LINE, HELD_BYTES, LINE):
        prefetch(held, row * HELD_BYTES + offset)


@inner
def prefetch_counts(models, kinds, held, p, row):
    """Prefetch the counts that the held outcomes of a model will change."""
    h, m = held[row], models[row]
    if h.outcomes[h.number - 1].at_ms >= m.settles_ms:
        prefetch_sums(models, kinds, row)
    for i in range(h.number):
        x = h.outcomes[i]
        predicted = x.at_ms - x.waited_ms
        own = min(x.true_class, CLASSES - 1)
        side = HITS if x.true_class == x.predicted_class else MISSES
        bucket = max(slot_of(m, p, predicted), 0)
        stretch = max(stretch_of(m.bounds_ms, predicted), 0)
        start = (own * kinds.shape[1] + row) * CLASS_BYTES
        prefetch(kinds, start + COUNTS_START + (2 * bucket + side) * SIDE_BYTES)
        prefetch(models, row * MODEL_BYTES + STRETCHES_START + stretch * STRETCH_BYTES)


@inner
def prefetch_sums(models, kinds, row):
    """Prefetch the sums that a bucket is added to when it settles."""
    for offset in range(0, SUMS_BYTES + LINE, LINE):
        prefetch(models, row * MODEL_BYTES + POOLED_START + offset)
        for own in range(min(models[row].classes, CLASSES)):
            prefetch(kinds, (own * kinds.shape[1] + row) * CLASS_BYTES + SUMS_START + offset)


# Compiled loop over outcomes of all models, or over models whose held outcomes are to be taken in.


@entry
def observe(
    models,
    kinds,
    held,
    labels,
    by_costs,
    cost_classes,
    costs,
    parameters,
    rows,
    true_class,
    predicted_class,
    label_at_prediction,
    assumed,
    made,
    resolved_ms,
    waited_ms,
    start,
    only_held,
    changes,
):
    """Observe outcomes from `start` on, until there may be no room for more changes of verdicts.

    Parameters
    ----------
    models, kinds, held, labels, by_costs, cost_classes, costs
        Fields of a `State` (`kinds` are its `classes`); all but the last two are changed.
    parameters
        `PARAMETERS` (1,).
    rows, true_class, predicted_class, label_at_prediction, assumed, made, resolved_ms, waited_ms
        Columns of a `Batch`, (n,): int32 (the first four), bool, uint32, int64 (the last two).
    start
        Position of the first outcome.
    only_held
        Whether there are no outcomes, and those held of the models in `rows` are taken in, which changes no
        verdict. The other columns may be empty. An entry of its own would compile all of this again.
    changes
        `CHANGE` records, written: at least `MOST_CHANGES`.

    Returns
    -------
    position, count
        Position of the first outcome that was not observed, and number of changes written.
    """
    p = parameters[0]
    count = 0
    n = rows.shape[0]
    far = models.shape[0] * models.itemsize > NEAR_BYTES
    for i in range(np.uint64(start), np.uint64(n)):  # unsigned indices need no check for negative ones
        if count + MOST_CHANGES > changes.shape[0]:
            return np.int64(i), count
        if far:
            prefetch_ahead(models, held, rows, np.int64(i))
        row = np.uint32(rows[i])
        if only_held:
            is_due = held[row].number > 0
        else:
            waited = max(waited_ms[i], 0)
            is_due = hold(
                held[row],
                resolved_ms[i] - waited if p.by_prediction == 1 else resolved_ms[i],
                0 if p.by_prediction == 1 else waited,
                made[i],
                true_class[i],
                predicted_class[i],
                label_at_prediction[i],
                assumed[i],
            )
        if is_due:
            if far:
                prefetch_counts(models, kinds, held, p, row)
            count = take_held(
                models,
                kinds,
                held,
                labels,
                by_costs,
                cost_classes,
                costs,
                p,
                row,
                np.int64(i),
                changes,
                count,
            )
    return n, count
