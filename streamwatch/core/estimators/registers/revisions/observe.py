"""Compiled loop over outcomes: faded sums of first and last predictions by waiting time, for all models."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from streamwatch.core.estimators.registers.revisions.sums import (
    ALL_GAINED,
    ALL_LOST,
    ALL_OUTCOMES,
    ALL_REVISED,
    FIRST,
    GAINED,
    LOST,
    REVISED,
    SQUARES,
    SUMS,
    WEIGHT,
)
from streamwatch.core.jit import entry, without_refcount

_NOTHING = 1e-100
"""Weight below which a bin is reset, as arithmetic with denormal numbers is slow."""


@entry
def observe(sums, counts, edges_ms, factors, rows, first, last, revised, delay_ms):
    """Add outcomes.

    Parameters
    ----------
    sums
        float64 (models, bins, 6), changed.
    counts
        int64 (models, 4), changed.
    edges_ms
        int64 (bins + 1,): a waiting time t lies in bin k where edges_ms[k] < t ≤ edges_ms[k + 1]; 0 lies in
        the first bin, and a time beyond the last edge in the last.
    factors
        float64 (6,): factor of each column per outcome.
    rows, first, last, revised, delay_ms
        int32, bool, bool, bool, int64 (n,): row of the model, whether its first and its last prediction were
        right, whether they differ, and the waiting time.
    """
    faded = without_refcount(sums)
    counted = without_refcount(counts)
    edges = without_refcount(edges_ms)
    bins = sums.shape[1]
    for i in range(rows.shape[0]):
        row = rows[i]
        for k in range(bins):
            if faded[row, k, WEIGHT] <= 0.0:
                continue
            for c in range(SUMS):
                faded[row, k, c] *= factors[c]
            if faded[row, k, WEIGHT] < _NOTHING:
                for c in range(SUMS):
                    faded[row, k, c] = 0.0
        k = 0
        while k < bins - 1 and delay_ms[i] > edges[k + 1]:
            k += 1
        gained = last[i] and not first[i]
        lost = first[i] and not last[i]
        faded[row, k, WEIGHT] += 1.0
        faded[row, k, SQUARES] += 1.0
        counted[row, ALL_OUTCOMES] += 1
        if first[i]:
            faded[row, k, FIRST] += 1.0
        if gained:
            faded[row, k, GAINED] += 1.0
            counted[row, ALL_GAINED] += 1
        if lost:
            faded[row, k, LOST] += 1.0
            counted[row, ALL_LOST] += 1
        if revised[i]:
            faded[row, k, REVISED] += 1.0
            counted[row, ALL_REVISED] += 1
