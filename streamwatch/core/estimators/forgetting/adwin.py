"""ADWIN (Bifet, Gavaldà 2007; Bifet et al. 2015, §6, as MOA and river implement it), over a 0/1 loss.

A window holds outcomes in buckets of 2^row, at most 5 per row: with the sixth, the two oldest are merged into
the next row. At every `clock`-th outcome, if the window holds more than 10, every split between two buckets
is tested, and the oldest bucket is dropped as long as the means differ at some split (`cut_threshold`).

For a 0/1 loss all counts are integers. Outcomes enter the buckets at the next check; until then they are only
in the model's ring. Buckets of rows below `FIRST_BLOCK_ROW` store their number of losses only, since their
outcomes are still in the ring. Larger buckets own a block of per-class counts. So dropping a bucket of either
kind can subtract the whole vector of agreement totals.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from math import log, sqrt

import numpy as np

from streamwatch.core.jit import hot, inner

PER_ROW = 5
ROWS = 31
"""Rows 0 … 30, so that counts fit 32 bits; beyond some 10^10 outcomes the oldest bucket is dropped."""
FIRST_BLOCK_ROW = 9
SMALL_OUTCOMES = PER_ROW * ((1 << FIRST_BLOCK_ROW) - 1) + 1
"""Most outcomes in rows without blocks, including the one just entering."""
GRACE = 10
"""Number of outcomes up to which a window is not checked."""

WINDOW = np.dtype(
    [
        ("large", "i8"),  # outcomes in buckets that own blocks
        ("last_drift", "i8"),  # number of the outcome at which the last new drift was declared
        ("kept", "i8"),  # width after the last cut
        ("statistic", "f8"),  # |Δμ| and ε of the split for which the last check cut; ε is 0 if it did not
        ("threshold", "f8"),
        ("before", "f8"),  # mean loss of the outcomes dropped, and of those kept, at the last cut
        ("after", "f8"),
        ("rows", "i8"),  # number of rows in use
        ("buckets", "i4", (ROWS + 1,)),  # number of buckets per row
        ("losses", "i4", (ROWS, PER_ROW + 1)),  # losses per bucket, oldest first
        ("blocks", "i4", (ROWS - FIRST_BLOCK_ROW, PER_ROW + 1)),  # slot of the block of each large bucket
    ]
)
SMALL_WINDOW_BYTES = 512
"""Bytes at the start of a window's record that a check of up to a few thousand outcomes accesses."""
PARAMETERS = np.dtype([("delta", "f8"), ("min_subwindow", "i8"), ("clock", "i8")])


@hot
def confidence(width, delta):
    """Logarithmic term d = ln(2 ln W / δ)."""
    return log(2.0 * log(width) / delta)


@hot
def cut_threshold(n0, n1, variance, d):
    """ε = √(2 m σ² d) + ⅔ d m with m = 1/(n0−4) + 1/(n1−4): the means of two sub-windows differ beyond it.

    σ² is the variance p(1−p) of the whole window. The 4 is the original's min_subwindow − 1; as in MOA, it
    stays whatever `min_subwindow` is.
    """
    m = 1.0 / (n0 - 4.0) + 1.0 / (n1 - 4.0)
    return sqrt(2.0 * m * variance * d) + 2.0 / 3.0 * d * m


@inner
def bucketed(w):
    """Count outcomes and losses in the buckets, that is, in the window as of its last check."""
    n = 0
    losses = 0
    for r in range(w.rows):
        for k in range(w.buckets[r]):
            n += 1 << r
            losses += w.losses[r, k]
    return n, losses


@inner
def must_cut(w, n, losses, delta, min_subwindow):
    """Tell whether the means on the two sides of some split differ by more than `cut_threshold`.

    A cheaper necessary condition, without divisions or roots, is tested first: since m ≥ 1/n0 + 1/n1 = n/(n0
    n1), a cut implies (n·losses0 − n0·losses)² > 2 σ² d n · n0 n1.
    """
    p = losses / n
    variance = p * (1.0 - p)
    d = confidence(float(n), delta)
    bound = 2.0 * variance * d * n * (1.0 - 1e-9)
    n0 = 0.0
    losses0 = 0.0
    for r in range(w.rows - 1, -1, -1):
        for k in range(w.buckets[r]):
            n0 += float(1 << r)
            losses0 += float(w.losses[r, k])
            n1 = n - n0
            difference = n * losses0 - n0 * losses
            if difference * difference > bound * n0 * n1 and n0 >= min_subwindow and n1 >= min_subwindow:
                gap = abs(losses0 / n0 - (losses - losses0) / n1)
                if gap > cut_threshold(n0, n1, variance, d):
                    return True
    return False


@inner
def nearest_split(w, n, losses, delta, min_subwindow):
    """Compute (|Δμ|, ε) of the split with the largest |Δμ|/ε; NaN if no split has two long enough sides."""
    statistic = np.nan
    threshold = np.nan
    if n <= GRACE:
        return statistic, threshold
    p = losses / n
    variance = p * (1.0 - p)
    d = confidence(float(n), delta)
    best = -1.0
    n0 = 0.0
    losses0 = 0.0
    for r in range(w.rows - 1, -1, -1):
        for k in range(w.buckets[r]):
            n0 += float(1 << r)
            losses0 += float(w.losses[r, k])
            n1 = n - n0
            if n0 >= min_subwindow and n1 >= min_subwindow:
                gap = abs(losses0 / n0 - (losses - losses0) / n1)
                epsilon = cut_threshold(n0, n1, variance, d)
                if gap > best * epsilon:
                    best = gap / epsilon
                    statistic = gap
                    threshold = epsilon
    return statistic, threshold


@inner
def shown_split(w, delta, min_subwindow):
    """`nearest_split` as of the last check, before its cut if it cut; constant until the next check."""
    if w.threshold > 0.0:
        return w.statistic, w.threshold
    n, losses = bucketed(w)
    return nearest_split(w, n, losses, delta, min_subwindow)


@hot
def declared_now(m, w):
    """Tell whether the window declared a new drift at the model's current outcome."""
    return w.last_drift == m.outcomes
