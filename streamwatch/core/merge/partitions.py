"""`Partitions`: progress of every partition in the merge, as columns."""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry
from streamwatch.core.records.events import Partition

# Compiled loops over the columns of `Partitions`: bounds of release, counts, and waiting for partitions.
#
# Each is one pass. Expressions of numpy took a dozen passes of a microsecond each, whatever the number of
# partitions, which was a third of the cost of a small poll.


EVER: Final = 2**63 - 1
"""Number larger than every time and every index."""


@entry
def find_bounds(running, held, at_end, left_behind, waiting):
    """Find how far reading has come in partitions that are waited for, and in those at their end.

    Parameters
    ----------
    running, held, at_end, left_behind
        Columns of `Partitions`.
    waiting
        bool, equally long: partitions of which records have no time yet.

    Returns
    -------
    read_ms, read_index
        Least time, and the first index that has it, of the partitions that may hold others back; `EVER`
        twice if there is none.
    rested_ms, rested_index
        The same of the partitions that were found at their end and have no record held, with or without a
        time. Partitions left behind are in neither.
    fetched_ms
        When the earliest fetch was sent that found one of the latter at its end; `EVER` if there is none.
    """
    read = rested = read_index = rested_index = fetched = EVER
    for index in range(running.shape[0]):
        if left_behind[index]:
            continue
        time = running[index]
        if at_end[index] < 0 or held[index] != 0 or waiting[index]:
            if time < read:
                read, read_index = time, index
        else:
            if time < rested:
                rested, rested_index = time, index
            fetched = min(fetched, at_end[index])
    return read, read_index, rested, rested_index, fetched


@entry
def subtract_released(held, size_bytes, indices, released):
    """Subtract released records and their share of the bytes held from the columns of their partitions.

    Parameters
    ----------
    held, size_bytes
        Columns of `Partitions`, updated.
    indices
        int64: partition of each record released.
    released
        int64, one for each partition, all 0 before and after: work space.
    """
    for index in indices:
        released[index] += 1
    for index in range(held.shape[0]):
        if released[index]:
            size_bytes[index] -= size_bytes[index] * released[index] // held[index]
            held[index] -= released[index]
            released[index] = 0


@entry
def note_waiting(
    running,
    held,
    at_end,
    left_behind,
    seen_end,
    holds_since,
    time,
    first_index,
    fetched_since,
    now,
    longest,
    connected,
    left,
):
    """Note which partitions the first held record waits for, and leave behind those that take too long.

    Parameters
    ----------
    running, held, at_end, left_behind, seen_end, holds_since
        Columns of `Partitions`; `left_behind` and `holds_since` are updated.
    time, first_index
        The record's time, and the index of its partition.
    fetched_since, now, longest, connected
        As in `Partitions.wait`.
    left
        bool, one for each partition; output: whether it was left behind just now.

    Returns
    -------
    Number of partitions left behind just now.
    """
    count = 0
    for index in range(running.shape[0]):
        left[index] = False
        precedes = running[index] < time or (running[index] == time and index < first_index)
        if not (precedes and held[index] == 0 and not left_behind[index] and at_end[index] < fetched_since):
            holds_since[index] = -1
            continue
        if holds_since[index] < 0 or not connected:
            holds_since[index] = now
        if seen_end[index] and now - holds_since[index] >= longest:
            left[index] = left_behind[index] = True
            holds_since[index] = -1
            count += 1
    return count


class Partitions:
    """Progress of the partitions, as columns; a partition's index is its rank in the order of the sequence.

    Parameters
    ----------
    running_ms
        Newest time of each partition as of the last evaluated record.
    rank
        Sorts partitions where times are equal.

    Attributes
    ----------
    names, order
        Partitions in the order of their indices; index by partition.
    running_ms
        int64: newest time given to a record; -1 before the first record.
    held
        int64: number of records that have a time and are held.
    at_end_ms
        int64: when the fetch was sent that found the partition at its end; -1: not known to be there.
    seen_end, left_behind
        bool: found at its end in this run; no longer waited for.
    holds_since_ms
        int64: since when records of others wait for it; -1 if none does.
    answered_ms
        int64: when the latest fetch was sent that found the partition at its end in this run; -1 before.
    size_bytes
        int64: approximate memory of the records held.
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
        self._released = np.empty(0, np.int64)
        self._left = np.empty(0, np.bool_)

    def by_name(self, column: NDArray[np.int64]) -> dict[Partition, int]:
        """Read a column of whole numbers by partition."""
        return dict(zip(self.names, column.tolist(), strict=True))

    def replace(self, partitions: Collection[Partition]) -> NDArray[np.int64]:
        """Replace the partitions, and return the new index of each old one, -1 if it was removed.

        A removed partition that comes back is another log, and begins without a time.
        """
        before, names = self.names, sorted(partitions, key=self._rank)
        order = {name: index for index, name in enumerate(names)}
        for removed in set(before) - order.keys():
            self._restored_ms.pop(removed, None)
        restored = np.array([self._restored_ms.get(name, -1) for name in names], np.int64)
        indices = np.array([order.get(name, -1) for name in before], np.int64)
        kept = indices >= 0
        fresh: dict[str, NDArray[Any]] = {
            "running_ms": restored,
            "held": np.zeros(len(names), np.int64),
            "at_end_ms": np.full(len(names), -1),
            "holds_since_ms": np.full(len(names), -1),
            "answered_ms": np.full(len(names), -1),
            "size_bytes": np.zeros(len(names), np.int64),
            "seen_end": np.zeros(len(names), np.bool_),
            "left_behind": np.zeros(len(names), np.bool_),
            "_released": np.zeros(len(names), np.int64),
            "_left": np.zeros(len(names), np.bool_),
        }
        for column, values in fresh.items():
            values[indices[kept]] = getattr(self, column)[kept]
            setattr(self, column, values)
        self.names, self.order = names, order
        return indices

    def heard(self, indices: NDArray[np.int64], sizes_bytes: NDArray[np.int64]) -> None:
        """Note that these partitions, all different, delivered records."""
        self.size_bytes[indices] += sizes_bytes
        self.holds_since_ms[indices] = -1
        self.left_behind[indices] = False

    def found(self, index: int, at_end_ms: int | None) -> None:
        """Note when the fetch was sent that found a partition at its end; None: not known to be there."""
        if at_end_ms is None:
            self.at_end_ms[index] = -1
            return
        self.at_end_ms[index] = at_end_ms
        if at_end_ms > self.answered_ms[index]:  # otherwise nothing new: it cannot be reached
            self.answered_ms[index] = at_end_ms
            self.seen_end[index] = True
            self.left_behind[index] = False
            self.holds_since_ms[index] = -1

    def leave_behind(self, indices: Iterable[int]) -> Sequence[Partition]:
        """Stop waiting for these partitions; return those that were not left behind before."""
        left = [index for index in indices if not self.left_behind[index]]
        self.left_behind[left], self.holds_since_ms[left] = True, -1
        return [self.names[index] for index in left]

    def note_released(self, indices: NDArray[np.int64]) -> None:
        """Subtract released records, given by their partitions, from `held` and `size_bytes`."""
        subtract_released(self.held, self.size_bytes, indices, self._released)

    def wait(
        self,
        first_key: tuple[int, int],
        *,
        fetched_since_ms: int,
        now_ms: int,
        longest_ms: int,
        connected: bool,
    ) -> Sequence[Partition]:
        """Note which partitions the first held record waits for, and leave behind those that take too long.

        Parameters
        ----------
        first_key
            The record's time, and the index of its partition.
        fetched_since_ms
            A partition found at its end by a fetch sent from then on is not waited for.
        now_ms
            Time now, of the same clock.
        longest_ms
            Longest wait for a partition that was at its end in this run; others are waited for without limit.
        connected
            Whether brokers answer; if not, waiting does not count.

        Returns
        -------
        left
            Partitions left behind just now.
        """
        time_ms, index = first_key
        count: int = note_waiting(
            self.running_ms,
            self.held,
            self.at_end_ms,
            self.left_behind,
            self.seen_end,
            self.holds_since_ms,
            time_ms,
            index,
            fetched_since_ms,
            now_ms,
            longest_ms,
            connected,
            self._left,
        )
        return [self.names[index] for index in np.flatnonzero(self._left).tolist()] if count else ()


# Bounds up to which records may be released, from the progress of every partition.


class Bounds(NamedTuple):
    """Bounds up to which records may be released, times in milliseconds; by default all of them may."""

    read: tuple[int, int] = (EVER, EVER)
    """Time and partition index up to which no record that is yet to be read can precede."""
    rested: tuple[int, int] = (EVER, EVER)
    """Time and partition index up to which no partition found at its end can deliver a record that precedes.

    A record beyond it is released only if it arrived by `fetched_ms`, and has a time up to `rest_ms` or
    arrived by `waited_ms`.
    """
    fetched_ms: int = EVER
    rest_ms: int = EVER
    waited_ms: int = EVER


def bounds_of(
    partitions: Partitions,
    waiting: NDArray[np.bool_],
    *,
    settle_ms: int,
    rest_ms: int | None,
    waited_ms: int,
) -> Bounds:
    """Compute the bounds up to which no partition has to be waited for.

    Parameters
    ----------
    partitions
        Progress of every partition.
    waiting
        bool, one for each partition: whether some of its records have no time yet.
    settle_ms
        Least time from a record's arrival to the sending of the fetch that found a partition at its end.
    rest_ms
        Newest time that is `settle_ms` ago by the host's clock; None while that clock is behind.
    waited_ms
        Newest arrival of records that have waited so long that their times are `settle_ms` ago, too.
    """
    read_ms, read_index, least_ms, index, fetched_ms = find_bounds(
        partitions.running_ms, partitions.held, partitions.at_end_ms, partitions.left_behind, waiting
    )
    if index == EVER:
        return Bounds(read=(read_ms, read_index))
    return Bounds(
        (read_ms, read_index),
        (least_ms, index),
        fetched_ms - settle_ms,
        EVER if rest_ms is None else rest_ms,
        waited_ms,
    )
