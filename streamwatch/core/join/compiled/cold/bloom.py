"""Blocked Bloom filters with blocks of 64 bytes, so that a look-up accesses one cache line.

Putze, Sanders & Singler, "Cache-, hash- and space-efficient Bloom filters", 2009. The upper bits of `low`
select an id's block, so that a run built in order fills its filter from start to end; `high` selects the bits
within it.
"""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import high_product, hot

Filter = NDArray[np.uint64]

PROBES: Final = 6
_LINE_BITS: Final = 512
_LINE_WORDS: Final = 8
_BIT: Final = np.uint64(_LINE_BITS - 1)
_ONE: Final = np.uint64(1)


def filter_of(count: int, bits: int) -> Filter:
    """Allocate an empty filter with `bits` bits for each of `count` entries."""
    return np.zeros(_LINE_WORDS * max(1, -(-count * bits // _LINE_BITS)), np.uint64)


@hot
def line_of(bloom, low):
    """Index of the first word of an id's block."""
    return _LINE_WORDS * np.int64(high_product(low, np.uint64(bloom.shape[0] // _LINE_WORDS)))


@hot
def add_id(bloom, low, high):
    """Add an id."""
    line = line_of(bloom, low)
    for k in range(PROBES):
        bit = (high >> np.uint64(9 * k)) & _BIT
        bloom[line + np.int64(bit >> np.uint64(6))] |= _ONE << (bit & np.uint64(63))


@hot
def may_have(bloom, low, high):
    """Tell whether an id may have been added; False is certain."""
    line = line_of(bloom, low)
    for k in range(PROBES):
        bit = (high >> np.uint64(9 * k)) & _BIT
        if (bloom[line + np.int64(bit >> np.uint64(6))] >> (bit & np.uint64(63))) & _ONE == 0:
            return False
    return True
