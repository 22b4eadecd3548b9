"""What all detectors share: their kind, the records of alarms, and the ring of latest losses."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.entries import Entry
from streamwatch.core.jit import hot, inner

# Kind of detector: its catalogue entry, record types and compiled functions.


@dataclass(frozen=True, slots=True)
class DetectorKind:
    """Kind of detector; everything else about detectors is derived from the list `detectors.KINDS`.

    A model's record has a field `name`: an array of `state` records, one per detector of this kind.
    The parameter row has an array of `parameters` records under the same name, in the same order; their field
    `detector` is the detector's index in the configuration.
    """

    name: str
    version: int
    """Incremented when the meaning of `state` changes; snapshots of other versions are not continued."""
    entry: Entry
    """Catalogue entry, from which settings, checks and documentation are derived."""
    state: np.dtype[np.void]
    """Record of one detector's state, initially zeros, without padding.

    Field `alarms` (i8) counts its alarms.
    """
    parameters: np.dtype[np.void]
    row: Callable[[Any, int, Callable[[Any], int]], tuple[object, ...]]
    """Build the parameter record from a specification.

    (specification, detector index, function from an AdwinSpec to the index of its window) → parameter record
    """
    observe: Callable[..., int]
    """Pass one outcome to all detectors of this kind.

    (model, parameters, miss, position, row, alarms, count) → count
    """
    show: Callable[..., None]
    """Write column t of the four arrays, one row per detector.

    (model, parameters, statistic, threshold, alarms, warned, t). Kinds without a warning level do not write
    `warned`.
    """
    window: Callable[[Any], Any] = lambda _spec: None
    """AdwinSpec of the window that a detector uses, from its specification; None if it uses none."""
    hot_bytes: int = 0
    """Number of bytes at the start of `state` that every outcome accesses, to be prefetched."""

    @property
    def spec(self) -> type[Any]:
        """Class of the kind's specifications."""
        return self.entry.spec


# Records of alarms: written by detectors at alarms and for changes of verdicts, and read by Python code.


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
    if not count:
        return []
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
