"""Latest alarm time of every model and detector, and the most recent alarms."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Alarm

RECENT = 1_000
"""Number of recent alarms kept for display; the alarm counters are not limited by it."""

_NEVER = np.iinfo(np.int64).min


class Alarms:
    """Event time of the latest alarm of each detector of up to `capacity` models, and the recent alarms."""

    __slots__ = ("_detectors", "_latest_ms", "recent")

    def __init__(self, capacity: int, detectors: Sequence[str]) -> None:
        self._detectors = tuple(detectors)
        self._latest_ms: NDArray[np.int64] = np.zeros((capacity, len(detectors)), np.int64)
        self.recent: deque[Alarm] = deque(maxlen=RECENT)

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        self._latest_ms[row] = _NEVER

    def record(self, row: int, detector: int, alarm: Alarm) -> None:
        """Record an alarm raised by detector number `detector` for the model in `row`."""
        self._latest_ms[row, detector] = alarm.event_ms
        self.recent.append(alarm)

    def latest_seconds(self, rows: NDArray[np.int64], detector: int) -> NDArray[np.float64]:
        """Event time in seconds of each row's latest alarm by one detector, shape (m,).

        NaN before the first.
        """
        latest = self._latest_ms[rows, detector]
        return np.where(latest == _NEVER, np.nan, latest / 1000.0)

    def snapshot(self, row: int) -> dict[str, int]:
        """Event times in milliseconds of the row's latest alarms, by name of the detectors that had one."""
        latest: list[int] = self._latest_ms[row].tolist()
        return {name: ms for name, ms in zip(self._detectors, latest, strict=True) if ms != _NEVER}

    def restore(self, row: int, latest_ms: Mapping[str, int]) -> None:
        """Set a row to a snapshot.

        Detectors missing in the snapshot count as never having raised an alarm.
        """
        self._latest_ms[row] = [latest_ms.get(name, _NEVER) for name in self._detectors]
