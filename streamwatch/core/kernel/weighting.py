"""Drift-weighted accuracy (Brzezinski, Stefanowski): outcomes right after a drift weigh more.

acc_w = Σ w h / Σ w. w = 1 until a drift is known. For the t-th outcome after one (t = 0, 1, …)

    w(t) = max(1 + (w_avg − 1)·ln(d/(t+1)), 1)        i.e. 1 − log_b((t+1)/d) with b = e^{1/(w_avg−1)}

At the m-th drift, declared at outcome T, d = T/m, frozen until the next, which restarts t. The declaring outcome keeps
its old weight. The weight averages w_avg over d outcomes. n_eff = (Σw)²/Σw².
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from math import log

import numpy as np

from streamwatch.core.kernel.adwin import declared_now
from streamwatch.core.kernel.compiled import hot

WEIGHTING = np.dtype(
    [
        ("weight", "f8"),  # Σ w
        ("hits", "f8"),  # Σ w h
        ("squares", "f8"),  # Σ w²
        ("outcomes", "i8"),
        ("drifts", "i8"),  # m
        ("since", "i8"),  # t
        ("mean_gap", "f8"),  # d; 0 before the first drift
        ("log_gap", "f8"),  # ln d
    ]
)
WEIGHTING_PARAMETERS = np.dtype([("w_avg", "f8"), ("window", "i8")])


@hot
def weight_now(s, w_avg):
    """w(t)."""
    if s.since + 1 >= s.mean_gap:
        return 1.0
    return 1.0 + (w_avg - 1.0) * (s.log_gap - log(float(s.since + 1)))


@hot
def weigh(s, w_avg, hit):
    """Add one outcome at its weight."""
    w = weight_now(s, w_avg)
    s.outcomes += 1
    s.since += 1
    s.weight += w
    s.hits += w * hit
    s.squares += w * w


@hot
def restart(m, s, window):
    """After an outcome: if the window declared a rise in error at it, restart t. Recoveries would halve d."""
    w = m.windows[window]
    if declared_now(m, w) and w.after > w.before:
        s.drifts += 1
        s.since = 0
        s.mean_gap = s.outcomes / s.drifts
        s.log_gap = log(s.mean_gap)
