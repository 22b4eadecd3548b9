"""Bounds, standard errors and autocorrelation against plain Python, simulation and limits known by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.estimators.catalogue import BOUNDS, MEASURES
from streamwatch.core.estimators.measures import measures
from streamwatch.core.estimators.measures.measures import Totals
from tests.core.estimators.measures import plain_measures as plain
from tests.core.estimators.measures import plain_uncertainty as slow
from tests.core.estimators.measures.summed import FIELDS, K, confusion, drawn, stack, totals_of
from tests.tiers import examples, few

MECHANISMS = {
    "landmark": plain.landmark,
    "fading:0.9": plain.fading(0.9),
    "fading:0.5": plain.fading(0.5),
    "sliding:7": plain.sliding(7),
}
classes = st.integers(0, K - 1)
of_each_mechanism = pytest.mark.parametrize("mechanism", MECHANISMS.values(), ids=MECHANISMS)


@of_each_mechanism
@given(pairs=st.lists(st.tuples(classes, classes), min_size=1, max_size=25), delta=st.floats(0.001, 0.5))
@settings(max_examples=examples(0.6))
def test_every_bound_and_error_is_the_plain_one_at_every_prefix(mechanism, pairs, delta):
    prefixes = [mechanism(pairs[: end + 1]) for end in range(len(pairs))]
    totals = stack([totals_of(p) for p in prefixes])
    compared = {m.name: (m.of(totals), slow.MEASURES[m.name]) for m in MEASURES if m.name in slow.MEASURES}
    assert set(compared) == set(slow.MEASURES)
    for name, (ours, theirs) in compared.items():
        for prefix, value in zip(prefixes, ours.tolist(), strict=True):
            assert plain.agree(value, theirs(prefix)), (name, value, theirs(prefix))
    for bound in BOUNDS:
        for prefix, value in zip(prefixes, bound.of(totals, delta).tolist(), strict=True):
            expected = slow.BOUNDS[bound.name](prefix, delta)
            assert plain.agree(value, expected), (bound.name, value, expected)


def sure(errors, n, n_eff=None):
    """Totals of one model with so many errors in n outcomes, worth n_eff, of two classes by halves."""
    right = n - errors
    totals = confusion([[right / 2, errors / 2], [errors / 2, right / 2]])
    return Totals(**{f: getattr(totals, f) for f in FIELDS if f != "n_eff"}, n_eff=np.array([n_eff or n]))


def test_hoeffdings_half_width_is_the_textbook_one():
    # 0.1358 at n = 100, δ = 0.05: √(ln 40/200)
    assert measures.hoeffding_half_width(sure(20.0, 100.0), 0.05)[0] == pytest.approx(0.135810, abs=1e-6)
    assert measures.hoeffding_lower(sure(20.0, 100.0), 0.05)[0] == pytest.approx(0.8 - 0.135810, abs=1e-6)
    assert measures.hoeffding_upper(sure(20.0, 100.0), 0.05)[0] == pytest.approx(0.8 + 0.135810, abs=1e-6)


def test_chernoffs_limits_at_zero_errors_are_one_and_one_minus_c():
    # solving m² = c·m for the mean: 0 and c, with c = 3 ln(40)/100
    totals = sure(0.0, 100.0)
    assert measures.chernoff_upper(totals, 0.05)[0] == 1.0
    assert measures.chernoff_lower(totals, 0.05)[0] == pytest.approx(1 - 3 * math.log(40) / 100)


def test_bounds_hold_the_accuracy_between_them_and_stay_between_zero_and_one():
    for errors in (0.0, 1.0, 5.0, 9.0, 10.0):
        totals = sure(errors, 10.0)
        for lower, upper in (
            (measures.hoeffding_lower, measures.hoeffding_upper),
            (measures.chernoff_lower, measures.chernoff_upper),
        ):
            least, greatest = lower(totals, 0.05)[0], upper(totals, 0.05)[0]
            assert 0.0 <= least <= measures.accuracy(totals)[0] <= greatest <= 1.0


def test_bounds_close_as_outcomes_count_for_more_and_open_as_delta_shrinks():
    for bound in (measures.hoeffding_lower, measures.chernoff_lower):
        by_size = [bound(sure(100.0, 1000.0, n_eff), 0.05)[0] for n_eff in (100.0, 1000.0, 1999.0, 1e9)]
        assert by_size == sorted(by_size)
        assert by_size[-1] == pytest.approx(0.9, abs=1e-3)
        by_delta = [bound(sure(100.0, 1000.0), delta)[0] for delta in (0.001, 0.05, 0.5)]
        assert by_delta == sorted(by_delta)


def test_for_rare_errors_chernoffs_lower_limit_is_the_tighter_one():
    rare, frequent = sure(10.0, 10_000.0), sure(5_000.0, 10_000.0)
    chernoff, hoeffding = measures.chernoff_lower, measures.hoeffding_lower
    assert chernoff(rare, 0.05)[0] > hoeffding(rare, 0.05)[0]
    assert chernoff(frequent, 0.05)[0] < hoeffding(frequent, 0.05)[0]


@pytest.mark.slow
@pytest.mark.parametrize("shares", few([(0.6, 0.3, 0.1), (0.5, 0.5), (0.9, 0.1)], 1))
def test_the_null_deviation_is_the_spread_of_kappa_over_independent_tables(shares):
    rng = np.random.default_rng(7)
    n, runs = 2_000, 20_000
    true_class, guess = np.array(shares), np.array(shares[::-1])
    tables = rng.multinomial(n, np.outer(true_class, guess).ravel(), size=runs).astype(float)
    tables = tables.reshape(runs, len(shares), len(shares))
    totals = stack([confusion(table) for table in tables])
    kappas, zscores = measures.kappa(totals), measures.kappa_zscore(totals)
    assert np.nanmean(measures.kappa_null_deviation(totals)) == pytest.approx(kappas.std(), rel=0.03)
    assert kappas.mean() == pytest.approx(0.0, abs=3e-4)
    assert zscores.std() == pytest.approx(1.0, abs=0.03)
    # three standard deviations of a share of 5 % in 20,000 runs, and the skewness of small cells
    assert (zscores > 1.645).mean() == pytest.approx(0.05, abs=0.008)


def test_a_model_that_agrees_beyond_chance_has_a_large_z_and_one_that_does_not_a_small_one():
    assert measures.kappa_zscore(confusion([[45, 5], [5, 45]]))[0] == pytest.approx(8.0)
    assert measures.kappa_zscore(confusion([[25, 25], [25, 25]]))[0] == 0.0
    assert measures.kappa_zscore(confusion([[5, 45], [45, 5]]))[0] == pytest.approx(-8.0)


def test_the_standard_error_of_kappa_is_cohens_on_his_formula_by_hand():
    totals = confusion([[40, 30], [5, 25]])  # p = .65, p_chance = .48, n = 100
    expected = math.sqrt(0.65 * 0.35 / 100) / 0.52
    assert measures.kappa_standard_error(totals)[0] == pytest.approx(expected)


def outcomes_with_losses(losses):
    return plain.landmark([(0, int(lost)) for lost in losses])


def test_alternating_losses_are_fully_anticorrelated_and_stand_for_no_number_of_outcomes():
    totals = totals_of(outcomes_with_losses([0, 1] * 20))
    assert measures.loss_autocorrelation(totals)[0] == pytest.approx(-1.0)
    assert np.isnan(measures.effective_sample_size_autocorrelated(totals)[0])


def test_losses_in_long_runs_are_worth_few_outcomes():
    totals = totals_of(outcomes_with_losses(([0] * 50 + [1] * 50) * 4))
    rho = measures.loss_autocorrelation(totals)[0]
    assert rho == pytest.approx(0.96, abs=0.01)
    worth = measures.effective_sample_size_autocorrelated(totals)[0]
    assert worth == pytest.approx(400 * (1 - rho) / (1 + rho))
    assert worth < 10


@pytest.mark.slow
@pytest.mark.parametrize("rho", few([0.5, -0.3, 0.0, 0.8], 1))
def test_the_correlation_of_a_markov_chain_of_losses_is_found(rho):
    rng = np.random.default_rng(3)
    p, n = 0.3, 40_000
    losses = [0]
    for u in rng.random(n - 1):
        losses.append(int(u < p + rho * (losses[-1] - p)))
    found = measures.loss_autocorrelation(totals_of(outcomes_with_losses(losses)))[0]
    assert found == pytest.approx(rho, abs=0.03)


def test_constant_losses_have_no_correlation():
    for losses in ([0] * 30, [1] * 30, [1]):
        totals = totals_of(outcomes_with_losses(losses))
        assert np.isnan(measures.loss_autocorrelation(totals)[0])
        assert np.isnan(measures.effective_sample_size_autocorrelated(totals)[0])


def test_the_correlation_fades_out_of_definition_with_the_last_error_and_never_leaves_its_range():
    losses = [1, 1, 0, 1] + [0] * 200
    defined = []
    for end in range(2, len(losses) + 1):
        outcomes = plain.fading(0.9)([(0, int(lost)) for lost in losses[:end]])
        rho = measures.loss_autocorrelation(totals_of(outcomes))[0]
        defined.append(not np.isnan(rho))
        assert np.isnan(rho) or -1.0 <= rho <= 1.0
    assert any(defined)
    assert not any(defined[80:])


@pytest.mark.parametrize(("lost_twice", "expected"), [(100.0, 1.0), (0.0, -1.0)])
def test_an_estimate_beyond_its_range_is_its_end(lost_twice, expected):
    totals = sure(90.0, 100.0)
    changed = {"lost_twice": np.array([lost_twice]), "pairs": np.array([100.0])}
    totals = Totals(**{f: changed.get(f, getattr(totals, f)) for f in FIELDS})
    assert measures.loss_autocorrelation(totals)[0] == expected


@pytest.mark.parametrize("predictions_miss", [True, False])
def test_kappa_has_a_null_distribution_from_a_twentieth_of_an_outcome_of_another_class_on(predictions_miss):
    for missed, defined in ((0.04, False), (0.06, True)):
        rows = [[5.0, missed], [5.0, 0.0]]
        totals = confusion(rows if predictions_miss else np.transpose(rows))
        assert np.isfinite(measures.kappa_null_deviation(totals)[0]) == defined


@pytest.mark.parametrize(
    "rows",
    [[[10, 0], [0, 0]], [[10, 0], [5, 0]], [[10, 5], [0, 0]], [[0, 10], [0, 0]]],
    ids=["all agree", "one class predicted", "one class in truth", "never agree"],
)
def test_without_two_classes_on_both_sides_kappa_has_no_null_distribution(rows):
    assert np.isnan(measures.kappa_zscore(confusion(rows))[0])
    assert np.isnan(measures.kappa_null_deviation(confusion(rows))[0])


def test_the_standard_error_of_kappa_is_undefined_where_kappa_is_and_zero_for_a_perfect_model():
    assert np.isnan(measures.kappa_standard_error(confusion([[10, 0], [0, 0]]))[0])
    assert measures.kappa_standard_error(confusion([[10, 0], [0, 10]]))[0] == 0.0


def test_z_stays_finite_while_one_class_fades_away():
    pairs = [(1, 1), (0, 1), (1, 0)] + [(0, 0)] * 300
    for end in range(1, len(pairs) + 1):
        value = measures.kappa_zscore(totals_of(plain.fading(0.9)(pairs[:end])))[0]
        assert not abs(value) > 20, end


def test_without_outcomes_nothing_is_bounded():
    nothing = Totals(*np.zeros((5, 1)), *np.zeros((3, 1, 2)), *np.zeros((9, 1)))
    for bound in BOUNDS:
        assert np.isnan(bound.of(nothing, 0.05)).all(), bound.name


def test_many_models_at_once_have_the_bounds_each_has_alone():
    models = [totals_of(plain.fading(0.95)(drawn(seed, 50))) for seed in range(10)]
    for bound in BOUNDS:
        alone = [bound.of(m, 0.1)[0] for m in models]
        np.testing.assert_array_equal(bound.of(stack(models), 0.1), alone)
