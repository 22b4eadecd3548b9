"""What an answer is worth: balanced over classes, or by costs."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from streamwatch.core.estimators.verdicts.costs import cost_table
from streamwatch.core.estimators.verdicts.detector import balanced_weight


@numba.njit
def weights(counts, first, classes, unit, true_classes, out):
    for i in range(true_classes.shape[0]):
        out[i] = balanced_weight(counts, first, classes, 1, unit, true_classes[i])


def plain_weight(counts, true_class):
    """Worth of a right answer from the counts by class, in outcomes."""
    present = {k: c for k, c in counts.items() if c >= 0.05 or k == true_class}
    total = sum(present.values())
    share = {k: max((c + 1) / (total + len(present)), 0.005) for k, c in present.items()}
    return min(1.0, min(share.values()) / share[true_class])


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1.0, 2.0**200, 3.7e-50])
@pytest.mark.parametrize("seed", range(5))
def test_a_right_answer_is_worth_what_the_rarest_class_is_rarer(seed, unit) -> None:
    rng = np.random.default_rng(seed)
    classes = int(rng.integers(1, 9))
    by_class = rng.exponential(1.0, classes) ** 4 * rng.choice([0.01, 1.0, 1_000.0], classes)
    cells = np.full((classes + 5, 3), np.nan)
    cells[2 : 2 + classes, 1] = by_class * unit
    true_classes = np.arange(classes)
    got = np.zeros(classes)
    weights(cells, 2, classes, unit, true_classes, got)
    expected = [plain_weight(dict(enumerate(by_class.tolist())), k) for k in true_classes.tolist()]
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def test_by_balanced_utility_one_fraud_in_a_hundred_is_worth_a_hundred_hits_on_the_rest() -> None:
    got = np.zeros(2)
    weights(np.array([[0.0, 9_899.0, 0.0], [0.0, 99.0, 0.0]]), 0, 2, 1.0, np.array([0, 1]), got)
    np.testing.assert_allclose(got, [100 / 9_900, 1.0])


def test_a_class_below_half_a_percent_counts_as_half_a_percent() -> None:
    got = np.zeros(2)
    weights(np.array([[0.0, 9_998.0, 0.0], [0.0, 0.0, 0.0]]), 0, 2, 1.0, np.array([0, 1]), got)
    np.testing.assert_allclose(got, [1.0, 1.0])  # the other is not present with y = 0
    weights(np.array([[0.0, 9_998.0, 0.0], [0.0, 9.0, 0.0]]), 0, 2, 1.0, np.array([0, 1]), got)
    np.testing.assert_allclose(got, [0.005 / (9_999 / 10_009), 1.0])


def test_costs_are_utilities_between_the_worst_and_the_best() -> None:
    table = cost_table({"fraud": {"legit": 100.0}, "legit": {"fraud": 5.0}}, other=0.0)
    assert table.classes == ("fraud", "legit")
    fraud, legit, unlisted = table.index("fraud"), table.index("legit"), table.index("chargeback")
    assert (fraud, legit, unlisted) == (1, 2, 0)
    assert table.utilities[fraud, legit] == 0.0
    assert table.utilities[legit, fraud] == 0.95
    for true_class, answer in [(fraud, fraud), (legit, legit), (unlisted, fraud), (legit, unlisted)]:
        assert table.utilities[true_class, answer] == 1.0


def test_gains_are_costs_below_zero() -> None:
    table = cost_table({"a": {"a": -3.0, "b": 1.0}, "b": {"a": 0.0, "b": 0.0}}, other=None)
    assert table.utilities[1:, 1:].tolist() == [[1.0, 0.0], [0.25, 0.25]]
    assert (table.utilities[0] == 0.0).all()
    assert (table.utilities[:, 0] == 0.0).all()


@pytest.mark.parametrize(
    ("costs", "other", "wrong"),
    [
        ({"a": {"b": 1.0}, "b": {"a": 2.0}}, None, "got none for a: a"),
        ({"a": {"a": 2.0, "b": 2.0}, "b": {"a": 2.0, "b": 2.0}}, None, "got 2.0 for every pair"),
        ({"a": {"b": 2.0}}, 2.0, "got 2.0 for every pair"),
        ({}, None, "must differ"),
        ({"a": {"b": float("nan")}}, 0.0, "must be finite, got nan"),
        ({"a": {"b": 1.0}}, float("inf"), "must be finite, got inf"),
    ],
)
def test_costs_that_say_nothing_are_refused(costs, other, wrong) -> None:
    with pytest.raises(ValueError, match=wrong):
        cost_table(costs, other)
