"""What compiled functions do to bytes and to vectors of eight doubles, beside plain Python."""

from __future__ import annotations

import numba
import numpy as np

from streamwatch.core.jit import bytes_with, lanes_of, lanes_where, put_lanes


@numba.njit
def _bits(data, bit):
    return bytes_with(data, bit)


@numba.njit
def _chosen(bits, values, out):
    put_lanes(out, 0, lanes_where(bits, lanes_of(values, 0)))


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
