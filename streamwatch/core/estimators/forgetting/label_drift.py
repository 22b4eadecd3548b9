"""Drifts of the labels: a drift signal that is independent of all classifiers.

Four 0/1 signals of the labels are monitored, each by its own ADWIN (Bifet, Gavaldà 2007; see `adwin`):

    1[y_t = y_{t−1}]         dependence of successive labels
    1[y_t = c], for c        share of each of the first three classes that occurred as a label; with two or
                             three classes these are all shares

A cut of any of them is a new drift iff its newest discarded outcome is later than the outcome at which the
last new drift of *any* was declared, so a change seen by several counts once. Changes in either direction
count. The confidence δ is split evenly between the four. Changes among the shares of later classes are not
detected.

These windows carry no agreement totals; their state is their buckets. Values are collected as bits until the
next check, every 32 outcomes.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.forgetting.adwin import GRACE, PER_ROW, ROWS, must_cut
from streamwatch.core.jit import hot, inner

CLASSES = 3
SIGNALS = 1 + CLASSES
CLOCK = 32
MIN_SUBWINDOW = 5

SIGNAL = np.dtype(
    [
        ("waiting", "i8"),  # outcomes since the last check
        ("bits", "i8"),  # values since the last check, the newest in the lowest bit
        ("n", "i8"),  # values in buckets
        ("ones", "i8"),
        ("rows", "i8"),  # number of rows in use
        ("buckets", "i4", (ROWS + 1,)),  # number of buckets per row
        ("losses", "i4", (ROWS, PER_ROW + 1)),  # ones per bucket, oldest first (named as in `adwin.WINDOW`)
    ]
)
LABEL_DRIFT = np.dtype(
    [
        ("last_drift", "i8"),  # number of the outcome at which the last new drift was declared
        ("followed", "i8", (CLASSES,)),  # classes whose shares are monitored, plus 1; 0 if not assigned yet
        ("signals", SIGNAL, (SIGNALS,)),
    ]
)
LABEL_DRIFT_PARAMETERS = np.dtype([("delta", "f8")])


@inner
def remove_oldest(s, r, number):
    """Remove the `number` oldest buckets from row r."""
    for k in range(PER_ROW + 1 - number):
        s.losses[r, k] = s.losses[r, k + number]
    s.buckets[r] -= number


@inner
def drop_oldest(s):
    """Drop the oldest bucket."""
    r = s.rows - 1
    s.n -= 1 << r
    s.ones -= s.losses[r, 0]
    remove_oldest(s, r, 1)
    while s.rows > 0 and s.buckets[s.rows - 1] == 0:
        s.rows -= 1


@inner
def enter(s, value):
    """Put a value into a bucket of its own; with the sixth bucket of a row, its two oldest are merged."""
    s.losses[0, s.buckets[0]] = value
    s.buckets[0] += 1
    s.n += 1
    s.ones += value
    s.rows = max(s.rows, 1)
    r = 0
    while s.buckets[r] > PER_ROW:
        if r == ROWS - 1:
            drop_oldest(s)
            return
        s.losses[r + 1, s.buckets[r + 1]] = s.losses[r, 0] + s.losses[r, 1]
        s.buckets[r + 1] += 1
        s.rows = max(s.rows, r + 2)
        remove_oldest(s, r, 2)
        r += 1


@inner
def check(s, delta):
    """Enter the waiting values, drop the oldest bucket while some split must be cut.

    Return whether any was.
    """
    for k in range(s.waiting - 1, -1, -1):
        enter(s, (s.bits >> k) & 1)
    s.waiting = 0
    s.bits = 0
    cut = False
    while s.n > (1 if cut else GRACE) and must_cut(s, float(s.n), float(s.ones), delta, MIN_SUBWINDOW):
        drop_oldest(s)
        cut = True
    return cut


@hot
def take(d, k, value, delta, outcome):
    """Add a value to signal k, and return whether a new drift was declared."""
    s = d.signals[k]
    s.bits = (s.bits << 1) | value
    s.waiting += 1
    if s.waiting < CLOCK or not check(s, delta) or outcome - s.n <= d.last_drift:
        return False
    d.last_drift = outcome
    return True


@inner
def watch_labels(d, delta, outcome, true_class, repeat):
    """Add the label of a model's outcome to the signals, and return whether a new drift was declared.

    The first outcome has no previous label to repeat. A class is monitored from its first label on.
    """
    share = delta / SIGNALS
    declared = False
    if outcome > 1:
        declared |= take(d, 0, int(repeat), share, outcome)
    for k in range(CLASSES):
        if d.followed[k] == 0:
            d.followed[k] = true_class + 1
        if d.followed[k] == true_class + 1:
            declared |= take(d, 1 + k, 1, share, outcome)
            for later in range(k + 1, CLASSES):
                if d.followed[later] > 0:
                    declared |= take(d, 1 + later, 0, share, outcome)
            break
        declared |= take(d, 1 + k, 0, share, outcome)
    return declared
