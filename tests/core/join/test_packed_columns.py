"""Columns as bytes: what is read is what was written, in as few bytes as the format says."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Generator
from contextlib import contextmanager, suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from streamwatch.core.join.durable.columns import (
    VERSION,
    Column,
    PackedError,
    pack_columns,
    pack_numbers,
    steps_within,
    unpack_columns,
    values_within,
)
from streamwatch.core.join.durable.entry_logs import unpack_side
from streamwatch.core.join.durable.packed import pack_obsolete, runs_of_positions, unpack_obsolete

HEAD, OF_COLUMN = 6, 9
WHOLE = st.integers(-(2**63), 2**63 - 1)
DIGESTS = st.integers(0, 2**64 - 1)


def size_of(column: Column) -> int:
    """Bytes of a column's data, counted one value at a time in Python."""
    values = column.tolist()
    if column.dtype == np.uint64:
        begun = sum(n == 0 or value != values[n - 1] for n, value in enumerate(values))
        bits = 8 * -(-len(values) // 64)
        return min(bits + 8 * begun, 8 * len(values))
    span = max(values, default=0) - min(values, default=0)
    return len(values) * next(width for width in (0, 1, 2, 4, 8) if span < 256**width)


@st.composite
def tables(draw: st.DrawFn) -> list[Column]:
    """Columns of equal length with values of any width; digests that repeat, or do not."""
    rows = draw(st.integers(0, 200))
    columns: list[Column] = []
    for _ in range(draw(st.integers(1, 6))):
        rng = np.random.default_rng(draw(st.integers(0, 2**32)))
        if draw(st.booleans()):
            few = np.array(draw(st.lists(DIGESTS, min_size=1, max_size=5)), np.uint64)
            column = few[rng.integers(0, len(few), rows)]
            columns.append(np.sort(column) if draw(st.booleans()) else column)
        else:
            bounds = np.array(draw(st.lists(WHOLE, min_size=1, max_size=3)), np.int64)
            near = rng.integers(0, draw(st.sampled_from([1, 2, 256, 257, 65_536, 2**32])), rows)
            columns.append(bounds[rng.integers(0, len(bounds), rows)] // 2 + near)
    return columns


@given(tables())
def test_columns_are_read_as_they_were_written(columns: list[Column]) -> None:
    value = pack_columns(columns)
    found = unpack_columns(value, len(columns))
    for column, read in zip(columns, found, strict=True):
        assert read.dtype == column.dtype
        np.testing.assert_array_equal(read, column)
    assert len(value) == HEAD + OF_COLUMN * len(columns) + sum(map(size_of, columns))


@given(
    st.integers(-(2**31), 2**31 - 1),
    st.sampled_from([1, 2, 256, 257, 65_536, 65_537, 2**32]),
    st.sampled_from([0, 1, 2, 300, 65_537]),
)
def test_numbers_of_32_bits_are_packed_as_all_columns_are(least: int, span: int, rows: int) -> None:
    chance = np.random.default_rng(rows)
    numbers = chance.integers(least, min(least + span, 2**31), rows).astype(np.int32)
    assert pack_numbers(numbers) == pack_columns([numbers.astype(np.int64)])


@pytest.mark.parametrize("rows", [1, 63, 64, 65, 129])
def test_digests_that_repeat_take_a_bit_each(rows: int) -> None:
    column = np.full(rows, 2**64 - 3, np.uint64)
    value = pack_columns([column])
    assert len(value) == HEAD + OF_COLUMN + min(8 * -(-rows // 64) + 8, 8 * rows)
    np.testing.assert_array_equal(unpack_columns(value, 1)[0], column)


def test_extremes_of_64_bits_are_kept() -> None:
    column = np.array([-(2**63), 2**63 - 1, 0], np.int64)
    np.testing.assert_array_equal(unpack_columns(pack_columns([column]), 1)[0], column)


@given(tables(), st.data())
def test_what_was_cut_or_lengthened_is_refused(columns: list[Column], data: st.DataObject) -> None:
    value = pack_columns(columns)
    cut = data.draw(st.integers(0, len(value) - 1))
    for wrong in (value[:cut], value + b"x"):
        with pytest.raises(PackedError, match="expected"):
            unpack_columns(wrong, len(columns))


@given(tables(), st.data())
def test_changed_bytes_give_as_many_rows_or_are_refused(columns: list[Column], data: st.DataObject) -> None:
    value = bytearray(pack_columns(columns))
    at = data.draw(st.integers(6, len(value) - 1))
    value[at] ^= data.draw(st.integers(1, 255))
    found = columns
    with suppress(PackedError):
        found = unpack_columns(bytes(value), len(columns))
    assert [len(column) for column in found] == [len(column) for column in columns]


def packed_positions(dead: set[int], matched: set[int], base: int = 0, first: int = 0) -> bytes:
    """Packed as a commit does it, from marks."""
    runs: list[NDArray[np.int64]] = []
    for positions in (dead, matched):
        marks = np.zeros(max(positions, default=base) // 64 + 1, np.uint64)
        for position in positions:
            marks[(position - base) // 64] |= np.uint64(1 << (position - base) % 64)
        runs.append(runs_of_positions(marks, base, first, len(positions)))
    return pack_obsolete(*runs)


@given(st.data())
def test_positions_from_the_first_on_are_read_as_they_were_marked(data: st.DataObject) -> None:
    base = data.draw(st.integers(0, 200))
    positions = st.integers(base, base + data.draw(st.sampled_from([3, 70, 700])))
    dead, matched = data.draw(st.sets(positions, min_size=1)), data.draw(st.sets(positions))
    first = data.draw(st.integers(base, max(dead)))
    found = unpack_obsolete(packed_positions(dead, matched, base, first))
    kept = [sorted(position for position in each if position >= first) for each in (dead, matched)]
    assert [each.positions(0).tolist() for each in found] == kept
    later = data.draw(positions)
    assert [each.positions(later).tolist() for each in found] == [
        [position for position in each if position >= later] for each in kept
    ]
    assert (found.newest, found.total) == (max(map(max, filter(None, kept))), sum(map(len, kept)))


@pytest.mark.parametrize("runs", [[[10, -8], [1, 1]], [[1, 1], [2, 1]]])
def test_runs_of_positions_that_go_back_or_overlap_are_refused(runs: list[list[int]]) -> None:
    with pytest.raises(PackedError, match="ascending positions"):
        unpack_obsolete(pack_obsolete(np.array(runs, np.int64), np.zeros((2, 0), np.int64)))


def test_positions_in_succession_take_no_room() -> None:
    sizes = {len(packed_positions(set(range(7, 7 + count)), set())) for count in (1, 100, 10_000)}
    assert len(sizes) == 1


def test_no_positions_are_refused() -> None:
    with pytest.raises(PackedError, match="positions of changed entries, got none"):
        unpack_obsolete(pack_obsolete(np.zeros((2, 0), np.int64), np.zeros((2, 0), np.int64)))


@contextmanager
def allocating_at_most(size: int) -> Generator[None]:
    """Fail if the block allocates more bytes at a time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= size
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("rows", [65_537, 2**28, 2**28 + 1])
def test_equal_rows_that_no_writer_claims_are_refused_before_anything_is_allocated(rows: int) -> None:
    value = struct.pack("<BBI", VERSION, 20, rows) + bytes(9 * 20)
    with allocating_at_most(100_000), pytest.raises(PackedError, match=r"expected at most \d+ rows"):
        unpack_columns(value, 20)


def test_repeated_digests_that_no_writer_claims_are_refused_before_anything_is_allocated() -> None:
    value = struct.pack("<BBIqB", VERSION, 1, 2**28, 0, 10) + bytes(64)
    with (
        allocating_at_most(100_000),
        pytest.raises(PackedError, match="expected at most 512 rows in 79 bytes"),
    ):
        unpack_columns(value, 1)


@pytest.mark.parametrize("rows", [65_536, 65_537, 200_000])
def test_many_equal_rows_are_read_as_they_were_written(rows: int) -> None:
    columns: list[Column] = [np.full(rows, 3, np.int64), np.full(rows, -(2**63), np.int64)]
    value = pack_columns(columns)
    for column, read in zip(columns, unpack_columns(value, 2), strict=True):
        np.testing.assert_array_equal(read, column)
    assert len(value) == HEAD + 2 * OF_COLUMN + (rows if rows > 65_536 else 0)


def test_a_long_run_of_positions_is_not_spelled_out_where_it_is_read() -> None:
    runs = np.array([[5], [2**28]], np.int64)
    with allocating_at_most(100_000):
        found = unpack_obsolete(pack_obsolete(runs, np.zeros((2, 0), np.int64)))
    assert (found.newest, found.total) == (2**28 + 4, 2**28)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-(2**61), 2**61))))
def test_steps_within_groups_give_the_values_again(rows: list[tuple[int, int]]) -> None:
    names = sorted({group for group, _ in rows})
    groups: NDArray[np.int32] = np.array([names.index(group) for group, _ in rows], np.int32)
    values = np.array([value for _, value in rows], np.int64)
    first, steps = steps_within(groups, values)
    newest: dict[int, int] = {}
    for group, value, step in zip(groups.tolist(), values.tolist(), steps.tolist(), strict=True):
        assert step == (value - newest[group] if group in newest else 0)
        newest[group] = value
    assert first.tolist() == [next(v for g, v in rows if g == name) for name in names]
    np.testing.assert_array_equal(values_within(groups, first, steps), values)


def test_a_name_that_is_no_utf8_is_damage_like_any_other() -> None:
    names_and_columns = b"\x92\x91\xa1\xff\xc4\x00"  # msgpack: [["\xff"], bytes of no length]
    with pytest.raises(PackedError, match="expected names and side columns"):
        unpack_side(names_and_columns, 0)
