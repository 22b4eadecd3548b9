"""What long streams, many classes and counts beyond 32 bits leave of a number."""

from __future__ import annotations

from dataclasses import fields, replace
from decimal import Decimal, localcontext

import numpy as np
import pytest

from streamwatch.core.estimators.forgetting.adwin import FIRST_BLOCK_ROW, PER_ROW, ROWS, SMALL_OUTCOMES
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.measures import measures
from streamwatch.core.estimators.measures.measures import Totals
from streamwatch.core.estimators.memory import AGREED, HEADER, HITS, PAIRS, REPEATS, SLOT, N
from streamwatch.core.specs import (
    AdwinSpec,
    FadingSpec,
    LandmarkSpec,
    MonitorsSpec,
    SlidingSpec,
)
from tests.layouts import DEFAULT, EVERYTHING

ONE = np.array([0])
ALPHAS = (0.99, 0.999, 0.99999)
PERIOD = 1_000
HUNDRED_MILLION = 100_000_000
BATCH = 1_000_000


def table_of(forgetting):
    """A table of a model; of the layout of `DEFAULT` where mechanisms are of as many kinds."""
    of_few_classes = MonitorsSpec((), (), (), max_classes=3, shadow_max_classes=0)
    spec = DEFAULT if len(forgetting) == len(DEFAULT.forgetting) else of_few_classes
    table = ModelTable(replace(spec, forgetting=forgetting, max_models=1))
    table.add_model()
    return table


def zeros(n):
    return np.zeros(n, np.int32)


def periodic():
    """Labels and predictions of one period, three classes, nothing regular within it."""
    rng = np.random.default_rng(12)
    true_class = rng.integers(0, 3, PERIOD).astype(np.int32)
    return true_class, np.where(rng.random(PERIOD) < 0.8, true_class, rng.integers(0, 3, PERIOD)).astype(
        np.int32
    )


def faded_sum(alpha, values, periods):
    """Σ α^(n-1-t)·v_t of a sequence repeated so often: its last period times a geometric series."""
    last = Decimal(0)
    for value in values:
        last = last * alpha + int(value)
    return last * (1 - alpha ** (len(values) * periods)) / (1 - alpha ** len(values))


@pytest.mark.long
def test_a_hundred_million_faded_outcomes_keep_twelve_digits() -> None:
    """Against 60-digit arithmetic in closed form, relative error at most 1e-12 for every total, and 1e-12
    absolute for what measures make of them. (Renormalising is by a power of two; the unit grows by
    correctly rounded divisions.)
    """
    true_class, predicted_class = periodic()
    table = table_of(tuple(FadingSpec(alpha) for alpha in ALPHAS))
    batch = (zeros(BATCH), np.tile(true_class, BATCH // PERIOD), np.tile(predicted_class, BATCH // PERIOD))
    for _ in range(HUNDRED_MILLION // BATCH):
        table.fold(*batch)
    assert table.outcomes(ONE).tolist() == [HUNDRED_MILLION]

    periods = HUNDRED_MILLION // PERIOD
    repeats = true_class == np.roll(true_class, 1)
    with localcontext() as context:
        context.prec = 60
        for index, as_float in enumerate(ALPHAS):
            alpha = Decimal(as_float)
            oldest = alpha ** (HUNDRED_MILLION - 1)  # the first outcome has no previous label
            expected = {
                "n": (weight := faded_sum(alpha, np.ones(PERIOD), periods)),
                "hits": faded_sum(alpha, true_class == predicted_class, periods),
                "repeats": faded_sum(alpha, repeats, periods) - oldest * int(repeats[0]),
                "pairs": weight - oldest,
                "n_eff": weight**2 / faded_sum(alpha * alpha, np.ones(PERIOD), periods),
            }
            got = table.totals(ONE, index)
            for name, value in expected.items():
                assert abs(Decimal(float(getattr(got, name)[0])) / value - 1) < Decimal("1e-12"), (
                    as_float,
                    name,
                )
            for k in range(3):
                exact = [
                    faded_sum(alpha, true_class == k, periods),
                    faded_sum(alpha, predicted_class == k, periods),
                    faded_sum(alpha, (true_class == k) & (predicted_class == k), periods),
                ]
                reached = [got.true_class[0, k], got.predicted_class[0, k], got.agreed[0, k]]
                np.testing.assert_allclose(reached, [float(x) for x in exact], rtol=1e-12)
            accuracy = float(expected["hits"] / weight)
            assert measures.accuracy(got)[0] == pytest.approx(accuracy, abs=1e-12)


def confusion(true_class, predicted_class, classes):
    """Truth, prediction and agreement counts, counted by numpy."""
    return (
        np.bincount(true_class, minlength=classes),
        np.bincount(predicted_class, minlength=classes),
        np.bincount(true_class[true_class == predicted_class], minlength=classes),
    )


def assert_counts(totals, true_class, predicted_class, classes) -> None:
    for name, expected in zip(
        ("true_class", "predicted_class", "agreed"),
        confusion(true_class, predicted_class, classes),
        strict=True,
    ):
        np.testing.assert_array_equal(getattr(totals, name)[0], expected)
    assert totals.n.tolist() == [len(true_class)]
    assert totals.hits.tolist() == [(true_class == predicted_class).sum()]


@pytest.mark.slow
def test_a_thousand_classes_are_counted_exactly() -> None:
    classes, n = 1_000, 200_000
    rng = np.random.default_rng(3)
    true_class = (classes * rng.random(n) ** 2).astype(np.int32)  # the last classes are rare
    predicted_class = np.where(rng.random(n) < 0.7, true_class, rng.integers(0, classes, n)).astype(np.int32)
    table = table_of((LandmarkSpec(), SlidingSpec(5_000), AdwinSpec(), FadingSpec()))
    for start in range(0, n, 10_000):
        part = slice(start, start + 10_000)
        table.fold(zeros(10_000), true_class[part], predicted_class[part])
    assert_counts(table.totals(ONE, 0), true_class, predicted_class, classes)
    assert_counts(table.totals(ONE, 1), true_class[-5_000:], predicted_class[-5_000:], classes)
    width = int(table.adwin_width(ONE, 2)[0])
    assert width > 100_000
    assert_counts(table.totals(ONE, 2), true_class[-width:], predicted_class[-width:], classes)
    weights = 0.999 ** np.arange(n - 1, -1, -1.0)
    np.testing.assert_allclose(
        table.totals(ONE, 3).true_class[0], np.bincount(true_class, weights, classes), rtol=1e-11, atol=1e-11
    )


@pytest.mark.slow
def test_a_class_that_appears_after_a_million_outcomes_is_counted_from_then_on() -> None:
    """Two classes at first, then class 700 among them, under every mechanism."""
    early, late = 1_000_000, 400
    rng = np.random.default_rng(4)
    true_class = np.concatenate([rng.integers(0, 2, early), rng.choice([0, 700], late)]).astype(np.int32)
    predicted_class = np.concatenate([true_class[:early], rng.choice([0, 700], late)]).astype(np.int32)
    predicted_class[:early:5] = 1 - predicted_class[:early:5]
    table = table_of((LandmarkSpec(), SlidingSpec(1_000), AdwinSpec(), FadingSpec(0.99)))
    table.fold(zeros(early), true_class[:early], predicted_class[:early])
    assert table.totals(ONE, 0).true_class.shape == (1, 2)
    table.fold(zeros(late), true_class[early:], predicted_class[early:])
    assert_counts(table.totals(ONE, 0), true_class, predicted_class, 701)
    assert_counts(table.totals(ONE, 1), true_class[-1_000:], predicted_class[-1_000:], 701)
    weights = 0.99 ** np.arange(late - 1, -1, -1.0)
    new = true_class[early:] == 700
    assert table.totals(ONE, 3).true_class[0, 700] == pytest.approx(weights[new].sum(), rel=1e-12)
    assert measures.p_uninformed(table.totals(ONE, 3))[0] == 1 / 3  # .9 outcomes of class 1 are left
    width = int(table.adwin_width(ONE, 2)[0])
    assert_counts(table.totals(ONE, 2), true_class[-width:], predicted_class[-width:], 701)


BILLIONS = 3 << 30
"""More than 32 bits hold, signed; further than a test can count."""


def aged(table, landmark):
    """As if 3·2^30 error-free outcomes of class 0 had come first, remembered by the landmark only."""
    pools = table.pools
    column = table.layout.column_of[landmark]
    model = pools.models[0]
    model["outcomes"] += BILLIONS
    model["totals"][column, :4] += BILLIONS
    pools.class_counts[int(model["class_counts"]), column] += BILLIONS


@pytest.mark.slow
def test_counts_go_on_beyond_thirty_two_bits() -> None:
    """A landmark that has counted three thousand million outcomes counts on by ones; windows do not mind."""
    true_class, predicted_class = periodic()
    forgetting = (LandmarkSpec(), SlidingSpec(100), AdwinSpec(), FadingSpec(0.99))
    old, young = (table_of(forgetting) for _ in range(2))
    for table in (old, young):
        table.fold(zeros(PERIOD), true_class, predicted_class)
    aged(old, 0)
    again = table_of(forgetting)
    again.restore(0, old.snapshot(0))
    for table in (old, young, again):
        table.fold(zeros(PERIOD), true_class, predicted_class)

    for table in (old, again):
        assert table.outcomes(ONE).tolist() == [BILLIONS + 2 * PERIOD]
        assert table.errors(ONE).tolist() == young.errors(ONE).tolist()
        totals, few = table.totals(ONE, 0), young.totals(ONE, 0)
        assert totals.n.tolist() == [BILLIONS + 2.0 * PERIOD]
        assert (totals.hits - few.hits, totals.pairs - few.pairs, totals.repeats - few.repeats) == (
            BILLIONS,
            BILLIONS,
            BILLIONS,
        )
        assert (totals.true_class - few.true_class).tolist() == [[BILLIONS, 0.0, 0.0]]
        assert (totals.agreed - few.agreed).tolist() == [[BILLIONS, 0.0, 0.0]]
        error = 1.0 - measures.accuracy(totals)[0]
        assert error == pytest.approx(
            (2 * PERIOD - few.hits[0]) / (BILLIONS + 2 * PERIOD), rel=1e-9, abs=2e-16
        )
        for index in (1, 3):
            assert_same(table.totals(ONE, index), young.totals(ONE, index))
        assert table.totals(ONE, 2).hits.tolist() == young.totals(ONE, 2).hits.tolist()


def assert_same(ours: Totals, theirs: Totals) -> None:
    for field in (each for each in fields(Totals) if each.init):
        np.testing.assert_array_equal(getattr(ours, field.name), getattr(theirs, field.name), field.name)


CHECKED_AT_EVERY_OUTCOME = 6
"""Number of the ADWIN window among the forgetting mechanisms of `EVERYTHING`."""


def window_of(table):
    """The record of this window of the first model."""
    spec = EVERYTHING.forgetting[CHECKED_AT_EVERY_OUTCOME]
    return table.pools.models[0]["windows"][table.layout.windows.index(spec)]


def with_full_rows(rows):
    """A table whose window has five buckets in each of so many rows, all of hits of class 0.

    Those of the first rows are of outcomes that have come, the others are as if more had come before.
    """
    table = ModelTable(EVERYTHING)
    table.add_model()
    table.fold(*np.zeros((3, SMALL_OUTCOMES - 1), np.int32))
    column = table.layout.column_of[CHECKED_AT_EVERY_OUTCOME]
    pools, model = table.pools, table.pools.models[0]
    window = window_of(table)
    assert window["buckets"].tolist() == [PER_ROW] * FIRST_BLOCK_ROW + [0] * (ROWS + 1 - FIRST_BLOCK_ROW)
    older = PER_ROW * ((1 << rows) - (1 << FIRST_BLOCK_ROW))
    for row in range(FIRST_BLOCK_ROW, rows):
        window["buckets"][row] = PER_ROW
        for k in range(PER_ROW):
            block = int(pools.block_allocator[0])
            pools.block_allocator[0] += 3
            first, outcomes = block * SLOT, 1 << row
            assert HEADER + 3 * 2 <= 3 * SLOT
            pools.blocks[first : first + 2] = outcomes, 1  # repeats; two classes
            pools.blocks[first + HEADER + AGREED] = outcomes
            window["blocks"][row - FIRST_BLOCK_ROW, k] = block
    window["rows"] = rows
    window["large"] += older
    model["totals"][column, [N, HITS, REPEATS, PAIRS]] += older
    pools.class_counts[int(model["class_counts"]), AGREED * table.layout.columns + column] += older
    return table, older + SMALL_OUTCOMES - 1


@pytest.mark.parametrize(("rows", "dropped"), [(ROWS - 1, 0), (ROWS, 1 << (ROWS - 1))])
def test_a_window_drops_its_oldest_bucket_only_once_all_rows_are_full(rows, dropped) -> None:
    """The next outcome has two buckets of every row merged into one of the next; none follows the last."""
    table, outcomes = with_full_rows(rows)
    totals = table.totals(ONE, CHECKED_AT_EVERY_OUTCOME)
    assert (totals.n[0], totals.pairs[0]) == (outcomes, outcomes - 1)
    table.fold(*np.zeros((3, 1), np.int32))
    totals = table.totals(ONE, CHECKED_AT_EVERY_OUTCOME)
    left = outcomes + 1 - dropped
    assert (totals.n[0], totals.hits[0], totals.repeats[0]) == (left, left, left - 1)
    assert (totals.true_class.tolist(), totals.agreed.tolist()) == ([[left]], [[left]])
    buckets = window_of(table)["buckets"].tolist()
    assert buckets == [PER_ROW - 1] * (ROWS - 1) + [PER_ROW if dropped else 1, 0]
    assert sum(number << row for row, number in enumerate(buckets)) == left
