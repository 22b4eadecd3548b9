"""Agreement totals in the kernel (Bifet et al. 2015, §5; Žliobaitė et al. 2015, §3).

A model's record holds, per forgetting mechanism (a *column*), the sums n, hits, repeats and pairs, followed
by the sums of the flags of outcomes (see `flags`). The pool of class rows holds agreed, missed and false
counts per class, all mechanisms side by side. Each mechanism counts in its own unit, which is 1 except under
fading, so that adding an outcome is the same operation for all.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.estimators.memory.flags import FLAGS, SHADOW_MARKS, bit
from streamwatch.core.jit import hot, inner

N, HITS, REPEATS, PAIRS, MARKED = 0, 1, 2, 3, 4
SUMS = MARKED + FLAGS
"""Number of rows of a model's totals; flag k has row MARKED + k."""
AGREED, MISSED, FALSE = 0, 1, 2
"""Counts per class k: 1[y = ŷ = k], 1[y = k ≠ ŷ], 1[ŷ = k ≠ y].

Truth is agreed + missed, predicted is agreed + false. Stored this way, a hit changes one number and a miss
two.
"""


@hot
def unit_of(m, column):
    """Amount that one outcome counts under a mechanism."""
    return m.fading[column].unit if column < len(m.fading) else 1.0


@hot
def columns_of(m):
    """Number of mechanisms."""
    return m.totals.shape[1]


@hot
def add(m, true_class, predicted_class, flags, hit, repeat, paired, class_counts):
    """Add one outcome to the totals of every mechanism."""
    columns = columns_of(m)
    for c in range(columns):
        unit = unit_of(m, c)
        m.totals[N, c] += unit
        m.totals[HITS, c] += unit * hit
        m.totals[REPEATS, c] += unit * repeat
        m.totals[PAIRS, c] += unit * paired
    for k in range(FLAGS):
        for c in range(columns):
            m.totals[MARKED + k, c] += unit_of(m, c) * bit(flags, k)
    if hit:
        for c in range(columns):
            class_counts[m.class_counts + true_class, AGREED * columns + c] += unit_of(m, c)
    else:
        for c in range(columns):
            class_counts[m.class_counts + true_class, MISSED * columns + c] += unit_of(m, c)
            class_counts[m.class_counts + predicted_class, FALSE * columns + c] += unit_of(m, c)


@hot
def forget_flags(m, column, flags):
    """Subtract the flags of one outcome from the totals of one window."""
    for k in range(FLAGS):
        m.totals[MARKED + k, column] -= bit(flags, k)


@hot
def forget(m, column, true_class, predicted_class, class_counts):
    """Subtract one outcome from the per-class totals of one window."""
    columns = columns_of(m)
    if true_class == predicted_class:
        class_counts[m.class_counts + true_class, AGREED * columns + column] -= 1.0
    else:
        class_counts[m.class_counts + true_class, MISSED * columns + column] -= 1.0
        class_counts[m.class_counts + predicted_class, FALSE * columns + column] -= 1.0


@inner
def gather(m, column, class_counts, sums, counts, t):
    """Write one mechanism's totals, in units of outcomes, for model or step t.

    Writes `sums[:, t]` (rows of the totals, then n_eff) and `counts[:, t, :]` (truth, predicted, agreed). The
    sums of shadow classifiers are 0 once these have stopped.
    n_eff = (Σw)²/Σw² (Gama, Sebastião, Rodrigues 2009, §3.2.1); n for mechanisms without weights.
    """
    columns = columns_of(m)
    unit = unit_of(m, column)
    for k in range(SUMS):
        sums[k, t] = m.totals[k, column] / unit
    for j in range(len(m.shadow)):
        if m.shadow[j].stopped:
            for k in range(MARKED + SHADOW_MARKS, SUMS):
                sums[k, t] = 0.0
    n = m.totals[N, column]
    if column < len(m.fading) and n > 0.0:
        sums[SUMS, t] = n * n / m.fading[column].squares
    else:
        sums[SUMS, t] = n
    for k in range(m.classes):
        cell = m.class_counts + k
        agreed = class_counts[cell, AGREED * columns + column]
        counts[0, t, k] = (agreed + class_counts[cell, MISSED * columns + column]) / unit
        counts[1, t, k] = (agreed + class_counts[cell, FALSE * columns + column]) / unit
        counts[2, t, k] = agreed / unit
