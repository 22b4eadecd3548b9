"""Alarms at new drifts of an ADWIN window (Bifet, Gavaldà 2007; Bifet et al. 2015, §6).

One drift causes many cuts. The window declares a *new drift* only when a cut discards an outcome later than
the declaration of the last new drift (see `adwin.check`). This detector raises an alarm at new drifts in
its direction; the window is kept. Before and after are the mean losses of the outcomes dropped and kept;
`n_eff` is the width kept.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from collections.abc import Callable

import numpy as np

from streamwatch.core.estimators.detectors.kind import DetectorKind, append
from streamwatch.core.estimators.entries import ADWIN, DIRECTION, Entry
from streamwatch.core.estimators.forgetting.adwin import declared_now, shown_split
from streamwatch.core.jit import hot, inner
from streamwatch.core.specs import AdwinDriftSpec, AdwinSpec

ENTRY = Entry(
    "adwin",
    AdwinDriftSpec,
    "alarms once per drift that cuts ADWIN's window of the loss",
    "a cut is a new drift if it discards an outcome later than the last new drift's declaration",
    "Bifet, Gavaldà 2007",
    "O(1) per outcome, O(log W) per check; O(log W) numbers a model, none beside an equal adwin forgetting",
    (*ADWIN, DIRECTION),
)
STATE = np.dtype([("alarms", "i8")])
PARAMETERS = np.dtype([("detector", "i8"), ("window", "i8"), ("up", "i8"), ("down", "i8")])


@hot
def observe(m, parameters, miss, position, row, alarms, count):  # noqa: ARG001  (the window has the loss)
    """Raise an alarm for every detector whose window declared a new drift at this outcome."""
    for j in range(len(m.adwin_drift)):
        p = parameters.adwin_drift[j]
        w = m.windows[p.window]
        if declared_now(m, w) and ((w.after > w.before and p.up) or (w.after < w.before and p.down)):
            d = m.adwin_drift[j]
            kept = float(w.kept)
            count = append(
                alarms, count, position, row, m, d, p, w.statistic, w.threshold, w.before, w.after, kept
            )
    return count


@inner
def show(m, parameters, statistic, threshold, alarms, warned, t):  # noqa: ARG001  (there is no warning level)
    """Write |Δμ| and ε of the split that was closest to a cut at the window's last check."""
    for j in range(len(m.adwin_drift)):
        p = parameters.adwin_drift[j]
        window = parameters.windows[p.window]
        w = m.windows[p.window]
        best, limit = shown_split(w, window)
        statistic[p.detector, t] = best
        threshold[p.detector, t] = limit
        alarms[p.detector, t] = m.adwin_drift[j].alarms


def _window(spec: AdwinDriftSpec) -> AdwinSpec:
    return AdwinSpec(spec.delta, spec.min_subwindow, spec.clock, spec.dependence)


def _row(spec: AdwinDriftSpec, detector: int, index_of: Callable[[AdwinSpec], int]) -> tuple[object, ...]:
    window = index_of(_window(spec))
    return (detector, window, spec.direction != "down", spec.direction != "up")


ADWIN_DRIFT = DetectorKind(
    name="adwin_drift",
    version=1,
    entry=ENTRY,
    state=STATE,
    parameters=PARAMETERS,
    row=_row,
    observe=observe,
    show=show,
    window=_window,
)
