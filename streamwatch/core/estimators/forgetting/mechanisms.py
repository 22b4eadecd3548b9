"""How the totals of each mechanism forget; ADWIN's windows are in `adwin` and `buckets`."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.memory.ring import (
    after,
    before,
    flags_of,
    position_of,
    predicted_class_of,
    true_class_of,
)
from streamwatch.core.estimators.memory.totals import (
    HITS,
    PAIRS,
    REPEATS,
    SUMS,
    N,
    columns_of,
    forget,
    forget_flags,
)
from streamwatch.core.jit import hot, inner

LIMIT = 2.0**256
SHRINK = 2.0**-256
"""An exact power of two: renormalising rounds nothing, up to counts that vanish beside 1."""

DEFERRED = 32
"""Outcomes a sliding window drops at once: they stand together in the ring, which spares cache misses."""

FADING = np.dtype(
    [
        ("unit", "f8"),  # what the newest outcome counted
        ("squares", "f8"),  # Σ w², in squared units
    ]
)
FADING_PARAMETERS = np.dtype([("alpha", "f8")])
SLIDING_PARAMETERS = np.dtype([("size", "i8")])


@hot
def fade(m, column, alpha, class_counts):
    """Before an outcome is added: S ← αS + v, by letting the unit of v grow to 1/α of what it was.

    (Gama, Sebastião, Rodrigues 2009, §3.2.1.) Costs O(1) instead of O(K); the totals in units of outcomes are
    the scaled ones over the unit. Dividing, not multiplying by a rounded 1/α, keeps the factor α exact.
    """
    f = m.fading[column]
    f.unit /= alpha
    f.squares += f.unit * f.unit
    if f.unit > LIMIT:
        renormalise(m, column, class_counts)


@inner
def renormalise(m, column, class_counts):
    """Bring the unit back to about 1, and everything counted in it."""
    f = m.fading[column]
    f.unit *= SHRINK
    f.squares *= SHRINK * SHRINK
    for k in range(SUMS):
        m.totals[k, column] *= SHRINK
    columns = columns_of(m)
    for k in range(m.class_counts, m.class_counts + m.classes):
        for kind in range(3):
            class_counts[k, kind * columns + column] *= SHRINK


@inner
def forget_oldest(m, column, number, class_counts, rings, row):
    """Take the oldest outcomes of a window, still in the ring, out of its totals.

    A pair goes with its later outcome.
    """
    size = rings.shape[1]
    age = int(m.totals[N, column]) - 1
    position = position_of(m.head, age, size)
    paired = m.outcomes - age > 1
    previous = true_class_of(rings[row, before(position, size)])
    hits = 0
    repeats = 0
    pairs = number if paired else number - 1
    for _ in range(number):
        true_class = true_class_of(rings[row, position])
        predicted_class = predicted_class_of(rings[row, position])
        forget(m, column, true_class, predicted_class, class_counts)
        forget_flags(m, column, flags_of(rings[row, position]))
        hits += true_class == predicted_class
        repeats += paired and true_class == previous
        paired = True
        previous = true_class
        position = after(position, size)
    m.totals[N, column] -= number
    m.totals[HITS, column] -= hits
    m.totals[REPEATS, column] -= repeats
    m.totals[PAIRS, column] -= pairs


@hot
def slide(m, column, size, class_counts, rings, row):
    """Drop what is older than the last `size` outcomes, once `DEFERRED` of them have gathered.

    Everything is counted in integers, so it does not matter when; `settle` drops the rest before a read.
    """
    if m.totals[N, column] >= size + DEFERRED:
        forget_oldest(m, column, DEFERRED, class_counts, rings, row)


@inner
def settle(m, p, class_counts, rings, row):
    """Make the totals of every sliding window those of its size."""
    for j in range(len(p.sliding)):
        column = len(m.fading) + j
        gathered = int(m.totals[N, column]) - p.sliding[j].size
        if gathered > 0:
            forget_oldest(m, column, gathered, class_counts, rings, row)
