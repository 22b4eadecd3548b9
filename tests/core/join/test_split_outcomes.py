"""Outcomes in columns, and numbers under other numbers, are what numpy says field by field."""

from __future__ import annotations

import numpy as np
import pytest

from streamwatch.core.join.durable.columns import (
    ASSUMED,
    DELAY,
    HIGH,
    LABEL,
    LOW,
    MADE,
    MODEL,
    RESOLVED,
    SEGMENTS,
    PackedError,
    columns_of,
    mark_used,
    outcomes_of,
    renumber,
)
from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM

MOST = 1_000


def some(rng: np.random.Generator, count: int):
    """Records of any values, without scores."""
    records = np.zeros(count, OUTCOME)
    for name in ("low", "high"):
        records[name] = rng.integers(0, 2**64, count, np.uint64)
    for name in ("event_ms", "delay_ms", "resolved_ms", "waited_ms"):
        records[name] = rng.integers(-(2**40), 2**40, count)
    records["model"] = rng.integers(0, MOST, count)
    for name in ("true_class", "predicted_class", "label_at_prediction"):
        records[name] = rng.integers(-1, MOST, count)
    records["last_class"] = rng.integers(0, MOST, count)
    records["made"] = rng.integers(0, 2**32, count)
    records["assumed"] = rng.integers(0, 2, count)
    records["scores"] = -1
    return records


@pytest.mark.parametrize("sizes", [(1,), (5, 0, 7), (300, 1)])
def test_columns_give_the_records_of_all_parts_in_order_again(sizes):
    rng = np.random.default_rng(len(sizes))
    parts = [some(rng, size) for size in sizes]
    table = columns_of(parts)
    for number, name in (
        (DELAY, "delay_ms"),
        (MODEL, "model"),
        (LABEL, "label_at_prediction"),
        (MADE, "made"),
    ):
        np.testing.assert_array_equal(table[number], np.concatenate([part[name] for part in parts]))
    columns = [table[LOW].view(np.uint64), table[HIGH].view(np.uint64), *table[DELAY:]]
    np.testing.assert_array_equal(outcomes_of(columns, MOST, MOST, 1), np.concatenate(parts))


def test_segments_are_where_scores_would_be():
    records = some(np.random.default_rng(1), 3)
    table = columns_of([records])
    table[SEGMENTS] = [-1, 4, 0]
    columns = [table[LOW].view(np.uint64), table[HIGH].view(np.uint64), *table[DELAY:]]
    assert outcomes_of(columns, MOST, MOST, 5)["scores"].tolist() == [-1, SEGMENTS_FROM + 4, SEGMENTS_FROM]
    with pytest.raises(
        PackedError, match="expected numbers from -1 to 3 of outcomes as segments, got -1 to 4"
    ):
        outcomes_of(columns, MOST, MOST, 4)


@pytest.mark.parametrize(
    ("column", "name", "values"),
    [
        (ASSUMED, "assumed", [0, 300, 1]),
        (ASSUMED, "assumed", [0, -1, 1]),
        (RESOLVED, "resolved_ms", [0, 2**60, 0]),
        (RESOLVED, "resolved_ms", [0, 0, -(2**62)]),
        (DELAY, "delay_ms", [2**63 - 1, 0, 0]),
        (SEGMENTS - 3, "time from the label to the outcome", [2**61, 0, 0]),
        (SEGMENTS - 2, "time from the prediction to its record", [0, -(2**63), 0]),
    ],
)
def test_numbers_that_no_outcome_has_are_refused(column: int, name: str, values: list[int]):
    table = columns_of([some(np.random.default_rng(1), 3)])
    table[column] = values
    columns = [table[LOW].view(np.uint64), table[HIGH].view(np.uint64), *table[DELAY:]]
    with pytest.raises(PackedError, match=f"of outcomes as {name}, got {min(values)} to {max(values)}"):
        outcomes_of(columns, MOST, MOST, 1)


def test_digests_elsewhere_than_in_the_first_two_columns_are_refused():
    table = columns_of([some(np.random.default_rng(1), 3)])
    with pytest.raises(PackedError, match="expected digests of outcomes in the first two columns"):
        outcomes_of(list(table), MOST, MOST, 1)


def test_records_with_others_between_them_are_read_as_well():
    records = some(np.random.default_rng(3), 9)
    np.testing.assert_array_equal(columns_of([records[::2]])[MADE], records["made"][::2])


def test_numbers_get_others_and_none_stays_none():
    column = np.array([4, -1, 0, 4])
    used = np.zeros(6, np.bool_)
    mark_used(column, used)
    assert np.flatnonzero(used).tolist() == [0, 4]
    renumber(column, np.array([7, 9, 9, 9, 0, 9]), column)
    assert column.tolist() == [0, -1, 7, 0]
    mark_used(column[:0], used[:0])
