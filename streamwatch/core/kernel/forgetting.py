"""How the totals of each mechanism forget; ADWIN's windows are in `adwin` and `buckets`. Landmark forgets nothing."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.kernel.compiled import hot, inner
from streamwatch.core.kernel.ring import before, position_of, predicted_of, truth_of
from streamwatch.core.kernel.totals import HITS, PAIRS, REPEATS, N, forget

LIMIT = 2.0**256
SHRINK = 2.0**-256
"""An exact power of two: renormalising rounds nothing, up to counts that vanish beside 1."""

FADING = np.dtype([("squares", "f8")])  # Σ w², in squared units
FADING_PARAMETERS = np.dtype([("alpha", "f8")])
SLIDING_PARAMETERS = np.dtype([("size", "i8")])


@hot
def fade(m, column, alpha, cells):
    """Before an outcome is added: S ← αS + v, by letting the unit of v grow to 1/α of what it was.

    (Gama, Sebastião, Rodrigues 2009, §3.2.1.) Costs O(1) instead of O(K); the totals in units of outcomes are
    the scaled ones over the unit. Dividing, not multiplying by a rounded 1/α, keeps the factor α exact.
    """
    unit = m.units[column] / alpha
    m.units[column] = unit
    m.fading[column].squares += unit * unit
    if unit > LIMIT:
        renormalise(m, column, cells)


@inner
def renormalise(m, column, cells):
    """Bring the unit back to about 1, and everything counted in it."""
    m.units[column] *= SHRINK
    m.fading[column].squares *= SHRINK * SHRINK
    for k in range(4):
        m.totals[k, column] *= SHRINK
    columns = len(m.units)
    for k in range(m.cells, m.cells + m.span):
        for kind in range(3):
            cells[k, kind * columns + column] *= SHRINK


@hot
def slide(m, column, size, cells, rings, row):
    """After an outcome is added: drop the one that is `size` outcomes older. The pair goes with its later outcome."""
    if m.totals[N, column] <= size:
        return
    position = position_of(m.head, size, rings.shape[1])
    entry = rings[row, position]
    truth = truth_of(entry)
    predicted = predicted_of(entry)
    m.totals[N, column] -= 1.0
    if truth == predicted:
        m.totals[HITS, column] -= 1.0
    if m.outcomes - size > 1:
        m.totals[PAIRS, column] -= 1.0
        if truth == truth_of(rings[row, before(position, rings.shape[1])]):
            m.totals[REPEATS, column] -= 1.0
    forget(m, column, truth, predicted, cells)
