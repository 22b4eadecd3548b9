"""Forgetting of the totals by fading and by sliding windows; ADWIN is in `adwin`."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.memory import (
    FLAGS,
    HITS,
    MARKED,
    PAIRS,
    REPEATS,
    SUMS,
    N,
    add_unadded,
    after,
    before,
    columns_of,
    flags_of,
    forget,
    high_fields,
    low_fields,
    number_unadded,
    position_of,
    predicted_class_of,
    sum_of,
    true_class_of,
)
from streamwatch.core.jit import hot, inner

LIMIT = 2.0**256
SHRINK = 2.0**-256
"""Exact power of two, so that renormalising does not round, except for counts negligible beside 1."""

DEFERRED = 32
"""Outcomes that a sliding window drops at once: they are adjacent in the ring, which avoids cache misses."""

FADING = np.dtype(
    [
        ("unit", "f8"),  # amount that the newest outcome counted
        ("squares", "f8"),  # Σ w², in squares of the unit
    ]
)
FADING_PARAMETERS = np.dtype([("alpha", "f8")])
SLIDING_PARAMETERS = np.dtype([("size", "i8")])


@hot
def fade(m, column, alpha, class_counts):
    """Fade the totals before an outcome is added, S ← αS + v, by growing the unit of v to 1/α of its size.

    Gama, Sebastião, Rodrigues 2009, §3.2.1. Costs O(1) instead of O(K); the totals in units of outcomes are
    the stored ones divided by the unit. Dividing the unit by α, instead of multiplying it by a rounded 1/α,
    keeps the factor exact.
    """
    f = m.fading[column]
    f.unit /= alpha
    f.squares += f.unit * f.unit
    if f.unit > LIMIT:
        renormalise(m, column, class_counts)


@inner
def renormalise(m, column, class_counts):
    """Scale the unit back to about 1, and with it everything counted in this unit."""
    f = m.fading[column]
    f.unit *= SHRINK
    f.squares *= SHRINK * SHRINK
    for k in range(SUMS):
        m.totals[column, k] *= SHRINK
    columns = columns_of(m)
    for k in range(m.class_counts, m.class_counts + m.classes):
        for kind in range(3):
            class_counts[k, kind * columns + column] *= SHRINK


@inner
def forget_oldest(m, column, number, class_counts, rings, row):
    """Subtract the oldest `number` outcomes of a window, which are still in the ring, from its totals.

    A pair is dropped with its later outcome.
    """
    size = rings.shape[1]
    age = int(m.totals[column, N]) - 1
    position = position_of(m.head, age, size)
    paired = m.outcomes - age > 1
    previous = true_class_of(rings[row, before(position, size)])
    hits = 0
    repeats = 0
    pairs = number if paired else number - 1
    low, high = 0, 0
    for _ in range(number):
        true_class = true_class_of(rings[row, position])
        predicted_class = predicted_class_of(rings[row, position])
        forget(m, column, true_class, predicted_class, class_counts)
        flags = flags_of(rings[row, position])
        low += low_fields(flags)
        high += high_fields(flags)
        hits += true_class == predicted_class
        repeats += paired and true_class == previous
        paired = True
        previous = true_class
        position = after(position, size)
    m.totals[column, N] -= number
    m.totals[column, HITS] -= hits
    m.totals[column, REPEATS] -= repeats
    m.totals[column, PAIRS] -= pairs
    for k in range(FLAGS):
        m.totals[column, MARKED + k] -= sum_of(low, high, k)


@hot
def slide(m, column, size, class_counts, rings, row):
    """Drop outcomes older than the last `size` once `DEFERRED` of them have accumulated.

    All counts are integers, so the time of dropping does not affect results; `settle` drops the rest before
    totals are read.
    """
    if int(m.totals[column, N]) + number_unadded(m) >= size + DEFERRED:
        add_unadded(m)
        forget_oldest(m, column, DEFERRED, class_counts, rings, row)


@inner
def settle(m, p, class_counts, rings, row):
    """Add what is not in the totals yet, and drop what the sliding windows still hold beyond their size."""
    add_unadded(m)
    for j in range(len(p.sliding)):
        column = len(m.fading) + j
        gathered = int(m.totals[column, N]) - p.sliding[j].size
        if gathered > 0:
            forget_oldest(m, column, gathered, class_counts, rings, row)
