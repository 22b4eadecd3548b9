"""`Partitions`: progress of every partition in the merge, as columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Partition
from streamwatch.core.merge.columns import let_go, note_waiting


class Partitions:
    """Progress of the partitions; index i is the place of a partition in the order of the sequence.

    Parameters
    ----------
    running_ms
        Newest time of each partition as of the last evaluated record.
    rank
        Sorts partitions where times are equal.

    Attributes
    ----------
    running_ms
        int64: newest time of what was judged; -1 before the first record.
    held
        int64: records that have a time and wait.
    at_end_ms
        int64: when the fetch was sent that found the partition at its end; -1: not known to be there.
    seen_end, left_behind
        bool: found at its end in this run; no longer waited for.
    holds_since_ms
        int64: since when others wait for it; -1 if none does.
    answered_ms
        int64: when the latest fetch was sent that found the partition at its end in this run; -1 before.
    size_bytes
        int64: what is held in memory, about.
    """

    def __init__(self, running_ms: Mapping[Partition, int], rank: Callable[[Partition], Any]) -> None:
        self._rank = rank
        self._restored_ms = dict(running_ms)
        self.names: list[Partition] = []
        self.order: dict[Partition, int] = {}
        self.running_ms = np.empty(0, np.int64)
        self.held = np.empty(0, np.int64)
        self.at_end_ms = np.empty(0, np.int64)
        self.holds_since_ms = np.empty(0, np.int64)
        self.answered_ms = np.empty(0, np.int64)
        self.size_bytes = np.empty(0, np.int64)
        self.seen_end = np.empty(0, np.bool_)
        self.left_behind = np.empty(0, np.bool_)

    def by_name(self, column: NDArray[np.int64]) -> dict[Partition, int]:
        """Read a column of whole numbers by partition."""
        return dict(zip(self.names, column.tolist(), strict=True))

    def replace(self, partitions: Collection[Partition]) -> NDArray[np.int64]:
        """Replace the partitions, and return the new place of each old one, -1 if it was removed."""
        before, names = self.names, sorted(partitions, key=self._rank)
        order = {name: place for place, name in enumerate(names)}
        restored = np.array([self._restored_ms.get(name, -1) for name in names], np.int64)
        places = np.array([order.get(name, -1) for name in before], np.int64)
        kept = places >= 0
        fresh: dict[str, NDArray[Any]] = {
            "running_ms": restored,
            "held": np.zeros(len(names), np.int64),
            "at_end_ms": np.full(len(names), -1),
            "holds_since_ms": np.full(len(names), -1),
            "answered_ms": np.full(len(names), -1),
            "size_bytes": np.zeros(len(names), np.int64),
            "seen_end": np.zeros(len(names), np.bool_),
            "left_behind": np.zeros(len(names), np.bool_),
        }
        for column, values in fresh.items():
            values[places[kept]] = getattr(self, column)[kept]
            setattr(self, column, values)
        self.names, self.order = names, order
        return places

    def heard(self, places: NDArray[np.int64], sizes_bytes: NDArray[np.int64]) -> None:
        """Note that these partitions, all different, delivered records."""
        self.size_bytes[places] += sizes_bytes
        self.holds_since_ms[places] = -1
        self.left_behind[places] = False

    def found(self, place: int, at_end_ms: int | None) -> None:
        """Note when the fetch was sent that found a partition at its end; None: not known to be there."""
        if at_end_ms is None:
            self.at_end_ms[place] = -1
            return
        self.at_end_ms[place] = at_end_ms
        if at_end_ms > self.answered_ms[place]:  # else it is old news, of one that cannot be reached
            self.answered_ms[place] = at_end_ms
            self.seen_end[place] = True
            self.left_behind[place] = False
            self.holds_since_ms[place] = -1

    def leave_behind(self, places: Iterable[int]) -> Sequence[Partition]:
        """Leave partitions behind; those that were not so before."""
        left = [place for place in places if not self.left_behind[place]]
        self.left_behind[left], self.holds_since_ms[left] = True, -1
        return [self.names[place] for place in left]

    def let_go(self, order: NDArray[np.int64]) -> None:
        """Subtract released records from `held` and `size_bytes`."""
        let_go(self.held, self.size_bytes, order)

    def wait(
        self, first_key: tuple[int, int], *, rested_ms: int, now_ms: int, longest_ms: int, connected: bool
    ) -> Sequence[Partition]:
        """Note which partitions the first held record waits for, and leave behind those that take too long.

        Parameters
        ----------
        first_key
            Its time, and the place of its partition.
        rested_ms
            A partition found at its end by a fetch sent from then on is not waited for.
        now_ms
            Now, of the same clock.
        longest_ms
            How long is too long for a partition that was at its end in this run; others hold without limit.
        connected
            Whether brokers answer; if not, waiting does not count.

        Returns
        -------
        left
            Partitions left behind just now.
        """
        time_ms, place = first_key
        left, count = note_waiting(
            self.running_ms,
            self.held,
            self.at_end_ms,
            self.left_behind,
            self.seen_end,
            self.holds_since_ms,
            time_ms,
            place,
            rested_ms,
            now_ms,
            longest_ms,
            connected,
        )
        return [self.names[place] for place in np.flatnonzero(left).tolist()] if count else ()
