"""Whether the host's clock is behind that of the records, told from the records of all partitions.

One record from the future has a wrong clock. So has the host if they all are: after a virtual machine was
resumed, or without NTP. Each partition has a vote, which is that of most of its latest records, so that a
producer whose clock is ahead does not win by writing much.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.events import Partition
from streamwatch.core.merge.queues import lower_medians

EVER: Final = -(2**62)
"""As a time of arrival: before anything arrived."""


@dataclass(frozen=True, slots=True)
class _Look:
    """Records of one partition that arrived together, and the lower median of their timestamps."""

    arrived_ms: int
    records: int
    median_ms: int


class HostClock:
    """Compares timestamps with the host's clock.

    A partition votes for the future if more than half of its last `WINDOW` records or so carry a timestamp
    more than `max_future_ms` beyond the host's clock. The clock is behind if more than half of all partitions
    vote so, and right if not more do than vote otherwise; both only after `FEWEST` records of any partitions.

    Parameters
    ----------
    max_future_ms
        How far ahead of the host's clock a timestamp may be without being asked.
    """

    WINDOW: Final = 100
    FEWEST: Final = 10

    def __init__(self, max_future_ms: int) -> None:
        self._max_future_ms = max_future_ms
        self._looks: dict[Partition, deque[_Look]] = {}
        self._records: dict[Partition, int] = {}  # looked at
        self._arrivals_ms: deque[int] = deque(maxlen=self.FEWEST)  # of the last records, newest last
        self._newest_ms = EVER  # of the medians, or more
        self.is_behind = False

    def look(
        self,
        partitions: Sequence[Partition],
        stamps_ms: NDArray[np.int64],
        decodable: NDArray[np.bool_],
        counts: Sequence[int],
        now_ms: int,
    ) -> None:
        """Take in timestamps of records that arrived at `now_ms`; those that were not decoded do not count.

        Parameters
        ----------
        partitions, counts
            Whose records they are, one behind the other, and how many each has.
        stamps_ms, decodable
            Of each record.
        """
        found = np.empty((len(counts), 2), np.int64)
        lower_medians(stamps_ms, decodable, np.array(counts, np.int64), found)
        for name, (count, median_ms) in zip(partitions, found.tolist(), strict=True):
            if not count:
                continue
            looks = self._looks.setdefault(name, deque())
            looks.append(_Look(now_ms, count, median_ms))
            self._newest_ms = max(self._newest_ms, median_ms)
            self._arrivals_ms.extend([now_ms] * min(count, self.FEWEST))
            records = self._records.get(name, 0) + count
            while len(looks) > 1 and records - looks[0].records >= self.WINDOW:
                records -= looks.popleft().records
            self._records[name] = records

    def keep(self, partitions: Collection[Partition]) -> None:
        """Forget the partitions that are not among these."""
        self._looks = {name: looks for name, looks in self._looks.items() if name in partitions}
        self._records = {name: self._records[name] for name in self._looks}

    def judge(self, host_ms: int, unread: Collection[Partition]) -> None:
        """Bring `is_behind` up to date; `unread` are the partitions not known to be at their end."""
        if self._newest_ms <= host_ms + self._max_future_ms:
            self.is_behind = False
        elif len(self._arrivals_ms) == self.FEWEST:
            found = self._most(self._votes(EVER, host_ms), host_ms, unread)
            self.is_behind = self.is_behind if found is None else found
            self._newest_ms = max(look.median_ms for looks in self._looks.values() for look in looks)

    def behind_since(
        self, own: Partition, since_ms: int, host_ms: int, unread: Collection[Partition]
    ) -> bool | None:
        """Tell whether the clock is behind, or a record is wrong that looks as if it came from the future.

        Parameters
        ----------
        own
            The record's partition: if most of what it delivered since then is not from the future, the record
            is wrong.
        since_ms
            When the record arrived; what came before has no vote.
        host_ms
            Milliseconds since the epoch by the host's clock.
        unread
            Partitions not known to be at their end, whose next records may be from the future too.

        Returns
        -------
        behind
            None while too little has arrived to tell.
        """
        votes = self._votes(since_ms, host_ms)
        if votes.get(own, 0) < 0:
            return False
        if len(self._arrivals_ms) < self.FEWEST or self._arrivals_ms[0] < since_ms:
            return None
        return self._most(votes, host_ms, unread)

    def _votes(self, since_ms: int, host_ms: int) -> dict[Partition, int]:
        """Count, by partition, the records from the future less the others, of those that have a vote."""
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
        """Count partitions; None if neither side has enough of them.

        Old records of a backlog do not tell that the host's clock is right: their partition is asked once it
        was read to its end, or as far as the host's clock.
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
