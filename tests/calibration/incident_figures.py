"""Figures of docs/evidence/incidents.md: how far apart alarms on one change lie, and what it looks like.

python -m tests.calibration.incident_figures
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace

import numpy as np

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Alarm, Outcome
from tests.core.estimators.notifying.test_class_shift import CASES, found_at_alarms
from tests.layouts import DEFAULT

CHANGED, OUTCOMES, LATEST = 20_000, 60_000, 8_000
"""Alarms more than `LATEST` outcomes after the change are of something else."""
CHANGES = ((0.1, 0.05), (0.1, 0.1), (0.1, 0.2), (0.2, 0.05), (0.2, 0.1), (0.2, 0.3), (0.05, 0.05), (0.3, 0.1))
"""Error before, and by how much it rises."""
RUNS, SHIFT_RUNS = 12, 25


def alarms_of(chance: np.random.Generator, error: float, rise: float) -> list[Alarm]:
    """First alarm of each detector, and first verdict, after the error of one model rose."""
    label = np.cumsum(chance.random(OUTCOMES) < 0.22) % 2  # no change is right .78 of the time
    wrong = chance.random(OUTCOMES) < np.where(np.arange(OUTCOMES) < CHANGED, error, error + rise)
    outcomes = [
        Outcome("m", str(y), str(y ^ int(w)), t, 0)
        for t, (y, w) in enumerate(zip(label.tolist(), wrong.tolist(), strict=True))
    ]
    first: dict[str, Alarm] = {}
    for alarm in EstimatorSet(replace(DEFAULT, max_models=1)).fold(outcomes):
        worse = alarm.judgement is None or alarm.judgement.verdict < 0
        if alarm.outcome > CHANGED and worse:
            first.setdefault(alarm.detector, alarm)
    return list(first.values())


def main() -> None:
    """Print medians and largest distances, and what was said of simulated changes of classes and model."""
    chance = np.random.default_rng(3)
    between: list[int] = []
    since: list[int] = []
    for error, rise in CHANGES:
        for _ in range(RUNS):
            alarms = alarms_of(chance, error, rise)
            places = [a.outcome for a in alarms if a.judgement is None and a.outcome < CHANGED + LATEST]
            between += [max(places) - min(places)] if len(places) > 1 else []
            since += [
                min(max(0, abs(a.judgement.since - place)) for place in places)
                for a in alarms
                if a.judgement is not None and a.judgement.since > CHANGED - LATEST and places
            ]
    for name, found in (("detectors", between), ("since of the verdict", since)):
        median, most = np.median(found), np.quantile(found, 0.95)
        told = f"{len(found)} changes, median {median:.0f}, 95 % below {most:.0f}, at most {max(found)}"
        sys.stdout.write(f"{name}: {told}\n")
    for name, (shares, recalls, _) in CASES.items():
        for sticky in (0.0, 0.8):
            said = [found_at_alarms(seed, shares, recalls, sticky) for seed in range(SHIFT_RUNS)]
            last = Counter(each[-1] for each in said if each)
            sys.stdout.write(f"{name}, labels correlated at {sticky}: {dict(last)}\n")


if __name__ == "__main__":
    main()
