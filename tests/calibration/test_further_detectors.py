"""False alarms of CUSUM, ECDD, HDDM_A, HDDM_W, STEPD and KSWIN on streams that do not change."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from streamwatch.core.estimators.detectors.cusum import CusumSpec
from streamwatch.core.estimators.detectors.ewma import EwmaSpec
from streamwatch.core.estimators.detectors.hddm_a import HddmASpec
from streamwatch.core.estimators.detectors.hddm_w import HddmWSpec
from streamwatch.core.estimators.detectors.kswin import KswinSpec
from streamwatch.core.estimators.detectors.stepd import StepdSpec
from tests.calibration.monte_carlo import correlated, feed, table_of

KNOWN = CusumSpec("known", expected=0.2, allowance=0.05, threshold=6.0, min_outcomes=1)
SPECS = (
    CusumSpec(),
    EwmaSpec(),
    HddmASpec(),
    HddmWSpec(),
    StepdSpec(),
    KswinSpec(),
    KNOWN,
    EwmaSpec("paper", weight=0.2, limits="paper", min_outcomes=1),
    EwmaSpec("falls", direction="down"),
    EwmaSpec("either", direction="both"),
)
NAMES = [spec.name for spec in SPECS]
STATED = {  # false alarms per million outcomes at an error of .2, of .3, and of .2 with correlation .5
    "cusum": (3, 9, 80),
    "ewma": (3, 3, 80),
    "hddm_a": (2, 5, 1500),
    "hddm_w": (0.5, 6, 130),
    "stepd": (0.5, 0.5, 90),
    "kswin": (0.5, 2, 70),
}
STREAMS, LENGTH = 6, 1_000_000


@cache
def found(p: float, rho: float) -> dict[str, int]:
    """Alarms of every detector in six streams of a million outcomes, each of a seed of its own."""
    table = table_of(STREAMS, (), SPECS)
    generators = [np.random.default_rng(seed) for seed in range(STREAMS)]
    counts = np.zeros(len(SPECS), int)
    for _ in range(0, LENGTH, 250_000):
        drawn = np.concatenate([correlated(rng, p, rho, 1, 250_000) for rng in generators])
        counts += np.bincount([a.detector for a in feed(table, drawn)], minlength=len(SPECS))
    return dict(zip(NAMES, counts.tolist(), strict=True))


@pytest.mark.parametrize(("stream", "p", "rho"), [(0, 0.2, 0.0), (1, 0.3, 0.0), (2, 0.2, 0.5)])
@pytest.mark.parametrize("name", STATED)
def test_defaults_raise_as_few_false_alarms_as_stated(name, stream, p, rho) -> None:
    """Within 4 standard deviations of a Poisson count, and a tenth for what is stated in round numbers."""
    expected = STREAMS * STATED[name][stream]
    assert abs(found(p, rho)[name] - expected) <= 4 * np.sqrt(expected) + 0.1 * expected + 1


@pytest.mark.parametrize(("name", "most"), [("falls", 3), ("either", 6)])
@pytest.mark.parametrize("p", [0.2, 0.3])
def test_an_ecdd_of_falls_alarms_no_more_often_than_one_of_rises(name: str, most: int, p: float) -> None:
    """Per million outcomes; its faded loss begins at 0, which is no fall of the error."""
    expected = STREAMS * most
    assert found(p, 0.0)[name] <= expected + 4 * np.sqrt(expected)


def test_an_ecdd_of_falls_finds_one() -> None:
    rng = np.random.default_rng(3)
    for spec in ("falls", "either"):
        table = table_of(STREAMS, (), SPECS)
        feed(table, np.concatenate([correlated(rng, 0.3, 0.0, 1, 20_000) for _ in range(STREAMS)]))
        after = np.concatenate([correlated(rng, 0.1, 0.0, 1, 3_000) for _ in range(STREAMS)])
        assert sum(alarm.detector == NAMES.index(spec) for alarm in feed(table, after)) >= STREAMS


def average_run_length(p: float, spec: CusumSpec) -> float:
    """Outcomes until an alarm, of a CUSUM in steps of .05: a Markov chain (Brook, Evans 1972).

    (I − Q)·L = 1, with Q the chance of going from one sum up to h to another.
    """
    top = round(spec.threshold / 0.05)
    q = np.zeros((top + 1, top + 1))
    for state in range(top + 1):
        for loss, chance in ((1, p), (0, 1 - p)):
            to = max(0, state + round((loss - spec.expected - spec.allowance) / 0.05))
            if to <= top:
                q[state, to] += chance
    return float(np.linalg.solve(np.eye(top + 1) - q, np.ones(top + 1))[0])


@pytest.mark.parametrize("p", [0.2, 0.3])
def test_a_cusum_of_a_known_error_alarms_as_often_as_its_markov_chain_says(p) -> None:
    """Times between alarms are about exponential: counts within 4 standard deviations."""
    expected = STREAMS * LENGTH / average_run_length(p, KNOWN)
    assert expected > 1_000
    assert abs(found(p, 0.0)["known"] - expected) <= 4 * np.sqrt(expected)


def test_the_papers_limits_of_ecdd_give_about_its_run_length() -> None:
    """At an error of .2, where the fitted polynomial is within a fifth of what it was fitted to."""
    assert STREAMS * LENGTH / found(0.2, 0.0)["paper"] == pytest.approx(400, rel=0.2)
