"""Where MOA and river define a detector otherwise, and what follows from it; each difference is a number
here.

Stream D1: 40,000 losses, Bernoulli .20 / .35 / .20 / .10. (Differences in measures are in
`test_moa_measures`.)
"""

from __future__ import annotations

import gzip
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from river import drift

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import DetectorSpec, MonitorsSpec, PageHinkleySpec

HERE = Path(__file__).parent
CLIPPED = PageHinkleySpec(threshold=50.0, dependence="ignored")
PAPER = replace(CLIPPED, form="paper")


@cache
def golden(name):
    with gzip.open(HERE / f"{name}.csv.gz", "rt") as lines:
        return np.genfromtxt(lines, delimiter=",", names=True, deletechars="")


@cache
def losses():
    return golden("D1_bernoulli_input")["x"].astype(np.int32)


def traced(*detectors: DetectorSpec, loss=None):
    loss = losses() if loss is None else np.array(loss, np.int32)
    table = ModelTable(
        MonitorsSpec((), detectors, (), max_models=1, max_classes=2, opponents=(), shadow_max_classes=0)
    )
    return table.trace(np.full(len(loss), table.add_model(), np.int32), np.zeros_like(loss), loss)


def unclipped(loss, tolerance, threshold, alpha, least=30):
    """MOA's Page-Hinkley: sum ← α·sum + x - x̄ - δ, alarm and reset if sum > λ; no minimum, no clipping."""
    total, errors, n = 0.0, 0, 0
    sums, alarms = [], []
    for step, x in enumerate(loss.tolist(), 1):
        n, errors = n + 1, errors + x
        total = alpha * total + x - errors / n - tolerance
        sums.append(total)
        if n >= least and total > threshold:
            alarms.append(step)
            total, errors, n = 0.0, 0, 0
    return np.array(sums), alarms


def test_moas_page_hinkley_sums_without_clipping() -> None:
    """MOA 24.07 follows the plain sum at every step kept of its output, and alarms where it does."""
    theirs = golden("D1_bernoulli_moa_page_hinkley")
    sums, alarms = unclipped(losses(), 0.005, 50.0, 0.9999)
    steps = theirs["step"].astype(int)
    np.testing.assert_allclose(theirs["sum"], sums[steps - 1], rtol=1e-8, atol=1e-8)
    assert steps[theirs["change"] == 1].tolist() == alarms
    assert len(alarms) == 1


def test_clipped_the_statistic_is_never_below_moas_and_the_alarm_never_later() -> None:
    """An unclipped sum has first to climb out of what it sank into: 136 under 0 for a calm beginning."""
    sums, alarms = unclipped(losses(), 0.005, 50.0, 0.9999)
    trace = traced(CLIPPED, PAPER)
    first = trace.alarms[0].outcome
    assert 10_000 < first <= alarms[0]
    assert (trace.statistic[0, :first] >= sums[:first] - 1e-9).all()
    calm_then_wrong = [k % 10 == 0 for k in range(20_000)] + [k % 2 == 0 for k in range(5_000)]
    ours = traced(CLIPPED, PAPER, loss=calm_then_wrong).alarms[0].outcome
    _, theirs = unclipped(np.array(calm_then_wrong, np.int32), 0.005, 50.0, 0.9999)
    assert 20_100 < ours < 20_200
    assert theirs[0] > ours + 50


@pytest.mark.parametrize("direction", ["up", "down"])
def test_rivers_page_hinkley_keeps_its_minimum_while_its_sum_forgets(direction) -> None:
    """It is the paper's form at α < 1; clipped, ours forgets both, and differs. Equal at every step to 1e-7.

    (Going down river starts its extreme at -1, where it matters as long as the sum stays below -1.)
    """
    peer = drift.PageHinkley(mode=direction)
    theirs, alarms = [], []
    for step, x in enumerate(losses().tolist(), 1):
        peer.update(x)
        if direction == "up":
            theirs.append(peer._sum_increase - peer._min_increase)
        else:
            theirs.append(peer._max_decrease - peer._sum_decrease)
        if peer.drift_detected:
            alarms.append(step)
    trace = traced(replace(PAPER, direction=direction), replace(CLIPPED, direction=direction))
    assert [a.outcome for a in trace.alarms if a.detector == 0] == alarms
    np.testing.assert_allclose(trace.statistic[0], theirs, rtol=1e-7, atol=1e-7)
    assert np.abs(trace.statistic[1] - theirs).max() > 1.0
