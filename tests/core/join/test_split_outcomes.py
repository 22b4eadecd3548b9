"""Fields of outcomes in columns, and numbers under other numbers, are what numpy says field by field."""

from __future__ import annotations

import numpy as np
import pytest

from streamwatch.core.join.durable.outcome_columns import columns_of, renumbered, used_numbers
from streamwatch.core.outcomes import OUTCOME


def some(rng: np.random.Generator, count: int):
    """Records of any bytes."""
    return rng.integers(0, 256, (count, OUTCOME.itemsize), np.uint8).view(OUTCOME).reshape(-1)


@pytest.mark.parametrize("sizes", [(1,), (5, 0, 7), (300, 1)])
def test_every_field_but_digests_and_scores_is_copied_from_all_parts_in_order(sizes):
    rng = np.random.default_rng(len(sizes))
    parts = [some(rng, size) for size in sizes]
    found = columns_of(parts)
    assert set(found) == set(OUTCOME.fields) - {"low", "high", "scores"}
    for name, column in found.items():
        np.testing.assert_array_equal(column, np.concatenate([part[name] for part in parts]))


def test_records_with_others_between_them_are_read_as_well():
    records = some(np.random.default_rng(3), 9)
    np.testing.assert_array_equal(columns_of([records[::2]])["made"], records["made"][::2])


def test_numbers_get_others_and_none_stays_none():
    column = np.array([4, -1, 0, 4], np.int32)
    assert used_numbers(column, 6).tolist() == [0, 4]
    assert renumbered(column, np.array([7, 9, 9, 9, 0, 9], np.int32)).tolist() == [0, -1, 7, 0]
    assert used_numbers(column[:0], 0).tolist() == []
