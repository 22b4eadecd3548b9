"""Page-Hinkley (Page 1954; Gama, Sebastião, Rodrigues 2009, §3.4.1): lasting rise or fall of the mean.

With x̄_t the mean of the losses since the last reset, x_t included, δ the tolerance, λ the threshold:

    m_t = α·m_{t−1} + (x_t − x̄_t − δ),    M_t = min_{i≤t} m_i,    alarm when m_t − M_t > λ    (paper)
    PH_t = max(0, α·PH_{t−1} + x_t − x̄_t − δ),                    alarm when PH_t > λ          (clipped)

The two are equal at α = 1. For α < 1 the paper's sum drifts to −δ/(1−α) while its minimum is never forgotten.
For a fall, x̄_t − x_t − δ replaces x_t − x̄_t − δ. An alarm needs `min_outcomes` outcomes since the
last reset.

The defaults (clipped, δ = .005, λ = 40, α = .9999, on the loss, dependence followed) raise, in a million
outcomes of a model that does not change, 13 false alarms at an error of .2, 29 at .3, and 1 at .2 if losses
have a lag-1 correlation of .5 (`notifying.false_alarms`). A rise smaller
than δ + λφ(1−α), .009 by default, is never detected. There is no warning level.

That threshold is for independent losses. Where `dependence` is followed, λ·φ replaces λ, φ the
dispersion of the losses (`dependence`): on independent losses a sum exceeds λ by chance with a probability of
about exp(−2δλ/σ²), and φσ² is the variance per outcome of sums of dependent ones.

With `input: error_rate` the error faded with factor .999 replaces the loss (the curve monitored in
the 2009 paper's §4.2); an alarm does not reset it. It moves slowly, so suitable thresholds are far smaller.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.estimators.dependence import DEPENDENCE, HOT_BYTES, count_loss, dispersion_of
from streamwatch.core.estimators.detectors.kind import DetectorKind, append
from streamwatch.core.estimators.entries import DEPENDENCE as DEPENDENCE_PARAMETER
from streamwatch.core.estimators.entries import DIRECTION, MIN_OUTCOMES, Entry, Parameter
from streamwatch.core.jit import hot, inner
from streamwatch.core.specs import PageHinkleySpec

ENTRY = Entry(
    "page_hinkley",
    PageHinkleySpec,
    "alarms when the loss has stayed above its own mean for a long time",
    "PH ← max(0, α·PH + x - x̄ - δ), alarm if PH > λφ, φ the dispersion of losses",
    "Page 1954; Gama, Sebastião, Rodrigues 2009, §3.4.1 (φ = 1)",
    "O(1) per outcome; 32 numbers per model",
    (
        Parameter(
            "tolerance",
            "tolerance (δ)",
            0.0,
            1.0,
            open_high=True,
            help="Rises of the error below this do not count.",
        ),
        Parameter(
            "threshold",
            "threshold (λ)",
            0.0,
            open_low=True,
            help="Sum above which it alarms; 40 gives about 13 false alarms in a million outcomes at an "
            "error of 0.2.",
        ),
        Parameter(
            "alpha",
            "fading factor (α)",
            0.0,
            1.0,
            open_low=True,
            help="Fading factor of the sum. 1 never forgets; below 1, rises under δ + λφ(1-α) are missed.",
        ),
        MIN_OUTCOMES,
        DEPENDENCE_PARAMETER,
        Parameter(
            "form",
            "form",
            choices=("clipped", "paper"),
            help="clipped: the sum never falls below zero; paper: the sum minus its minimum.",
        ),
        DIRECTION,
        Parameter(
            "input",
            "input",
            choices=("loss", "error_rate"),
            help="Input: every loss, or the error rate faded with factor 0.999.",
        ),
    ),
)
UP, DOWN = 0, 1
ERROR_RATE_ALPHA = 0.999
"""Fading factor of the input `error_rate`."""

SIDE = np.dtype(
    [
        ("total", "f8"),  # m_t, or PH_t
        ("minimum", "f8"),  # M_t; stays 0 in the clipped form
        ("split", "i8"),  # t at the last minimum
        ("split_input", "f8"),  # Σ x up to then
    ]
)
STATE = np.dtype(
    [
        ("n", "i8"),  # t, outcomes since the last reset
        ("input", "f8"),  # Σ x over them
        ("sides", SIDE, (2,)),
        ("dependence", DEPENDENCE, (1,)),  # of the losses, where it is followed
        ("statistic", "f8"),  # of the last alarm; shown at its outcome, after the reset
        ("alarms", "i8"),
        ("faded_losses", "f8"),  # S ← αS + loss and B ← αB + 1, for the error rate S/B
        ("faded_outcomes", "f8"),
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
        ("error_rate", "i8"),
        ("follows", "i8"),
        ("watched", "i8", (2,)),  # up, down
    ]
)


@hot
def advance(side, excess, alpha, paper, n, total_input):
    """Update the sum of one side, and return the statistic m_t − M_t, or PH_t.

    `excess` is ±(x_t − x̄_t) − δ. The time of the last minimum is stored: it separates before from after.
    """
    total = alpha * side.total + excess
    if not paper:
        total = max(total, 0.0)
    side.total = total
    if total <= side.minimum or n == 1:
        side.minimum = total
        side.split = n
        side.split_input = total_input
    return total - side.minimum


@hot
def error_rate(d, miss):
    """Update the faded error S/B by this loss, and return it (Gama, Sebastião, Rodrigues 2009, §3.2.1)."""
    d.faded_losses = ERROR_RATE_ALPHA * d.faded_losses + miss
    d.faded_outcomes = ERROR_RATE_ALPHA * d.faded_outcomes + 1.0
    return d.faded_losses / d.faded_outcomes


@inner
def reset(d):
    """Reset after an alarm; keeps its statistic, the number of alarms, the faded error and the dependence."""
    d.n = 0
    d.input = 0.0
    for k in range(2):
        side = d.sides[k]
        side.total = 0.0
        side.minimum = 0.0
        side.split = 0
        side.split_input = 0.0


@hot
def observe(m, parameters, miss, position, row, alarms, count):
    """Pass one loss to every Page-Hinkley of a model; return the new number of alarm rows."""
    for j in range(len(m.page_hinkley)):
        d = m.page_hinkley[j]
        p = parameters.page_hinkley[j]
        d.n += 1
        x = 1.0 * miss
        if p.error_rate:
            x = error_rate(d, miss)
        if p.follows:
            count_loss(d.dependence[0], int(miss))
        d.input += x
        n = d.n
        deviation = x - d.input / n
        statistic = -1.0
        side = UP
        if p.watched[UP]:
            statistic = advance(d.sides[UP], deviation - p.tolerance, p.alpha, p.paper, n, d.input)
        if p.watched[DOWN]:
            fall = advance(d.sides[DOWN], -deviation - p.tolerance, p.alpha, p.paper, n, d.input)
            if fall > statistic:
                statistic = fall
                side = DOWN
        threshold = threshold_now(d, p)
        if statistic > threshold and n >= p.min_outcomes:
            d.statistic = statistic
            split = d.sides[side].split
            split_input = d.sides[side].split_input
            before = split_input / split
            after = (d.input - split_input) / (n - split)
            count = append(
                alarms, count, position, row, m, d, p, statistic, threshold, before, after, float(n)
            )
            reset(d)
    return count


@hot
def threshold_now(d, p):
    """Threshold λ, or λφ where the dependence of losses is followed."""
    return p.threshold * dispersion_of(d.dependence[0]) if p.follows else p.threshold


@inner
def statistic_now(d, watched):
    """Larger statistic of the monitored sides after the last outcome; at an alarm, the one that raised it.

    NaN before the first outcome.
    """
    if d.n == 0:
        return d.statistic if d.alarms > 0 else np.nan
    statistic = -1.0
    for k in range(2):
        if watched[k]:
            statistic = max(statistic, d.sides[k].total - d.sides[k].minimum)
    return statistic


@inner
def show(m, parameters, statistic, threshold, alarms, warned, t):  # noqa: ARG001  (there is no warning level)
    """Write the statistic and the threshold."""
    for j in range(len(m.page_hinkley)):
        d = m.page_hinkley[j]
        p = parameters.page_hinkley[j]
        statistic[p.detector, t] = statistic_now(d, p.watched)
        threshold[p.detector, t] = threshold_now(d, p)
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
        spec.input == "error_rate",
        spec.dependence == "followed",
        watched,
    )


PAGE_HINKLEY = DetectorKind(
    name="page_hinkley",
    version=3,
    entry=ENTRY,
    state=STATE,
    hot_bytes=80 + HOT_BYTES,  # up to what every loss accesses of its dependence
    parameters=PARAMETERS,
    row=_row,
    observe=observe,
    show=show,
)
