"""KSWIN (Raab, Heusinger, Schleif 2020): Kolmogorov-Smirnov test of recent losses against older ones.

The window holds older and recent outcomes. R are the r recent ones, W is a sample without replacement of w =
min(r, o) of the o older ones, drawn again at every outcome:

    D = |mean of R − mean of W|, the distance of their distributions where losses are 0 and 1
    alarm when D > √(−ln α·(r + w)/(2rw)), which is √(−ln α/r) for w = r; then only R is kept

The sample is drawn by SplitMix64 seeded with the number of the outcome, so that it is the same in every run
over the same log. With `direction: up` only rises raise alarms, and a fall leaves the window as it is.

The Kolmogorov-Smirnov distance detects any change of a distribution, but a distribution of losses has only a
mean, for which its threshold is wide. The other detectors here find the same changes sooner; this one is
offered to those who know it. The defaults raise 1 false alarm in a million stationary outcomes at an error of
.2, 2 at .3, 70 at .2 if losses have a lag-1 correlation of .5. river 0.26 requires a p-value (exact for r ≤
10,000) of at most α and D > .1 instead of the paper's threshold, draws by Python's Mersenne Twister, and
empties its whole window at an alarm. On the same samples, with R kept, and if both thresholds fall between
the same two possible values of D, it agrees at every outcome.

Source: Raab, Heusinger, Schleif, *Reactive soft prototype computing for concept drift streams*,
Neurocomputing 416, 2020, §3.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from streamwatch.core.estimators.detectors.kind import (
    MOST,
    WORDS,
    DetectorKind,
    append,
    behind,
    loss_at,
    put_loss,
)
from streamwatch.core.estimators.entries import ALARM_SIGNIFICANCE, DIRECTION, Entry, Parameter
from streamwatch.core.jit import hot, inner
from streamwatch.core.specs import Direction


@dataclass(frozen=True, slots=True)
class KswinSpec:
    """Parameters of KSWIN on the loss."""

    name: str = "kswin"
    recent: int = 100
    older: int = 400
    significance: float = 1e-4
    direction: Direction = "up"


ENTRY = Entry(
    "kswin",
    KswinSpec,
    "alarms when the distribution of the last losses differs from that of a sample of earlier ones",
    "alarm if D > √(-ln α·(r + w)/(2rw)), D of the last r losses and w = min(r, o) of the o older ones",
    "Raab, Heusinger, Schleif 2020",
    "O(r) per outcome; 7 numbers and 128 bytes per model",
    (
        Parameter(
            "recent",
            "recent outcomes (r)",
            10,
            MOST // 4,
            whole=True,
            help="Number of latest outcomes, which are compared with older ones.",
        ),
        Parameter(
            "older",
            "older outcomes",
            10,
            3 * MOST // 4,
            whole=True,
            help="Number of earlier outcomes, of which `recent` are sampled, or all if there are fewer.",
        ),
        ALARM_SIGNIFICANCE,
        DIRECTION,
    ),
)
STATE = np.dtype(
    [
        ("n", "i8"),  # outcomes in the window
        ("recent_losses", "i8"),
        ("older_losses", "i8"),
        ("head", "i8"),  # position of the next loss in the ring
        ("statistic", "f8"),  # D of the last test, signed by the monitored direction
        ("tested", "i8"),  # whether the window was full at the last outcome
        ("alarms", "i8"),
        ("ring", "u8", (WORDS,)),
    ]
)
PARAMETERS = np.dtype(
    [
        ("detector", "i8"),
        ("recent", "i8"),
        ("older", "i8"),
        ("threshold", "f8"),
        ("watched", "i8", (2,)),  # up, down
    ]
)
GOLDEN_GAMMA = np.uint64(0x9E3779B97F4A7C15)
"""Increment of SplitMix64's state per number (Steele, Lea, Flood 2014)."""


@hot
def mixed(z):
    """SplitMix64's 64-bit output for a state."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@inner
def sampled_losses(outcome, size, older, losses):
    """Number of errors in a sample of `size` of the `older` outcomes, of which `losses` are errors.

    Drawn one by one without replacement; `outcome` is the seed.
    """
    state = mixed(np.uint64(outcome) * GOLDEN_GAMMA)
    drawn = 0
    for k in range(size):
        state += GOLDEN_GAMMA
        share = np.float64(mixed(state) >> np.uint64(11)) / 9007199254740992.0
        if share * (older - k) < losses - drawn:
            drawn += 1
    return drawn


@inner
def keep_recent(d, recent):
    """Drop the older outcomes after an alarm."""
    d.n = recent
    d.older_losses = 0


@hot
def observe(m, parameters, miss, position, row, alarms, count):
    """Pass one loss to every KSWIN of a model; return the new number of alarm rows."""
    for j in range(len(m.kswin)):
        d = m.kswin[j]
        p = parameters.kswin[j]
        size = p.recent + p.older
        if d.n == size:
            d.older_losses -= loss_at(d.ring, d.head)
            d.n -= 1
        if d.n >= p.recent:
            leaving = loss_at(d.ring, behind(d.head, p.recent, size))
            d.recent_losses -= leaving
            d.older_losses += leaving
        put_loss(d.ring, d.head, miss)
        d.head = d.head + 1 if d.head + 1 < size else 0
        d.n += 1
        d.recent_losses += miss
        if d.n < size:
            d.tested = 0
            continue
        drawn = min(p.recent, p.older)
        sampled = sampled_losses(m.outcomes, drawn, p.older, d.older_losses)
        away = d.recent_losses / p.recent - sampled / drawn
        if not p.watched[0]:
            away = -away
        elif p.watched[1]:
            away = abs(away)
        d.statistic = away
        d.tested = 1
        if away > p.threshold:
            before = d.older_losses / p.older
            after = d.recent_losses / p.recent
            count = append(
                alarms, count, position, row, m, d, p, away, p.threshold, before, after, float(size)
            )
            keep_recent(d, p.recent)
    return count


@inner
def show(m, parameters, statistic, threshold, alarms, warned, t):  # noqa: ARG001  (there is no warning level)
    """Write D of the last test (NaN while the window is not full), and its threshold."""
    for j in range(len(m.kswin)):
        d = m.kswin[j]
        p = parameters.kswin[j]
        if d.tested:
            statistic[p.detector, t] = d.statistic
        threshold[p.detector, t] = p.threshold
        alarms[p.detector, t] = d.alarms


def _row(spec: KswinSpec, detector: int, _window: object) -> tuple[object, ...]:
    drawn = min(spec.recent, spec.older)
    threshold = sqrt(-log(spec.significance) * (spec.recent + drawn) / (2 * spec.recent * drawn))
    watched = (spec.direction != "down", spec.direction != "up")
    return (detector, spec.recent, spec.older, threshold, watched)


KSWIN = DetectorKind(
    name="kswin",
    version=1,
    entry=ENTRY,
    state=STATE,
    parameters=PARAMETERS,
    row=_row,
    observe=observe,
    show=show,
    hot_bytes=56,
)
