"""Agreement totals: what every measure is a function of (Bifet et al. 2015, §5; Žliobaitė et al. 2015, §3).

A model's record holds per forgetting mechanism (a *column*) the sums n, hits, repeats and pairs; the pool of class
rows holds truth, predicted and agreed per class, all mechanisms side by side. A mechanism counts in its own
`unit`, which is 1 except under fading, so adding an outcome is the same for all of them.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.kernel.compiled import hot, inner

N, HITS, REPEATS, PAIRS = 0, 1, 2, 3
AGREED, MISSED, FALSE = 0, 1, 2
"""Per class k: 1[y = ŷ = k], 1[y = k ≠ ŷ], 1[ŷ = k ≠ y]. Truth is agreed + missed, predicted agreed + false; kept
apart, a hit touches one place and a miss two."""


@hot
def add(m, truth, predicted, hit, repeat, paired, cells):
    """Add one outcome to the totals of every mechanism."""
    columns = len(m.units)
    for c in range(columns):
        unit = m.units[c]
        m.totals[N, c] += unit
        m.totals[HITS, c] += unit * hit
        m.totals[REPEATS, c] += unit * repeat
        m.totals[PAIRS, c] += unit * paired
    if hit:
        for c in range(columns):
            cells[m.cells + truth, AGREED * columns + c] += m.units[c]
    else:
        for c in range(columns):
            cells[m.cells + truth, MISSED * columns + c] += m.units[c]
            cells[m.cells + predicted, FALSE * columns + c] += m.units[c]


@hot
def forget(m, column, truth, predicted, cells):
    """Take one outcome out of the per-class totals of one window."""
    columns = len(m.units)
    if truth == predicted:
        cells[m.cells + truth, AGREED * columns + column] -= 1.0
    else:
        cells[m.cells + truth, MISSED * columns + column] -= 1.0
        cells[m.cells + predicted, FALSE * columns + column] -= 1.0


@inner
def gather(m, column, cells, sums, counts, t):
    """Write one mechanism's totals, in units of outcomes, to `sums[:, t]` (n, hits, repeats, pairs, n_eff)
    and `counts[:, t, :]` (truth, predicted, agreed).

    n_eff = (Σw)²/Σw² (Gama, Sebastião, Rodrigues 2009, §3.2.1); n where nothing is weighted.
    """
    columns = len(m.units)
    unit = m.units[column]
    for k in range(4):
        sums[k, t] = m.totals[k, column] / unit
    n = m.totals[N, column]
    if column < len(m.fading) and n > 0.0:
        sums[4, t] = n * n / m.fading[column].squares
    else:
        sums[4, t] = n
    for k in range(m.classes):
        cell = m.cells + k
        agreed = cells[cell, AGREED * columns + column]
        counts[0, t, k] = (agreed + cells[cell, MISSED * columns + column]) / unit
        counts[1, t, k] = (agreed + cells[cell, FALSE * columns + column]) / unit
        counts[2, t, k] = agreed / unit
