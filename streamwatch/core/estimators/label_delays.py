"""How long labels take, per model row: a histogram from a second to four weeks, its sum, the latest label.

Sums are whole milliseconds, so they do not depend on how a stream is cut into batches.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.metrics import LABEL_DELAY_BOUNDS
from streamwatch.core.series import Histogram

Integers: TypeAlias = NDArray[np.int64]

_BOUNDS_MS = (np.array(LABEL_DELAY_BOUNDS) * 1000).astype(np.int64)
_BUCKETS = len(_BOUNDS_MS) + 1
NEVER = np.iinfo(np.int64).min
"""Time of a label that has not come."""


class LabelDelays:
    """Registers of `capacity` models; memory is touched only for rows in use."""

    __slots__ = ("_counts", "_flat", "_latest_ms", "_sum_ms")

    def __init__(self, capacity: int) -> None:
        self._counts: Integers = np.zeros((capacity, _BUCKETS), np.int64)
        self._flat = self._counts.reshape(-1)
        self._sum_ms: Integers = np.zeros(capacity, np.int64)
        self._latest_ms: Integers = np.zeros(capacity, np.int64)

    def clear(self, row: int) -> None:
        """Forget a row, before it is used and after its model has retired."""
        self._counts[row] = 0
        self._sum_ms[row] = 0
        self._latest_ms[row] = NEVER

    def observe(self, rows: NDArray[np.int32], delay_ms: Integers, event_ms: Integers) -> None:
        """Count observed labels: row of the model, delay, event time. Shapes (n,)."""
        buckets = np.searchsorted(_BOUNDS_MS, delay_ms)
        np.add.at(self._flat, rows.astype(np.int64) * _BUCKETS + buckets, 1)
        np.add.at(self._sum_ms, rows, delay_ms)
        np.maximum.at(self._latest_ms, rows, event_ms)

    def histograms(self, rows: Integers) -> list[Histogram]:
        """Cumulative buckets and the sum in seconds, of each row."""
        cumulative = np.cumsum(self._counts[rows], axis=1).tolist()
        sums = (self._sum_ms[rows] / 1000.0).tolist()
        return [Histogram(tuple(counts), total) for counts, total in zip(cumulative, sums, strict=True)]

    def latest_seconds(self, rows: Integers) -> NDArray[np.float64]:
        """Event time of the latest label of each row; NaN before the first."""
        latest = self._latest_ms[rows]
        return np.where(latest == NEVER, np.nan, latest / 1000.0)

    def snapshot(self, row: int) -> tuple[list[int], int, int]:
        """Counts per bucket, sum of delays and latest label, in milliseconds."""
        return self._counts[row].tolist(), int(self._sum_ms[row]), int(self._latest_ms[row])

    def restore(self, row: int, state: tuple[list[int], int, int]) -> None:
        """Set a row to a snapshot."""
        counts, sum_ms, latest_ms = state
        if len(counts) != _BUCKETS:
            raise ValueError(f"label delays must have {_BUCKETS} buckets, got {len(counts)}")
        self._counts[row] = counts
        self._sum_ms[row] = sum_ms
        self._latest_ms[row] = latest_ms
