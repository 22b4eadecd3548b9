"""Drifts the detectors declared: their event time per (model, detector), and the most recent ones."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Alarm

RECENT = 1_000
"""Alarms kept for display; all of them are counted."""

_NEVER = np.iinfo(np.int64).min


class Alarms:
    """Event time of the latest alarm of every detector of `capacity` models, and the recent alarms."""

    __slots__ = ("_detectors", "_latest_ms", "recent")

    def __init__(self, capacity: int, detectors: Sequence[str]) -> None:
        self._detectors = tuple(detectors)
        self._latest_ms: NDArray[np.int64] = np.zeros((capacity, len(detectors)), np.int64)
        self.recent: deque[Alarm] = deque(maxlen=RECENT)

    def clear(self, row: int) -> None:
        """Forget a row, before it is used and after its model has retired."""
        self._latest_ms[row] = _NEVER

    def record(self, row: int, detector: int, alarm: Alarm) -> None:
        """Remember an alarm of a row's detector."""
        self._latest_ms[row, detector] = alarm.event_ms
        self.recent.append(alarm)

    def latest_seconds(self, rows: NDArray[np.int64], detector: int) -> NDArray[np.float64]:
        """Event time of each row's latest alarm; NaN before the first."""
        latest = self._latest_ms[rows, detector]
        return np.where(latest == _NEVER, np.nan, latest / 1000.0)

    def snapshot(self, row: int) -> dict[str, int]:
        """Event time in milliseconds of the latest alarm of each detector that ever raised one."""
        latest: list[int] = self._latest_ms[row].tolist()
        return {name: ms for name, ms in zip(self._detectors, latest, strict=True) if ms != _NEVER}

    def restore(self, row: int, latest_ms: Mapping[str, int]) -> None:
        """Set a row to a snapshot; a detector it does not know has not raised one."""
        self._latest_ms[row] = [latest_ms.get(name, _NEVER) for name in self._detectors]
