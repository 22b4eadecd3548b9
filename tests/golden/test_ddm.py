"""DDM beside MOA 24.07 and river 0.26.1 on 40,000 losses, step by step, and where the three differ.

All agree on D1: the minimum (to 1e-12), every warning, the one alarm. What differs, and is shown here: MOA
looks for its minimum from the 29th outcome after a reset, this kernel from the 30th as it says, river from
the 31st; and s_min is at least 1/n_min in the thresholds here, so that an error-free beginning does not make
its first error an alarm.
"""

from __future__ import annotations

import gzip
from functools import cache
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from river import drift

from streamwatch.core.estimators.detectors.ddm import DdmSpec
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import MonitorsSpec

HERE = Path(__file__).parent


@cache
def golden(name):
    with gzip.open(HERE / f"{name}.csv.gz", "rt") as lines:
        return np.genfromtxt(lines, delimiter=",", names=True, deletechars="")


def traced(loss):
    loss = np.array(loss, np.int32)
    table = ModelTable(
        MonitorsSpec((), (DdmSpec(),), (), max_models=1, max_classes=2, opponents=(), shadow_max_classes=0)
    )
    return table.trace(np.full(len(loss), table.add_model(), np.int32), np.zeros_like(loss), loss)


@cache
def ours():
    return traced(golden("D1_bernoulli_input")["x"])


@pytest.mark.parametrize("engine", ["moa", "river"])
def test_every_warning_and_every_alarm_is_the_engines(engine) -> None:
    theirs = golden("D1_bernoulli_ddm")
    np.testing.assert_array_equal(ours().warned[0], theirs[f"warning_{engine}"] == 1)
    np.testing.assert_array_equal(ours().alarmed[0], theirs[f"drift_{engine}"] == 1)
    assert ours().alarmed.sum() == 1


def test_the_threshold_is_made_of_moas_minimum_at_every_step() -> None:
    kept = golden("D1_bernoulli_moa_ddm_minimum")
    index = np.searchsorted(kept["step"], np.arange(1, 40_001), side="right") - 1
    threshold = (kept["p_min"] + 3 * kept["s_min"])[index]
    (alarm,) = ours().alarms
    ran = np.arange(40_000) - np.where(np.arange(40_000) >= alarm.outcome, alarm.outcome, 0) + 1
    compared = ran >= 30
    np.testing.assert_allclose(ours().threshold[0, compared], threshold[compared], rtol=1e-12)
    assert np.isnan(ours().threshold[0, ~compared]).all()


def test_moa_has_its_minimum_at_the_29th_outcome_already() -> None:
    first = golden("D1_bernoulli_moa_ddm_minimum")
    known = ~np.isnan(first["p_min"])
    assert first["step"][known][0] == 29
    assert np.isnan(ours().threshold[0, 28])
    assert not np.isnan(ours().threshold[0, 29])


def alarm_of_river(loss):
    peer = drift.binary.DDM()
    for step, x in enumerate(loss, 1):
        peer.update(x)
        if peer.drift_detected:
            return step
    return None


def test_river_looks_for_its_minimum_one_outcome_later_and_alarms_later() -> None:
    """One error in 30, then nothing else: the 30th outcome is the best there ever was."""
    loss = [1] + [0] * 29 + [1] * 20
    assert traced(loss).alarms[0].outcome == 32
    assert alarm_of_river(loss) == 34


@pytest.mark.parametrize("calm", [31, 100, 5_000])
def test_one_error_after_an_error_free_beginning_is_an_alarm_for_river_and_a_warning_here(calm) -> None:
    loss = [0] * calm + [1] + [0] * 50
    assert alarm_of_river(loss) == calm + 1
    trace = traced(loss)
    assert trace.alarms == []
    p, s = 1 / (calm + 1), sqrt(calm) / (calm + 1) ** 1.5
    assert trace.statistic[0, calm] == pytest.approx(p + s)
    assert trace.threshold[0, calm] == pytest.approx(3 / calm)
    assert trace.warned[0, calm] == (p + s > 2 / calm)


def test_two_errors_at_once_after_an_error_free_beginning_are_an_alarm() -> None:
    (alarm,) = traced([0] * 1_000 + [1, 1]).alarms
    assert (alarm.outcome, alarm.before) == (1_002, 0.0)
    assert alarm.after == pytest.approx(2 / 1_002)


def test_the_floor_is_in_the_thresholds_only_and_not_in_what_is_compared_for_the_minimum() -> None:
    """After one early error s is below 1/n for ever; the minimum keeps moving with p + s itself."""
    trace = traced([1] + [0] * 499)
    n = np.arange(30, 501)
    p = 1 / n
    np.testing.assert_allclose(trace.statistic[0, 29:], p + np.sqrt(p * (1 - p) / n))
    np.testing.assert_allclose(trace.threshold[0, 29:], p + 3 / n)
