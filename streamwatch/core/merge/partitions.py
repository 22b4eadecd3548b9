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
PROGRESS: Final = np.dtype(
    [
        ("running_ms", np.int64),
        ("held", np.int64),
        ("at_end_ms", np.int64),
        ("holds_since_ms", np.int64),
        ("answered_ms", np.int64),
        ("size_bytes", np.int64),
        ("released", np.int64),
        ("seen_end", np.bool_),
        ("left_behind", np.bool_),
        ("left", np.bool_),
    ],
    align=True,
)
"""Progress of one partition.

`running_ms`: newest time given to a record; -1 before the first. `held`: number of records that have a time
and are held. `at_end_ms`: when the fetch was sent that found the partition at its end; -1: not known to be
there. `holds_since_ms`: since when records of others wait for it; -1 if none does. `answered_ms`: when the
latest fetch was sent that found it at its end in this run; -1 before. `size_bytes`: approximate memory of the
records held. `seen_end`, `left_behind`: found at its end in this run; no longer waited for. `released`,
`left`: see `subtract_released`, `note_waiting`.
"""


@entry
def find_bounds(records, waiting):
    """Find how far reading has come in partitions that are waited for, and in those at their end.

    Parameters
    ----------
    records
        Records `PROGRESS`.
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
    for index in range(records.shape[0]):
        p = records[index]
        if p.left_behind:
            continue
        time = p.running_ms
        if p.at_end_ms < 0 or p.held != 0 or waiting[index]:
            if time < read:
                read, read_index = time, index
        else:
            if time < rested:
                rested, rested_index = time, index
            fetched = min(fetched, p.at_end_ms)
    return read, read_index, rested, rested_index, fetched


@entry
def subtract_released(records, indices):
    """Subtract released records, given by their partitions, and their share of the bytes held.

    Parameters
    ----------
    records
        Records `PROGRESS`, updated; `released` is 0 before and after.
    indices
        int64: partition of each record released.
    """
    for index in indices:
        records[index].released += 1
    for index in range(records.shape[0]):
        p = records[index]
        if p.released:
            p.size_bytes -= p.size_bytes * p.released // p.held
            p.held -= p.released
            p.released = 0


@entry
def note_waiting(records, time, first_index, fetched_since, now, longest, connected):
    """Note which partitions the first held record waits for, and leave behind those that take too long.

    Parameters
    ----------
    records
        Records `PROGRESS`, updated: `left` is whether a partition was left behind just now.
    time, first_index
        The record's time, and the index of its partition.
    fetched_since, now, longest, connected
        As in `Partitions.wait`.

    Returns
    -------
    Number of partitions left behind just now.
    """
    count = 0
    for index in range(records.shape[0]):
        p = records[index]
        p.left = False
        precedes = p.running_ms < time or (p.running_ms == time and index < first_index)
        if not (precedes and p.held == 0 and not p.left_behind and p.at_end_ms < fetched_since):
            p.holds_since_ms = -1
            continue
        if p.holds_since_ms < 0 or not connected:
            p.holds_since_ms = now
        if p.seen_end and now - p.holds_since_ms >= longest:
            p.left = p.left_behind = True
            p.holds_since_ms = -1
            count += 1
    return count


class Partitions:
    """Progress of the partitions; a partition's index is its rank in the order of the sequence.

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
    records
        Records `PROGRESS`; `running_ms`, `held`, `at_end_ms`, `holds_since_ms`, `size_bytes` and
        `left_behind` are its columns.
    """

    def __init__(self, running_ms: Mapping[Partition, int], rank: Callable[[Partition], Any]) -> None:
        self._rank = rank
        self._restored_ms = dict(running_ms)
        self.names: list[Partition] = []
        self.order: dict[Partition, int] = {}
        self._set(np.zeros(0, PROGRESS))

    def _set(self, records: NDArray[np.void]) -> None:
        self.records = records
        self.running_ms, self.held = records["running_ms"], records["held"]
        self.at_end_ms, self.holds_since_ms = records["at_end_ms"], records["holds_since_ms"]
        self.size_bytes, self.left_behind = records["size_bytes"], records["left_behind"]

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
        indices = np.array([order.get(name, -1) for name in before], np.int64)
        fresh = np.zeros(len(names), PROGRESS)
        fresh["running_ms"] = [self._restored_ms.get(name, -1) for name in names]
        fresh["at_end_ms"] = fresh["holds_since_ms"] = fresh["answered_ms"] = -1
        fresh[indices[indices >= 0]] = self.records[indices >= 0]
        self._set(fresh)
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
        if at_end_ms > self.records["answered_ms"][index]:  # otherwise nothing new: it cannot be reached
            self.records["answered_ms"][index] = at_end_ms
            self.records["seen_end"][index] = True
            self.left_behind[index] = False
            self.holds_since_ms[index] = -1

    def leave_behind(self, indices: Iterable[int]) -> Sequence[Partition]:
        """Stop waiting for these partitions; return those that were not left behind before."""
        left = [index for index in indices if not self.left_behind[index]]
        self.left_behind[left], self.holds_since_ms[left] = True, -1
        return [self.names[index] for index in left]

    def note_released(self, indices: NDArray[np.int64]) -> None:
        """Subtract released records, given by their partitions, from `held` and `size_bytes`."""
        subtract_released(self.records, indices)

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
        if not note_waiting(self.records, *first_key, fetched_since_ms, now_ms, longest_ms, connected):
            return ()
        return [self.names[index] for index in np.flatnonzero(self.records["left"]).tolist()]


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
    read_ms, read_index, least_ms, index, fetched_ms = find_bounds(partitions.records, waiting)
    if index == EVER:
        return Bounds(read=(read_ms, read_index))
    return Bounds(
        (read_ms, read_index),
        (least_ms, index),
        fetched_ms - settle_ms,
        EVER if rest_ms is None else rest_ms,
        waited_ms,
    )
