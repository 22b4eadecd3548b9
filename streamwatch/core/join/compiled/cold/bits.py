"""Dead bits: bit sets of the positions of a run's dead entries."""

# pyright: reportUnknownParameterType=false, reportMissingParameterType=false
from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry, hot

Bits = NDArray[np.uint64]

_ONE = np.uint64(1)


def bits_of(count: int) -> Bits:
    """Allocate bits for `count` entries, none of them set."""
    return np.zeros((count + 63) // 64, np.uint64)


@hot
def is_set(bits, i):
    """Tell whether bit i is set."""
    return (bits[i >> 6] >> np.uint64(i & 63)) & _ONE != 0


@entry
def set_bits(bits, positions, fresh):
    """Set bits; write the positions newly set to `fresh`, and return their number."""
    count = 0
    for k in range(positions.shape[0]):
        i = np.int64(positions[k])
        if not is_set(bits, i):
            bits[i >> 6] |= _ONE << np.uint64(i & 63)
            fresh[count] = positions[k]
            count += 1
    return count
