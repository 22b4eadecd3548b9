"""Times of a file's rows, as far as they are plainly believed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge.timestamps import LOOK_AHEAD
from streamwatch.lab.outcome_rows.scan import believed_times


class Dated(NamedTuple):
    """Times of rows; columns of one length."""

    believed: int
    """How many of them, from the first on, have a time that is plainly believed."""
    stamps_ms: NDArray[np.int64]
    times_ms: NDArray[np.int64]
    """Time of the partition at each of them."""


class RowTimes:
    """Dates the rows of one file, in order (`scan.believed_times`).

    Parameters
    ----------
    max_future_ms
        How far times may run ahead without being asked.
    """

    def __init__(self, max_future_ms: int) -> None:
        self._max_future_ms = max_future_ms
        self.last_ms = 0
        """Time of the last row, by which one without a time is dated."""
        self._running_ms = -1

    def dated(self, own_ms: NDArray[np.int64], timed: NDArray[np.bool_], host_ms: int) -> Dated:
        """Date the rows that follow; those that are not `timed` move no time."""
        stamps_ms, times_ms = np.empty_like(own_ms), np.empty_like(own_ms)
        believed = believed_times(
            own_ms,
            timed,
            self.last_ms,
            self._running_ms,
            self._max_future_ms,
            host_ms + self._max_future_ms,
            LOOK_AHEAD,
            stamps_ms,
            times_ms,
        )
        return Dated(believed, stamps_ms, times_ms)

    def take(self, stamps_ms: NDArray[np.int64], times_ms: NDArray[np.int64]) -> None:
        """Go on behind rows with these times."""
        if len(stamps_ms):
            self.last_ms, self._running_ms = int(stamps_ms[-1]), int(times_ms[-1])
