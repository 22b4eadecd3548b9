"""Records that have a time and wait for their turn, in the order of the sequence."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge.arrivals import Rows

_LARGEST: Final = 2**62


class Held:
    """Columns sorted by (time, order of the partition, offset).

    Attributes
    ----------
    keys
        int64, not decreasing: time · partitions + order of the partition; equal within one partition and
        millisecond only, where rows stay in offset order.
    times_ms, order, offsets, arrived_ms
        int64.
    reasons
        uint8, indices into `timestamps.REASONS`.
    ids
        int64: where each row is kept.
    """

    __slots__ = (
        "arrived_ms",
        "ids",
        "keys",
        "offsets",
        "order",
        "reasons",
        "times_ms",
        "width",
    )

    def __init__(self) -> None:
        self.width = 1
        none = np.empty(0, np.int64)
        self.keys = self.times_ms = self.order = self.offsets = self.arrived_ms = self.ids = none
        self.reasons = np.empty(0, np.uint8)

    def __len__(self) -> int:
        return len(self.keys)

    def key(self, time_ms: int, order: int) -> int:
        """Key of the records of a partition at a time; times beyond all reason are equal."""
        return min(time_ms, _LARGEST // self.width) * self.width + order

    def keys_of(self, times_ms: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
        """Keys, likewise."""
        return np.minimum(times_ms, _LARGEST // self.width) * self.width + order

    def add(self, rows: Rows, times_ms: NDArray[np.int64], reasons: NDArray[np.uint8]) -> None:
        """Put rows in, which follow those held of their partitions."""
        self._sort(
            np.concatenate((self.times_ms, times_ms)),
            np.concatenate((self.order, rows.order)),
            (
                np.concatenate((self.offsets, rows.offsets)),
                np.concatenate((self.arrived_ms, rows.arrived_ms)),
                np.concatenate((self.reasons, reasons)),
                np.concatenate((self.ids, rows.ids)),
            ),
        )

    def reorder(self, places: NDArray[np.int64], width: int) -> None:
        """Partitions were added or removed: `places` are the new orders by the old ones."""
        self.width = width
        columns = (self.offsets, self.arrived_ms, self.reasons, self.ids)
        self._sort(self.times_ms, places[self.order] if len(self.order) else self.order, columns)

    def cut(self, count: int) -> Held:
        """Take out the first `count` rows."""
        taken = Held()
        taken.width = self.width
        for name in ("keys", "times_ms", "order", "offsets", "arrived_ms", "reasons", "ids"):
            column: NDArray[Any] = getattr(self, name)
            setattr(taken, name, column[:count])
            setattr(self, name, column[count:])
        return taken

    def _sort(
        self, times_ms: NDArray[np.int64], order: NDArray[np.int64], columns: tuple[NDArray[Any], ...]
    ) -> None:
        keys = self.keys_of(times_ms, order)
        if len(keys) > 1 and bool((keys[1:] < keys[:-1]).any()):
            rows = np.argsort(keys, kind="stable")
            keys, times_ms, order = keys[rows], times_ms[rows], order[rows]
            columns = tuple(column[rows] for column in columns)
        self.keys, self.times_ms, self.order = keys, times_ms, order
        self.offsets, self.arrived_ms, self.reasons, self.ids = columns
