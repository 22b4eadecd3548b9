"""The row a detector appends when it alarms, or a verdict when it changes; and what Python reads of it."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import inner

ALARM = np.dtype(
    [
        ("position", "i8"),  # of the outcome in the batch
        ("row", "i8"),
        ("detector", "i8"),
        ("ordinal", "i8"),  # 1 for the first alarm of this (model, detector)
        ("outcome", "i8"),  # 1-based, of the model
        ("statistic", "f8"),
        ("threshold", "f8"),
        ("before", "f8"),
        ("after", "f8"),
        ("n_eff", "f8"),
        ("since", "i8"),  # of a verdict: the outcome from which it holds
        ("since_ms", "i8"),  # its event time
    ]
)


@inner
def append(
    alarms, count, position, row, detector, ordinal, outcome, statistic, threshold, before, after, n_eff
):
    """Write row `count` of `alarms`; gives the new number of rows."""
    alarm = alarms[count]
    alarm.position = position
    alarm.row = row
    alarm.detector = detector
    alarm.ordinal = ordinal
    alarm.outcome = outcome
    alarm.statistic = statistic
    alarm.threshold = threshold
    alarm.before = before
    alarm.after = after
    alarm.n_eff = n_eff
    alarm.since = 0
    alarm.since_ms = 0
    return count + 1


class AlarmRow(NamedTuple):
    """A detector of the model in `row` alarmed, or its verdict changed, at an outcome of the batch."""

    position: int
    row: int
    detector: int
    """Index in the specification's detectors; for a verdict their number plus the index of the opponent."""
    ordinal: int
    """1 for the first alarm of this (model, detector)."""
    outcome: int
    """1-based index among the model's outcomes."""
    statistic: float
    threshold: float
    before: float
    after: float
    n_eff: float
    since: int
    """Of a verdict: the outcome from which it holds; 0 of a detector."""
    since_ms: int
    """Its event time."""


def alarm_rows(alarms: NDArray[Any], count: int) -> list[AlarmRow]:
    """The first rows of `alarms`, so many, in the order of their outcomes."""
    found = [AlarmRow(*row) for row in alarms[:count].tolist()]
    return sorted(found, key=lambda alarm: (alarm.position, alarm.detector))
