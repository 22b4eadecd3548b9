"""Records that were delivered and have no time yet."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge.arrivals import Arrivals, Rows, joined, rows_of
from streamwatch.core.merge.partitions import Partitions
from streamwatch.core.merge.timestamps import (
    BELIEVED,
    LOOK_AHEAD,
    TIMELESS,
    ClockView,
    judge,
    judge_plain,
)

HostIsBehind: TypeAlias = Callable[[int, int], bool | None]


class Inbox:
    """Gives records their times: nearly all at once, and those of doubtful timestamps one by one.

    Parameters
    ----------
    partitions
        Their running maxima are kept up to date.
    max_future_ms
        How far a timestamp may run ahead of its partition without being asked.
    """

    def __init__(self, partitions: Partitions, max_future_ms: int) -> None:
        self._partitions = partitions
        self._max_future_ms = max_future_ms
        self._fresh: list[tuple[int, int, int, Arrivals]] = []
        self._doubtful: dict[int, Rows] = {}  # by place: records that wait for those that follow
        self._appended: dict[int, bool] = {}

    def __len__(self) -> int:
        return sum(len(arrivals) for *_, arrivals in self._fresh) + sum(map(len, self._doubtful.values()))

    @property
    def has_fresh(self) -> bool:
        """Tell whether something was delivered since times were given last."""
        return bool(self._fresh)

    @property
    def waiting(self) -> NDArray[np.bool_]:
        """Tell of each partition whether records of it wait for their time."""
        waiting = np.zeros(len(self._partitions.names), np.bool_)
        for place in self._doubtful:
            waiting[place] = True
        return waiting

    def waits(self, place: int) -> bool:
        """Tell whether records of one partition wait for their time."""
        return place in self._doubtful or any(place == other for other, *_ in self._fresh)

    def holds_from_before(self, arrived_ms: int) -> bool:
        """Tell whether one of them had arrived by then."""
        return any(int(rows.arrived_ms[0]) <= arrived_ms for rows in self._doubtful.values()) or any(
            ms <= arrived_ms for _, ms, *_ in self._fresh
        )

    def ids(self) -> list[NDArray[np.int64]]:
        """Places where the rows are kept of what waits for its time; nothing may be fresh."""
        return [rows.ids for rows in self._doubtful.values()]

    def reorder(self, places: NDArray[np.int64]) -> None:
        """Follow partitions to their new places; of those that are gone nothing is here."""
        self._fresh = [(int(places[part[0]]), *part[1:]) for part in self._fresh]
        moved = {int(places[place]): rows for place, rows in self._doubtful.items()}
        for place, rows in moved.items():
            rows.order[:] = place
        self._doubtful = moved
        self._appended = {int(places[place]): said for place, said in self._appended.items()}

    def add(self, place: int, now_ms: int, first_id: int, arrivals: Arrivals) -> None:
        """Take in what was delivered of a partition; its rows are kept from `first_id` on."""
        self._fresh.append((place, now_ms, first_id, arrivals))
        # Where a topic's configuration changes in between, what waits is judged as producers' times.
        self._appended[place] = arrivals.appended and (
            self._appended.get(place, True) or place not in self._doubtful
        )

    def crowded(self, most: int) -> NDArray[np.bool_]:
        """Tell of each partition whether more than `most` records of it wait, more than are asked."""
        crowded = np.zeros(len(self._partitions.names), np.bool_)
        for place, rows in self._doubtful.items():
            crowded[place] = len(rows) > max(most, LOOK_AHEAD + 1)
        return crowded

    def judged(
        self, host_ms: int, ended: Collection[int], host_is_behind: HostIsBehind
    ) -> tuple[Rows, NDArray[np.int64], NDArray[np.uint8]] | None:
        """Take out what has a time by now: rows, times and reasons; None if nothing has.

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
        parts: list[tuple[Rows, NDArray[np.int64], NDArray[np.uint8]]] = []
        doubtful, self._doubtful = self._doubtful, {}
        if self._fresh:
            self._fresh.sort(key=lambda part: part[0])
            rows = rows_of(self._fresh)
            self._fresh = []
            plain = self._plain(rows, doubtful, parts)
            for place in np.unique(rows.order[~plain]).tolist():
                own = rows.only(rows.order == place)
                doubtful[place] = joined([doubtful[place], own]) if place in doubtful else own
        for place in sorted(doubtful):
            self._one_by_one(place, doubtful[place], host_ms, ended, parts, host_is_behind)
        if not parts:
            return None
        if len(parts) == 1:
            return parts[0]
        return (
            joined([rows for rows, *_ in parts]),
            np.concatenate([times for _, times, _ in parts]),
            np.concatenate([reasons for *_, reasons in parts]),
        )

    def _plain(
        self,
        rows: Rows,
        doubtful: Collection[int],
        parts: list[tuple[Rows, NDArray[np.int64], NDArray[np.uint8]]],
    ) -> NDArray[np.bool_]:
        """Judge the partitions in which nothing is doubtful; of each row, whether it is of such a one."""
        partitions = self._partitions
        moving = np.where(rows.decodable, rows.stamps_ms, -1)
        times, plain = judge_plain(
            moving, rows.decodable, rows.order, partitions.running_ms, self._max_future_ms
        )
        if not plain.all() or doubtful:
            odd = np.zeros(len(partitions.names), np.bool_)
            odd[rows.order[~plain]] = True
            odd[list(doubtful)] = True
            plain = ~odd[rows.order]
        if plain.all():
            chosen, at = rows, times
        elif plain.any():
            chosen, at = rows.only(plain), times[plain]
        else:
            return plain
        partitions.running_ms[chosen.order] = at  # the last of each partition stays
        parts.append((chosen, at, np.where(chosen.decodable, BELIEVED, TIMELESS).astype(np.uint8)))
        return plain

    def _one_by_one(
        self,
        place: int,
        rows: Rows,
        host_ms: int,
        ended: Collection[int],
        parts: list[tuple[Rows, NDArray[np.int64], NDArray[np.uint8]]],
        host_is_behind: HostIsBehind,
    ) -> None:
        partitions = self._partitions
        behind: bool | None = False
        suspects = np.flatnonzero(rows.decodable & (rows.stamps_ms > host_ms + self._max_future_ms))
        if suspects.size:
            behind = host_is_behind(place, int(rows.arrived_ms[suspects[0]]))
            if behind is None and place in ended:
                behind = False
        found = judge(
            np.where(rows.decodable, rows.stamps_ms, -1),
            rows.decodable,
            int(partitions.running_ms[place]),
            ClockView(host_ms, int(partitions.running_ms.max()), behind),
            self._max_future_ms,
            appended=self._appended.get(place, False),
            at_end=place in ended or bool(partitions.at_end_ms[place] >= 0),
        )
        count = len(found)
        if count:
            parts.append((rows.only(np.arange(count)), found.times_ms, found.reasons))
            partitions.running_ms[place] = found.times_ms[-1]
        if count < len(rows):
            self._doubtful[place] = rows.only(np.arange(count, len(rows)))
