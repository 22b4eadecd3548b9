"""HDDM_A (Frías-Blanco et al. 2015): mean of all losses against that of their best prefix, by Hoeffding.

With z the mean of the n losses since the last reset, δ a confidence, and ε_k = √(ln(1/δ)/(2k)):

    (x, k)  mean and length of the prefix with the least x + ε_k, the longest in ties
    alarm   when z − x > √((1/k − 1/n)·ln(2/δ)/2), then reset; warning with a larger δ

For a fall: the prefix with the largest x − ε_k, and x − z. Nothing but independence of the losses is assumed.
So the test allows for the largest possible variance and is slower than necessary at an error of .05, and
correlated losses cause false alarms: in a million stationary outcomes 2 at an error of .2, 5 at .3, and 2,500
at .2 if losses have a lag-1 correlation of .5. Before and after are the means of that prefix, and of the
losses since.

The authors' code (MOA 24.07) and river 0.26 also alarm at equality, and agree with this at every other
outcome. When it monitors both directions, which is its default, MOA resets itself at a fall without reporting
it; river reports it.

Source: Frías-Blanco, del Campo-Ávila, Ramos-Jiménez, Morales-Bueno, Ortiz-Díaz, Caballero-Mota, *Online and
non-parametric drift detection methods based on Hoeffding's bounds*, IEEE TKDE 27(3), 2015.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from streamwatch.core.estimators.detectors.kind import DetectorKind, append
from streamwatch.core.estimators.entries import ALARM_CONFIDENCE, DIRECTION, WARNING_CONFIDENCE, Entry
from streamwatch.core.jit import hot, inner
from streamwatch.core.specs import Direction


@dataclass(frozen=True, slots=True)
class HddmASpec:
    """Parameters of HDDM_A on the loss."""

    name: str = "hddm_a"
    delta: float = 0.001
    warning_delta: float = 0.005
    direction: Direction = "up"


ENTRY = Entry(
    "hddm_a",
    HddmASpec,
    "alarms when the mean loss since the last alarm exceeds that of its best beginning by more than chance",
    "alarm if z - x > √((1/k - 1/n)·ln(2/δ)/2), z of all n losses, x of the first k",
    "Frías-Blanco et al. 2015",
    "O(1) per outcome; 10 numbers per model",
    (ALARM_CONFIDENCE, WARNING_CONFIDENCE, DIRECTION),
    warns=True,
)
UP, DOWN = 0, 1
SIDE = np.dtype([("n", "i8"), ("losses", "i8")])  # of the best prefix; n = 0 before there is one
STATE = np.dtype(
    [
        ("n", "i8"),  # outcomes since the last reset
        ("losses", "i8"),
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
        ("of_beginning", "f8"),  # ln(1/δ)/2
        ("of_alarm", "f8"),  # ln(2/δ)/2
        ("of_warning", "f8"),
        ("watched", "i8", (2,)),  # up, down
    ]
)


@hot
def sign_of(side):
    """Sign of a side: 1 for a rise, −1 for a fall."""
    return 1.0 if side == UP else -1.0


@hot
def follow(d, side, sign, of_beginning):
    """Replace the best prefix of a side by all outcomes so far, if these are at least as good."""
    bound = sign * d.losses / d.n + sqrt(of_beginning / d.n)
    if side.n == 0 or sign * side.losses / side.n + sqrt(of_beginning / side.n) >= bound:
        side.n = d.n
        side.losses = d.losses


@hot
def excess(d, side, sign):
    """Difference of the mean of all losses and that of the best prefix: z − x, or x − z."""
    return sign * (d.losses / d.n - side.losses / side.n)


@hot
def limit(d, side, of_level):
    """Threshold √((1/k − 1/n)·ln(2/δ)/2); `of_level` is ln(2/δ)/2."""
    return sqrt((d.n - side.n) / side.n * (1.0 / d.n) * of_level)


@inner
def reset(d):
    """Reset after an alarm; keeps the alarm's statistic and threshold and the number of alarms."""
    d.n = 0
    d.losses = 0
    d.warned = 0
    for k in range(2):
        d.sides[k].n = 0
        d.sides[k].losses = 0


@hot
def observe(m, parameters, miss, position, row, alarms, count):
    """Pass one loss to every HDDM_A of a model; return the new number of alarm rows."""
    for j in range(len(m.hddm_a)):
        d = m.hddm_a[j]
        p = parameters.hddm_a[j]
        d.n += 1
        d.losses += miss
        d.warned = 0
        alarmed = -1
        for k in range(2):
            if p.watched[k]:
                side = d.sides[k]
                sign = sign_of(k)
                follow(d, side, sign, p.of_beginning)
                worse = excess(d, side, sign)
                if worse > limit(d, side, p.of_alarm):
                    alarmed = k
                d.warned |= worse > limit(d, side, p.of_warning)
        if alarmed >= 0:
            side = d.sides[alarmed]
            d.statistic = excess(d, side, sign_of(alarmed))
            d.threshold = limit(d, side, p.of_alarm)
            before = side.losses / side.n
            after = (d.losses - side.losses) / (d.n - side.n)
            count = append(
                alarms, count, position, row, m, d, p, d.statistic, d.threshold, before, after, float(d.n)
            )
            reset(d)
    return count


@inner
def show(m, parameters, statistic, threshold, alarms, warned, t):
    """Write difference and threshold of the side closer to an alarm.

    At an alarm, the values that raised it.
    """
    for j in range(len(m.hddm_a)):
        d = m.hddm_a[j]
        p = parameters.hddm_a[j]
        if d.n > 0:
            shown = UP if p.watched[UP] else DOWN
            if p.watched[UP] and p.watched[DOWN]:
                up, down = d.sides[UP], d.sides[DOWN]
                rise = excess(d, up, 1.0) - limit(d, up, p.of_alarm)
                if excess(d, down, -1.0) - limit(d, down, p.of_alarm) > rise:
                    shown = DOWN
            statistic[p.detector, t] = excess(d, d.sides[shown], sign_of(shown))
            threshold[p.detector, t] = limit(d, d.sides[shown], p.of_alarm)
        elif d.alarms > 0:
            statistic[p.detector, t] = d.statistic
            threshold[p.detector, t] = d.threshold
        alarms[p.detector, t] = d.alarms
        warned[p.detector, t] = d.warned != 0


def _row(spec: HddmASpec, detector: int, _window: object) -> tuple[object, ...]:
    return (
        detector,
        log(1.0 / spec.delta) / 2.0,
        log(2.0 / spec.delta) / 2.0,
        log(2.0 / spec.warning_delta) / 2.0,
        (spec.direction != "down", spec.direction != "up"),
    )


HDDM_A = DetectorKind(
    name="hddm_a",
    version=1,
    entry=ENTRY,
    state=STATE,
    parameters=PARAMETERS,
    row=_row,
    observe=observe,
    show=show,
    hot_bytes=72,
)
