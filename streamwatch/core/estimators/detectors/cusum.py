"""CUSUM (Page 1954): sum of the losses beyond their expected value, restarted whenever it falls to zero.

With μ the expected error, k the allowance and h the threshold:

    C ← max(0, C + x − μ − k),    alarm when C > h and at least `min_outcomes` outcomes since the last reset

`expected` is μ, for example the error on the validation set, or one that was agreed upon. With it, a model
that is worse from its first outcome on also raises an alarm, and every false-alarm rate can be computed (the
sum is a Markov chain: Brook, Evans 1972; `tests/calibration`). It works best for a rise of 2k. With
`expected: 0` (default) μ is the mean loss since the last reset, x_t included. This is Page-Hinkley without
forgetting, and MOA's CusumDM, except that CusumDM can alarm from its 29th outcome on instead of waiting for
`min_outcomes`. In a million stationary outcomes it raises 3 false alarms at an error of .2, 9 at .3, and 80
at .2 if losses have a lag-1 correlation of .5.

For a fall, the sum is over μ − x − k. Before and after are the means up to the last outcome at which the sum
was zero (μ if there was none) and since.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamwatch.core.estimators.detectors.kind import DetectorKind, append
from streamwatch.core.estimators.entries import DIRECTION, MIN_OUTCOMES, Entry, Parameter
from streamwatch.core.jit import hot, inner
from streamwatch.core.specs import Direction


@dataclass(frozen=True, slots=True)
class CusumSpec:
    """Parameters of CUSUM on the loss."""

    name: str = "cusum"
    expected: float = 0.0
    allowance: float = 0.01
    threshold: float = 50.0
    min_outcomes: int = 30
    direction: Direction = "up"


ENTRY = Entry(
    "cusum",
    CusumSpec,
    "alarms when the sum of losses above the expected error, or above their own mean, grows too large",
    "C ← max(0, C + x - μ - k), alarm if C > h",
    "Page 1954",
    "O(1) per outcome; 10 numbers per model",
    (
        Parameter(
            "expected",
            "expected error (μ)",
            0.0,
            1.0,
            open_high=True,
            help="Error to expect, such as that of the validation set; 0 uses the mean since the last alarm.",
        ),
        Parameter(
            "allowance",
            "allowance (k)",
            0.0,
            1.0,
            open_high=True,
            help="Rises of the error below this do not count; choose half the rise that matters.",
        ),
        Parameter("threshold", "threshold (h)", 0.0, open_low=True, help="Sum above which it alarms."),
        MIN_OUTCOMES,
        DIRECTION,
    ),
)
UP, DOWN = 0, 1
SIDE = np.dtype(
    [
        ("total", "f8"),  # C
        ("split", "i8"),  # n when the sum was last zero; 0 if it never was
        ("split_losses", "i8"),  # Σ x up to then
    ]
)
STATE = np.dtype(
    [
        ("n", "i8"),  # outcomes since the last reset
        ("losses", "i8"),
        ("sides", SIDE, (2,)),
        ("statistic", "f8"),  # of the last alarm; shown at its outcome, after the reset
        ("alarms", "i8"),
    ]
)
PARAMETERS = np.dtype(
    [
        ("detector", "i8"),
        ("expected", "f8"),
        ("allowance", "f8"),
        ("threshold", "f8"),
        ("min_outcomes", "i8"),
        ("watched", "i8", (2,)),  # up, down
    ]
)


@hot
def advance(d, side, beyond):
    """Add the excess `beyond` to the sum of one side, and return the sum."""
    side.total += beyond
    if side.total <= 0.0:
        side.total = 0.0
        side.split = d.n
        side.split_losses = d.losses
    return side.total


@inner
def reset(d):
    """Reset after an alarm; keeps the alarm's statistic and the number of alarms."""
    d.n = 0
    d.losses = 0
    for k in range(2):
        side = d.sides[k]
        side.total = 0.0
        side.split = 0
        side.split_losses = 0


@hot
def observe(m, parameters, miss, position, row, alarms, count):
    """Pass one loss to every CUSUM of a model; return the new number of alarm rows."""
    for j in range(len(m.cusum)):
        d = m.cusum[j]
        p = parameters.cusum[j]
        d.n += 1
        d.losses += miss
        expected = p.expected if p.expected > 0.0 else d.losses / d.n
        beyond = miss - expected
        statistic = -1.0
        which = UP
        if p.watched[UP]:
            statistic = advance(d, d.sides[UP], beyond - p.allowance)
        if p.watched[DOWN]:
            fall = advance(d, d.sides[DOWN], -beyond - p.allowance)
            if fall > statistic:
                statistic = fall
                which = DOWN
        if statistic > p.threshold and d.n >= p.min_outcomes:
            d.statistic = statistic
            side = d.sides[which]
            before = side.split_losses / side.split if side.split > 0 else expected
            after = (d.losses - side.split_losses) / (d.n - side.split)
            count = append(
                alarms, count, position, row, m, d, p, statistic, p.threshold, before, after, float(d.n)
            )
            reset(d)
    return count


@inner
def show(m, parameters, statistic, threshold, alarms, warned, t):  # noqa: ARG001  (there is no warning level)
    """Write the larger sum of the monitored sides, and h; at an alarm, the sum that raised it."""
    for j in range(len(m.cusum)):
        d = m.cusum[j]
        p = parameters.cusum[j]
        if d.n > 0:
            shown = -1.0
            for k in range(2):
                if p.watched[k]:
                    shown = max(shown, d.sides[k].total)
            statistic[p.detector, t] = shown
        elif d.alarms > 0:
            statistic[p.detector, t] = d.statistic
        threshold[p.detector, t] = p.threshold
        alarms[p.detector, t] = d.alarms


def _row(spec: CusumSpec, detector: int, _window: object) -> tuple[object, ...]:
    watched = (spec.direction != "down", spec.direction != "up")
    return (detector, spec.expected, spec.allowance, spec.threshold, spec.min_outcomes, watched)


CUSUM = DetectorKind(
    name="cusum",
    version=1,
    entry=ENTRY,
    state=STATE,
    parameters=PARAMETERS,
    row=_row,
    observe=observe,
    show=show,
    hot_bytes=40,
)
