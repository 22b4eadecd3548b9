"""Delays of labels per model: histogram from one second to four weeks, sum, and time of the latest label.

Sums are integers (milliseconds), so that they do not depend on how a stream is cut into batches.
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
"""Time that stands for "no label yet"."""


class LabelDelays:
    """Label delays of up to `capacity` models; memory is touched only for rows in use."""

    __slots__ = ("_counts", "_flat", "_latest_ms", "_sum_ms")

    def __init__(self, capacity: int) -> None:
        self._counts: Integers = np.zeros((capacity, _BUCKETS), np.int64)
        self._flat = self._counts.reshape(-1)
        self._sum_ms: Integers = np.zeros(capacity, np.int64)
        self._latest_ms: Integers = np.zeros(capacity, np.int64)

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        self._counts[row] = 0
        self._sum_ms[row] = 0
        self._latest_ms[row] = NEVER

    def observe(self, rows: NDArray[np.int32], delay_ms: Integers, event_ms: Integers) -> None:
        """Count n labels: rows of their models, delays and event times in milliseconds, each (n,)."""
        buckets = np.searchsorted(_BOUNDS_MS, delay_ms)
        np.add.at(self._flat, rows.astype(np.int64) * _BUCKETS + buckets, 1)
        np.add.at(self._sum_ms, rows, delay_ms)
        np.maximum.at(self._latest_ms, rows, event_ms)

    def histograms(self, rows: Integers) -> list[Histogram]:
        """Histogram of each row: cumulative bucket counts, and the sum of delays in seconds."""
        cumulative = np.cumsum(self._counts[rows], axis=1).tolist()
        sums = (self._sum_ms[rows] / 1000.0).tolist()
        return [Histogram(tuple(counts), total) for counts, total in zip(cumulative, sums, strict=True)]

    def latest_seconds(self, rows: Integers) -> NDArray[np.float64]:
        """Event time in seconds of each row's latest label, shape (m,); NaN before the first."""
        latest = self._latest_ms[rows]
        return np.where(latest == NEVER, np.nan, latest / 1000.0)

    def snapshot(self, row: int) -> tuple[list[int], int, int]:
        """State of a row: counts per bucket, sum of delays (ms), event time of the latest label (ms)."""
        return self._counts[row].tolist(), int(self._sum_ms[row]), int(self._latest_ms[row])

    def restore(self, row: int, state: tuple[list[int], int, int]) -> None:
        """Set a row to a snapshot.

        Raises
        ------
        ValueError
            If the snapshot has another number of buckets.
        """
        counts, sum_ms, latest_ms = state
        if len(counts) != _BUCKETS:
            raise ValueError(f"label delays must have {_BUCKETS} buckets, got {len(counts)}")
        self._counts[row] = counts
        self._sum_ms[row] = sum_ms
        self._latest_ms[row] = latest_ms
