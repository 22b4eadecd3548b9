"""Outcomes, hits and hits of no change of each model per stretch of time, coarser as they age."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.names import Batch

# Outcomes, hits and hits of no change per stretch of time, coarser as they age, of every model.
#
# A tier keeps stretches of one length in as many slots; stretch number i (time // length) lies in slot i
# mod slots. Of two stretches that want one slot the later has it. What a tier holds in the end so depends
# on which outcomes came, not on their order or on how they were cut into batches, and a time in the far
# future costs one slot of each tier instead of the past.
#
# The time of an outcome is its own (`Outcome.event_ms`). Counts are whole, so sums are exact.


STRETCH: Final = np.dtype(
    [
        ("start_s", "<i8"),
        ("seconds", "<u4"),
        ("outcomes", "<u4"),
        ("right", "<u4"),
        ("no_change", "<u4"),
    ]
)
"""One stretch: where it starts (seconds since 1970), its length, its outcomes, how many of them the model had
right, and how many no change, which answers the previous label of the model's outcomes, had right."""
Stretches: TypeAlias = NDArray[np.void]
"""Of dtype `STRETCH`, shape (n,); never changed once it is made."""

MINUTE_S: Final = 60
FINE: Final = ((MINUTE_S, 240), (600, 288))
"""Length in seconds and slots of the finer tiers: minutes of four hours, ten minutes of two days."""
HOUR_S: Final = 3_600
GATHERED: Final = 256
"""Runs of outcomes in one minute that are gathered before they are put among the stretches: that costs some
hundred microseconds."""
NONE: Final = np.zeros(0, STRETCH)
NOTHING: Final = np.zeros((0, 4), np.int64)


class PastView(NamedTuple):
    """Everything kept of a model, or of a fold of one, at one moment."""

    settled: Stretches
    gathered: NDArray[np.int64]
    """Minute, outcomes, right, right of no change, to be added; shape (n, 4). A minute may repeat."""


def tiers(days: int) -> tuple[tuple[int, int], ...]:
    """Length in seconds and slots of every tier, the finest first; none for no days."""
    return (*FINE, (HOUR_S, 24 * days)) if days else ()


def past_bytes(days: int) -> int:
    """Bytes that the past of one model takes at most: every slot, what is gathered, and a view of that."""
    slots = sum(slots for _, slots in tiers(days))
    return STRETCH.itemsize * slots + 2 * NOTHING.itemsize * 4 * GATHERED if days else 0


def merged(views: Sequence[PastView], days: int) -> Stretches:
    """Put views together, as if their outcomes were of one model; by length, then start."""
    parts = [view.settled for view in views if len(view.settled)]
    minutes = np.concatenate([NOTHING, *(view.gathered for view in views)])
    for seconds, _ in tiers(days):
        part = np.zeros(len(minutes), STRETCH)
        part["start_s"] = minutes[:, 0] * MINUTE_S // seconds * seconds
        part["seconds"] = seconds
        for column, name in enumerate(("outcomes", "right", "no_change"), 1):
            part[name] = minutes[:, column]
        parts.append(part)
    if not parts:
        return NONE
    found = np.concatenate(parts)
    slot = np.full(len(found), -1, np.int64)
    for seconds, slots in tiers(days):
        own = found["seconds"] == seconds
        slot[own] = found["start_s"][own] // seconds % slots
    order = np.lexsort((found["start_s"], slot, found["seconds"]))
    found, slot = found[order], slot[order]
    if not len(found):
        return NONE
    begins = np.flatnonzero(np.concatenate(([True], differ(found["start_s"]) | differ(found["seconds"]))))
    kept = found[begins].copy()
    for name in ("outcomes", "right", "no_change"):
        kept[name] = np.add.reduceat(found[name], begins)
    own_slot = slot[begins]
    # The last of each slot is the latest; slots of a length that this version does not have are left out.
    last = np.ones(len(kept), np.bool_)
    last[:-1] = differ(own_slot) | differ(kept["seconds"])
    kept = kept[last & (own_slot >= 0)]
    return kept[np.lexsort((kept["start_s"], kept["seconds"]))]


def differ(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Tell which values differ from the one before; shape (n - 1,)."""
    return values[1:] != values[:-1]


# History of each model: counts per stretch of time (`core.past`), collected by minute.


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
