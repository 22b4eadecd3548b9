"""STEPD (Nishida, Yamauchi 2007): test of equal proportions of the recent error and the error before.

With e_r errors among the last r outcomes, e_o among the o older ones since the last reset, p = (e_r + e_o)/(r
+ o):

    T = (|e_r/r − e_o/o| − (1/o + 1/r)/2) / √(p(1−p)(1/o + 1/r))
    alarm   when the error rose and 2(1 − Φ(T)) < α, from o ≥ r on, then reset; warning with a larger α

T is 0 if all outcomes so far were hits, or all were misses. For a fall: when the error fell. As the test is
repeated at every outcome, the paper's r = 30 and α = .003 raise 300 alarms in a million outcomes of a model
that does not change (for rises alone); the defaults here raise at most 3, and 90 if losses have a lag-1
correlation of .5. Before and after are e_o/o and e_r/r.

MOA 24.07 takes |T| if the continuity correction made T negative, so that with rare errors two equal windows
can raise an alarm; it also alarms at falls. Where neither matters it agrees at every outcome. river does not
have STEPD.

Source: Nishida, Yamauchi, *Detecting concept drift using statistical testing*, Discovery Science 2007.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from streamwatch.core.estimators.detectors.kind import MOST, WORDS, DetectorKind, append, loss_at, put_loss
from streamwatch.core.estimators.entries import (
    ALARM_SIGNIFICANCE,
    DIRECTION,
    WARNING_SIGNIFICANCE,
    Entry,
    Parameter,
)
from streamwatch.core.jit import hot, inner
from streamwatch.core.specs import Direction


@dataclass(frozen=True, slots=True)
class StepdSpec:
    """Parameters of STEPD on the loss."""

    name: str = "stepd"
    recent: int = 400
    significance: float = 1e-5
    warning_significance: float = 1e-3
    direction: Direction = "up"


ENTRY = Entry(
    "stepd",
    StepdSpec,
    "alarms when the error of the last outcomes differs from that of all before them",
    "alarm if 2(1 - Φ(T)) < α, T = (|e_r/r - e_o/o| - c/2)/√(p(1-p)c), c = 1/r + 1/o",
    "Nishida, Yamauchi 2007",
    "O(1) per outcome; 7 numbers and 128 bytes per model",
    (
        Parameter(
            "recent",
            "recent outcomes (r)",
            10,
            MOST,
            whole=True,
            help="Number of latest outcomes, whose error is compared with that of all older ones since the "
            "last alarm.",
        ),
        ALARM_SIGNIFICANCE,
        WARNING_SIGNIFICANCE,
        DIRECTION,
    ),
    warns=True,
)
STATE = np.dtype(
    [
        ("n", "i8"),  # outcomes since the last reset
        ("losses", "i8"),
        ("recent_losses", "i8"),
        ("head", "i8"),  # position of the next loss in the ring
        ("statistic", "f8"),  # of the last alarm; shown at its outcome, after the reset
        ("warned", "i8"),
        ("alarms", "i8"),
        ("ring", "u8", (WORDS,)),
    ]
)
PARAMETERS = np.dtype(
    [
        ("detector", "i8"),
        ("recent", "i8"),
        ("alarm_level", "f8"),  # Φ⁻¹(1 − α/2)
        ("warning_level", "f8"),
        ("watched", "i8", (2,)),  # up, down
    ]
)


@hot
def rise(d, recent):
    """Difference e_r/r − e_o/o; there must be older outcomes."""
    return d.recent_losses / recent - (d.losses - d.recent_losses) / (d.n - recent)


@hot
def tested(d, recent, watched):
    """T, with |e_r/r − e_o/o| signed by the monitored direction: negative if the error went the other way."""
    if d.losses in (0, d.n):
        return 0.0
    difference = rise(d, recent)
    if not watched[1]:
        away = difference
    elif not watched[0]:
        away = -difference
    else:
        away = abs(difference)
    inverse = 1.0 / (d.n - recent) + 1.0 / recent
    p = d.losses / d.n
    return (away - 0.5 * inverse) / sqrt(p * (1.0 - p) * inverse)


@inner
def reset(d):
    """Reset after an alarm; keeps the alarm's statistic and the number of alarms."""
    d.n = 0
    d.losses = 0
    d.recent_losses = 0
    d.head = 0
    d.warned = 0
    for k in range(WORDS):
        d.ring[k] = 0


@hot
def observe(m, parameters, miss, position, row, alarms, count):
    """Pass one loss to every STEPD of a model; return the new number of alarm rows."""
    for j in range(len(m.stepd)):
        d = m.stepd[j]
        p = parameters.stepd[j]
        if d.n >= p.recent:
            d.recent_losses -= loss_at(d.ring, d.head)
        put_loss(d.ring, d.head, miss)
        d.head = d.head + 1 if d.head + 1 < p.recent else 0
        d.n += 1
        d.losses += miss
        d.recent_losses += miss
        if d.n < 2 * p.recent:
            continue
        statistic = tested(d, p.recent, p.watched)
        d.warned = statistic > p.warning_level
        if statistic > p.alarm_level:
            d.statistic = statistic
            before = (d.losses - d.recent_losses) / (d.n - p.recent)
            after = d.recent_losses / p.recent
            count = append(
                alarms, count, position, row, m, d, p, statistic, p.alarm_level, before, after, float(d.n)
            )
            reset(d)
    return count


@inner
def show(m, parameters, statistic, threshold, alarms, warned, t):
    """Write T (NaN before there are as many older as recent outcomes), and its limit; at an alarm, its T."""
    for j in range(len(m.stepd)):
        d = m.stepd[j]
        p = parameters.stepd[j]
        if d.n >= 2 * p.recent:
            statistic[p.detector, t] = tested(d, p.recent, p.watched)
        elif d.n == 0 and d.alarms > 0:
            statistic[p.detector, t] = d.statistic
        threshold[p.detector, t] = p.alarm_level
        alarms[p.detector, t] = d.alarms
        warned[p.detector, t] = d.warned != 0


def _row(spec: StepdSpec, detector: int, _window: object) -> tuple[object, ...]:
    from scipy.special import ndtri  # noqa: PLC0415 - takes .3 s, which other detectors do not need

    return (
        detector,
        spec.recent,
        -float(ndtri(spec.significance / 2.0)),
        -float(ndtri(spec.warning_significance / 2.0)),
        (spec.direction != "down", spec.direction != "up"),
    )


STEPD = DetectorKind(
    name="stepd",
    version=1,
    entry=ENTRY,
    state=STATE,
    parameters=PARAMETERS,
    row=_row,
    observe=observe,
    show=show,
    hot_bytes=56,
)
