"""Drift-weighted accuracy (Brzezinski, Stefanowski): outcomes right after a drift weigh more.

acc_w = Σ w h / Σ w. w = 1 before the first drift. For the t-th outcome after one (t = 0, 1, …)

    w(t) = max(1 + (w_avg − 1)·ln(d/(t+1)), 1)        i.e. 1 − log_b((t+1)/d) with b = e^{1/(w_avg−1)}

At the m-th drift, declared at outcome T, d = T/m. It stays the same until the next drift, which restarts t.
The declaring outcome keeps its old weight. The weight averages w_avg over d outcomes. n_eff = (Σw)²/Σw². With
fading, every sum is S ← αS + v, so an outcome counts α^age·w.

Drift signals: `own` uses the new drifts of this model's ADWIN in which the error rose (recoveries would halve
d). `reference` uses those of another model; a model learns of them at its next outcome, T is counted in its
own outcomes, and drifts before its first outcome do not count. For `labels` see `label_drift`.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.dependence import DEPENDENCE, count_loss, dispersion_of
from streamwatch.core.estimators.forgetting.adwin import (
    GRACE,
    PER_ROW,
    ROWS,
    declared_now,
    leave_empty_rows,
    must_cut,
    put_merged,
    put_newest,
    remove_oldest,
)
from streamwatch.core.jit import hot, inner

OWN, REFERENCE, LABELS = 0, 1, 2
"""Drift signals."""
NOBODY = -1
"""Row of a reference model that does not exist (yet)."""

WEIGHTING = np.dtype(
    [
        ("weight", "f8"),  # Σ w
        ("hits", "f8"),  # Σ w h
        ("squares", "f8"),  # Σ w²
        ("since", "i8"),  # t, outcomes since the last drift
        ("mean_gap", "f8"),  # d; 0 before the first drift
        ("log_gap", "f8"),  # ln d
        ("declared", "i8"),  # outcomes up to and including the one that declared the last drift
        ("drifts", "i8"),  # m
        ("followed", "i8"),  # drifts of the reference taken into account, or before the first outcome
    ]
)
WEIGHTING_PARAMETERS = np.dtype(
    [
        ("w_avg", "f8"),
        ("alpha", "f8"),
        ("signal", "i8"),
        ("window", "i8"),  # index of the ADWIN window of the loss; for `labels`, index of the label drift
        ("reference", "i8"),  # row of the reference model
    ]
)


@hot
def weight_now(s, w_avg):
    """Weight w(t) of the next outcome."""
    if s.since + 1 >= s.mean_gap:
        return 1.0
    return 1.0 + (w_avg - 1.0) * (s.log_gap - log(float(s.since + 1)))


@hot
def weigh(s, w_avg, alpha, hit):
    """Add one outcome with its weight to the sums."""
    w = weight_now(s, w_avg)
    s.since += 1
    s.weight = alpha * s.weight + w
    s.hits = alpha * s.hits + w * hit
    s.squares = alpha * alpha * s.squares + w * w


@inner
def restart(s, number):
    """Record `number` drifts declared between two outcomes; the last of them restarts t."""
    s.drifts += number
    s.declared += s.since
    s.since = 0
    s.mean_gap = s.declared / s.drifts
    s.log_gap = log(s.mean_gap)


@hot
def follow(models, m, row, j, p):
    """Take drifts of the reference since this model's previous outcome into account.

    Called before an outcome.
    """
    if p.signal == REFERENCE and p.reference > NOBODY and p.reference != row:
        s = m.drift_weighted[j]
        drift_count = models[p.reference].drift_weighted[j].drifts
        if s.declared + s.since == 0:
            s.followed = drift_count
        elif drift_count > s.followed:
            restart(s, drift_count - s.followed)
            s.followed = drift_count


@inner
def restart_at_rise(m, row, j, p):
    """Restart t if a window declared a rise of the loss at this outcome and is this model's drift signal.

    Called after an outcome.
    """
    if p.signal == OWN or (p.signal == REFERENCE and p.reference == row):
        w = m.windows[p.window]
        if declared_now(m, w) and w.after > w.before:
            restart(m.drift_weighted[j], 1)


def leave_reference(states: NDArray[np.void], drift_count: int) -> None:
    """Bring all models up to date with the drifts of a reference that retires, as its successor starts at 0.

    Parameters
    ----------
    states
        `WEIGHTING` records of the models, shape (m,); changed in place.
    drift_count
        Number of drifts that the reference declared.
    """
    late = (states["followed"] < drift_count) & (states["declared"] + states["since"] > 0)
    states["drifts"][late] += drift_count - states["followed"][late]
    states["declared"][late] += states["since"][late]
    states["since"][late] = 0
    states["mean_gap"][late] = states["declared"][late] / states["drifts"][late]
    states["log_gap"][late] = np.log(states["mean_gap"][late])
    states["followed"] = 0


# Drifts of the labels: a drift signal that is independent of all classifiers.
#
# Four 0/1 signals of the labels are monitored, each by its own ADWIN (Bifet, Gavaldà 2007; see `adwin`):
#
#     1[y_t = y_{t−1}]   dependence of successive labels
#     1[y_t = c]         share of class c, for each of the first three classes that occurred as a label; with
#                        two or three classes these are all shares
#
# A cut of any of them is a new drift iff its newest discarded outcome is later than the outcome at which
# the last new drift of *any* was declared, so a change seen by several counts once. Changes in either
# direction count. The confidence δ is split evenly between the four. Changes among the shares of later
# classes are not detected.
#
# These windows carry no agreement totals; their state is their buckets. Values are collected as bits until
# the next check, every 32 outcomes.


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
        ("dependence", DEPENDENCE, (1,)),  # of the values, where it is followed
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
LABEL_DRIFT_PARAMETERS = np.dtype([("delta", "f8"), ("follows", "i8")])


@inner
def drop_oldest(s):
    """Drop the oldest bucket."""
    r = s.rows - 1
    s.n -= 1 << r
    s.ones -= s.losses[r, 0]
    remove_oldest(s, r, 1)
    leave_empty_rows(s)


@inner
def enter(s, value):
    """Put a value into a bucket of its own; with the sixth bucket of a row, its two oldest are merged."""
    put_newest(s, value)
    s.n += 1
    s.ones += value
    r = 0
    while s.buckets[r] > PER_ROW:
        if r == ROWS - 1:
            drop_oldest(s)
            return
        put_merged(s, r)
        remove_oldest(s, r, 2)
        r += 1


@inner
def check(s, delta, follows):
    """Enter the waiting values and drop the oldest bucket while some split must be cut.

    Return whether a bucket was dropped.
    """
    for k in range(s.waiting - 1, -1, -1):
        value = int((s.bits >> k) & 1)
        enter(s, value)
        if follows:
            count_loss(s.dependence[0], value)
    s.waiting = 0
    s.bits = 0
    cut = False
    dispersion = dispersion_of(s.dependence[0]) if follows else 1.0
    while s.n > (1 if cut else GRACE) and must_cut(
        s, float(s.n), float(s.ones), delta, MIN_SUBWINDOW, dispersion
    ):
        drop_oldest(s)
        cut = True
    return cut


@hot
def take(d, k, value, delta, follows, outcome):
    """Add a value to signal k, and return whether a new drift was declared."""
    s = d.signals[k]
    s.bits = (s.bits << 1) | value
    s.waiting += 1
    if s.waiting < CLOCK or not check(s, delta, follows) or outcome - s.n <= d.last_drift:
        return False
    d.last_drift = outcome
    return True


@inner
def watch_labels(d, p, outcome, true_class, repeat):
    """Add the label of a model's outcome to the signals, and return whether a new drift was declared.

    The first outcome has no previous label to repeat. A class is monitored from its first label on.
    """
    share = p.delta / SIGNALS
    declared = False
    if outcome > 1:
        declared |= take(d, 0, int(repeat), share, p.follows, outcome)
    for k in range(CLASSES):
        if d.followed[k] == 0:
            d.followed[k] = true_class + 1
        if d.followed[k] == true_class + 1:
            declared |= take(d, 1 + k, 1, share, p.follows, outcome)
            for later in range(k + 1, CLASSES):
                if d.followed[later] > 0:
                    declared |= take(d, 1 + later, 0, share, p.follows, outcome)
            break
        declared |= take(d, 1 + k, 0, share, p.follows, outcome)
    return declared
