"""Scores as bytes: every bit is read back, what has few digits takes few bytes, damage is refused."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from streamwatch.core.join.durable.columns import PackedError
from streamwatch.core.join.durable.packed_scores import pack_scores, unpack_scores
from streamwatch.core.records.scores import ScoreLists

Rows = list[list[float]]

DECIMALS = st.decimals(-(10**6), 10**6, places=7).map(float) | st.decimals(0, 1, places=3).map(float)
VALUES = st.one_of(
    DECIMALS, st.floats(width=32), st.floats(), st.sampled_from([0.0, -0.0, 1.0, 2.0**31, 1e300])
)


def lists_of_rows(rows: Rows, classes: list[list[int]] | None = None) -> ScoreLists:
    """Scores of rows, by default of the classes 0, 1, 2 and so on in each."""
    numbers = classes or [list(range(len(row))) for row in rows]
    return ScoreLists(
        np.cumsum([len(row) for row in rows], dtype=np.int64),
        np.array([number for row in numbers for number in row], np.int32),
        np.array([value for row in rows for value in row], np.float64),
        np.full(len(rows), -1, np.int32),
    )


def require_same(scored: NDArray[np.int64], lists: ScoreLists) -> int:
    """Pack and unpack; every bit must be as before. Returns the number of bytes."""
    value = pack_scores(scored, lists)
    positions, found = unpack_scores(value, int(scored[-1]) + 1)
    np.testing.assert_array_equal(positions, scored)
    np.testing.assert_array_equal(found.ends, lists.ends)
    np.testing.assert_array_equal(found.classes, lists.classes)
    np.testing.assert_array_equal(found.values.view(np.uint64), lists.values.view(np.uint64))
    np.testing.assert_array_equal(found.beside, lists.beside)
    return len(value)


@given(st.lists(st.lists(VALUES, max_size=6), min_size=1, max_size=12), st.integers(0, 5), st.integers(1, 2))
@example([[0.25, -0.0], [0.1, 0.2]], 0, 1)
@example([[123456789.123], [0.123456789, 5.0], [7.25]], 0, 1)
@example([[float("nan"), float("inf")], [], [-float("inf")]], 2, 2)
def test_every_bit_of_scores_is_read_back(rows: Rows, before: int, turned: int) -> None:
    classes = [list(range(len(row)))[:: -1 if n % turned else 1] for n, row in enumerate(rows)]
    require_same(before + 2 * np.arange(len(rows)), lists_of_rows(rows, classes))


@pytest.mark.parametrize(
    ("form", "size"),
    [("2 digits", 1), ("4 digits", 2), ("6 digits", 4), ("9 digits", 4), ("single", 4), ("double", 8)],
)
def test_scores_take_the_bytes_that_their_form_needs(form: str, size: int) -> None:
    drawn = np.random.default_rng(7).random((500, 20))
    values = drawn.astype(np.float32).astype(np.float64) if form == "single" else drawn
    if form.endswith("digits"):
        values = np.round(drawn, int(form[0]))
    taken = require_same(np.arange(500), lists_of_rows(values.tolist()))
    assert size * values.size <= taken < size * values.size + 650  # at most a byte a row, heads and classes


def test_a_prediction_of_other_form_leaves_the_scores_of_others_small() -> None:
    rows = [[0.25, 0.5, 0.25]] * 1_000
    apart = [*rows[:500], [0.1 + 0.2, 1 / 3, 1e-300], *rows[500:]]
    least = require_same(np.arange(len(rows)), lists_of_rows(rows))
    assert require_same(np.arange(len(apart)), lists_of_rows(apart)) <= least + 1_200  # a byte for each form


def test_classes_in_the_same_order_are_stored_once() -> None:
    rows = [[0.5, 0.5]] * 1_000
    alike = require_same(np.arange(1_000), lists_of_rows(rows, [[3, 8]] * 1_000))
    turned = require_same(np.arange(1_000), lists_of_rows(rows, [[3, 8]] * 999 + [[8, 3]]))
    assert alike < 150  # but for the heads, all is equal
    assert turned > 2_000


@given(st.lists(st.lists(VALUES, min_size=1, max_size=3), min_size=1, max_size=5), st.data())
def test_damaged_scores_are_refused_or_as_many(rows: Rows, data: st.DataObject) -> None:
    lists = lists_of_rows(rows)
    value = pack_scores(np.arange(len(rows)), lists)
    for wrong in (value[: data.draw(st.integers(0, len(value) - 1))], value + b"x"):
        with pytest.raises(PackedError, match="expected"):
            unpack_scores(wrong, len(rows))
    changed = bytearray(value)
    changed[data.draw(st.integers(0, len(value) - 1))] ^= data.draw(st.integers(1, 255))
    with suppress(PackedError):
        scored, found = unpack_scores(bytes(changed), len(rows))
        assert len(found.ends) == len(scored) <= len(rows)
        assert len(found.values) == len(found.classes) == found.ends[-1]
