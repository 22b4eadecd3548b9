"""Agreement totals: what every measure is a function of (Bifet et al. 2015, §5; Žliobaitė et al. 2015, §3).

A model's record holds per forgetting mechanism (a *column*) the sums n, hits, repeats and pairs; the pool of class
rows holds truth, predicted and agreed per class, all mechanisms side by side. A mechanism counts in its own
`unit`, which is 1 except under fading, so adding an outcome is the same for all of them.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.kernel.compiled import hot, inner

N, HITS, REPEATS, PAIRS = 0, 1, 2, 3
TRUTH, PREDICTED, AGREED = 0, 1, 2


@hot
def add(m, truth, predicted, hit, repeat, paired, cells):
    """Add one outcome to the totals of every mechanism."""
    columns = len(m.units)
    of_truth = m.cells + truth
    of_predicted = m.cells + predicted
    for c in range(columns):
        unit = m.units[c]
        m.totals[N, c] += unit
        m.totals[HITS, c] += unit * hit
        m.totals[REPEATS, c] += unit * repeat
        m.totals[PAIRS, c] += unit * paired
        cells[of_truth, c] += unit
        cells[of_predicted, columns + c] += unit
    if hit:
        for c in range(columns):
            cells[of_truth, 2 * columns + c] += m.units[c]


@hot
def forget(m, column, truth, predicted, cells):
    """Take one outcome out of the per-class totals of one window."""
    columns = len(m.units)
    cells[m.cells + truth, column] -= 1.0
    cells[m.cells + predicted, columns + column] -= 1.0
    if truth == predicted:
        cells[m.cells + truth, 2 * columns + column] -= 1.0


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
    for kind in range(3):
        for k in range(m.classes):
            counts[kind, t, k] = cells[m.cells + k, kind * columns + column] / unit
