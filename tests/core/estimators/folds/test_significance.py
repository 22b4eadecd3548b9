"""Tests over folds, against SciPy, scikit-posthocs, enumeration of every sign, and printed examples."""

from __future__ import annotations

import math
from importlib import import_module
from itertools import product

import numpy as np
import pytest
from scipy import stats

from streamwatch.core.estimators.folds import (
    critical_difference,
    friedman_test,
    sign_test,
    spread,
    wilcoxon_test,
)

A = [77.98, 72.26, 76.95, 77.94, 72.23, 76.90, 77.93, 72.37, 76.93, 77.97]
B = [77.91, 72.27, 76.97, 76.57, 71.63, 75.48, 75.75, 71.33, 74.54, 77.94]
"""Bifet et al. 2015, Table 1."""


def test_the_printed_example_has_these_ranks_and_does_not_reject_by_signs() -> None:
    """The paper prints W⁺ = 53; its own ranks sum to 52."""
    test = wilcoxon_test(A, B)
    assert (test.positive, test.negative) == (52.0, 3.0)
    assert test.p == pytest.approx(0.00977, abs=5e-6)
    signs = sign_test(A, B)
    assert (signs.wins, signs.losses) == (8, 2)
    assert signs.p == pytest.approx(0.109, abs=5e-4)


def every_sign(differences):
    """W⁺, and two-sided p over all 2ⁿ signs of the ranks of the differences that are not 0."""
    different = np.array([d for d in differences if d != 0])
    sizes = np.abs(different)
    ranks = [(sizes < d).sum() + ((sizes == d).sum() + 1) / 2 for d in sizes]
    at_hand = sum(r for r, d in zip(ranks, different, strict=True) if d > 0)
    sums = [np.dot(ranks, ups) for ups in product((0, 1), repeat=len(ranks))]
    below, above = sum(s <= at_hand for s in sums), sum(s >= at_hand for s in sums)
    return at_hand, min(1.0, 2 * min(below, above) / len(sums))


@pytest.mark.parametrize("seed", range(30))
def test_wilcoxon_with_ties_and_zeros_is_the_enumeration_of_all_signs(seed) -> None:
    rng = np.random.default_rng(seed)
    steps = rng.integers(-4, 6, int(rng.integers(1, 12)))
    other = rng.random(len(steps))
    test = wilcoxon_test(other + steps / 100, other)
    if not steps.any():
        assert math.isnan(test.p)
        return
    positive, p = every_sign(steps)
    assert (test.positive, test.p) == (positive, pytest.approx(p, rel=1e-12))


def test_the_p_of_a_tied_example_counted_by_hand() -> None:
    """Differences 1, 1, 1, 2, 2, −1: ranks 2.5 ×4 and 5.5 ×2, W⁺ = 18.5; at least as far out are the 5
    patterns without one rank of 2.5 (4) and with all (1), out of 64, so p = 2·5/64."""
    test = wilcoxon_test([1, 1, 1, 2, 2, 0], [0, 0, 0, 0, 0, 1])
    assert (test.positive, test.negative) == (18.5, 2.5)
    assert test.p == pytest.approx(10 / 64)


@pytest.mark.parametrize("n", [1, 2, 5, 10, 25, 60])
def test_without_ties_wilcoxon_is_that_of_scipy(n) -> None:
    rng = np.random.default_rng(n)
    first, second = rng.random(n), rng.random(n) - 0.1
    expected = stats.wilcoxon(first, second, method="exact")
    test = wilcoxon_test(first, second)
    assert min(test.positive, test.negative) == expected.statistic
    assert test.p == pytest.approx(expected.pvalue, rel=1e-9)


@pytest.mark.parametrize("n", [1, 3, 10, 30, 200])
def test_the_sign_test_is_scipys_binomial_test(n) -> None:
    rng = np.random.default_rng(n)
    first, second = rng.integers(0, 5, n) / 5, rng.integers(0, 5, n) / 5
    signs = sign_test(first, second)
    assert signs.wins == (first > second).sum()
    assert signs.losses == (first < second).sum()
    if signs.wins + signs.losses:
        expected = stats.binomtest(signs.wins, signs.wins + signs.losses).pvalue
        assert signs.p == pytest.approx(expected, rel=1e-9)


def test_differences_that_only_rounding_unties_are_tied() -> None:
    first, second = [0.3, 0.4, 0.5], [0.2, 0.3, 0.6]
    assert len(set(np.abs(np.subtract(first, second)).tolist())) > 1
    assert wilcoxon_test(first, second).positive == 4.0
    assert math.isnan(sign_test([0.1 + 0.2], [0.3]).p)


@pytest.mark.parametrize("seed", range(10))
def test_friedman_is_that_of_scipy_ties_included(seed) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 6 if seed % 2 else 1_000, (int(rng.integers(3, 7)), 10)) / 7
    test = friedman_test(values)
    expected = stats.friedmanchisquare(*values)
    assert test.statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert test.p == pytest.approx(expected.pvalue, rel=1e-9)
    assert sum(test.ranks) == pytest.approx(len(values) * (len(values) + 1) / 2)


@pytest.mark.slow  # its oracle loads matplotlib and pandas
@pytest.mark.parametrize("seed", range(6))
def test_the_critical_difference_parts_those_that_scikit_posthocs_parts(seed) -> None:
    rng = np.random.default_rng(seed)
    values = rng.random((5, 12)) + np.linspace(0, 1.5, 5)[:, None]
    alpha = 0.05
    test = friedman_test(values, alpha)
    scikit_posthocs = import_module("scikit_posthocs")  # with matplotlib and pandas: where it is used
    p = scikit_posthocs.posthoc_nemenyi_friedman(values.T).to_numpy()
    apart = np.abs(np.subtract.outer(test.ranks, test.ranks)) >= test.critical_difference
    np.testing.assert_array_equal(apart, p <= alpha)
    assert 0 < apart.sum() < 20
    assert test.ranks[-1] == min(test.ranks)


@pytest.mark.parametrize(
    ("alpha", "printed"),
    [
        (0.05, [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]),
        (0.10, [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]),
    ],
)
def test_critical_values_are_those_printed_by_demsar(alpha, printed) -> None:
    """Demšar 2006, Table 5, for 2 to 10 classifiers."""
    for k, q in enumerate(printed, 2):
        unit = math.sqrt(k * (k + 1) / (6 * 10))
        assert critical_difference(k, 10, alpha) / unit == pytest.approx(q, abs=1.1e-3)


def test_what_cannot_be_tested_is_undefined() -> None:
    assert math.isnan(wilcoxon_test([0.5, 0.5], [0.5, 0.5]).p)
    assert math.isnan(sign_test([], []).p)
    tied = friedman_test([[0.5, 0.6], [0.5, 0.6], [0.5, 0.6]])
    assert math.isnan(tied.p)
    assert math.isnan(tied.statistic)
    assert tied.ranks == (2.0, 2.0, 2.0)
    assert math.isnan(spread([]).mean)
    assert math.isnan(spread([0.5]).deviation)


def test_a_spread_over_folds_is_mean_and_deviation() -> None:
    found = spread(A)
    assert found.mean == pytest.approx(np.mean(A))
    assert found.deviation == pytest.approx(np.std(A, ddof=1))
    assert found.folds == 10


@pytest.mark.parametrize(
    ("make", "wrong"),
    [
        (lambda: sign_test([0.1], [0.1, 0.2]), "the same folds, got 1 and 2"),
        (lambda: wilcoxon_test([math.nan], [0.1]), "finite, got nan"),
        (lambda: friedman_test([[0.1, 0.2]]), "2 or more classifiers"),
        (lambda: friedman_test([0.1, 0.2]), r"2 dimension\(s\)"),
        (lambda: critical_difference(3, 10, 1.0), "alpha must be in"),
    ],
)
def test_what_does_not_fit_is_refused(make, wrong) -> None:
    with pytest.raises(ValueError, match=wrong):
        make()
