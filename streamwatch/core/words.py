"""Records of structured arrays moved as the words they consist of.

numpy moves a structured array field by field: ten to thirty times the cost of its bytes. All layouts here
are whole words of 8 bytes, without gaps in an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Records = NDArray[np.void]


def taken(records: Records, chosen: NDArray[np.bool_ | np.integer[Any]]) -> Records:
    """Copy some records, shape (n,), by mask or by their places, which may repeat."""
    places = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen
    return words_of(records).take(places, axis=0).reshape(-1).view(records.dtype)


def copied(records: Records) -> Records:
    """Copy records, shape (n,)."""
    return words_of(records).copy().reshape(-1).view(records.dtype)


def joined(parts: Sequence[Records]) -> Records:
    """Copy records one after another; all of one layout, at least one part."""
    return np.concatenate([words_of(part) for part in parts]).reshape(-1).view(parts[0].dtype)


def words_of(records: Records) -> NDArray[np.int64]:
    """Records as rows of words, shape (n, words): the same memory, where it has no gaps."""
    return np.ascontiguousarray(records).view(np.int64).reshape(len(records), records.itemsize // 8)
