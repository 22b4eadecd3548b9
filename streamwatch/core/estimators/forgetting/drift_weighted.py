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

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.forgetting.adwin import declared_now
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
