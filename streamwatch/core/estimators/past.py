"""Outcomes, hits and hits of no change of each model per stretch of time, coarser as they age."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Final, NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.names import Batch
from streamwatch.core.estimators.registers.counting import count_minutes

# Stretches of time in tiers.
#
# A tier keeps stretches of one length in a fixed number of slots; stretch number i (time // length) lies in
# slot i mod slots. If two stretches have the same slot, the later one is kept. So what a tier holds depends
# on which outcomes came, not on their order or on how they were cut into batches, and a time in the far
# future costs one slot of each tier instead of the past.
#
# The time of an outcome is its own (`Outcome.event_ms`). Counts are integers, so sums are exact.


STRETCH: Final = np.dtype(
    [
        ("start_s", "<i8"),
        ("seconds", "<u4"),
        ("outcomes", "<u4"),
        ("right", "<u4"),
        ("no_change", "<u4"),
    ]
)
"""Stretch of time: start in seconds since 1970, length in seconds, number of outcomes, hits of the model, and
hits of no change, which predicts the model's previous label."""
Stretches: TypeAlias = NDArray[np.void]
"""Dtype `STRETCH`, shape (n,); not changed after it is built."""

MINUTE_S: Final = 60
FINE: Final = ((MINUTE_S, 240), (600, 288))
"""Length in seconds and slots of the finer tiers: minutes of four hours, ten minutes of two days."""
HOUR_S: Final = 3_600
GATHERED: Final = 256
"""Number of minutes of a row that are gathered before they are merged into the row's stretches, which takes
some hundred microseconds."""
NONE: Final = np.zeros(0, STRETCH)
NOTHING: Final = np.zeros((0, 4), np.int64)


class PastView(NamedTuple):
    """History of a model, or of a fold of one, at one moment."""

    settled: Stretches
    gathered: NDArray[np.int64]
    """Counts to be added: minute, outcomes, hits, hits of no change; shape (n, 4). A minute may repeat."""


def tiers(days: int) -> tuple[tuple[int, int], ...]:
    """Length in seconds and slots of every tier, the finest first; empty for 0 days."""
    return (*FINE, (HOUR_S, 24 * days)) if days else ()


def past_bytes(days: int) -> int:
    """Largest number of bytes of one model's past: every slot, the gathered runs, and a view of them."""
    slots = sum(slots for _, slots in tiers(days))
    return STRETCH.itemsize * slots + 2 * NOTHING.itemsize * 4 * GATHERED if days else 0


def merged(views: Sequence[PastView], days: int) -> Stretches:
    """Merge views as if their outcomes were of one model; sorted by length, then start."""
    settled = _joined([view.settled for view in views])
    minutes = np.concatenate([NOTHING, *(view.gathered for view in views)])
    of_one = np.zeros(len(settled), np.int64), np.zeros(len(minutes), np.int64)
    return merged_by_model(settled, of_one[0], minutes, of_one[1], days)[0]


def merged_by_model(
    settled: Stretches,
    of_settled: NDArray[np.int64],
    minutes: NDArray[np.int64],
    of_minutes: NDArray[np.int64],
    days: int,
) -> tuple[Stretches, NDArray[np.int64]]:
    """Merge the stretches of several models, as `merged` does for one.

    Parameters
    ----------
    settled, minutes
        Stretches (n,), and minutes (m, 4) to be added, as of `PastView`.
    of_settled, of_minutes
        Number of the model that each stretch or run belongs to.
    days
        Days of history.

    Returns
    -------
    stretches, of_stretches
        Stretches of all models, one model after the other, and the number of the model of each.
    """
    parts, of_parts = [settled], [of_settled]
    for seconds, _ in tiers(days):
        part = np.zeros(len(minutes), STRETCH)
        part["start_s"] = minutes[:, 0] * MINUTE_S // seconds * seconds
        part["seconds"] = seconds
        for column, name in enumerate(("outcomes", "right", "no_change"), 1):
            part[name] = minutes[:, column]
        parts.append(part)
        of_parts.append(of_minutes)
    found, owner = _joined(parts), np.concatenate(of_parts)
    if not len(found):
        return NONE, owner
    slot = np.full(len(found), -1, np.int64)
    for seconds, slots in tiers(days):
        own = found["seconds"] == seconds
        slot[own] = found["start_s"][own] // seconds % slots
    order = np.lexsort((found["start_s"], slot, found["seconds"], owner))
    found, slot, owner = found[order], slot[order], owner[order]
    fresh = differ(found["start_s"]) | differ(found["seconds"]) | differ(owner)
    begins = np.flatnonzero(np.concatenate(([True], fresh)))
    kept = found[begins].copy()
    for name in ("outcomes", "right", "no_change"):
        kept[name] = np.add.reduceat(found[name], begins)
    own_slot, owner = slot[begins], owner[begins]
    # The last of each slot is the latest; slots of a length that this version does not have are left out.
    last = np.ones(len(kept), np.bool_)
    last[:-1] = differ(own_slot) | differ(kept["seconds"]) | differ(owner)
    chosen = last & (own_slot >= 0)
    kept, owner = kept[chosen], owner[chosen]
    order = np.lexsort((kept["start_s"], kept["seconds"], owner))
    return kept[order], owner[order]


def _joined(parts: Sequence[Stretches]) -> Stretches:
    """Stretches one after another; numpy would compare the types of all parts, which takes longer."""
    return np.frombuffer(b"".join(cast("Sequence[memoryview]", parts)), STRETCH)


def differ(values: NDArray[np.generic]) -> NDArray[np.bool_]:
    """Mark the values that differ from the one before; shape (n - 1,)."""
    return values[1:] != values[:-1]


# History of each model: counts per stretch of time, collected by minute.


_UNSEEN: Final = -1
_MINUTE: Final = np.dtype((np.void, 4 * 8))
"""What is gathered of a minute."""


class PastSnapshot(NamedTuple):
    """Snapshot of one model: class index of the previous label (-1 without), and stretches as bytes."""

    previous: int
    stretches: bytes


class PastViews(Mapping[str, Sequence[PastView]]):
    """Histories of all models at one moment: one view of each, or one per fold.

    Parameters
    ----------
    numbers
        Numbers of the views of each model.
    settled
        Stretches of each view.
    gathered, ends
        Minutes to be added, shape (n, 4), those of one view after those of another, and where they end.
    """

    def __init__(
        self,
        numbers: Mapping[str, Sequence[int]],
        settled: Sequence[Stretches],
        gathered: NDArray[np.int64],
        ends: NDArray[np.int64],
    ) -> None:
        self._numbers = numbers
        self._settled = settled
        self._gathered = gathered
        self._ends = ends

    def __getitem__(self, model: str) -> tuple[PastView, ...]:
        ends = self._ends
        return tuple(
            PastView(
                self._settled[number],
                self._gathered[ends[number - 1] if number else 0 : ends[number]],
            )
            for number in self._numbers[model]
        )

    def __contains__(self, model: object) -> bool:
        return model in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers)

    def __len__(self) -> int:
        return len(self._numbers)


class Pasts:
    """Histories of up to `capacity` models, over `days` days; memory is touched only for rows in use."""

    __slots__ = ("_days", "_gathered", "_left", "_left_rows", "_previous", "_settled", "_used")

    def __init__(self, capacity: int, days: int) -> None:
        self._days = days
        self._settled: dict[int, Stretches] = {}
        self._gathered: NDArray[np.int64] = np.zeros((capacity if days else 0, GATHERED, 4), np.int64)
        self._used: NDArray[np.int32] = np.zeros(capacity, np.int32)
        """Number of minutes gathered of each row."""
        self._previous: NDArray[np.int32] = np.full(capacity, _UNSEEN, np.int32)
        # Room for outcomes of rows that are full.
        self._left_rows: NDArray[np.int32] = np.empty(0, np.int32)
        self._left: NDArray[np.int64] = np.empty((0, 4), np.int64)

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        self._settled.pop(row, None)
        self._used[row] = 0
        self._previous[row] = _UNSEEN

    def observe(self, batch: Batch) -> None:
        """Count outcomes, in order."""
        if not self._days or not len(batch.rows):
            return
        if len(self._left_rows) < len(batch.rows):
            self._left_rows = np.empty(len(batch.rows), np.int32)
            self._left = np.empty((len(batch.rows), 4), np.int64)
        columns = batch.rows, batch.true_class, batch.predicted_class, batch.event_ms
        left = self._left_rows, self._left
        count = count_minutes(*columns, self._previous, self._gathered, self._used, *left)
        if not count:
            return
        rows, gathered = self._left_rows[:count], self._left[:count]
        for row in np.unique(rows).tolist():
            added = PastView(NONE, gathered[rows == row])
            self._settled[row] = merged([self._look(row), added], self._days)
            self._used[row] = 0

    def _look(self, row: int) -> PastView:
        """View the current state without copying; it may change later."""
        return PastView(self._settled.get(row, NONE), self._gathered[row, : self._used[row]])

    def view(self, row: int) -> PastView:
        """Copy the history of a row; later outcomes do not change it."""
        settled, gathered = self._look(row)
        return PastView(settled, gathered.copy())

    def views(self, rows: Mapping[str, Sequence[int]]) -> PastViews:
        """Copy the histories of models with these rows; later outcomes do not change them."""
        chosen = list(chain.from_iterable(rows.values()))
        lengths = list(map(len, rows.values()))
        ends: list[int] = np.cumsum(lengths, dtype=np.int64).tolist()
        numbers = dict(zip(rows, map(range, [0, *ends[:-1]], ends), strict=True))
        settled = list(map(self._settled.get, chosen, repeat(NONE)))
        at = np.array(chosen, np.int64)
        used = self._used[at]
        behind = np.cumsum(used, dtype=np.int64)
        # Only what is used is copied, and each minute as a run of bytes: half as much as whole rows, as fast.
        chosen_minutes = np.arange(used.sum()) + np.repeat(at * GATHERED - (behind - used), used)
        minutes = self._gathered.reshape(-1).view(_MINUTE).take(chosen_minutes)
        return PastViews(numbers, settled, minutes.view(np.int64).reshape(-1, 4), behind)

    def snapshots(self, rows: NDArray[np.int64]) -> Sequence[tuple[int, bytes] | None]:
        """`PastSnapshot` of rows, None if no history is kept; the same outcomes give the same bytes."""
        if not self._days:
            return [None] * len(rows)
        settled = list(map(self._settled.get, rows.tolist(), repeat(NONE)))
        of_settled = np.repeat(np.arange(len(rows)), list(map(len, settled)))
        used = self._used[rows]
        there = np.arange(used.max(initial=0)) < used[:, None]
        minutes = self._gathered[rows, : there.shape[1]][there]
        of_minutes = np.nonzero(there)[0]
        found, owner = merged_by_model(_joined(settled), of_settled, minutes, of_minutes, self._days)
        body = found.tobytes()
        counts = np.bincount(owner, minlength=len(rows))
        ends: list[int] = (np.cumsum(counts) * STRETCH.itemsize).tolist()
        stretches = [body[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
        return list(zip(self._previous[rows].tolist(), stretches, strict=True))

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
        # `history_days` may have changed since the snapshot: readers merge these under the current number.
        self._settled[row] = np.frombuffer(state.stretches, STRETCH)
        self._previous[row] = state.previous
