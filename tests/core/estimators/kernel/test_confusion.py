"""The confusion matrix against scikit-learn's, weighted by .999 per outcome of age."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

from streamwatch.core.estimators.kernel.table import ModelTable
from tests.core.estimators.kernel.streams import drifting, one_row, some_scores, table_of
from tests.layouts import DEFAULT

pytestmark = pytest.mark.filterwarnings("ignore:A single label was found")


def confusion(table: ModelTable) -> np.ndarray | None:
    return table.confusions(np.array([0]))[0]


def expected(true_class, predicted_class, classes):
    """Rows are true classes; an outcome of age a counts .999^a."""
    weights = 0.999 ** np.arange(len(true_class) - 1, -1, -1.0)
    return confusion_matrix(true_class, predicted_class, labels=range(classes), sample_weight=weights)


@pytest.mark.parametrize("classes", [2, 5, 16])
def test_the_matrix_is_scikit_learns_after_the_first_outcome_and_later_ones(classes: int) -> None:
    n = 1_200
    true_class, predicted_class = drifting(n, classes, seed=classes)
    table, done = table_of(DEFAULT), 0
    for end in (1, 2, 3, 10, 57, 300, 301, n):
        table.fold(one_row(end - done), true_class[done:end], predicted_class[done:end])
        done = end
        matrix = confusion(table)
        assert matrix is not None
        shown = int(max(true_class[:end].max(), predicted_class[:end].max())) + 1
        np.testing.assert_allclose(
            matrix, expected(true_class[:end], predicted_class[:end], shown), atol=1e-9
        )
        fading = table.totals(np.array([0]), 1)
        np.testing.assert_allclose(matrix.sum(axis=1), fading.true_class[0], atol=1e-9)
        np.testing.assert_allclose(matrix.diagonal(), fading.agreed[0], atol=1e-9)


def test_the_matrix_outlives_the_renormalisation_of_its_unit() -> None:
    """The unit passes 2^256 at the 177,357th outcome."""
    n = 177_400
    rng = np.random.default_rng(0)
    true_class, predicted_class = rng.integers(0, 3, (2, n)).astype(np.int32)
    table = table_of(DEFAULT)
    table.fold(one_row(n), true_class, predicted_class)
    np.testing.assert_allclose(confusion(table), expected(true_class, predicted_class, 3), rtol=1e-11)


def test_a_resumed_model_has_the_matrix_of_one_that_never_stopped() -> None:
    true_class, predicted_class = drifting(400, 6, seed=1)
    whole = table_of(DEFAULT)
    whole.fold(one_row(400), true_class, predicted_class)
    for stop in (0, 1, 2, 150):
        before, resumed = table_of(DEFAULT), table_of(DEFAULT)
        before.fold(one_row(stop), true_class[:stop], predicted_class[:stop])
        resumed.restore(0, before.snapshot(0))
        resumed.fold(one_row(400 - stop), true_class[stop:], predicted_class[stop:])
        np.testing.assert_array_equal(confusion(resumed), confusion(whole))


def test_classes_known_from_scores_only_have_empty_rows_and_columns() -> None:
    true_class = np.array([5, 6, 5], np.int32)
    table = table_of(DEFAULT)
    table.fold(one_row(3), true_class, true_class, scores=some_scores(true_class, seed=4))
    matrix = confusion(table)
    assert matrix is not None
    assert matrix.sum() == pytest.approx(1 + 0.999 + 0.999**2)
    assert not matrix[:5].any()


def test_there_is_no_matrix_before_an_outcome_nor_beyond_the_most_classes() -> None:
    table = table_of(DEFAULT)
    assert confusion(table) is None
    true_class = np.arange(17, dtype=np.int32)
    table.fold(one_row(16), true_class[:16], true_class[:16])
    assert confusion(table) is not None
    table.fold(one_row(1), true_class[16:], true_class[16:])
    assert confusion(table) is None
