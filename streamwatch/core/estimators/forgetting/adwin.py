"""ADWIN (Bifet, Gavaldà 2007; Bifet et al. 2015, §6, as MOA and river implement it), over a 0/1 loss.

A window of outcomes in buckets of 2^row, at most 5 per row: the sixth merges the two oldest into the next
row. At every `clock`-th outcome, if the window holds more than 10, every split between two buckets is
tested and the oldest bucket is dropped as long as some split shows two different means (`cut_threshold`).

For a 0/1 loss everything is integers. Outcomes enter the buckets at the check that first needs them: until
then they wait in the model's ring. Buckets of rows below `FIRST_BLOCK_ROW` hold their number of losses
only, since their outcomes are in the ring; larger ones own a block of per-class counts, so dropping either
takes the whole vector of agreement totals out of the window.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from math import log, sqrt

import numpy as np

from streamwatch.core.jit import hot, inner

PER_ROW = 5
ROWS = 31
"""Rows 0 … 30: counts fit 32 bits; a window of 10^10 outcomes drops its oldest bucket instead of merging."""
FIRST_BLOCK_ROW = 9
SMALL_OUTCOMES = PER_ROW * ((1 << FIRST_BLOCK_ROW) - 1) + 1
"""Most outcomes that wait in rows without blocks, the one just entering included."""
GRACE = 10
"""No check while the window holds this many outcomes or fewer."""

WINDOW = np.dtype(
    [
        ("large", "i8"),  # outcomes in buckets that own blocks
        ("last_drift", "i8"),  # outcome at which the last new drift was declared
        ("kept", "i8"),  # width after the last cut
        ("statistic", "f8"),  # |Δμ| and ε of the split that caused the last check's cut; ε is 0 without one
        ("threshold", "f8"),
        ("before", "f8"),  # mean loss dropped and kept by the last cut
        ("after", "f8"),
        ("rows", "i8"),  # rows in use
        ("buckets", "i4", (ROWS + 1,)),  # per row
        ("losses", "i4", (ROWS, PER_ROW + 1)),  # per bucket, oldest first
        ("blocks", "i4", (ROWS - FIRST_BLOCK_ROW, PER_ROW + 1)),  # slot of each large bucket's counts
    ]
)
SMALL_WINDOW_BYTES = 512
"""Of a window's record, what a check of a few thousand outcomes touches."""
PARAMETERS = np.dtype([("delta", "f8"), ("min_subwindow", "i8"), ("clock", "i8")])


@hot
def confidence(width, delta):
    """Logarithmic term d = ln(2 ln W / δ)."""
    return log(2.0 * log(width) / delta)


@hot
def cut_threshold(n0, n1, variance, d):
    """ε = √(2 m σ² d) + ⅔ d m with m = 1/(n0−4) + 1/(n1−4): the means of two sub-windows differ beyond it.

    σ² is the variance p(1−p) of the whole window. (The 4 is min_subwindow − 1 of the original, kept whatever
    `min_subwindow` is, as MOA does.)
    """
    m = 1.0 / (n0 - 4.0) + 1.0 / (n1 - 4.0)
    return sqrt(2.0 * m * variance * d) + 2.0 / 3.0 * d * m


@inner
def bucketed(w):
    """Outcomes and losses in buckets: the window as its last check left it."""
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

    A necessary condition without divisions or roots goes first: since m ≥ 1/n0 + 1/n1 = n/(n0 n1),
    a cut implies (n·losses0 − n0·losses)² > 2 σ² d n · n0 n1.
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
    """(|Δμ|, ε) of the split with the largest |Δμ|/ε; NaN where no split has two long enough sides."""
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
    """`nearest_split` of the last check: before its cut, if it cut; held until the next check."""
    if w.threshold > 0.0:
        return w.statistic, w.threshold
    n, losses = bucketed(w)
    return nearest_split(w, n, losses, delta, min_subwindow)


@hot
def declared_now(m, w):
    """Tell whether the window declared a new drift at the model's current outcome."""
    return w.last_drift == m.outcomes
