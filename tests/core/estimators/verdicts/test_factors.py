"""Factors of steps beside powers in extended precision."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from streamwatch.core.estimators.verdicts.detector import set_factors
from streamwatch.core.estimators.verdicts.state import STAKES, VERDICT
from streamwatch.core.jit import exp_lanes, lanes_of, log_lanes, put_lanes, sum_in_pairs


@numba.njit(error_model="numpy")
def _factors(record, magnitudes, dispersions, out):
    for i in range(len(magnitudes)):
        record[0].dispersion = dispersions[i]
        set_factors(record[0], magnitudes[i])
        out[i] = record[0].factors


@numba.njit(error_model="numpy")
def _logarithms(values, logs, powers):
    for i in range(len(values)):
        put_lanes(logs, i, log_lanes(lanes_of(values, i)))
        put_lanes(powers, i, exp_lanes(lanes_of(logs, i)))


@numba.njit(error_model="numpy")
def _sum(values):
    return sum_in_pairs(lanes_of(values, 0))


@pytest.mark.slow  # one function compiled for it alone
def test_factors_are_the_powers_of_the_definition() -> None:
    rng = np.random.default_rng(1)
    edges = [1.0, 1e-9, 5e-324, 1 / 128, 1 / 256, np.nextafter(1 / 256, 0), 1 - 1e-12]
    magnitudes = np.concatenate([rng.random(20_000), np.repeat(edges, 4)])
    dispersions = np.concatenate(
        [1 + rng.exponential(5.0, 20_000), np.tile([0.0, 1.0, 1.5, 400.0], len(edges))]
    )
    out = np.zeros((len(magnitudes), 2, 8))
    _factors(np.zeros(1, VERDICT), magnitudes, dispersions, out)
    wide = np.longdouble
    power = 1 / np.maximum(dispersions, 1.0).astype(wide)[:, None]
    for side, sign in ((0, -1), (1, 1)):
        exact = (1 + sign * STAKES.astype(wide) * magnitudes.astype(wide)[:, None]) ** power
        assert np.abs(out[:, side] / exact - 1).max() < 1e-15


def test_logarithms_and_exponentials_are_right_to_two_units_in_the_last_place() -> None:
    rng = np.random.default_rng(2)
    values = np.concatenate([rng.uniform(0.1, 3.0, (5_000, 8)), 10 ** rng.uniform(-290, 290, (5_000, 8))])
    logs, powers = np.zeros_like(values), np.zeros_like(values)
    _logarithms(values, logs, powers)
    exact = np.log(values.astype(np.longdouble))
    assert np.abs((logs - exact) / np.spacing(np.abs(exact.astype(np.float64)))).max() < 1
    exact = np.exp(logs.astype(np.longdouble))
    assert np.abs((powers - exact) / np.spacing(exact.astype(np.float64))).max() < 2


def test_a_sum_in_pairs_is_added_in_the_order_it_says() -> None:
    v = np.random.default_rng(3).random((1, 8)) * 10.0 ** np.arange(8)
    a, b, c, d, e, f, g, h = v[0].tolist()
    assert _sum(v) == ((a + b) + (c + d)) + ((e + f) + (g + h))
