"""Prefetching: with many models, records would otherwise be waited for, line by line.

The first line of a model's held outcomes is prefetched 16 outcomes ahead, the slot of the outcome among them
8 ahead; if that is the last slot, so is what every outcome needs of the model's record. Before outcomes are
taken in, the lines that they count in are prefetched.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

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
    OUTCOME,
    SIDES,
    STRETCH,
)
from streamwatch.core.estimators.registers.cohorts.trackers import stretch_of
from streamwatch.core.jit import hot, inner, prefetch

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
    """Prefetch what the outcomes after position i will need."""
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
    """Prefetch what every outcome needs of a model's record, and all outcomes that are held."""
    for offset in range(0, STRETCHES_START, LINE):
        prefetch(models, row * MODEL_BYTES + offset)
    for offset in range(LINE, HELD_BYTES, LINE):
        prefetch(held, row * HELD_BYTES + offset)


@inner
def prefetch_counts(models, kinds, held, p, row):
    """Prefetch what the outcomes of a model that are held will be counted in."""
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
