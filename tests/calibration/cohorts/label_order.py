"""The verdict in the order of labels, beside the majority: what cohorts are compared with."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.verdicts.detector import observe_lead
from streamwatch.core.estimators.verdicts.state import PACE, VERDICT, verdict_parameters
from tests.core.estimators.registers.cohorts.streams import Outcomes


@numba.njit(error_model="numpy")
def _turns_worse(label, predicted, pace, record, p, counts, found):
    leader = -1
    number = 0
    for i in range(label.size):
        y = label[i]
        if leader >= 0:
            lead = (1.0 if predicted[i] == y else 0.0) - (1.0 if leader == y else 0.0)
            if observe_lead(pace[0], record[0], p[0], lead, i + 1, i + 1) and record[0].verdict < 0:
                found[number] = i
                number += 1
        counts *= 0.999
        counts[y] += 1
        if leader < 0 or counts[y] > counts[leader]:
            leader = y
    return number


def turns_worse(outcomes: Outcomes) -> NDArray[np.int64]:
    """Times at which the verdict in the order of labels turns to "worse", in milliseconds."""
    found = np.zeros(1_000, np.int64)
    number = _turns_worse(
        outcomes.label,
        outcomes.predicted,
        np.zeros(1, PACE),
        np.zeros(1, VERDICT),
        verdict_parameters(100_000, 0.05).reshape(1),
        np.zeros(64),
        found,
    )
    return outcomes.at[found[:number]]
