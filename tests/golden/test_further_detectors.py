"""CUSUM, ECDD, HDDM_A, HDDM_W, STEPD and KSWIN beside MOA 24.07 and river 0.26.1, step by step.

Where an engine departs from the paper, it is mended here, in the open, and then agrees at every outcome.
"""

from __future__ import annotations

import gzip
import math
import random
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from river import drift
from river.drift.binary import hddm_w
from scipy import stats

from streamwatch.core.estimators.detectors.cusum import CusumSpec
from streamwatch.core.estimators.detectors.ewma import EwmaSpec
from streamwatch.core.estimators.detectors.hddm_a import HddmASpec
from streamwatch.core.estimators.detectors.hddm_w import HddmWSpec
from streamwatch.core.estimators.detectors.kswin import KswinSpec
from streamwatch.core.estimators.detectors.stepd import StepdSpec
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import MonitorsSpec
from tests.core.estimators.kernel.twin_detectors import sampled_errors
from tests.golden.moa_detectors import RECORDED, recorded

HERE = Path(__file__).parent
SPECS = {
    "cusum": CusumSpec("cusum", allowance=0.005),
    "cusum_20": CusumSpec("cusum_20", allowance=0.005, threshold=20.0),
    "ewma": EwmaSpec(weight=0.2, min_outcomes=30, limits="paper"),
    "hddm_a": HddmASpec(delta=0.001, warning_delta=0.005),
    "hddm_a_loose": HddmASpec("hddm_a_loose", delta=0.05, warning_delta=0.1),
    "hddm_w": HddmWSpec(weight=0.05, delta=0.001, warning_delta=0.005),
    "hddm_w_slow": HddmWSpec("hddm_w_slow", weight=0.01, delta=0.001, warning_delta=0.005),
    "stepd": StepdSpec(recent=30, significance=0.003, warning_significance=0.05, direction="both"),
    "stepd_100": StepdSpec(
        "stepd_100", recent=100, significance=0.0001, warning_significance=0.01, direction="both"
    ),
    "kswin": KswinSpec(recent=30, older=70, significance=0.003, direction="both"),
}
NAMES = list(SPECS)


@cache
def losses():
    with gzip.open(HERE / "D1_bernoulli_input.csv.gz", "rt") as lines:
        return np.loadtxt(lines, np.int32, skiprows=1)


def traced(loss):
    loss = np.asarray(loss, np.int32)
    spec = MonitorsSpec((), tuple(SPECS.values()), (), max_models=1, max_classes=2, opponents=())
    table = ModelTable(spec)
    return table.trace(np.full(len(loss), table.add_model(), np.int32), np.zeros_like(loss), loss)


@cache
def ours():
    return traced(losses())


def codes(trace, name):
    """2 at an alarm, 1 at a warning."""
    index = NAMES.index(name)
    return np.where(trace.alarmed[index], 2, trace.warned[index].astype(int))


@pytest.mark.parametrize("name", RECORDED)
def test_every_warning_and_every_alarm_is_moas(name) -> None:
    theirs, mine = recorded()[name], codes(ours(), name)
    if name == "ewma":  # MOA warns one outcome earlier after a reset
        resets = np.flatnonzero(np.r_[2, theirs[:-1]] == 2)
        early = resets[resets + 28 < len(theirs)] + 28
        assert (mine[early] == 0).all()
        mine[early] = theirs[early]
        assert (theirs[early] < 2).all()
    np.testing.assert_array_equal(mine, theirs)
    assert (theirs == 2).any()


def test_hddm_a_has_the_statistic_of_river_at_every_outcome() -> None:
    for name, spec in (("hddm_a", SPECS["hddm_a"]), ("hddm_a_loose", SPECS["hddm_a_loose"])):
        peer = drift.binary.HDDMA(spec.delta, spec.warning_delta)
        index, trace = NAMES.index(name), ours()
        for t, loss in enumerate(losses().tolist()):
            peer.update(loss)
            assert trace.alarmed[index, t] == peer.drift_detected
            assert trace.warned[index, t] == peer.warning_detected
            beyond = peer._z.get() - peer._x_min.get()
            assert trace.statistic[index, t] == pytest.approx(beyond, abs=1e-9)


class CountedSample(hddm_w.SampleInfo):
    """River's, but for the first weight of a mean, which is 1."""

    def update(self, x):
        first = not self._is_init
        super().update(x)
        if first:
            self._ibc = 1.0


def watched_by_river(spec, loss):
    """(alarmed, excess) after every loss."""
    peer = drift.binary.HDDMW(spec.delta, spec.warning_delta, spec.weight)
    for x in loss:
        peer.update(x)
        before, after = peer._s1_incr, peer._s2_incr
        yield peer.drift_detected, after.ewma - before.ewma if after.is_init else 0.0


@pytest.mark.parametrize("name", ["hddm_w", "hddm_w_slow"])
def test_hddm_w_has_the_statistic_of_river_once_its_first_weight_is_one(name, monkeypatch) -> None:
    monkeypatch.setattr(hddm_w, "SampleInfo", CountedSample)
    index, trace = NAMES.index(name), ours()
    for t, (alarmed, excess) in enumerate(watched_by_river(SPECS[name], losses()[:15_000].tolist())):
        assert trace.alarmed[index, t] == alarmed
        assert trace.statistic[index, t] == pytest.approx(excess, abs=1e-12)


def test_river_fades_the_first_loss_of_hddm_w_once() -> None:
    peer = drift.binary.HDDMW(lambda_val=0.05)
    peer.update(1)
    assert peer._total.ibc == pytest.approx(0.05**2 + 0.95**2)  # one weight of 1, squared, is 1


class SameSample(drift.KSWIN):
    """River's, but for its samples, which are ours, and for its window, whose end is kept at an alarm."""

    outcomes = 0

    def update(self, x):
        self.outcomes += 1
        super().update(x)

    def _reset(self):
        kept = getattr(self, "window", None)
        super()._reset()
        if kept is not None:
            self.window = kept
        self._rng = self

    def sample(self, older, size):
        errors = [i for i in older if self.window[i]]
        hits = [i for i in older if not self.window[i]]
        drawn = sampled_errors(self.outcomes, size, len(older), len(errors))
        return errors[:drawn] + hits[: size - drawn]


def test_kswin_alarms_where_river_does_on_the_same_samples() -> None:
    """At r = 30 and α = .003 the limits of the paper and of river lie between 13/30 and 14/30."""
    spec = SPECS["kswin"]
    loss = np.random.default_rng(4).random(1_500) < np.where(np.arange(1_500) // 250 % 2, 0.7, 0.2)
    peer = SameSample(spec.significance, spec.recent + spec.older, spec.recent, seed=1)
    theirs = []
    for x in loss.tolist():
        peer.update(int(x))
        theirs.append(peer.drift_detected)
    np.testing.assert_array_equal(traced(loss).alarmed[NAMES.index("kswin")], theirs)
    assert sum(theirs) >= 4


def test_the_limit_of_kswin_is_the_papers() -> None:
    assert ours().threshold[NAMES.index("kswin"), -1] == pytest.approx(math.sqrt(-math.log(0.003) / 30))


def test_samples_of_kswin_are_as_hypergeometric_as_pythons_own() -> None:
    drawn = [sampled_errors(outcome, 30, 70, 20) for outcome in range(1, 20_001)]
    support = np.arange(2, 17)
    law = stats.hypergeom(70, 20, 30).pmf(support)
    seen = np.array([drawn.count(k) for k in support])
    assert stats.chisquare(seen, law / law.sum() * seen.sum()).pvalue > 0.001
    rng = random.Random(1)
    theirs = [sum(i < 20 for i in rng.sample(range(70), 30)) for _ in range(20_000)]
    assert stats.ks_2samp(drawn, theirs).pvalue > 0.001
    together = np.corrcoef(drawn[:-1], drawn[1:])[0, 1]
    assert abs(together) < 4 / math.sqrt(len(drawn))


def test_moa_takes_the_absolute_value_of_a_corrected_difference_and_alarms_where_windows_are_alike() -> None:
    """One error in 2,030, then none: MOA's Z is |0 − c/2|/√(p(1−p)c) = 4.1, its p-value .00004."""
    loss = [0] * 1_000 + [1] + [0] * 1_000
    n, recent = len(loss), 30
    inverse = 1 / (n - recent) + 1 / recent
    away = 1 / (n - recent) - inverse / 2  # of the error rates, corrected: below zero
    z = away / math.sqrt((1 / n) * (1 - 1 / n) * inverse)
    assert 2 * stats.norm.sf(abs(z)) < 0.003
    trace = traced(loss)
    assert trace.statistic[NAMES.index("stepd"), -1] == pytest.approx(z)
    assert not trace.alarmed[NAMES.index("stepd")].any()
