"""Record of a model's recovery: the drift under way, the last that ended, and counts of all.

Only whole words and all zero at first. The error is that of the first configured fading factor α; its memory
length is 1/(1 − α).
"""

from __future__ import annotations

from math import log

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.metrics import DEPTH_BOUNDS, LENGTH_BOUNDS
from streamwatch.core.specs import FadingSpec, MonitorsSpec

VERSION = 1
"""Raised when the meaning of the state changes."""

SAMPLES = 64
"""Samples of the faded error that are kept, of at least 4 memory lengths."""
PER_MEMORY = 8
"""Least number of samples in a memory length, unless it has fewer outcomes."""
MOST_MEMORIES = 10
"""Least number of memory lengths after which a drift ends as not recovered."""

SAMPLE = np.dtype([("error", "f8"), ("n_eff", "f8")])

OF_DRIFTS = [
    ("since", "i8"),  # outcomes before the drift under way; 0 without one
    ("alarm_ms", "i8"),  # event time of the outcome that declared it
    ("before", "f8"),  # error at `since`
    ("limit", "f8"),  # … plus its bound
    ("peak", "f8"),  # highest error since
    ("recovered", "i8"),  # drifts that ended, by how
    ("not_recovered", "i8"),
    ("depth", "f8"),  # of the last that ended
    ("outcomes", "f8"),  # … from its start until the error was back; NaN if it did not come back
]
RECOVERY = np.dtype(
    [
        *OF_DRIFTS,
        ("alarmed", "i8"),  # outcome that declared the drift under way
        ("back", "i8"),  # the first outcome from the peak on at which the error was within its limit, or 0
        ("depth_sum", "f8"),
        ("outcomes_sum", "f8"),  # of those that recovered
        ("depths", "i8", (len(DEPTH_BOUNDS) + 1,)),  # drifts by depth, the last bucket without bound
        ("lengths", "i8", (len(LENGTH_BOUNDS) + 1,)),
        ("sampled", "i8"),  # samples taken
        ("samples", SAMPLE, (SAMPLES,)),  # of outcome k·2^shift at place k modulo their number
    ]
)
TRACED = np.dtype(OF_DRIFTS)
"""What a trace has of a record."""
RECOVERY_PARAMETERS = np.dtype(
    [
        ("shift", "i8"),  # an error is sampled every 2^shift outcomes
        ("memory", "i8"),  # in outcomes
        ("of_bound", "f8"),  # ln(2/δ)/2
        ("longest", "i8"),  # outcomes after which a drift ends as not recovered
        ("depths", "f8", (len(DEPTH_BOUNDS),)),  # upper bounds of buckets
        ("lengths", "f8", (len(LENGTH_BOUNDS),)),
    ]
)


def watched_of(spec: MonitorsSpec) -> FadingSpec | None:
    """Return the fading factor whose error is followed: the first; None without one."""
    return next((f for f in spec.forgetting if isinstance(f, FadingSpec)), None)


def recovery_identity(spec: MonitorsSpec) -> tuple[object, ...]:
    """Settings that a state must have been made under to be continued."""
    return watched_of(spec), spec.confidence_delta, spec.verdict_outcomes, DEPTH_BOUNDS, LENGTH_BOUNDS


def recovery_parameters(alpha: float, delta: float, outcomes: int) -> NDArray[np.void]:
    """The parameters (`RECOVERY_PARAMETERS`), shape ().

    Parameters
    ----------
    alpha
        Fading factor in (0, 1).
    delta
        δ of the Hoeffding bound, in (0, 1).
    outcomes
        Outcomes after which a drift ends as not recovered; ten memory lengths if those are more.
    """
    memory = max(round(1.0 / (1.0 - alpha)), 1)
    shift = max((memory // PER_MEMORY).bit_length() - 1, 0)
    longest = max(outcomes, MOST_MEMORIES * memory)
    found = (shift, memory, log(2.0 / delta) / 2.0, longest, DEPTH_BOUNDS, LENGTH_BOUNDS)
    return np.array(found, RECOVERY_PARAMETERS)
