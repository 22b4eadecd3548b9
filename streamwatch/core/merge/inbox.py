"""`Inbox`: delivered records that were not given a time yet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge.held import HeldRecords
from streamwatch.core.merge.partitions import Partitions
from streamwatch.core.merge.timestamps import LOOK_AHEAD, ClockView, judge

HostIsBehind: TypeAlias = Callable[[int, int], bool | None]


class Inbox:
    """Gives records their times: nearly all at once, and those of doubtful timestamps one by one.

    Parameters
    ----------
    partitions
        Columns of the partitions; running maxima and numbers of queued records are updated.
    held
        Pool that holds the records before they have a time and after.
    max_future_ms
        How far a timestamp may run ahead of its partition without being asked.
    """

    def __init__(self, partitions: Partitions, held: HeldRecords, max_future_ms: int) -> None:
        self._partitions = partitions
        self._held = held
        self._max_future_ms = max_future_ms
        self._fresh: set[int] = set()  # places of what was delivered
        self._fresh_ms = 0  # when the first of it arrived
        self._fresh_ids: list[NDArray[np.int64]] = []
        self._doubtful: dict[int, NDArray[np.int64]] = {}  # ids by place: records that wait for others
        self._appended: dict[int, bool] = {}

    def __len__(self) -> int:
        return sum(map(len, self._fresh_ids)) + sum(map(len, self._doubtful.values()))

    @property
    def waiting(self) -> NDArray[np.bool_]:
        """Tell of each partition whether records without a time wait: bool, shape (partitions,)."""
        waiting = np.zeros(len(self._partitions.names), np.bool_)
        if self._doubtful:
            waiting[list(self._doubtful)] = True
        return waiting

    def waits(self, place: int) -> bool:
        """Tell whether records of one partition wait for their time."""
        return place in self._doubtful or place in self._fresh

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Tell whether a waiting record of them arrived at or before the given time."""
        if self._fresh and self._fresh_ms <= arrived_ms:
            return True
        return any(int(self._held.arrived_ms(ids[:1])[0]) <= arrived_ms for ids in self._doubtful.values())

    def ids(self) -> list[NDArray[np.int64]]:
        """Give the records that wait for their time."""
        return [*self._fresh_ids, *self._doubtful.values()]

    def reorder(self, places: NDArray[np.int64]) -> None:
        """Follow partitions to their new places; of those that are gone nothing is here."""
        for ids in self._fresh_ids:
            self._held.put_elsewhere(ids, places)
        self._fresh = {int(places[place]) for place in self._fresh}
        self._doubtful = {int(places[place]): ids for place, ids in self._doubtful.items()}
        self._appended = {int(places[place]): said for place, said in self._appended.items()}

    def add(
        self, ids: NDArray[np.int64], now_ms: int, places: Sequence[int], appended: Sequence[bool]
    ) -> None:
        """Take in what was delivered: its ids, the places, and whether brokers stamped what is of them."""
        if not self._fresh:
            self._fresh_ms = now_ms
        self._fresh_ids.append(ids)
        self._fresh.update(places)
        before = {place: self._appended[place] for place in self._doubtful}
        self._appended.update(zip(places, appended, strict=True))
        # Where a topic's configuration changes in between, what waits is judged as producers' times.
        for place, said in before.items():
            self._appended[place] &= said

    def crowded(self, most: int) -> NDArray[np.bool_]:
        """Tell of each partition whether more than `most` records of it wait, more than are asked."""
        crowded = np.zeros(len(self._partitions.names), np.bool_)
        for place, ids in self._doubtful.items():
            crowded[place] = len(ids) > max(most, LOOK_AHEAD + 1)
        return crowded

    def judge(self, host_ms: int, ended: Collection[int], host_is_behind: HostIsBehind) -> None:
        """Give times to the waiting records where that is possible by now, and queue these.

        Parameters
        ----------
        host_ms
            The host's clock.
        ended
            Places of partitions of which no further record will come.
        host_is_behind
            Tells, of a place and the time at which a record of it arrived, whether the host's clock is not to
            be asked about the record; None: not known yet.
        """
        doubtful, self._doubtful = self._doubtful, {}
        if self._fresh:
            self._queue_plain(doubtful)
        for place in sorted(doubtful):
            self._one_by_one(place, doubtful[place], host_ms, ended, host_is_behind)

    def _queue_plain(self, doubtful: dict[int, NDArray[np.int64]]) -> None:
        """Queue the fresh records of the partitions in which nothing is doubtful; the others become so."""
        partitions, held = self._partitions, self._held
        odd = np.zeros(len(partitions.names), np.bool_)
        if doubtful:
            odd[list(doubtful)] = True
        fresh = self._fresh_ids[0] if len(self._fresh_ids) == 1 else np.concatenate(self._fresh_ids)
        self._fresh_ids, self._fresh = [], set()
        if held.queue_plain(fresh, partitions.running_ms, odd, partitions.held, self._max_future_ms):
            for place in np.flatnonzero(odd).tolist():
                own = held.ids_of(fresh, place)
                if len(own):
                    doubtful[place] = np.concatenate((doubtful[place], own)) if place in doubtful else own

    def _one_by_one(
        self,
        place: int,
        ids: NDArray[np.int64],
        host_ms: int,
        ended: Collection[int],
        host_is_behind: HostIsBehind,
    ) -> None:
        partitions = self._partitions
        moving_ms, decodable = self._held.moving_ms(ids)
        behind: bool | None = False
        suspects = np.flatnonzero(moving_ms > host_ms + self._max_future_ms)
        if suspects.size:
            behind = host_is_behind(place, int(self._held.arrived_ms(ids[suspects[:1]])[0]))
            if behind is None and place in ended:
                behind = False
        found = judge(
            moving_ms,
            decodable,
            int(partitions.running_ms[place]),
            ClockView(host_ms, int(partitions.running_ms.max()), behind),
            self._max_future_ms,
            appended=self._appended.get(place, False),
            at_end=place in ended or bool(partitions.at_end_ms[place] >= 0),
        )
        count = len(found)
        if count:
            self._held.queue_judged(ids[:count], found.times_ms, found.reasons, place)
            partitions.held[place] += count
            partitions.running_ms[place] = found.times_ms[-1]
        if count < len(ids):
            self._doubtful[place] = ids[count:]
