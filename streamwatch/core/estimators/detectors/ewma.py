"""ECDD, a control chart of the faded loss (Ross, Adams, Tasoulis, Hand 2012): faded loss above its mean.

Over the n outcomes since the last reset, with p their error rate, λ the weight of the newest loss and Z_0 =
0:

    Z_n = (1−λ)·Z_{n−1} + λ·x_n,    σ = √(p(1−p)·λ/(2−λ)·(1 − (1−λ)^{2n}))
    alarm when Z − p > limit (from outcome `min_outcomes` on), then reset; warning above half of it

`limits: bernstein` (default) uses limit = L·σ + λL²/6, Bernstein's inequality for a sum with weights of at
most λ. The defaults raise 1 to 3 false alarms in a million stationary outcomes at any error from .005 to .5,
and 80 at .2 if losses have a lag-1 correlation of .5. The paper's L·σ assumes a normal distribution; if
errors are rare, a single one exceeds it.

`limits: paper` uses the paper's limit for λ = .2, where L is a polynomial in p that gives a false alarm every
400 outcomes, too many for paging somebody; `alarm_level` has no effect then. The paper's polynomials for 100
and 1,000 are left out: as found in MOA's source, the first gives a false alarm every 35 outcomes at p = .2,
and the second lies below the one for 400.

Z begins at 0, below any error rate. For a rise this is the paper's chart, which therefore detects early rises
late. For a fall, which the paper does not treat, the expected value of Z less Z is compared with the limit:
p·(1 − (1−λ)^n) − Z. The mean losses before and after that an alarm states are p and Z. MOA 24.07
(EWMAChartDM) may warn at the 29th outcome after a reset; with `limits: paper`, λ = .2 and `min_outcomes: 30`
this detector cannot, and otherwise agrees with it at every outcome.

Source: Ross, Adams, Tasoulis, Hand, *Exponentially weighted moving average charts for detecting concept
drift*, Pattern Recognition Letters 33(2), 2012.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal, get_args

import numpy as np

from streamwatch.core.estimators.detectors.kind import DetectorKind, append
from streamwatch.core.estimators.entries import DIRECTION, MIN_OUTCOMES, NEWEST_WEIGHT, Entry, Parameter
from streamwatch.core.jit import hot, inner
from streamwatch.core.specs import Direction

Limits = Literal["bernstein", "paper"]


@dataclass(frozen=True, slots=True)
class EwmaSpec:
    """Parameters of ECDD on the loss."""

    name: str = "ewma"
    weight: float = 0.002
    alarm_level: float = 3.5
    min_outcomes: int = 100
    limits: Limits = "bernstein"
    direction: Direction = "up"


ENTRY = Entry(
    "ewma",
    EwmaSpec,
    "alarms when the faded loss is far above the error rate since the last alarm",
    "alarm if Z - p > L·σ + λL²/6, Z ← (1-λ)Z + λx, σ² = p(1-p)·λ/(2-λ)·(1 - (1-λ)^2n); warning at half",
    "Ross, Adams, Tasoulis, Hand 2012 (ECDD); limits: Bernstein 1946, or theirs",
    "O(1) per outcome; 8 numbers per model",
    (
        NEWEST_WEIGHT,
        Parameter(
            "alarm_level",
            "alarm level (L)",
            0.0,
            100.0,
            open_low=True,
            help="Standard deviations above the error rate at which it alarms, with `limits: bernstein`.",
        ),
        MIN_OUTCOMES,
        Parameter(
            "limits",
            "limits",
            choices=get_args(Limits),
            help="Limits: bernstein uses alarm_level; paper makes, for weight 0.2, a false alarm every 400 "
            "outcomes.",
        ),
        DIRECTION,
    ),
    warns=True,
)
POLYNOMIALS = {
    "bernstein": (0.0, 0.0, 0.0, 0.0, 0.0),
    "paper": (3.97, -6.56, 48.73, -330.13, 848.18),
}
"""L of the paper: coefficients of 1, p, p³, p⁵, p⁷ (λ = .2, a false alarm every 400 outcomes)."""
STATE = np.dtype(
    [
        ("n", "i8"),  # outcomes since the last reset
        ("losses", "i8"),
        ("faded", "f8"),  # Z
        ("unfilled", "f8"),  # (1−λ)^{2n}
        ("statistic", "f8"),  # of the last alarm; shown at its outcome, after the reset
        ("threshold", "f8"),
        ("warned", "i8"),
        ("alarms", "i8"),
    ]
)
PARAMETERS = np.dtype(
    [
        ("detector", "i8"),
        ("weight", "f8"),
        ("level", "f8"),  # L; 0 for the paper's limits
        ("min_outcomes", "i8"),
        ("polynomial", "f8", (5,)),
        ("watched", "i8", (2,)),  # up, down
    ]
)
FILLED = 1e-30
"""Value below which (1−λ)^{2n} is set to 0; it would become a denormal number, which is slow."""


@hot
def limit(d, p):
    """Largest allowed distance of Z from the error rate."""
    rate = d.losses / d.n
    sigma = sqrt(rate * (1.0 - rate) * p.weight / (2.0 - p.weight) * (1.0 - d.unfilled))
    if p.level > 0.0:
        return p.level * sigma + p.weight * p.level * p.level / 6.0
    c = p.polynomial
    squared = rate * rate
    level = c[0] + rate * (c[1] + squared * (c[2] + squared * (c[3] + squared * c[4])))
    return level * sigma


@hot
def excess(d, watched):
    """Distance Z − p, or that of Z below what is expected of it, or the larger if both are monitored.

    If every loss was 1, Z is what is expected, and is not compared: the paper's limit is 0 then, and rounding
    would exceed it.
    """
    rate = d.losses / d.n
    rise = d.faded - rate
    if not watched[1]:
        return rise
    fall = rate * (1.0 - sqrt(d.unfilled)) - d.faded if d.losses < d.n else 0.0
    return max(rise, fall) if watched[0] else fall


@inner
def reset(d):
    """Reset after an alarm; keeps the alarm's statistic and threshold and the number of alarms."""
    d.n = 0
    d.losses = 0
    d.faded = 0.0
    d.unfilled = 0.0
    d.warned = 0


@hot
def observe(m, parameters, miss, position, row, alarms, count):
    """Pass one loss to every ECDD of a model; return the new number of alarm rows."""
    for j in range(len(m.ewma)):
        d = m.ewma[j]
        p = parameters.ewma[j]
        keep = 1.0 - p.weight
        d.n += 1
        d.losses += miss
        d.faded += p.weight * (miss - d.faded)
        d.unfilled = (d.unfilled if d.n > 1 else 1.0) * keep * keep
        if d.unfilled < FILLED:
            d.unfilled = 0.0
        if d.n < p.min_outcomes:
            continue
        worse = excess(d, p.watched)
        allowed = limit(d, p)
        d.warned = worse > 0.5 * allowed
        if worse > allowed:
            d.statistic = worse
            d.threshold = allowed
            before = d.losses / d.n
            count = append(alarms, count, position, row, m, d, p, worse, allowed, before, d.faded, float(d.n))
            reset(d)
    return count


@inner
def show(m, parameters, statistic, threshold, alarms, warned, t):
    """Write the distance of Z from the error rate, and its limit; at an alarm, the values that raised it.

    Before the first outcome neither is written.
    """
    for j in range(len(m.ewma)):
        d = m.ewma[j]
        p = parameters.ewma[j]
        if d.n > 0:
            statistic[p.detector, t] = excess(d, p.watched)
            threshold[p.detector, t] = limit(d, p)
        elif d.alarms > 0:
            statistic[p.detector, t] = d.statistic
            threshold[p.detector, t] = d.threshold
        alarms[p.detector, t] = d.alarms
        warned[p.detector, t] = d.warned != 0


def _row(spec: EwmaSpec, detector: int, _window: object) -> tuple[object, ...]:
    return (
        detector,
        spec.weight,
        spec.alarm_level if spec.limits == "bernstein" else 0.0,
        spec.min_outcomes,
        POLYNOMIALS[spec.limits],
        (spec.direction != "down", spec.direction != "up"),
    )


EWMA = DetectorKind(
    name="ewma",
    version=1,
    entry=ENTRY,
    state=STATE,
    parameters=PARAMETERS,
    row=_row,
    observe=observe,
    show=show,
    hot_bytes=56,
)
