"""Reported values beside the formulas of the confidence sequence, computed from block means one by one."""

from __future__ import annotations

from math import log, nan, sqrt
from statistics import fmean, stdev
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streamwatch.core.estimators.verdicts.readout import read_fold_verdicts, read_verdicts
from streamwatch.core.estimators.verdicts.state import VERDICT

DELTA, THRESHOLD = 0.05, 4e6


def _record(means: list[float], **fields: float) -> NDArray[Any]:
    """Record of the blocks of 64 with these mean leads, shape (1,)."""
    record = np.zeros(1, VERDICT)
    record["blocks"] = len(means)
    if means:
        record["mean"] = fmean(means)
        record["spread"] = sum((z - fmean(means)) ** 2 for z in means)
    for name, value in fields.items():
        record[name] = value
    return record


def _half_width(means: list[float]) -> float:
    n, rho2 = len(means), 1 / 200
    return stdev(means) * sqrt(2 * (n * rho2 + 1) / (n**2 * rho2) * log(sqrt(n * rho2 + 1) / DELTA))


@pytest.mark.parametrize("n", [20, 21, 150])
@pytest.mark.parametrize("middle", [-0.1, 0.0, 0.15])
def test_the_bounds_are_those_of_the_confidence_sequence(n: int, middle: float) -> None:
    means = [middle + 0.05 * (k % 3 - 1) for k in range(n)]
    found = read_verdicts(np.array([64 * n]), _record(means), DELTA, THRESHOLD)
    width = _half_width(means)
    assert 0.0 < width < 0.3
    expected = [fmean(means), fmean(means) - width, fmean(means) + width]
    assert [found.lead[0], found.lower[0], found.upper[0]] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("middle", "bound"), [(0.95, 1.0), (-0.95, -1.0)])
def test_the_bounds_do_not_leave_what_a_lead_can_be(middle: float, bound: float) -> None:
    means = [middle + (0.5 if k % 2 else -0.5) for k in range(20)]
    found = read_verdicts(np.array([1_280]), _record(means), DELTA, THRESHOLD)
    assert _half_width(means) > 1.0 - abs(middle)
    assert (found.upper if bound > 0 else found.lower)[0] == bound


@pytest.mark.parametrize(("n", "lead"), [(0, nan), (1, 0.25), (19, 0.25)])
def test_a_lead_needs_one_block_and_its_bounds_twenty(n: int, lead: float) -> None:
    found = read_verdicts(np.array([64 * n + 1]), _record([0.25] * n), DELTA, THRESHOLD)
    assert found.lead[0] == pytest.approx(lead, nan_ok=True)
    assert np.isnan([found.lower[0], found.upper[0]]).all()


def test_a_verdict_says_since_when_and_with_what_dispersion() -> None:
    record = _record([], verdict=-1, since=7, since_ms=12_500, dispersion=3.5)
    found = read_verdicts(np.array([2_500]), record, DELTA, THRESHOLD)
    assert (found.verdict[0], found.since[0], found.since_seconds[0]) == (-1.0, 7.0, 12.5)
    assert (found.dispersion[0], found.better[0], found.worse[0]) == (3.5, 0.0, 0.0)
    found = read_verdicts(np.array([1]), _record([], since_ms=12_500), DELTA, THRESHOLD)
    assert (found.verdict[0], found.dispersion[0]) == (0.0, 1.0)
    assert np.isnan([found.since[0], found.since_seconds[0]]).all()


def test_before_the_first_step_nothing_is_defined() -> None:
    found = read_verdicts(np.array([0]), _record([]), DELTA, THRESHOLD)
    assert np.isnan(np.array(found)).all()


def test_folds_are_judged_from_the_first_step_of_any_and_their_lead_is_known_once_all_have_one() -> None:
    half = _record([0.5], verdict=1, since=3, since_ms=4_000, changes=1, dispersion=2.0)
    records = np.stack([np.concatenate([half, _record([])])])
    found = read_fold_verdicts(np.array([[64, 0]]), records, DELTA, THRESHOLD)
    assert (found.verdict[0, 0], found.since[0, 0], found.since_seconds[0, 0]) == (1.0, 3.0, 4.0)
    assert (found.better[0, 0], found.worse[0, 0]) == (0.0, 0.0)
    assert np.isnan([found.lead[0, 0], found.dispersion[0, 0]]).all()
    records = np.stack([np.concatenate([half, _record([0.1], dispersion=4.0)])])
    found = read_fold_verdicts(np.array([[64, 64]]), records, DELTA, THRESHOLD)
    assert [found.lead[0, 0], found.dispersion[0, 0]] == pytest.approx([0.3, 3.0])
