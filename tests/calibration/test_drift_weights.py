"""The weights a declared drift gives to the outcomes after it, read off the weighted accuracy itself.

w(t) = max(1 + (w_avg - 1)·ln(d/(t+1)), 1) for t = 0 … averages w_avg over d outcomes in the continuous
limit; summed over whole outcomes it is 1 + (w_avg - 1)·(ln d - ln(d!)/d), 2.936 at d = 100 and 2.991 at d =
1000 for w_avg = 3.
"""

from __future__ import annotations

from math import lgamma, log

import numpy as np
import pytest

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import DriftWeightedSpec, MonitorsSpec


def average(d, w_avg):
    """Mean of w(0) … w(d-1), summed exactly by ln(d!)."""
    return 1.0 + (w_avg - 1.0) * (log(d) - lgamma(d + 1) / d)


def weights_of(accuracy, hits):
    """Weight of every outcome, from Σwh/Σw before and after it; the first weighs 1.

    A hit moves a to (Sa + w)/(S + w), a miss to Sa/(S + w).
    """
    total, weights = 1.0, [1.0]
    for t in range(1, len(hits)):
        before, after = accuracy[t - 1], accuracy[t]
        weight = total * ((after - before) / (1.0 - after) if hits[t] else (before - after) / after)
        weights.append(weight)
        total += weight
    return np.array(weights)


def test_the_sums_in_closed_form_are_the_known_ones() -> None:
    assert average(100, 3.0) == pytest.approx(2.936, abs=5e-4)
    assert average(1_000, 3.0) == pytest.approx(2.991, abs=5e-4)


@pytest.mark.parametrize("calm", [96, 992])
@pytest.mark.parametrize("w_avg", [2.0, 3.0, 5.0])
def test_outcomes_after_the_first_drift_weigh_w_avg_on_average(calm, w_avg) -> None:
    """A drift declared at outcome T gives d = T; the mean of the next T weights is exact to 1e-6.

    (Reading weights off differences of accuracies costs the other digits.) Every fifth outcome is a miss,
    then all but every fifth.
    """
    table = ModelTable(
        MonitorsSpec(drift_weighted=(DriftWeightedSpec(w_avg=w_avg),), max_models=1, max_classes=2)
    )
    length = 3 * calm + 300
    rows = np.full(length, table.add_model(), np.int32)
    every_fifth = np.arange(length) % 5 == 0
    miss = np.where(np.arange(length) < calm, every_fifth, ~every_fifth).astype(np.int32)
    accuracy = table.trace(rows, np.zeros_like(miss), miss).weighted[0]
    weights = weights_of(accuracy, miss == 0)
    declared = int(np.flatnonzero(weights > 1.0 + 1e-6)[0])  # outcomes up to the drift
    assert calm < declared < calm + 200
    assert weights[:declared] == pytest.approx(np.ones(declared), abs=1e-6)
    assert weights[declared : 2 * declared].mean() == pytest.approx(average(declared, w_avg), abs=1e-6)
    assert weights[2 * declared - 1 :] == pytest.approx(1.0, abs=1e-6)
