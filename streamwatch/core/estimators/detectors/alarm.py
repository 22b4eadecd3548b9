"""Records of alarms: written by detectors at alarms and for changes of verdicts, and read by Python code."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import hot, inner

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
        ("errors", "i8"),  # errors of the model up to this outcome; for a verdict 0
    ]
)


@inner
def append(alarms, count, position, row, m, d, p, statistic, threshold, before, after, n_eff):
    """Count an alarm of detector `d`, write it to row `count` of `alarms`, and return the new number of rows.

    `m` is the model's record, `d` and `p` are the detector's state and parameters in it.
    """
    d.alarms += 1
    alarm = alarms[count]
    alarm.position = position
    alarm.row = row
    alarm.detector = p.detector
    alarm.ordinal = d.alarms
    alarm.outcome = m.outcomes
    alarm.statistic = statistic
    alarm.threshold = threshold
    alarm.before = before
    alarm.after = after
    alarm.n_eff = n_eff
    alarm.since = 0
    alarm.since_ms = 0
    alarm.errors = 0
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
    errors: int = 0
    """Errors of the model up to the outcome; 0 for a verdict."""


def alarm_rows(alarms: NDArray[Any], count: int) -> list[AlarmRow]:
    """Read the first `count` rows of `alarms`, in the order of their outcomes."""
    found = [AlarmRow(*row) for row in alarms[:count].tolist()]
    return sorted(found, key=lambda alarm: (alarm.position, alarm.detector))


# Ring of the last losses of a model, one bit each, at most `MOST`.


MOST = 1024
WORDS = MOST // 64


@hot
def loss_at(words, position):
    """Loss at a position of the ring, 0 or 1."""
    return np.int64((words[position >> 6] >> np.uint64(position & 63)) & np.uint64(1))


@hot
def put_loss(words, position, miss):
    """Set the loss at a position of the ring."""
    bit = np.uint64(1) << np.uint64(position & 63)
    words[position >> 6] = (words[position >> 6] | bit) if miss else (words[position >> 6] & ~bit)


@hot
def behind(head, steps, size):
    """Position `steps` before the head of a ring; `steps` is at most `size`."""
    position = head - steps
    return position if position >= 0 else position + size
