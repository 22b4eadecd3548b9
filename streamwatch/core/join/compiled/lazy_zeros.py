"""Large arrays whose memory is used only when touched, and returned to the system when freed."""

from __future__ import annotations

import mmap
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_LEAST_BYTES: Final = 1 << 17
"""Smaller arrays are not worth pages of their own."""
_HUGE_BYTES: Final = 1 << 22
"""From this size on, pages of 2 MB are requested, as numpy does."""


def lazy_zeros(count: int, kind: np.dtype[Any]) -> NDArray[Any]:
    """Allocate an array of zeros, shape (count,), without using memory yet.

    numpy's zeros can come from the C library's heap, where reused memory must be cleared and is thereby
    touched.
    """
    size = count * kind.itemsize
    if size < _LEAST_BYTES:
        return np.zeros(count, kind)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if size >= _HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
        memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, kind)
