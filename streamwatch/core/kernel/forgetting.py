"""How the totals of each mechanism forget; ADWIN's windows are in `adwin` and `buckets`."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.kernel.compiled import hot, inner
from streamwatch.core.kernel.ring import after, before, marks_of, position_of, predicted_of, truth_of
from streamwatch.core.kernel.totals import HITS, PAIRS, REPEATS, SUMS, N, columns_of, forget, forget_marks

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
def fade(m, column, alpha, cells):
    """Before an outcome is added: S ← αS + v, by letting the unit of v grow to 1/α of what it was.

    (Gama, Sebastião, Rodrigues 2009, §3.2.1.) Costs O(1) instead of O(K); the totals in units of outcomes are
    the scaled ones over the unit. Dividing, not multiplying by a rounded 1/α, keeps the factor α exact.
    """
    f = m.fading[column]
    f.unit /= alpha
    f.squares += f.unit * f.unit
    if f.unit > LIMIT:
        renormalise(m, column, cells)


@inner
def renormalise(m, column, cells):
    """Bring the unit back to about 1, and everything counted in it."""
    f = m.fading[column]
    f.unit *= SHRINK
    f.squares *= SHRINK * SHRINK
    for k in range(SUMS):
        m.totals[k, column] *= SHRINK
    columns = columns_of(m)
    for k in range(m.cells, m.cells + m.classes):
        for kind in range(3):
            cells[k, kind * columns + column] *= SHRINK


@inner
def forget_oldest(m, column, number, cells, rings, row):
    """Take the oldest outcomes of a window, still in the ring, out of its totals.

    A pair goes with its later outcome.
    """
    size = rings.shape[1]
    age = int(m.totals[N, column]) - 1
    position = position_of(m.head, age, size)
    paired = m.outcomes - age > 1
    previous = truth_of(rings[row, before(position, size)])
    hits = 0
    repeats = 0
    pairs = number if paired else number - 1
    for _ in range(number):
        truth = truth_of(rings[row, position])
        predicted = predicted_of(rings[row, position])
        forget(m, column, truth, predicted, cells)
        forget_marks(m, column, marks_of(rings[row, position]))
        hits += truth == predicted
        repeats += paired and truth == previous
        paired = True
        previous = truth
        position = after(position, size)
    m.totals[N, column] -= number
    m.totals[HITS, column] -= hits
    m.totals[REPEATS, column] -= repeats
    m.totals[PAIRS, column] -= pairs


@hot
def slide(m, column, size, cells, rings, row):
    """Drop what is older than the last `size` outcomes, once `DEFERRED` of them have gathered.

    Everything is counted in integers, so it does not matter when; `settle` drops the rest before a read.
    """
    if m.totals[N, column] >= size + DEFERRED:
        forget_oldest(m, column, DEFERRED, cells, rings, row)


@inner
def settle(m, p, cells, rings, row):
    """Make the totals of every sliding window those of its size."""
    for j in range(len(p.sliding)):
        column = len(m.fading) + j
        gathered = int(m.totals[N, column]) - p.sliding[j].size
        if gathered > 0:
            forget_oldest(m, column, gathered, cells, rings, row)
