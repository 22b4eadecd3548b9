"""Where an alarm places a change of the model, with the clock of labels and with that of predictions.

    python -m tests.bench.prediction_clock

A prediction a minute; the error goes from 10 % to 40 % after 4,000 of them. Page-Hinkley with its defaults;
horizon 24 h. Delays are of the gamma distribution of shape 2. The place of an alarm is the time of the
prediction it fell on, or with the clock of labels its event time. It is given relative to where the same
detector alarms when every label comes at once, in hours: median and the middle 90 % of 20 streams.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamwatch.core.estimators.registers.prediction_clock import PredictionClockSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import PageHinkleySpec
from tests.layouts import TINY

MINUTE_MS, HOUR_MS = 60_000, 3_600_000
CHANGE, LENGTH, STREAMS = 4_000, 9_000, 20
CASES = (
    ("labels after 3 h", 3.0, 3.0),
    ("hits 6 h, errors 1 h", 6.0, 1.0),
    ("hits 1 h, errors 6 h", 1.0, 6.0),
)
BY_PREDICTION = PageHinkleySpec(name="by_prediction")
SPEC = replace(
    TINY,
    detectors=(PageHinkleySpec(),),
    registers=(PredictionClockSpec(24 * HOUR_MS, (BY_PREDICTION,)),),
)


def outcomes_of(seed: int, hits: float, errors: float) -> list[Outcome]:
    """Outcomes in the order of their labels; mean delays in hours."""
    rng = np.random.default_rng(seed)
    wrong = rng.random(LENGTH) < np.where(np.arange(LENGTH) < CHANGE, 0.1, 0.4)
    mean = np.where(wrong, errors, hits) * HOUR_MS
    delay = np.minimum(rng.gamma(2.0, 0.5, LENGTH) * mean, 23 * HOUR_MS).astype(np.int64)
    event = np.arange(LENGTH) * MINUTE_MS + delay
    return [
        Outcome("m", "a", "b" if wrong[i] else "a", int(event[i]), int(delay[i]))
        for i in np.argsort(event, kind="stable").tolist()
    ]


def places(seed: int, hits: float, errors: float) -> tuple[float, float]:
    """Hours after the alarm with labels at once at which each clock places the change; NaN without alarm."""
    outcomes = outcomes_of(seed, hits, errors)
    undelayed = sorted(outcomes, key=lambda each: each.event_ms - each.delay_ms)
    at_once = [Outcome("m", o.true_class, o.predicted_class, o.event_ms - o.delay_ms, 0) for o in undelayed]
    plain = EstimatorSet(replace(SPEC, registers=())).fold(at_once)
    (expected, *_) = [alarm.event_ms for alarm in plain if alarm.event_ms >= CHANGE * MINUTE_MS]
    by_label, by_prediction = np.nan, np.nan
    for alarm in reversed(EstimatorSet(SPEC).fold(outcomes)):
        if alarm.predicted_ms is None and alarm.event_ms >= CHANGE * MINUTE_MS:
            by_label = alarm.event_ms
        elif alarm.predicted_ms is not None and alarm.predicted_ms >= CHANGE * MINUTE_MS:
            by_prediction = alarm.predicted_ms
    return (by_label - expected) / HOUR_MS, (by_prediction - expected) / HOUR_MS


def main() -> None:
    """Print the figures."""
    for name, hits, errors in CASES:
        found = np.array([places(seed, hits, errors) for seed in range(STREAMS)])
        said = [
            f"{np.nanmedian(each):+.2f} h ({np.nanquantile(each, 0.05):+.2f} to "
            f"{np.nanquantile(each, 0.95):+.2f}, {int(np.isfinite(each).sum())} alarms)"
            for each in found.T
        ]
        print(f"{name}: by labels {said[0]}; by predictions {said[1]}")


if __name__ == "__main__":
    main()
