"""The table of models: rows, bounds, refusals, what is restored and what starts anew."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamwatch.core.estimators.kernel import pools
from streamwatch.core.estimators.kernel.table import ModelTable, TableFull
from streamwatch.core.specs import (
    AdwinSpec,
    DriftWeightedSpec,
    FadingSpec,
    LandmarkSpec,
    MonitorsSpec,
    PageHinkleySpec,
    SlidingSpec,
)
from tests.core.estimators.kernel.streams import drifting, follow, one_row, table_of
from tests.layouts import EVERYTHING

ONE = np.array([0])


def test_models_beyond_the_configured_number_are_refused() -> None:
    table = table_of(EVERYTHING, EVERYTHING.max_models)
    with pytest.raises(TableFull, match="6 models"):
        table.add_model()
    table.retire(3)
    assert table.add_model() == 3


def test_a_reused_row_starts_empty_and_reuses_the_memory() -> None:
    true_class, predicted_class = drifting(3_500, 30, seed=2, stationary=3_300)
    fresh, reused = table_of(EVERYTHING), table_of(EVERYTHING)
    for _ in range(3):
        follow(reused, EVERYTHING, 0)
        reused.fold(one_row(3_500), true_class, predicted_class)
        allocator = (reused.pools.class_counts_allocator[0], reused.pools.block_allocator[0])
        reused.retire(0)
        assert reused.add_model() == 0
        assert reused.snapshot(0) == fresh.snapshot(0)
        reused.fold(one_row(3_500), true_class, predicted_class)
        assert (reused.pools.class_counts_allocator[0], reused.pools.block_allocator[0]) == allocator
        reused.retire(0)
        reused.add_model()
    follow(reused, EVERYTHING, 0)
    fresh.fold(one_row(3_500), true_class, predicted_class)
    reused.fold(one_row(3_500), true_class, predicted_class)
    assert reused.snapshot(0) == fresh.snapshot(0)


@pytest.mark.parametrize(
    ("row", "true_class", "predicted_class"),
    [(-1, 0, 0), (1, 0, 0), (99, 0, 0), (0, -1, 0), (0, 0, 42), (0, 42, 0)],
)
def test_an_outcome_out_of_range_is_refused_and_nothing_of_its_batch_is_folded(
    row, true_class, predicted_class
) -> None:
    table = table_of(EVERYTHING)
    batch = np.array([[0, 1, 2], [row, true_class, predicted_class]], np.int32).T
    with pytest.raises(ValueError, match="outcome 1 of a batch"):
        table.fold(*batch)
    with pytest.raises(ValueError, match="outcome 1 of a batch"):
        table.trace(*batch)
    assert table.outcomes(ONE).tolist() == [0]


def test_the_highest_class_index_is_one_beyond_the_configured_number() -> None:
    table = table_of(EVERYTHING)
    top = np.array([EVERYTHING.max_classes + 1], np.int32)
    table.fold(one_row(1), top, top)
    assert table.totals(ONE, 0).agreed.shape == (1, EVERYTHING.max_classes + 2)


def test_reading_a_row_without_a_model_is_refused() -> None:
    table = table_of(EVERYTHING, 2)
    table.retire(0)
    for read in (table.outcomes, table.errors, lambda rows: table.totals(rows, 0)):
        with pytest.raises(ValueError, match="rows must be of models"):
            read(ONE)
    with pytest.raises(ValueError, match="rows must be of models"):
        table.retire(0)


def test_a_new_model_has_totals_of_zero_and_undefined_statistics() -> None:
    table = table_of(EVERYTHING)
    for index in range(len(EVERYTHING.forgetting)):
        totals = table.totals(ONE, index)
        assert (totals.n, totals.hits, totals.pairs, totals.n_eff) == (0.0, 0.0, 0.0, 0.0)
        assert totals.true_class.shape == (1, 0)
    found = table.detectors(ONE)
    assert np.isnan(found.statistic).all()
    assert not found.alarms.any()
    accuracy, n_eff = table.weighted(ONE, 0)
    assert np.isnan(accuracy).all()
    assert n_eff.tolist() == [0.0]


def test_totals_are_padded_to_the_most_classes_asked_for() -> None:
    table = table_of(EVERYTHING, 2)
    table.fold(np.array([0, 1], np.int32), np.array([1, 7], np.int32), np.array([0, 7], np.int32))
    totals = table.totals(np.array([1, 0]), 0)
    assert totals.true_class.tolist() == [[0.0] * 7 + [1.0], [0.0, 1.0] + [0.0] * 6]
    assert table.totals(ONE, 0).true_class.tolist() == [[0.0, 1.0]]


def test_pools_that_start_small_grow_without_changing_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    true_class, predicted_class = drifting(3_500, 30, seed=2, stationary=3_300)
    rows = np.random.default_rng(1).choice([0, 0, 0, 0, 5], 3_500).astype(np.int32)
    roomy = table_of(EVERYTHING, 6)
    monkeypatch.setattr(pools, "RESERVED_BYTES", 4_096)
    small = table_of(EVERYTHING, 6)
    first = len(small.pools.class_counts), len(small.pools.blocks)
    for start in range(0, 3_500, 500):
        part = slice(start, start + 500)
        assert small.fold(rows[part], true_class[part], predicted_class[part]) == roomy.fold(
            rows[part], true_class[part], predicted_class[part]
        )
    assert len(small.pools.class_counts) > first[0]
    assert len(small.pools.blocks) > first[1]
    for row in range(6):
        assert small.snapshot(row) == roomy.snapshot(row)


@pytest.mark.slow  # a layout of its own
def test_address_space_stays_bounded_for_many_models_and_classes() -> None:
    table = ModelTable(MonitorsSpec(max_models=100_000, max_classes=10_000))
    held = table.pools
    arrays = (held.models, held.rings, held.class_counts, held.blocks)
    assert sum(array.nbytes for array in arrays) <= 5 * pools.RESERVED_BYTES


def test_restoring_resumes_matching_estimators_and_starts_the_others_anew() -> None:
    true_class, predicted_class = drifting(900, 6, seed=3)
    old = table_of(EVERYTHING)
    old.fold(one_row(500), true_class[:500], predicted_class[:500])
    forgetting = (*EVERYTHING.forgetting[:3], SlidingSpec(60), *EVERYTHING.forgetting[4:])
    detectors = (replace(EVERYTHING.detectors[0], threshold=6.0), *EVERYTHING.detectors[1:])
    changed = replace(EVERYTHING, forgetting=forgetting, detectors=detectors)
    new = table_of(changed)
    new.restore(0, old.snapshot(0))

    assert new.outcomes(ONE).tolist() == [500]
    assert new.totals(ONE, 0).n.tolist() == [500.0]
    assert new.totals(ONE, 4).n.tolist() == [7.0]
    assert new.totals(ONE, 3).n.tolist() == [0.0]
    assert np.isnan(new.detectors(ONE).statistic[:2, 0]).tolist() == [True, False]

    new.fold(one_row(400), true_class[500:], predicted_class[500:])
    totals = new.totals(ONE, 3)
    window = slice(840, 900)
    assert totals.n.tolist() == [60.0]
    assert totals.pairs.tolist() == [60.0]
    assert totals.hits.tolist() == [float((true_class[window] == predicted_class[window]).sum())]
    assert totals.repeats.tolist() == [float((true_class[window] == true_class[839:899]).sum())]


def test_sections_of_removed_estimators_are_ignored_and_without_a_model_nothing_is_restored() -> None:
    table = table_of(EVERYTHING)
    table.restore(0, {"page_hinkley/0000": b"x"})
    assert table.outcomes(ONE).tolist() == [0]


def test_a_snapshot_is_not_restored_over_a_model_that_has_outcomes() -> None:
    table = table_of(EVERYTHING)
    table.fold(one_row(1), one_row(1), one_row(1))
    with pytest.raises(ValueError, match="new model"):
        table.restore(0, table.snapshot(0))


@pytest.mark.slow  # a layout of its own
def test_no_estimators_at_all_still_count_outcomes_and_errors() -> None:
    nothing = MonitorsSpec((), (), (), max_models=1, max_classes=4)
    table = table_of(nothing)
    table.fold(one_row(3), np.array([0, 1, 2], np.int32), np.array([0, 1, 1], np.int32))
    assert (table.outcomes(ONE), table.errors(ONE)) == (3, 1)
    again = table_of(nothing)
    again.restore(0, table.snapshot(0))
    assert again.snapshot(0) == table.snapshot(0)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (MonitorsSpec(forgetting=(FadingSpec(1.2),)), "alpha"),
        (MonitorsSpec(forgetting=(SlidingSpec(0),)), "size"),
        (MonitorsSpec(forgetting=(AdwinSpec(delta=0.0),)), "delta"),
        (MonitorsSpec(forgetting=(AdwinSpec(min_subwindow=4),)), "min_subwindow"),
        (MonitorsSpec(forgetting=(AdwinSpec(clock=0),)), "clock"),
        (MonitorsSpec(drift_weighted=(DriftWeightedSpec(w_avg=0.5),)), "w_avg"),
        (MonitorsSpec(detectors=(PageHinkleySpec(alpha=0.0),)), "page_hinkley: fading factor"),
        (MonitorsSpec(max_models=0), "max_models"),
        (MonitorsSpec(max_classes=70_000), "max_classes"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(spec, message) -> None:
    with pytest.raises(ValueError, match=f"{message}.* must be"):
        ModelTable(spec)


def test_equal_mechanisms_share_their_counts() -> None:
    spec = MonitorsSpec((SlidingSpec(5), LandmarkSpec(), SlidingSpec(5)), (), ())
    assert table_of(spec).layout.column_of == (0, 1, 0)
