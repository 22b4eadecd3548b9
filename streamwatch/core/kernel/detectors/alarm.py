"""The row a detector appends when it alarms, before it resets itself."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np

from streamwatch.core.kernel.compiled import inner

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
    return count + 1
