"""Outcomes by prediction time, kind and delay: a ring of 64 buckets per model.

Bucket b uses slot b mod 64; if two buckets need the same slot, the later one gets it. So the state depends on
which outcomes came, but not on their order or batches. Times in the far future take the slots of a few
buckets only, and leave the rest of the past as it is. Before a count would exceed 2³¹ − 1, all counts of its
model are halved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.late_labels.observe import (
    BINS,
    BUCKETS,
    HALF,
    KINDS,
    NONE,
    Counts,
    Geometry,
    Integers,
    add_up,
    mean_bins,
    observe,
)
from streamwatch.core.ranges import LARGEST, require_all

Floats: TypeAlias = NDArray[np.float64]

_SMALL: Final = 20
"""A bucket is current if the 64 buckets that end with it hold at least one in this many outcomes."""
_CELL: Final = np.dtype([("cell", "<u2"), ("count", "<u4")])


class RingSnapshot(NamedTuple):
    """State of one model; the same outcomes give the same bytes.

    Attributes
    ----------
    buckets, newest_ms
        Bucket number and newest event time of each slot, in order; -1 for none.
    cells
        Cells (slot, kind, bin) that are not 0, in order, with their counts: 6 bytes each.
    """

    buckets: list[int]
    newest_ms: list[int]
    cells: bytes


@dataclass(frozen=True, slots=True)
class RingView:
    """Counts of m models in the order of time; the last bucket is that of the newest outcomes.

    Attributes
    ----------
    counts
        int32 (m, 64, 2, 23): by bucket (oldest first), kind and bin of delay.
    head
        (m,): number of the last bucket; -1 without outcomes.
    now_ms
        (m,): newest event time in the last bucket, or the bucket's start if none lies in it; -1 without
        outcomes.
    """

    counts: Counts
    head: Integers
    now_ms: Integers

    @property
    def buckets(self) -> Integers:
        """Numbers of the buckets, (m, 64)."""
        return self.head[:, None] + np.arange(1 - BUCKETS, 1)


class Counted(NamedTuple):
    """Counts of m models, added up.

    Attributes
    ----------
    newest_ages_ms
        Least age that a prediction of each bucket can have, (m, 64); below 0 of a bucket that has not ended.
    outcomes
        Errors and hits by bucket, (m, 64, 2).
    early
        Outcomes labelled within half a horizon, and the sums of the numbers of their bins of delay and of the
        squares of these, by bucket and kind: (3, m, 64, 2).
    shares
        Share of labels that have arrived by an age, among those that arrive within the horizon, by kind: F_z
        at the 24 edges of the bins, (m, 2, 24). F_z(horizon) = 1 and F_z(e_k-1) = F_z(e_k)(1 - r_z(k)), where
        r_z(k) is the share of bin k among the outcomes of bins 1 … k, in the buckets whose predictions are
        all at least e_k old; 0 if these have no outcomes.
    """

    newest_ages_ms: Integers
    outcomes: Integers
    early: Integers
    shares: Floats


def counted(view: RingView, geometry: Geometry) -> Counted:
    """Add up the counts of m models."""
    m = len(view.head)
    ages_ms = view.now_ms[:, None] - (view.buckets + 1) * geometry.width_ms
    # A bucket is at least e old up to number (now - e) // width - 1.
    whole = (view.now_ms[:, None] - geometry.edges_ms[1:]) // geometry.width_ms - 1
    last = whole - view.buckets[:, :1]
    outcomes, early = np.empty((m, BUCKETS, KINDS), np.int64), np.empty((3, m, BUCKETS, KINDS), np.int64)
    in_bin, up_to = (np.zeros((m, KINDS, BINS), np.int64) for _ in range(2))
    add_up(view.counts, last, geometry.early_bins, outcomes, early, in_bin, up_to)
    hazard = np.divide(in_bin, up_to, out=np.zeros(in_bin.shape), where=up_to > 0)
    shares = np.ones((m, KINDS, BINS + 1))
    for k in reversed(range(BINS)):
        shares[:, :, k] = shares[:, :, k + 1] * (1.0 - hazard[:, :, k])
    return Counted(ages_ms, outcomes, early, shares)


class LabelRing:
    """Rings of `capacity` models, 12.8 kB each; memory is touched only for rows in use."""

    __slots__ = ("_buckets", "_counts", "_newest_ms", "geometry")

    def __init__(self, capacity: int, geometry: Geometry) -> None:
        self.geometry = geometry
        self._counts: Counts = np.zeros((capacity, BUCKETS, KINDS, BINS), np.int32)
        self._buckets: Integers = np.full((capacity, BUCKETS), NONE, np.int64)
        self._newest_ms: Integers = np.full((capacity, BUCKETS), NONE, np.int64)

    def clear(self, row: int) -> None:
        """Reset a row; called before a model uses it and after the model has retired."""
        if (self._buckets[row] != NONE).any():
            self._counts[row] = 0
        self._buckets[row] = self._newest_ms[row] = NONE

    def observe(
        self, rows: NDArray[np.int32], hits: NDArray[np.bool_], event_ms: Integers, delay_ms: Integers
    ) -> None:
        """Count n outcomes, each (n,): model's row, whether it was a hit, event time of the label, delay."""
        given = self.geometry
        observe(
            self._counts,
            self._buckets,
            self._newest_ms,
            given.steps_ms,
            given.width_ms,
            given.longest_ms,
            *map(np.ascontiguousarray, (rows, hits, event_ms, delay_ms)),  # compiled for contiguous arrays
        )

    def view(self, rows: Integers) -> RingView:
        """Counts of some rows in the order of time."""
        buckets = self._buckets[rows]
        head = self._heads(rows, buckets)
        wanted = head[:, None] + np.arange(1 - BUCKETS, 1)
        slots = wanted & (BUCKETS - 1)
        ordered = self._counts[rows[:, None], slots]
        ordered[np.take_along_axis(buckets, slots, axis=1) != wanted] = 0
        last = self._newest_ms[rows, head & (BUCKETS - 1)]
        # If no outcome's event time lies in the head bucket, the present is taken to be the start of that
        # bucket.
        now_ms = np.where(last == NONE, head * self.geometry.width_ms, last)
        return RingView(ordered, head, np.where(head == NONE, NONE, now_ms))

    def _heads(self, rows: Integers, buckets: Integers) -> Integers:
        """Latest bucket of each model whose 64 buckets hold at least a twentieth of its outcomes; (m,).

        It is nearly always the latest of all; only the events' own times can lie in the far future.
        """
        head = buckets.max(axis=1)
        oldest = np.where(buckets == NONE, head[:, None], buckets).min(axis=1)
        for m in np.flatnonzero(head - oldest >= BUCKETS).tolist():
            outcomes = self._counts[rows[m]].sum(axis=(1, 2), dtype=np.int64)
            own = buckets[m]
            within = (own[None, :] <= own[:, None]) & (own[None, :] > own[:, None] - BUCKETS) & (own != NONE)
            enough = (within @ outcomes) * _SMALL >= outcomes.sum()
            head[m] = own[enough & (own != NONE)].max(initial=NONE)
        return head

    def copy_of(self, rows: Integers) -> LabelRing:
        """Copy some rows, which may repeat, to a new ring of that capacity."""
        ring = LabelRing(0, self.geometry)
        ring._counts = self._counts[rows]
        ring._buckets = self._buckets[rows]
        ring._newest_ms = self._newest_ms[rows]
        return ring

    def snapshots(self, rows: Integers) -> Iterator[tuple[list[int], list[int], bytes]]:
        """States of some rows, fields as of `RingSnapshot`."""
        size = BUCKETS * KINDS * BINS
        flat = self._counts[rows].reshape(-1)
        found = np.flatnonzero(flat != 0)  # numpy finds flags that are set in a fraction of the time
        cells = np.zeros(len(found), _CELL)
        cells["cell"], cells["count"] = found % size, flat[found]
        body = cells.tobytes()
        ends: list[int] = (
            np.searchsorted(found, size * np.arange(1, len(rows) + 1)) * _CELL.itemsize
        ).tolist()
        parts = [body[start:end] for start, end in zip([0, *ends[:-1]], ends, strict=True)]
        return zip(self._buckets[rows].tolist(), self._newest_ms[rows].tolist(), parts, strict=True)

    def restore(self, row: int, state: RingSnapshot) -> None:
        """Set a row to a snapshot.

        Raises
        ------
        ValueError
            If it does not have 64 slots, or their buckets are not theirs, or its bytes are not cells.
        """
        if len(state.buckets) != BUCKETS or len(state.newest_ms) != BUCKETS:
            got = f"{len(state.buckets)} numbers and {len(state.newest_ms)} times"
            raise ValueError(f"late labels must have {BUCKETS} buckets, got {got}")
        if len(state.cells) % _CELL.itemsize:
            raise ValueError(
                f"counts of late labels must be of {_CELL.itemsize} bytes each, got {len(state.cells)} bytes"
            )
        cells = np.frombuffer(state.cells, _CELL)
        flat = self._counts[row].reshape(-1)
        if len(cells) and int(cells["cell"].max()) >= len(flat):
            raise ValueError(f"late labels must have {len(flat)} counts, got number {cells['cell'].max()}")
        require_all("late labels", "count", cells["count"], 0, np.iinfo(flat.dtype).max)
        buckets = np.array(state.buckets, np.int64)
        used = buckets != NONE
        require_all("late labels", "bucket", buckets[used], 0, LARGEST)
        slots = np.flatnonzero(used)
        require_all("late labels", "slot of a bucket", buckets[used] % BUCKETS, slots, slots)
        flat[:] = 0
        flat[cells["cell"]] = cells["count"]
        self._buckets[row] = buckets
        self._newest_ms[row] = state.newest_ms


# Test whether labels take longer, or less long, than those half a horizon earlier.
#
# The delay-corrected accuracy and early verdicts by cohorts assume that the distribution of delays is
# stable. Here the delays of two neighbouring halves of a horizon are compared, for hits and errors
# separately: predictions one half to one horizon old with those one to one and a half horizons old. Both
# halves have all their labels with a delay below half a horizon, and only these are compared.
#
# With x the logarithm of the delay (the number of its bin, as bins are geometric), the two means differ by
#
#     t = (x̄_after − x̄_before)/√(v_before + v_after)
#
# v is the variance of the mean, the largest of four estimates: from single outcomes, and from blocks of 1, 3
# and 7 buckets of prediction time, as for a ratio of block totals (Cochran 1977, §6.3). So batches of labels
# and rhythms up to the length of the longest block, a sixth of the horizon, do not look like a change.
# Delays have moved if |t| ≥ 5 and the typical delay, the geometric mean, has changed by a twentieth or more.


LEAST_OUTCOMES: Final = 100
"""Number of outcomes of a kind in each half from which they are compared."""
CRITICAL: Final = 5.0
"""Least |t| at which delays have moved."""
LEAST_CHANGE: Final = 0.05
"""Least change of the typical delay, as a part of it."""
BLOCKS: Final = np.array([1, 3, 7])
"""Numbers of buckets that are counted as one."""


class TypicalDelays(NamedTuple):
    """Geometric means of the delays of m models, of labels that take less than half a horizon, by kind."""

    before_ms: Floats
    """Mean delay of predictions 1 to 1.5 horizons old, (m, 2)."""
    after_ms: Floats
    """Mean delay of predictions half a horizon to one horizon old, (m, 2)."""
    moved: NDArray[np.bool_]
    """Whether they differ by more than chance explains, (m, 2); False where too few are known."""


def typical_delays(counted: Counted, geometry: Geometry) -> TypicalDelays:
    """Compare the delays of two neighbouring halves of a horizon."""
    edges = geometry.edges_ms[1:].astype(np.float64)
    step = float(np.log(edges[-1] / edges[0])) / (len(edges) - 1)
    whole = counted.newest_ages_ms >= geometry.edges_ms[geometry.early_bins]
    last = whole.sum(axis=1) - 1  # ages fall from bucket to bucket
    halves = [_half(counted.early, last - shift) for shift in (HALF, 0)]
    (mean_before, error_before, n_before), (mean_after, error_after, n_after) = halves
    change = mean_after - mean_before
    error = np.sqrt(error_before + error_after)
    enough = np.minimum(n_before, n_after) >= LEAST_OUTCOMES
    moved = enough & (np.abs(change) >= CRITICAL * error) & (np.abs(change) * step >= np.log1p(LEAST_CHANGE))
    before_ms, after_ms = (edges[0] * np.exp((mean - 0.5) * step) for mean in (mean_before, mean_after))
    return TypicalDelays(before_ms, after_ms, moved & (error > 0.0))


def _half(early: Integers, last: Integers) -> tuple[Floats, Floats, Floats]:
    """Mean bin number, its variance, and number of outcomes in the 21 buckets up to `last`; (m, 2) each."""
    mean, variance, outcomes = (np.zeros((len(last), KINDS)) for _ in range(3))
    mean_bins(early, last, BLOCKS, mean, variance, outcomes)
    return mean, variance, outcomes
