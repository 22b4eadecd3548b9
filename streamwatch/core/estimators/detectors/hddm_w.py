"""HDDM_W (Frías-Blanco et al. 2015): faded mean of the losses against its minimum, by McDiarmid's bound.

With λ the weight of the newest loss, μ_t = λ·x_t + (1−λ)·μ_{t−1} from μ_1 = x_1, s_t the sum of its squared
weights, s_t = λ² + (1−λ)²·s_{t−1} from s_1 = 1, and ε_t = √(s_t·ln(1/δ)/2):

    (μ, s)    those of the outcome with the least μ_t + ε_t since the last reset, the first in ties
    (μ', s')  the same recursion over the losses after it
    alarm     when μ' − μ > √((s + s')·ln(1/δ)/2), then reset; warning with a larger δ

For a fall: the largest μ_t − ε_t, and μ − μ'. The minimum of many faded means is far below their average, so
a δ that suits a single test raises many alarms when the test is repeated at every outcome: with the authors'
δ = .001 and λ = .05, a model with a constant error of .3 raises 390 alarms in a million outcomes. The
defaults here raise less than one at .2, 6 at .3, and 130 at .2 if losses have a lag-1 correlation of .5.
Before and after are μ and μ'.

MOA 24.07 is the authors' code, and agrees with this at every outcome. river 0.26 starts with s_1 = λ² +
(1−λ)², as if the first loss had been faded once, and therefore has slightly lower thresholds.

Source: Frías-Blanco, del Campo-Ávila, Ramos-Jiménez, Morales-Bueno, Ortiz-Díaz, Caballero-Mota, *Online and
non-parametric drift detection methods based on Hoeffding's bounds*, IEEE TKDE 27(3), 2015.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from streamwatch.core.estimators.detectors.kind import DetectorKind, append
from streamwatch.core.estimators.entries import (
    ALARM_CONFIDENCE,
    DIRECTION,
    NEWEST_WEIGHT,
    WARNING_CONFIDENCE,
    Entry,
)
from streamwatch.core.jit import hot, inner
from streamwatch.core.specs import Direction


@dataclass(frozen=True, slots=True)
class HddmWSpec:
    """Parameters of HDDM_W on the loss."""

    name: str = "hddm_w"
    weight: float = 0.005
    delta: float = 1e-5
    warning_delta: float = 1e-3
    direction: Direction = "up"


ENTRY = Entry(
    "hddm_w",
    HddmWSpec,
    "alarms when the faded loss exceeds its lowest value by more than chance",
    "alarm if μ' - μ > √((s + s')·ln(1/δ)/2), s and s' sums of squared weights",
    "Frías-Blanco et al. 2015",
    "O(1) per outcome; 17 numbers per model",
    (NEWEST_WEIGHT, ALARM_CONFIDENCE, WARNING_CONFIDENCE, DIRECTION),
    warns=True,
)
UP, DOWN = 0, 1
SIDE = np.dtype(
    [
        ("best", "f8"),  # ±μ + ε at the best outcome
        ("before", "f8"),  # μ at the best outcome
        ("before_squares", "f8"),  # s at the best outcome; 0 before there is one
        ("after", "f8"),  # μ' of the losses after it
        ("after_squares", "f8"),  # s'; 0 before the first of them
    ]
)
STATE = np.dtype(
    [
        ("n", "i8"),  # outcomes since the last reset
        ("mean", "f8"),  # μ_t
        ("squares", "f8"),  # s_t
        ("sides", SIDE, (2,)),
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
        ("of_alarm", "f8"),  # ln(1/δ)/2
        ("of_warning", "f8"),
        ("watched", "i8", (2,)),  # up, down
    ]
)


@hot
def faded(mean, squares, weight, x):
    """Update (μ, s) by one loss; s is 0 before the first."""
    if squares == 0.0:
        return x, 1.0
    keep = 1.0 - weight
    return weight * x + keep * mean, weight * weight + keep * keep * squares


@hot
def follow(d, side, sign, p, x):
    """Make the current outcome the best of a side if it is better, else add its loss to those after."""
    bound = sign * d.mean + sqrt(d.squares * p.of_alarm)
    if side.before_squares == 0.0 or bound < side.best:
        side.best = bound
        side.before = d.mean
        side.before_squares = d.squares
        side.after = d.mean
        side.after_squares = 0.0
    else:
        side.after, side.after_squares = faded(side.after, side.after_squares, p.weight, x)


@hot
def excess(side, sign):
    """Difference since the best outcome: μ' − μ, or μ − μ'; 0 at that outcome."""
    return sign * (side.after - side.before)


@hot
def limit(side, of_level):
    """Threshold √((s + s')·ln(1/δ)/2); `of_level` is ln(1/δ)/2."""
    return sqrt((side.before_squares + side.after_squares) * of_level)


@inner
def reset(d):
    """Reset after an alarm; keeps the alarm's statistic and threshold and the number of alarms."""
    d.n = 0
    d.mean = 0.0
    d.squares = 0.0
    d.warned = 0
    for k in range(2):
        side = d.sides[k]
        side.best = 0.0
        side.before = 0.0
        side.before_squares = 0.0
        side.after = 0.0
        side.after_squares = 0.0


@hot
def observe(m, parameters, miss, position, row, alarms, count):
    """Pass one loss to every HDDM_W of a model; return the new number of alarm rows."""
    for j in range(len(m.hddm_w)):
        d = m.hddm_w[j]
        p = parameters.hddm_w[j]
        x = 1.0 * miss
        d.n += 1
        d.mean, d.squares = faded(d.mean, d.squares, p.weight, x)
        d.warned = 0
        alarmed = -1
        for k in range(2):
            if p.watched[k]:
                side = d.sides[k]
                sign = 1.0 if k == UP else -1.0
                follow(d, side, sign, p, x)
                worse = excess(side, sign)
                if worse > limit(side, p.of_alarm):
                    alarmed = k
                d.warned |= worse > limit(side, p.of_warning)
        if alarmed >= 0:
            side = d.sides[alarmed]
            d.statistic = excess(side, 1.0 if alarmed == UP else -1.0)
            d.threshold = limit(side, p.of_alarm)
            n = float(d.n)
            count = append(
                alarms, count, position, row, m, d, p, d.statistic, d.threshold, side.before, side.after, n
            )
            reset(d)
    return count


@inner
def show(m, parameters, statistic, threshold, alarms, warned, t):
    """Write difference and threshold of the side closer to an alarm.

    At an alarm, the values that raised it.
    """
    for j in range(len(m.hddm_w)):
        d = m.hddm_w[j]
        p = parameters.hddm_w[j]
        if d.n > 0:
            up, down = d.sides[UP], d.sides[DOWN]
            falls = p.watched[DOWN] and (
                not p.watched[UP]
                or excess(down, -1.0) - limit(down, p.of_alarm) > excess(up, 1.0) - limit(up, p.of_alarm)
            )
            side = d.sides[DOWN if falls else UP]
            statistic[p.detector, t] = excess(side, -1.0 if falls else 1.0)
            threshold[p.detector, t] = limit(side, p.of_alarm)
        elif d.alarms > 0:
            statistic[p.detector, t] = d.statistic
            threshold[p.detector, t] = d.threshold
        alarms[p.detector, t] = d.alarms
        warned[p.detector, t] = d.warned != 0


def _row(spec: HddmWSpec, detector: int, _window: object) -> tuple[object, ...]:
    return (
        detector,
        spec.weight,
        log(1.0 / spec.delta) / 2.0,
        log(1.0 / spec.warning_delta) / 2.0,
        (spec.direction != "down", spec.direction != "up"),
    )


HDDM_W = DetectorKind(
    name="hddm_w",
    version=1,
    entry=ENTRY,
    state=STATE,
    parameters=PARAMETERS,
    row=_row,
    observe=observe,
    show=show,
    hot_bytes=128,
)
