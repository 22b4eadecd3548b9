"""What compiled functions do to bytes and to vectors of eight doubles, beside plain Python."""

from __future__ import annotations

import numba
import numpy as np
import pytest

from streamwatch.core.jit import (
    add_to_row,
    bytes_with,
    copy_bytes,
    either,
    lanes_of,
    lanes_where,
    ones_of,
    put_lanes,
    with_entry,
)


@numba.njit
def _bits(data, bit):
    return bytes_with(data, bit)


@numba.njit
def _chosen(bits, values, out):
    put_lanes(out, 0, lanes_where(bits, lanes_of(values, 0)))


@numba.njit
def _copied(out, at, data, start, count):
    copy_bytes(out, at, data, start, count)


def test_bytes_are_copied_and_none_beside_them() -> None:
    data = np.arange(100, dtype=np.uint8)
    for at, start, count in ((0, 0, 0), (3, 7, 1), (5, 0, 64), (0, 90, 10), (99, 99, 1)):
        out = np.full(100, 200, np.uint8)
        expected = out.copy()
        expected[at : at + count] = data[start : start + count]
        _copied(out, at, data, start, count)
        assert out.tolist() == expected.tolist()


def test_a_bit_of_64_bytes_is_found_in_each() -> None:
    rng = np.random.default_rng(1)
    for data in (
        rng.integers(0, 256, 64).astype(np.uint8),
        np.zeros(64, np.uint8),
        np.full(64, 255, np.uint8),
    ):
        for bit in range(8):
            expected = sum(((int(byte) >> bit) & 1) << i for i, byte in enumerate(data))
            assert _bits(data, bit) % (1 << 64) == expected


def test_lanes_are_kept_where_their_bit_is_set_whatever_the_bits_above() -> None:
    values, out = np.arange(1.0, 9.0), np.zeros(8)
    for bits in (0, 255, 0b10110, -1, (1 << 40) + 3):
        _chosen(bits, values, out)
        assert out.tolist() == [value if (bits >> k) & 1 else 0.0 for k, value in enumerate(values.tolist())]


@numba.njit
def _either(left, right, then, otherwise):
    return either(left > right, then, otherwise)


def test_one_of_two_numbers_of_a_type_is_chosen() -> None:
    for then, otherwise in ((1, 2), (1.5, -0.25)):
        assert _either(2.0, 1.0, then, otherwise) == then
        assert _either(1.0, 1.0, then, otherwise) == otherwise
        assert _either(np.nan, 1.0, then, otherwise) == otherwise
    with pytest.raises(TypeError, match="two numbers of one type"):
        _either(2.0, 1.0, 1, 2.5)


@numba.njit
def _added(records, into, index, start, values, factor):
    row = ones_of(records[0].units)
    for k in range(len(values)):
        row = with_entry(row, k, values[k])
    add_to_row(records[0].totals, 1, 0, row, factor)
    add_to_row(into, index, start, row, factor)


def test_a_vector_is_added_to_its_entries_of_a_row_and_no_others_for_rows_of_any_length() -> None:
    rng = np.random.default_rng(1)
    for length in range(10):
        fields = [("units", "f8", (length, 2)), ("totals", "f8", (3, length)), ("after", "f8")]
        records = np.zeros(1, fields)
        records["totals"][0], records["after"] = rng.normal(size=(3, length)), 7.0
        into, factor = rng.normal(size=(4, length + 5)), float(rng.normal())
        values = rng.normal(size=max(length - 1, 0))
        added = np.concatenate([values, np.ones(length - len(values))]) * factor
        totals, expected = records["totals"][0].copy(), into.copy()
        totals[1] += added
        expected[2, 3 : 3 + length] += added
        _added(records, into, 2, 3, values, factor)
        assert (records["totals"][0] == totals).all()
        assert (into == expected).all()
        assert records["after"] == 7.0
