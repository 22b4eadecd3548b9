"""Whose drifts restart a drift-weighted accuracy, and what fading it does."""

from __future__ import annotations

from dataclasses import replace
from math import log

import numpy as np
import pytest

from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.specs import DriftWeightedSpec
from tests.core.estimators.kernel.streams import one_row
from tests.layouts import EVERYTHING

pytestmark = pytest.mark.slow

REFERENCE = DriftWeightedSpec(drift_signal="reference", reference="champion")
LABELS = DriftWeightedSpec(drift_signal="labels")
DRIFT_WEIGHTED = (
    DriftWeightedSpec(),
    REFERENCE,
    LABELS,
    DriftWeightedSpec(alpha=0.99),
    DriftWeightedSpec(w_avg=2.0, delta=0.002, dependence="ignored"),  # for as many as `EVERYTHING` has
)
OWN, BY_REFERENCE, BY_LABELS, FADED = range(4)
SPEC = replace(EVERYTHING, drift_weighted=DRIFT_WEIGHTED, max_models=3)


def table_of(models, spec=SPEC):
    """The first model is the reference."""
    table = ModelTable(spec)
    rows = [table.add_model() for _ in range(models)]
    table.follow(BY_REFERENCE, rows[0])
    return table


def losses(*phases, seed=0):
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.random(n) < error for n, error in phases]).astype(np.int32)


def in_turns(*streams):
    """Rows and losses of models that are evaluated one after the other, all equally often."""
    rows = np.tile(np.arange(len(streams)), len(streams[0]))
    return rows.astype(np.int32), np.stack(streams, axis=1).ravel().astype(np.int32)


def weighted_by(weights, loss):
    """Σwh/Σw after every outcome."""
    return np.cumsum(weights * (1 - loss)) / np.cumsum(weights)


def weights_after(drift, n, gap):
    t = np.arange(n - drift)
    return np.r_[np.ones(drift), np.maximum(1 + 2 * np.log(gap / (t + 1)), 1)]


def test_a_model_without_drifts_of_its_own_is_weighted_by_the_drifts_of_the_reference() -> None:
    drifting, steady = losses((1_000, 0.05), (1_000, 0.7)), losses((2_000, 0.3), seed=1)
    rows, loss = in_turns(drifting, steady)
    trace = table_of(2).trace(rows, np.zeros_like(loss), loss)
    accuracy = trace.weighted[:, 1::2]
    plain = weighted_by(np.ones(2_000), steady)
    np.testing.assert_allclose(accuracy[OWN], plain)
    restarts = np.flatnonzero(np.abs(accuracy[BY_REFERENCE] - plain) > 1e-12)
    drift = int(restarts[0])
    assert 1_000 < drift < 1_064
    np.testing.assert_allclose(
        accuracy[BY_REFERENCE], weighted_by(weights_after(drift, 2_000, drift), steady)
    )
    np.testing.assert_array_equal(trace.weighted[BY_REFERENCE, ::2], trace.weighted[OWN, ::2])


def test_a_slow_model_counts_in_its_own_outcomes_and_takes_several_drifts_at_once() -> None:
    """Two rises of the reference stand between its outcomes 10 and 11, so d = 10/2."""
    table = table_of(2)
    slow = np.array([1, 0] * 15, np.int32)
    table.fold(one_row(10, 1), np.zeros(10, np.int32), slow[:10])
    rise_twice = losses((1_000, 0.05), (300, 0.7), (1_000, 0.05), (300, 0.7))
    table.fold(one_row(2_600), np.zeros(2_600, np.int32), rise_twice)
    trace = table.trace(one_row(20, 1), np.zeros(20, np.int32), slow[10:])
    expected = weighted_by(weights_after(10, 30, 5.0), slow)[10:]
    np.testing.assert_allclose(trace.weighted[BY_REFERENCE], expected)


def test_drifts_from_before_the_first_outcome_of_a_model_are_none_of_its() -> None:
    table = table_of(2)
    rise = losses((1_000, 0.05), (500, 0.7))
    table.fold(one_row(1_500), np.zeros(1_500, np.int32), rise)
    late = losses((50, 0.5))
    trace = table.trace(one_row(50, 1), np.zeros(50, np.int32), late)
    np.testing.assert_allclose(trace.weighted[BY_REFERENCE], weighted_by(np.ones(50), late))


def test_without_a_reference_every_outcome_weighs_one_and_its_successor_counts_from_its_start() -> None:
    table = ModelTable(SPEC)
    rows = [table.add_model() for _ in range(3)]
    rise = losses((1_000, 0.05), (500, 0.7))
    some = losses((40, 0.5), seed=2)
    table.fold(one_row(1_500, rows[0]), np.zeros(1_500, np.int32), rise)
    table.fold(one_row(20, rows[1]), np.zeros(20, np.int32), some[:20])
    assert table.weighted(np.array([rows[0]]), BY_REFERENCE)[1] == 1_500, "nobody is followed"

    table.follow(BY_REFERENCE, rows[2])
    table.fold(one_row(1_500, rows[2]), np.zeros(1_500, np.int32), rise)
    table.retire(rows[2])
    successor = table.add_model()
    table.follow(BY_REFERENCE, successor)
    table.fold(one_row(1_500, successor), np.zeros(1_500, np.int32), rise)
    trace = table.trace(one_row(20, rows[1]), np.zeros(20, np.int32), some[20:])
    # the last drift of the one that retired and the first of its successor: d = 20/2
    expected = weighted_by(weights_after(20, 40, 10.0), some)[20:]
    np.testing.assert_allclose(trace.weighted[BY_REFERENCE], expected)


def test_only_a_weighting_by_reference_follows_a_model() -> None:
    with pytest.raises(ValueError, match="by reference"):
        table_of(1).follow(OWN, 0)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([0.5, 0.5], [0.9, 0.1], id="shares of two classes"),
        pytest.param([0.25] * 4, [0.25, 0.05, 0.45, 0.25], id="shares of two out of four"),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_a_change_of_class_shares_restarts_the_weights_whatever_the_model_says(before, after, seed) -> None:
    rng = np.random.default_rng(seed)
    true_class = np.r_[rng.choice(len(before), 2_000, p=before), rng.choice(len(after), 1_000, p=after)]
    true_class = true_class.astype(np.int32)
    n_eff = []
    for predicted_class in (true_class, rng.integers(0, len(before), 3_000).astype(np.int32)):
        trace = table_of(1).trace(one_row(3_000), true_class, predicted_class)
        n_eff.append(trace.weighted_n_eff[BY_LABELS])
    np.testing.assert_array_equal(n_eff[0], n_eff[1])
    (first, *_) = np.flatnonzero(n_eff[0] < np.arange(1, 3_001) - 1e-6)
    assert 2_000 < first < 2_400


@pytest.mark.parametrize("seed", range(3))
def test_labels_that_begin_to_come_in_runs_restart_the_weights_at_unchanged_shares(seed) -> None:
    rng = np.random.default_rng(seed)
    turns = rng.random(3_000) < np.where(np.arange(3_000) < 2_000, 0.5, 0.05)
    true_class = (np.cumsum(turns) % 2).astype(np.int32)
    n_eff = table_of(1).trace(one_row(3_000), true_class, true_class).weighted_n_eff[BY_LABELS]
    (first, *_) = np.flatnonzero(n_eff < np.arange(1, 3_001) - 1e-6)
    assert 2_000 < first < 2_200


def test_one_change_of_labels_is_one_drift_though_several_signals_see_it() -> None:
    """A second restart would put the weight up again: t = 0 comes once."""
    rng = np.random.default_rng(0)
    true_class = np.r_[rng.choice(3, 2_000, p=[0.6, 0.2, 0.2]), rng.choice(3, 2_000, p=[0.1, 0.8, 0.1])]
    true_class = true_class.astype(np.int32)
    table = table_of(1)
    table.fold(one_row(4_000), true_class, true_class)
    assert table.pools.models["drift_weighted"]["drifts"][0].tolist() == [0, 0, 1, 0, 0]


def test_stationary_labels_hardly_ever_restart_the_weights() -> None:
    """δ = .05 divided among four signals, each with a few false cuts in a million labels: at most 6 here."""
    true_class = np.random.default_rng(3).choice(4, 200_000, p=[0.4, 0.3, 0.2, 0.1]).astype(np.int32)
    table = table_of(1)
    table.fold(one_row(200_000), true_class, true_class)
    assert table.pools.models["drift_weighted"]["drifts"][0, BY_LABELS] <= 6


def test_faded_every_outcome_counts_alpha_to_its_age_beside_its_weight() -> None:
    loss = losses((1_000, 0.05), (400, 0.7))
    trace = table_of(1).trace(one_row(1_400), np.zeros_like(loss), loss)
    (drift, *_) = np.flatnonzero(trace.weighted_n_eff[OWN] < np.arange(1, 1_401) - 1e-6)
    weights = weights_after(int(drift), 1_400, float(drift))
    assert log(drift) > 6
    for n in (500, int(drift) + 1, 1_100, 1_400):
        faded = weights[:n] * 0.99 ** np.arange(n - 1, -1, -1.0)
        expected = (faded @ (1 - loss[:n]) / faded.sum(), faded.sum() ** 2 / (faded**2).sum())
        got = (trace.weighted[FADED, n - 1], trace.weighted_n_eff[FADED, n - 1])
        np.testing.assert_allclose(got, expected, rtol=1e-9)
