"""Page-Hinkley (Page 1954; Gama, Sebastião, Rodrigues 2009, §3.4.1): a mean that rose, or fell, by enough for long.

With x̄_t the mean of the losses since the last reset, x_t included, δ the tolerance, λ the threshold:

    m_t = α·m_{t−1} + (x_t − x̄_t − δ),    M_t = min_{i≤t} m_i,    alarm when m_t − M_t > λ    (paper)
    PH_t = max(0, α·PH_{t−1} + x_t − x̄_t − δ),                    alarm when PH_t > λ          (clipped)

The two are equal at α = 1. For α < 1 the paper's sum drifts to −δ/(1−α) while its minimum never forgets. For a fall,
x̄_t − x_t − δ takes the place of x_t − x̄_t − δ. Alarms need `min_outcomes` outcomes since the last reset.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.kernel.compiled import hot, inner
from streamwatch.core.kernel.detectors.alarm import append
from streamwatch.core.kernel.detectors.kind import DetectorKind
from streamwatch.core.specs import PageHinkleySpec

UP, DOWN = 0, 1

SIDE = np.dtype(
    [
        ("total", "f8"),  # m_t, or PH_t
        ("minimum", "f8"),  # M_t; stays 0 in the clipped form
        ("split", "i8"),  # t at the last minimum
        ("split_losses", "i8"),  # losses up to there
    ]
)
STATE = np.dtype(
    [
        ("n", "i8"),  # t, outcomes since the last reset
        ("losses", "i8"),  # their losses
        ("statistic", "f8"),  # at the last outcome, so an alarm's is still seen
        ("alarms", "i8"),
        ("sides", SIDE, (2,)),
    ]
)
PARAMETERS = np.dtype(
    [
        ("detector", "i8"),
        ("tolerance", "f8"),
        ("threshold", "f8"),
        ("alpha", "f8"),
        ("min_outcomes", "i8"),
        ("paper", "i8"),
        ("watched", "i8", (2,)),  # up, down
    ]
)


@hot
def advance(side, excess, alpha, paper, n, losses):
    """One step of the sum on one side; gives the statistic m_t − M_t, or PH_t.

    `excess` is ±(x_t − x̄_t) − δ. The last minimum is remembered: it splits before from after.
    """
    total = alpha * side.total + excess
    if not paper:
        total = max(total, 0.0)
    side.total = total
    if total <= side.minimum or n == 1:
        side.minimum = total
        side.split = n
        side.split_losses = losses
    return total - side.minimum


@inner
def reset(d):
    """Start over after an alarm; the shown statistic and the number of alarms stay."""
    d.n = 0
    d.losses = 0
    for k in range(2):
        side = d.sides[k]
        side.total = 0.0
        side.minimum = 0.0
        side.split = 0
        side.split_losses = 0


@hot
def observe(m, parameters, miss, position, row, alarms, count):
    """Feed one loss to every Page-Hinkley of a model."""
    for j in range(len(m.page_hinkley)):
        d = m.page_hinkley[j]
        p = parameters.page_hinkley[j]
        d.n += 1
        d.losses += miss
        n = d.n
        deviation = miss - d.losses / n
        statistic = -1.0
        side = UP
        if p.watched[UP]:
            statistic = advance(d.sides[UP], deviation - p.tolerance, p.alpha, p.paper, n, d.losses)
        if p.watched[DOWN]:
            fall = advance(d.sides[DOWN], -deviation - p.tolerance, p.alpha, p.paper, n, d.losses)
            if fall > statistic:
                statistic = fall
                side = DOWN
        d.statistic = statistic
        if statistic > p.threshold and n >= p.min_outcomes:
            d.alarms += 1
            split = d.sides[side].split
            split_losses = d.sides[side].split_losses
            before = split_losses / split
            after = (d.losses - split_losses) / (n - split)
            count = append(
                alarms,
                count,
                position,
                row,
                p.detector,
                d.alarms,
                m.outcomes,
                statistic,
                p.threshold,
                before,
                after,
                float(n),
            )
            reset(d)
    return count


@inner
def show(m, parameters, statistic, threshold, alarms, t):
    """The statistic at the last outcome (at an alarm the one that alarmed) and λ."""
    for j in range(len(m.page_hinkley)):
        d = m.page_hinkley[j]
        p = parameters.page_hinkley[j]
        statistic[p.detector, t] = d.statistic if d.n > 0 or d.alarms > 0 else np.nan
        threshold[p.detector, t] = p.threshold
        alarms[p.detector, t] = d.alarms


def _row(spec: PageHinkleySpec, detector: int, _window: object) -> tuple[object, ...]:
    watched = (spec.direction != "down", spec.direction != "up")
    return (
        detector,
        spec.tolerance,
        spec.threshold,
        spec.alpha,
        spec.min_outcomes,
        spec.form == "paper",
        watched,
    )


PAGE_HINKLEY = DetectorKind(
    name="page_hinkley",
    version=1,
    spec=PageHinkleySpec,
    state=STATE,
    parameters=PARAMETERS,
    row=_row,
    observe=observe,
    show=show,
)
