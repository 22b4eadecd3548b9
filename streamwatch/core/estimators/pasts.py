"""History of each model: counts per stretch of time (`core.past`), collected by minute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.names import Batch
from streamwatch.core.past import (
    GATHERED,
    MINUTE_S,
    NONE,
    NOTHING,
    STRETCH,
    PastView,
    Stretches,
    differ,
    merged,
)

_UNSEEN: Final = -1
_SORTED_BY_COUNTING: Final = 1 << 16
"""Most rows that are sorted as 16-bit integers; numpy then counts, which takes a third of the time."""


class PastSnapshot(NamedTuple):
    """Snapshot of one model: class index of the previous label (-1 without), and stretches as bytes."""

    previous: int
    stretches: bytes


@dataclass(slots=True)
class _PastState:
    settled: Stretches = field(default_factory=lambda: NONE)
    gathered: NDArray[np.int64] = field(default_factory=lambda: np.zeros((GATHERED, 4), np.int64))
    used: int = 0
    """Rows of `gathered` in use."""
    view: PastView | None = None

    def look(self) -> PastView:
        """View the current state, without a copy of what may change."""
        return PastView(self.settled, self.gathered[: self.used])


class Pasts:
    """Histories of up to `capacity` models, over `days` days; memory is allocated as outcomes come."""

    __slots__ = ("_days", "_kept", "_previous")

    def __init__(self, capacity: int, days: int) -> None:
        self._days = days
        self._kept: dict[int, _PastState] = {}
        self._previous: NDArray[np.int32] = np.full(capacity, _UNSEEN, np.int32)

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        self._kept.pop(row, None)
        self._previous[row] = _UNSEEN

    def observe(self, batch: Batch) -> None:
        """Count outcomes, in order."""
        if not self._days or not len(batch.rows):
            return
        narrow = len(self._previous) <= _SORTED_BY_COUNTING
        order = np.argsort(batch.rows.astype(np.uint16) if narrow else batch.rows, kind="stable")
        rows, truth = batch.rows[order], batch.true_class[order]
        begins = np.flatnonzero(np.concatenate(([True], differ(rows))))
        previous = np.empty_like(truth)
        previous[1:] = truth[:-1]
        previous[begins] = self._previous[rows[begins]]
        ends = np.concatenate((begins[1:], [len(rows)])) - 1
        self._previous[rows[ends]] = truth[ends]
        minutes = batch.event_ms[order] // (1_000 * MINUTE_S)
        changes = differ(rows) | differ(minutes)
        runs = np.flatnonzero(np.concatenate(([True], changes)))
        outcomes = np.diff(np.concatenate((runs, [len(rows)])))
        right = np.add.reduceat((batch.predicted_class[order] == truth).astype(np.int64), runs)
        no_change = np.add.reduceat((previous == truth).astype(np.int64), runs)
        columns = (rows[runs], minutes[runs], outcomes, right, no_change)
        for row, minute, *counts in zip(*(column.tolist() for column in columns), strict=True):
            self._add(row, minute, counts)

    def _add(self, row: int, minute: int, counts: Sequence[int]) -> None:
        kept = self._kept.get(row)
        if kept is None:
            kept = self._kept[row] = _PastState()
        kept.view = None
        if kept.used and kept.gathered[kept.used - 1, 0] == minute:
            kept.gathered[kept.used - 1, 1:] += counts
            return
        if kept.used == GATHERED:
            kept.settled, kept.used = merged([kept.look()], self._days), 0
        kept.gathered[kept.used] = (minute, *counts)
        kept.used += 1

    def view(self, row: int) -> PastView:
        """Copy the history of a row; later outcomes do not change it."""
        kept = self._kept.get(row)
        if kept is None:
            return PastView(NONE, NOTHING)
        if kept.view is None:
            kept.view = PastView(kept.settled, kept.gathered[: kept.used].copy())
        return kept.view

    def snapshot(self, row: int) -> PastSnapshot | None:
        """Snapshot of a row, None if no history is kept; the same outcomes give the same bytes."""
        if not self._days:
            return None
        kept = self._kept.get(row)
        stretches = NONE if kept is None else merged([kept.look()], self._days)
        return PastSnapshot(int(self._previous[row]), stretches.tobytes())

    def restore(self, row: int, state: PastSnapshot | None) -> None:
        """Set a row to a snapshot; without one its history starts empty.

        Raises
        ------
        ValueError
            If the bytes are not a whole number of stretches.
        """
        if not self._days or state is None:
            return
        if len(state.stretches) % STRETCH.itemsize:
            raise ValueError(
                f"the past of a model must be of {STRETCH.itemsize} bytes a stretch, "
                f"got {len(state.stretches)} bytes"
            )
        read = np.frombuffer(state.stretches, STRETCH)
        # `history_days` may have changed since the snapshot.
        self._kept[row] = _PastState(merged([PastView(read, NOTHING)], self._days))
        self._previous[row] = state.previous
