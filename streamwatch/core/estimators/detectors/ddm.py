"""DDM, the Drift Detection Method (Gama, Medas, Castillo, Rodrigues 2004): error above its own minimum.

Over the n outcomes since the last reset, with p their error rate and s = √(p(1−p)/n):

    from outcome `min_outcomes` on, (p_min, s_min, n_min) are those of the outcome with the least p + s
    warning when p + s > p_min + warning_level·max(s_min, 1/n_min)
    alarm   when p + s > p_min + alarm_level·max(s_min, 1/n_min), then reset

The 1/n_min is not in the paper. Without it, after an error-free start p_min = s_min = 0, and the first error
would raise an alarm. One error in n outcomes has s ≈ 1/n, which is therefore the least value of s_min; it is
used in the two thresholds only. The detector has no direction, as a falling error moves the minimum. Before
and after are p_min and p.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from streamwatch.core.estimators.detectors.kind import DetectorKind, append
from streamwatch.core.estimators.entries import Entry, Parameter
from streamwatch.core.jit import hot, inner


@dataclass(frozen=True, slots=True)
class DdmSpec:
    """Parameters of DDM on the loss."""

    name: str = "ddm"
    min_outcomes: int = 30
    warning_level: float = 2.0
    alarm_level: float = 3.0


ENTRY = Entry(
    "ddm",
    DdmSpec,
    "alarms when the error rate since the last alarm is far above the lowest it has been",
    "alarm if p + s > p_min + 3·max(s_min, 1/n_min), s = √(p(1-p)/n); warning with 2 for 3",
    "Gama, Medas, Castillo, Rodrigues 2004",
    "O(1) per outcome; 9 numbers per model",
    (
        Parameter(
            "min_outcomes",
            "least outcomes before an alarm",
            1,
            1_000_000_000,
            whole=True,
            help="Outcomes since the start or the last alarm before the lowest error is sought.",
        ),
        Parameter(
            "warning_level",
            "warning level",
            0.0,
            100.0,
            open_low=True,
            open_high=True,
            help="Standard deviations above the lowest error at which it warns.",
        ),
        Parameter(
            "alarm_level",
            "alarm level",
            0.0,
            100.0,
            open_low=True,
            above="warning_level",
            help="Standard deviations above the lowest error at which it alarms; must be larger than "
            "warning_level.",
        ),
    ),
    warns=True,
)
STATE = np.dtype(
    [
        ("n", "i8"),  # outcomes since the last reset
        ("losses", "i8"),  # their losses
        ("least_n", "i8"),  # n_min; 0 before the first minimum
        ("least_error", "f8"),  # p_min
        ("least_deviation", "f8"),  # s_min
        ("statistic", "f8"),  # of the last alarm; shown at its outcome, after the reset
        ("threshold", "f8"),
        ("warned", "i8"),  # whether the detector warned at the last outcome
        ("alarms", "i8"),
    ]
)
PARAMETERS = np.dtype(
    [("detector", "i8"), ("min_outcomes", "i8"), ("warning_level", "f8"), ("alarm_level", "f8")]
)


@hot
def deviation(p, n):
    """Standard deviation s = √(p(1−p)/n)."""
    return sqrt(p * (1.0 - p) / n)


@hot
def limit(d, level):
    """Threshold p_min + level·max(s_min, 1/n_min)."""
    return d.least_error + level * max(d.least_deviation, 1.0 / d.least_n)


@inner
def reset(d):
    """Reset after an alarm; keeps the alarm's statistic and threshold and the number of alarms."""
    d.n = 0
    d.losses = 0
    d.least_n = 0
    d.least_error = 0.0
    d.least_deviation = 0.0
    d.warned = 0


@hot
def observe(m, parameters, miss, position, row, alarms, count):
    """Pass one loss to every DDM of a model; return the new number of alarm rows."""
    for j in range(len(m.ddm)):
        d = m.ddm[j]
        p = parameters.ddm[j]
        d.n += 1
        d.losses += miss
        n = d.n
        if n < p.min_outcomes:
            continue
        error = d.losses / n
        s = deviation(error, n)
        if d.least_n == 0 or error + s <= d.least_error + d.least_deviation:
            d.least_n = n
            d.least_error = error
            d.least_deviation = s
        d.warned = error + s > limit(d, p.warning_level)
        threshold = limit(d, p.alarm_level)
        if error + s > threshold:
            d.statistic = error + s
            d.threshold = threshold
            count = append(
                alarms, count, position, row, m, d, p, error + s, threshold, d.least_error, error, float(n)
            )
            reset(d)
    return count


@inner
def show(m, parameters, statistic, threshold, alarms, warned, t):
    """Write p + s, and the alarm threshold (NaN before a minimum); at an alarm, the values that raised it."""
    for j in range(len(m.ddm)):
        d = m.ddm[j]
        p = parameters.ddm[j]
        if d.n > 0:
            error = d.losses / d.n
            statistic[p.detector, t] = error + deviation(error, d.n)
            threshold[p.detector, t] = limit(d, p.alarm_level) if d.least_n > 0 else np.nan
        elif d.alarms > 0:
            statistic[p.detector, t] = d.statistic
            threshold[p.detector, t] = d.threshold
        alarms[p.detector, t] = d.alarms
        warned[p.detector, t] = d.warned != 0


def _row(spec: DdmSpec, detector: int, _window: object) -> tuple[object, ...]:
    return (detector, spec.min_outcomes, spec.warning_level, spec.alarm_level)


DDM = DetectorKind(
    name="ddm",
    version=1,
    entry=ENTRY,
    state=STATE,
    parameters=PARAMETERS,
    row=_row,
    observe=observe,
    show=show,
    hot_bytes=40,
)
