"""Records of alarms: written by detectors at alarms and for changes of verdicts, and read by Python code."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import inner

ALARM = np.dtype(
    [
        ("position", "i8"),  # position of the outcome in the batch
        ("row", "i8"),
        ("detector", "i8"),
        ("ordinal", "i8"),  # 1 for the first alarm of this (model, detector)
        ("outcome", "i8"),  # number of the outcome in the model, from 1
        ("statistic", "f8"),
        ("threshold", "f8"),
        ("before", "f8"),
        ("after", "f8"),
        ("n_eff", "f8"),
        ("since", "i8"),  # for a verdict, the outcome from which it holds
        ("since_ms", "i8"),  # its event time
    ]
)


@inner
def append(
    alarms, count, position, row, detector, ordinal, outcome, statistic, threshold, before, after, n_eff
):
    """Write row `count` of `alarms`, and return the new number of rows."""
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
    """Alarm of a detector of the model in `row`, or change of its verdict, at an outcome of the batch."""

    position: int
    row: int
    detector: int
    """Index among the specification's detectors.

    For a verdict, their number plus the index of the opponent.
    """
    ordinal: int
    """1 for the first alarm of this (model, detector)."""
    outcome: int
    """Number of the outcome in the model, from 1."""
    statistic: float
    threshold: float
    before: float
    after: float
    n_eff: float
    since: int
    """For a verdict, the outcome from which it holds; 0 for a detector."""
    since_ms: int
    """Event time of outcome `since`."""


def alarm_rows(alarms: NDArray[Any], count: int) -> list[AlarmRow]:
    """Read the first `count` rows of `alarms`, in the order of their outcomes."""
    found = [AlarmRow(*row) for row in alarms[:count].tolist()]
    return sorted(found, key=lambda alarm: (alarm.position, alarm.detector))
