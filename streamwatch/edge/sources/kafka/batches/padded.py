"""Bytes with zeros behind them, so that records can be read where they are."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.fetched import PADDING


def padded_copy(content: memoryview) -> memoryview:
    """Copy bytes: a read-only view over an array that has `PADDING` zeros more."""
    size = len(content)
    own = np.empty(size + PADDING, np.uint8)
    own[:size] = content
    own[size:] = 0
    return memoryview(own.data)[:size].toreadonly()


def with_padding(data: bytes | memoryview) -> NDArray[np.uint8] | None:
    """The array that `padded_copy` made, zeros included; None of any other bytes."""
    if not isinstance(data, memoryview):
        return None
    whole: object = data.obj
    if not isinstance(whole, np.ndarray):
        return None
    found = cast("NDArray[np.uint8]", whole)
    return found if found.ndim == 1 and found.size == len(data) + PADDING else None
