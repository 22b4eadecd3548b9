"""The size of the test for κ > 0 when predictions are independent of the truth.

z = κ/δ₀ (Fleiss, Cohen, Everitt 1969), one-sided at 5 %: z > 1.645. 4,000 repetitions each; the standard
error of a share of 5 % is then .0034.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.stats import hypergeom

from streamwatch.core.estimators.measures.measures import kappa, kappa_standard_error, kappa_zscore, p_chance
from streamwatch.core.specs import FadingSpec, LandmarkSpec, SlidingSpec
from tests.calibration.monte_carlo import binomial_error, table_of

MODELS = 4_000
CRITICAL = 1.6449
CHUNK = 400
MECHANISMS = (LandmarkSpec(), FadingSpec(0.999), SlidingSpec(1_000))


@cache
def independent(share, length):
    """Totals of outcomes whose truth and prediction are each class 1 with probability `share`."""
    rng = np.random.default_rng(int(1_000 * share) + length)
    table = table_of(MODELS, MECHANISMS)
    for first in range(0, MODELS, CHUNK):
        rows = np.repeat(np.arange(first, first + CHUNK, dtype=np.int32), length)
        true_class, predicted_class = (rng.random((2, len(rows)), np.float32) < share).astype(np.int32)
        table.fold(rows, true_class, predicted_class)
    return [table.totals(np.arange(MODELS), index) for index in range(len(MECHANISMS))]


@pytest.mark.parametrize("index", range(len(MECHANISMS)), ids=[m.name for m in MECHANISMS])
def test_at_even_classes_the_test_rejects_a_true_hypothesis_in_five_percent(index) -> None:
    """Within 4 standard errors, .0138, both ways."""
    z = kappa_zscore(independent(0.5, 2_000)[index])
    assert (z > CRITICAL).mean() == pytest.approx(0.05, abs=4 * binomial_error(0.05, MODELS))
    assert (z < -CRITICAL).mean() == pytest.approx(0.05, abs=4 * binomial_error(0.05, MODELS))
    assert z.std() == pytest.approx(1.0, abs=4 / np.sqrt(2 * MODELS))


def test_at_ninety_eight_to_two_it_rejects_in_five_percent_up_to_what_small_counts_allow() -> None:
    """10,000 outcomes have 4 chance agreements on the rare class: a skewed, coarse count.

    Given the margins that count is hypergeometric; the size that follows exactly from it is asserted within
    4 standard errors, and that both are within .05 ± .025.
    """
    totals = independent(0.02, 10_000)[0]
    z = kappa_zscore(totals)
    size = (z > CRITICAL).mean()
    exact = np.mean([size_given_margins(*margins) for margins in zip(*margins_of(totals), strict=True)])
    assert size == pytest.approx(exact, abs=4 * binomial_error(exact, MODELS))
    assert exact == pytest.approx(0.05, abs=0.025)
    assert z.std() == pytest.approx(1.0, abs=0.05)


def margins_of(totals):
    """(n, truths, predictions of class 1) of 400 models: their mean size is known to .001."""
    return (
        x[:400].astype(int).tolist()
        for x in (totals.n, totals.true_class[:, 1], totals.predicted_class[:, 1])
    )


def size_given_margins(n, t, q):
    """P(z > 1.645 | n outcomes, t of class 1, q predicted as class 1), agreements being hypergeometric."""
    both = np.arange(min(t, q, 60) + 1)  # 4 are expected
    agreed = (n - t - q + 2 * both) / n
    a, b = t / n, q / n
    chance = a * b + (1 - a) * (1 - b)
    variance = chance + chance**2 - (a * b * (a + b) + (1 - a) * (1 - b) * (2 - a - b))
    z = (agreed - chance) / np.sqrt(variance / n)
    return hypergeom(n, t, q).pmf(both)[z > CRITICAL].sum()


def test_the_standard_error_of_kappa_is_its_spread_where_kappa_is_not_zero() -> None:
    """For even classes and 80 % agreement the printed error is the spread of κ within 5 %.

    (√(2/4000)·4 = 9 % of the variance is what repetitions leave open.)
    """
    rng = np.random.default_rng(4)
    table = table_of(MODELS, MECHANISMS)
    for first in range(0, MODELS, CHUNK):
        rows = np.repeat(np.arange(first, first + CHUNK, dtype=np.int32), 1_000)
        true_class = (rng.random(len(rows), np.float32) < 0.5).astype(np.int32)
        wrong = rng.random(len(rows), np.float32) < 0.2
        table.fold(rows, true_class, np.where(wrong, 1 - true_class, true_class))
    totals = table.totals(np.arange(MODELS), 0)
    assert kappa(totals).std() == pytest.approx(kappa_standard_error(totals).mean(), rel=0.05)
    assert p_chance(totals).mean() == pytest.approx(0.5, abs=0.001)
