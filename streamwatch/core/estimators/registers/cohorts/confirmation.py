"""Confirmation of alarms: whether predictions of that time err more, or only the mix of labels changed.

A detector takes outcomes in the order of their labels. If errors are labelled sooner than hits, or later, a
change of traffic changes the mix of labels that arrive, and the detector finds a rise of the error though the
model errs as before. Cohorts of prediction time do not have that bias (see `cohorts`). So an alarm is
unconfirmed until the cohort that contains its time has been judged, and then, and at each cohort after that,
the error of predictions made since a change is compared with that of those before it:

    e = Σ w·miss / Σ w,    w = 1/G    (G as for the verdict; a ratio, whose variance is by the delta method)
    z = (e_after − e_before) / √(φ·(v_after + v_before))

for every beginning of a stretch up to the alarm as the change; the one with the greatest z counts. The alarm
is confirmed if z ≥ 3, and contradicted if e_after − e_before + 2·√(φ·(…)) is below half of the rise that the
detector found. Otherwise it waits for the next cohort. φ is the larger dispersion of the leads.
"""

from __future__ import annotations

from math import sqrt
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.cohorts.readout import IMMEDIATE_MS
from streamwatch.core.estimators.registers.cohorts.state import FAST_RULE, HITS, MISSES, SLOTS
from streamwatch.core.records.events import Confirmation

LEAST_COHORTS: Final = 40
"""Alarms can be confirmed once more cohorts than this are judged: dispersion is known then."""
CONFIRMS: Final = 3.0
"""Standard errors by which predictions must err more."""
CONTRADICTS: Final = 2.0
"""Standard errors of the bound that must be below half of the rise found."""
LEAST_WEIGHT: Final = 100.0
"""Weight of outcomes before and after a change from which they are compared."""


def expected_ms(model: Any, at_ms: int) -> int | None:  # a record of numpy's
    """Find the clock from which cohorts may confirm an alarm at a time.

    None if labels come within a minute, as alarms then need no confirmation, and if too few cohorts have been
    judged to give one.

    Parameters
    ----------
    model
        `MODEL` record, with no outcomes held.
    at_ms
        Clock at the alarm.
    """
    if model["judged"] <= LEAST_COHORTS:
        return None
    newest = model["cohorts"][int(model["next_cohort"] - 1) % SLOTS]
    age_ms = int(newest["age_ms"])
    if newest["rule"] == FAST_RULE and age_ms <= IMMEDIATE_MS:
        return None
    closes_ms = int(model["closes_ms"]) if model["is_open"] else int(newest["ended_ms"])
    return max(closes_ms, at_ms) + age_ms


def confirmation_of(model: Any, at_ms: int, rise: float) -> Confirmation | None:
    """Judge an alarm by the cohorts; None while they do not decide.

    Parameters
    ----------
    model
        `MODEL` record, with no outcomes held.
    at_ms
        Clock at the alarm.
    rise
        Error after the change less that before it, as the detector found them; positive.
    """
    judged = int(model["bounds"] - (model["next_cohort"] - model["first_cohort"]))
    last = model["cohorts"][int(model["first_cohort"] - 1) % SLOTS]
    if last["ended_ms"] <= at_ms:  # as before the first cohort is judged: its end is 0 then
        return None
    starts: NDArray[np.int64] = model["bounds_ms"][:judged]
    stretches = model["stretches"][:judged]
    dispersion = max(1.0, *model["opponents"]["dispersion"].tolist())
    before = _errors(np.cumsum(stretches["weights"], 0), np.cumsum(stretches["weight_squares"], 0))
    after = _errors(
        np.cumsum(stretches["weights"][::-1], 0)[::-1], np.cumsum(stretches["weight_squares"][::-1], 0)[::-1]
    )
    best: tuple[float, Confirmation, float] | None = None
    for k in range(1, judged):
        (e_before, v_before, n_before), (e_after, v_after, n_after) = before[k - 1], after[k]
        if starts[k] > at_ms or min(n_before, n_after) < LEAST_WEIGHT:
            continue
        error = sqrt(dispersion * (v_before + v_after))
        change = e_after - e_before
        z = change / max(error, 1e-300)  # without any variance, every rise is beyond doubt
        if best is None or z > best[0]:
            found = Confirmation(z >= CONFIRMS, int(starts[k]), e_before, e_after)
            best = z, found, change + CONTRADICTS * error
    if best is None:
        return None
    _, found, bound = best
    return found if found.is_confirmed or bound < rise / 2.0 else None


def _errors(weights: NDArray[np.float64], squares: NDArray[np.float64]) -> list[tuple[float, float, float]]:
    """Error, its variance and the weight of each of m sums, (m, 2) each; an error without weight is 0."""
    total = np.maximum(weights.sum(1), 1e-300)
    error = weights[:, MISSES] / total
    variance = ((1.0 - error) ** 2 * squares[:, MISSES] + error**2 * squares[:, HITS]) / total**2
    return list(zip(error.tolist(), variance.tolist(), total.tolist(), strict=True))
