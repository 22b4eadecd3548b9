"""Detection of a host clock that is behind, by a vote of the partitions on their records' timestamps.

If the timestamp of one record is in the future, its producer's clock is wrong. If all are, the host's clock
is: after a virtual machine was resumed, or without NTP.
Each partition has one vote, that of most of its latest records, so that a producer whose clock is ahead does
not decide by writing much.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.merge.queues import lower_medians
from streamwatch.core.records.events import Partition

EVER: Final = -(2**62)
"""Time before the arrival of any record."""


class _Look(NamedTuple):
    """Records of one partition that arrived together, and the lower median of their timestamps."""

    arrived_ms: int
    records: int
    median_ms: int


class HostClock:
    """Judges whether the host's clock is behind, by comparing record timestamps with it.

    A partition votes for the future if more than half of its last `WINDOW` records or so carry a timestamp
    more than `max_future_ms` beyond the host's clock. The clock is behind if more than half of all partitions
    vote so, and right if no more vote so than otherwise; neither is decided before `FEWEST` records arrived.

    Parameters
    ----------
    max_future_ms
        How far ahead of the host's clock a timestamp may be without being doubted.
    """

    WINDOW: Final = 100
    FEWEST: Final = 10

    def __init__(self, max_future_ms: int) -> None:
        self._max_future_ms = max_future_ms
        self._looks: dict[Partition, deque[_Look]] = {}
        self._records: dict[Partition, int] = {}  # in `_looks`
        self._arrivals_ms: deque[int] = deque(maxlen=self.FEWEST)  # of the last records, newest last
        self._newest_ms = EVER  # upper bound of the medians
        self.is_behind = False

    def look(
        self,
        partitions: Sequence[Partition],
        stamps_ms: NDArray[np.int64],
        decodable: NDArray[np.bool_],
        counts: NDArray[np.int64],
        now_ms: int,
    ) -> None:
        """Note the timestamps of records that arrived at `now_ms`; those that were not decoded do not count.

        Parameters
        ----------
        partitions, counts
            Partitions of the records, in their order, and how many records of each there are.
        stamps_ms, decodable
            Timestamp of each record, and whether it could be decoded.
        """
        found = lower_medians(stamps_ms, decodable, counts)
        self._newest_ms = max(self._newest_ms, int(found[:, 1].max()))
        self._arrivals_ms.extend([now_ms] * min(int(found[:, 0].sum()), self.FEWEST))
        for name, (count, median_ms) in zip(partitions, found.tolist(), strict=True):
            if not count:
                continue
            looks = self._looks.setdefault(name, deque())
            looks.append(_Look(now_ms, count, median_ms))
            records = self._records.get(name, 0) + count
            while records - looks[0].records >= self.WINDOW:  # keep the fewest latest ones that have as many
                records -= looks.popleft().records
            self._records[name] = records

    def keep(self, partitions: Collection[Partition]) -> None:
        """Drop the votes of all partitions but these."""
        for name in self._looks.keys() - set(partitions):
            del self._looks[name], self._records[name]

    def may_be_behind(self, host_ms: int) -> bool:
        """Return whether a timestamp may be in the future, so that votes have to be counted."""
        return self._newest_ms > host_ms + self._max_future_ms

    def judge(self, host_ms: int, unread: Collection[Partition]) -> None:
        """Update `is_behind`; `unread` are the partitions not known to be at their end."""
        if not self.may_be_behind(host_ms):
            self.is_behind = False
        elif len(self._arrivals_ms) == self.FEWEST:
            found = self._most(self._votes(EVER, host_ms), host_ms, unread)
            self.is_behind = self.is_behind if found is None else found
            medians_ms = (look.median_ms for looks in self._looks.values() for look in looks)
            self._newest_ms = max(medians_ms, default=EVER)

    def behind_since(
        self, own: Partition, since_ms: int, host_ms: int, unread: Collection[Partition]
    ) -> bool | None:
        """Return whether the host's clock is wrong, rather than a record that seems to be from the future.

        Parameters
        ----------
        own
            The record's partition: if most of what it delivered since then is not from the future, the record
            is wrong.
        since_ms
            Arrival time of the record; records that arrived before have no vote.
        host_ms
            Milliseconds since the epoch by the host's clock.
        unread
            Partitions not known to be at their end, whose next records may be from the future too.

        Returns
        -------
        behind
            None while too little has arrived to decide.
        """
        votes = self._votes(since_ms, host_ms)
        if votes.get(own, 0) < 0:
            return False
        if len(self._arrivals_ms) < self.FEWEST or self._arrivals_ms[0] < since_ms:
            return None
        return self._most(votes, host_ms, unread)

    def _votes(self, since_ms: int, host_ms: int) -> dict[Partition, int]:
        """Return, by partition that has a vote, the number of records from the future less the others."""
        latest_ms = host_ms + self._max_future_ms
        votes: dict[Partition, int] = {}
        for name, looks in self._looks.items():
            for look in looks:
                if look.arrived_ms >= since_ms:
                    sign = 1 if look.median_ms > latest_ms else -1
                    votes[name] = votes.get(name, 0) + sign * look.records
        return votes

    def _most(
        self, votes: Mapping[Partition, int], host_ms: int, unread: Collection[Partition]
    ) -> bool | None:
        """Return what most partitions vote for; None if neither side has enough of them.

        Old records of a backlog do not show that the host's clock is right: their partition counts once it
        was read to its end, or up to the time of the host's clock.
        """
        future = sum(vote > 0 for vote in votes.values())
        present = sum(
            vote <= 0
            and (name not in unread or self._looks[name][-1].median_ms >= host_ms - self._max_future_ms)
            for name, vote in votes.items()
        )
        if present >= future and present:
            return False
        return True if 2 * future > len(self._looks.keys() | set(unread)) else None
