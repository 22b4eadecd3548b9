"""Elec2 with late labels and a model exchanged for a worse one: where either clock places alarms."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from streamwatch.core.estimators.registers.prediction_clock import PredictionClockSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.specs import DAY_MS, PageHinkleySpec
from tests.golden.elec2_late import BEGAN_MS, HORIZON_MS, LateElec2, late_elec2
from tests.layouts import TINY

EVERY, BAD_DAYS, FIRST, LAST = 60, 15, 40, 930
LABEL = PageHinkleySpec("label", threshold=20.0, dependence="ignored")
PREDICTION = replace(LABEL, name="prediction")
SPEC = replace(TINY, detectors=(LABEL,), registers=(PredictionClockSpec(HORIZON_MS, (PREDICTION,)),))
DELAYS = {"hits 4 days, errors 0.8": (4.0, 0.8), "hits 0.8 days, errors 4": (0.8, 4.0)}


def is_bad(day: np.ndarray) -> np.ndarray:
    """Tell on which days nb@5 predicts."""
    return (day >= FIRST) & (day < LAST) & ((day - FIRST) % EVERY < BAD_DAYS)


def exchanged(hits_days: float, errors_days: float) -> LateElec2:
    """Answers of both models, each in its turn, with late labels."""
    good, bad = (
        late_elec2(model, hits_days=hits_days, errors_days=errors_days, seed=seed)
        for seed, model in enumerate(("levbag@8", "nb@5"))
    )
    chosen = is_bad((good.predicted_ms - BEGAN_MS) / DAY_MS)
    said = zip(chosen.tolist(), good.predicted_class, bad.predicted_class, strict=True)
    return LateElec2(
        good.predicted_ms,
        np.where(chosen, bad.delay_ms, good.delay_ms),
        np.where(chosen, bad.hit, good.hit),
        good.true_class,
        tuple(b if c else g for c, g, b in said),
    )


@dataclass(frozen=True)
class Placed:
    """Days at which alarms stand, by clock."""

    label: np.ndarray
    prediction: np.ndarray


def placed(elec2: LateElec2) -> Placed:
    """Raise the alarms of both detectors."""
    alarms = EstimatorSet(SPEC).fold(elec2.outcomes())
    label = [a.event_ms for a in alarms if a.predicted_ms is None]
    prediction = [a.predicted_ms for a in alarms if a.predicted_ms is not None]
    return Placed(*((np.array(each, np.float64) - BEGAN_MS) / DAY_MS for each in (label, prediction)))


def first_alarms(days: np.ndarray) -> np.ndarray:
    """Days from each exchange for nb@5 to the first alarm that stands while it predicts; those found."""
    first = [days[(days >= at) & (days < at + BAD_DAYS)] - at for at in range(FIRST, LAST, EVERY)]
    return np.array([each.min() for each in first if len(each)])
