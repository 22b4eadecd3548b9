"""Outcomes by prediction time, kind and delay: a ring of 64 buckets for every model.

Bucket b lies in slot b mod 64; of two that want one slot the later has it. What is kept so depends on which
outcomes came, not on their order or on how they were cut into batches, and times in the far future cost
their slots, not the past.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.late_labels.geometry import (
    BINS,
    BUCKETS,
    KINDS,
    Counts,
    Geometry,
    Integers,
)
from streamwatch.core.estimators.registers.late_labels.observe import NONE, observe

_SMALL: Final = 20
"""A bucket is of the present if the 64 that end with it hold at least one in so many outcomes."""
_CELL: Final = np.dtype([("cell", "<u2"), ("count", "<u4")])


class RingSnapshot(NamedTuple):
    """State of one model, canonical: the same outcomes give the same bytes.

    Attributes
    ----------
    buckets, newest_ms
        Of the slots in order; -1 for none.
    cells
        Cells (slot, kind, bin) that are not 0, in order, with their counts: 6 bytes each.
    """

    buckets: list[int]
    newest_ms: list[int]
    cells: bytes


@dataclass(frozen=True, slots=True)
class RingView:
    """Counts of m models in the order of time, the last bucket being the one of the newest outcomes.

    Attributes
    ----------
    counts
        int64 (m, 64, 2, 23): by bucket, oldest first, kind and bin of delay.
    head
        (m,): number of the last bucket; -1 without outcomes.
    now_ms
        (m,): time of the newest outcome.
    """

    counts: Integers
    head: Integers
    now_ms: Integers

    @property
    def buckets(self) -> Integers:
        """Numbers of the buckets, (m, 64)."""
        return self.head[:, None] + np.arange(1 - BUCKETS, 1)


class LabelRing:
    """Rings of `capacity` models, 12.8 kB each; memory is touched only for rows in use."""

    __slots__ = ("_buckets", "_counts", "_newest_ms", "geometry")

    def __init__(self, capacity: int, geometry: Geometry) -> None:
        self.geometry = geometry
        self._counts: Counts = np.zeros((capacity, BUCKETS, KINDS, BINS), np.int32)
        self._buckets: Integers = np.full((capacity, BUCKETS), NONE, np.int64)
        self._newest_ms: Integers = np.full((capacity, BUCKETS), NONE, np.int64)

    def clear(self, row: int) -> None:
        """Forget a row, before it is used and after its model has retired."""
        if (self._buckets[row] != NONE).any():
            self._counts[row] = 0
        self._buckets[row] = self._newest_ms[row] = NONE

    def observe(
        self, rows: NDArray[np.int32], hits: NDArray[np.bool_], event_ms: Integers, delay_ms: Integers
    ) -> None:
        """Count outcomes: row of the model, whether it was right, when it was known, delay. Shapes (n,)."""
        given = self.geometry
        observe(
            self._counts,
            self._buckets,
            self._newest_ms,
            given.steps_ms,
            given.width_ms,
            given.longest_ms,
            *map(np.ascontiguousarray, (rows, hits, event_ms, delay_ms)),  # compiled for one layout
        )

    def view(self, rows: Integers) -> RingView:
        """Counts of some rows in the order of time."""
        buckets = self._buckets[rows]
        counts = self._counts[rows]
        head = _heads(buckets, counts)
        wanted = head[:, None] + np.arange(1 - BUCKETS, 1)
        slots = wanted & (BUCKETS - 1)
        models = np.arange(len(rows))[:, None]
        there = buckets[models, slots] == wanted
        ordered = np.where(there[:, :, None, None], counts[models, slots], 0).astype(np.int64)
        last = self._newest_ms[rows, head & (BUCKETS - 1)]
        # A bucket whose own outcomes became known later, in buckets that are not of the present, is taken as
        # just begun.
        now_ms = np.where(last == NONE, head * self.geometry.width_ms, last)
        return RingView(ordered, head, np.where(head == NONE, NONE, now_ms))

    def copy_of(self, row: int) -> LabelRing:
        """A ring of one model, in row 0, that stands where a row of this one stands."""
        single = LabelRing(1, self.geometry)
        single._counts[0] = self._counts[row]
        single._buckets[0] = self._buckets[row]
        single._newest_ms[0] = self._newest_ms[row]
        return single

    def snapshot(self, row: int) -> RingSnapshot:
        """State of a row."""
        flat = self._counts[row].reshape(-1)
        found = np.flatnonzero(flat)
        cells = np.zeros(len(found), _CELL)
        cells["cell"], cells["count"] = found, flat[found]
        return RingSnapshot(self._buckets[row].tolist(), self._newest_ms[row].tolist(), cells.tobytes())

    def restore(self, row: int, state: RingSnapshot) -> None:
        """Set a row to a snapshot.

        Raises
        ------
        ValueError
            If it is not one of 64 slots, or its bytes are no cells.
        """
        if len(state.buckets) != BUCKETS or len(state.newest_ms) != BUCKETS:
            raise ValueError(f"late labels must have {BUCKETS} buckets, got {len(state.buckets)}")
        if len(state.cells) % _CELL.itemsize:
            raise ValueError(
                f"counts of late labels must be of {_CELL.itemsize} bytes each, got {len(state.cells)} bytes"
            )
        cells = np.frombuffer(state.cells, _CELL)
        flat = self._counts[row].reshape(-1)
        if len(cells) and int(cells["cell"].max()) >= len(flat):
            raise ValueError(f"late labels must have {len(flat)} counts, got number {cells['cell'].max()}")
        flat[:] = 0
        flat[cells["cell"]] = cells["count"]
        self._buckets[row] = state.buckets
        self._newest_ms[row] = state.newest_ms


def _heads(buckets: Integers, counts: Counts) -> Integers:
    """Latest bucket of each model whose 64 buckets hold at least a twentieth of its outcomes; (m,).

    Nearly always the latest there is: only events' own times can lie in the far future.
    """
    head = buckets.max(axis=1)
    oldest = np.where(buckets == NONE, head[:, None], buckets).min(axis=1)
    for m in np.flatnonzero(head - oldest >= BUCKETS).tolist():
        outcomes = counts[m].sum(axis=(1, 2), dtype=np.int64)
        own = buckets[m]
        within = (own[None, :] <= own[:, None]) & (own[None, :] > own[:, None] - BUCKETS) & (own != NONE)
        enough = (within @ outcomes) * _SMALL >= outcomes.sum()
        head[m] = own[enough & (own != NONE)].max(initial=NONE)
    return head
