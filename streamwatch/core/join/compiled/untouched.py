"""Arrays that grow to millions: memory is used as it is touched, and given back when nobody has them."""

from __future__ import annotations

import mmap
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_LEAST_BYTES: Final = 1 << 17
"""What is smaller is not worth pages of its own."""
_HUGE_BYTES: Final = 1 << 22
"""From here on pages of 2 MB are asked for, as numpy does."""


def untouched(count: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """Make an array of zeros, shape (count,), of which no memory is used yet.

    numpy's own come from the C library's heap, where what was freed before is cleared, which touches all.
    """
    size = count * kind.itemsize
    if size < _LEAST_BYTES:
        return np.zeros(count, kind)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size >= _HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, kind)
