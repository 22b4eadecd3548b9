"""Judgement of record timestamps; a record's time is the running maximum of those believed in its partition.

Timestamps set by the broker (LogAppendTime) are believed. One set by a producer (CreateTime) is not, and the
record takes its partition's newest time instead, if it is not positive, or if it is more than `max_future_ms`
beyond its partition's newest time and either

- beyond both the host's clock and the newest time believed in any partition, by more than that (`future`), or
- one of the next `LOOK_AHEAD` records of its partition is nearer to the old time than to it (`jump`). Such a
  record waits until these are read or the end of its partition is found.

A partition's first timestamp is judged by the first of these rules alone; if it is not believed, the record
takes the time of the first of the next `LOOK_AHEAD` that may be, or else the newest time anywhere, or the
host's before any. Records that cannot be decoded do not change the time. So a partition without records for a
weekend is distinguished from one with a producer whose clock is wrong.
"""

# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.jit import entry
from streamwatch.core.records.events import Partition

LOOK_AHEAD: Final = 1_000
"""Number of following records of the partition that decide whether a jump of time is real."""

FARTHEST: Final = 2**45
"""Milliseconds since the epoch (in the year 3084) from which on timestamps are doubtful (`queue_plain`), and
beyond which none that a producer set is believed, whatever the host's clock."""

BELIEVED: Final = 0
NOT_POSITIVE: Final = 1
FUTURE: Final = 2
JUMP: Final = 3
TIMELESS: Final = 4
REASONS: Final = ("", "not_positive", "future", "jump", "")
"""Value of the label `reason` of `timestamps_corrected_total`, by code; empty where nothing was corrected, be
it that the timestamp was believed or that the record could not be decoded and has no time of its own."""

_STRETCH: Final = 256
"""Most records that are judged together."""
_WORTH_IT: Final = 32
"""Number of records from which on judging them together is cheaper than one by one."""

_WAITS: Final = -1


@dataclass(frozen=True, slots=True)
class ClockView:
    """Times known outside the partition that is judged, in milliseconds since the epoch."""

    host_ms: int
    newest_ms: int
    """Newest time believed in any partition; -1 before the first."""
    host_is_behind: bool | None
    """Whether the host's clock is behind, as most records seem to be from the future, and is therefore not
    used. None while too few were read to decide: a record that may be from the future waits then."""


@dataclass(frozen=True, slots=True)
class Judged:
    """Times of the first records of a queue, up to the first that has to wait, and why they were corrected.

    Attributes
    ----------
    times_ms
        int64, not decreasing; -1 before the first that could be decoded, if the partition has no time yet.
    reasons
        uint8, indices into `REASONS`.
    """

    times_ms: NDArray[np.int64]
    reasons: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.times_ms)


def judge(
    moving: NDArray[np.int64],
    decodable: NDArray[np.bool_],
    running_ms: int,
    view: ClockView,
    max_future_ms: int,
    *,
    appended: bool,
    at_end: bool,
) -> Judged:
    """Judge the records at the head of one partition's queue, one by one.

    Parameters
    ----------
    moving, decodable
        Timestamps in offset order, -1 where the record could not be decoded; and whether it could be.
    running_ms
        Newest time of the partition before them; -1 if there is none.
    view
        Times known outside the partition.
    max_future_ms
        How far a timestamp may be ahead without being doubted.
    appended
        Whether the broker set the timestamps.
    at_end
        Whether the last of them is the last record of its partition for now.
    """
    if appended:
        times = np.maximum(np.maximum.accumulate(moving), running_ms) if len(moving) else moving
        return Judged(times, np.where(decodable, BELIEVED, TIMELESS).astype(np.uint8))
    return _one_by_one(moving, decodable, running_ms, view, max_future_ms, at_end=at_end)


def _one_by_one(
    moving: NDArray[np.int64],
    decodable: NDArray[np.bool_],
    running_ms: int,
    view: ClockView,
    max_future_ms: int,
    *,
    at_end: bool,
) -> Judged:
    times: list[int] = []
    reasons: list[int] = []
    newest_ms = view.newest_ms
    plain_before = alone_before = 0
    for i, (stamp_ms, counts) in enumerate(zip(moving.tolist(), decodable.tolist(), strict=True)):
        if i < plain_before:
            continue
        if i >= alone_before and counts and 0 < stamp_ms <= running_ms + max_future_ms and running_ms >= 0:
            plain = _plain_times(moving[i:], decodable[i:], running_ms, max_future_ms)
            if len(plain) < _WORTH_IT:  # more others are likely to follow: judge those one by one
                alone_before = i + len(plain) + _STRETCH // 4
            plain_before = i + len(plain)
            running_ms = int(plain[-1])
            newest_ms = max(newest_ms, running_ms)
            times += plain.tolist()
            reasons += [BELIEVED] * len(plain)
            continue
        reason = BELIEVED
        if not counts:
            reason = TIMELESS
        elif stamp_ms <= 0:
            reason = NOT_POSITIVE
        elif stamp_ms > running_ms + max_future_ms or running_ms < 0:
            reason = _judge_jump(moving[i:], running_ms, newest_ms, view, max_future_ms, at_end=at_end)
            if reason == _WAITS:
                break
        if reason == BELIEVED:
            running_ms = max(running_ms, stamp_ms)
        elif reason != TIMELESS and running_ms < 0:  # no time of the partition is known yet
            following = moving[i + 1 : i + 1 + LOOK_AHEAD]
            first_ms = _first_time(following, view, newest_ms, max_future_ms, at_end=at_end)
            if first_ms < 0:
                break
            running_ms = first_ms
        newest_ms = max(newest_ms, running_ms)
        times.append(running_ms)
        reasons.append(reason)
    return Judged(np.array(times, np.int64), np.array(reasons, np.uint8))


def _plain_times(
    moving: NDArray[np.int64], decodable: NDArray[np.bool_], running_ms: int, max_future_ms: int
) -> NDArray[np.int64]:
    """Return the times of the first of these records, up to the first that has to be judged.

    The partition must have a time already: `running_ms` is not negative.
    """
    stamps, counts = moving[:_STRETCH], decodable[:_STRETCH]
    times = np.maximum(np.maximum.accumulate(stamps), running_ms)
    before = np.concatenate(([running_ms], times[:-1]))
    plain = counts & (stamps > 0) & (stamps - before <= max_future_ms)
    return times if plain.all() else times[: int(np.argmin(plain))]


def _judge_jump(
    moving: NDArray[np.int64],
    running_ms: int,
    newest_ms: int,
    view: ClockView,
    max_future_ms: int,
    *,
    at_end: bool,
) -> int:
    """Judge the first of these timestamps, which is far beyond those before it or the first of all."""
    stamp_ms, following = int(moving[0]), moving[1 : 1 + LOOK_AHEAD]
    if stamp_ms > _latest_ms(view, newest_ms, max_future_ms):
        return _WAITS if view.host_is_behind is None else FUTURE
    if running_ms < 0:
        return BELIEVED
    if _contradicted(following, running_ms, stamp_ms):
        return JUMP
    return _WAITS if len(following) < LOOK_AHEAD and not at_end else BELIEVED


def _latest_ms(view: ClockView, newest_ms: int, max_future_ms: int) -> int:
    """Return the last time that is not the future, by the host's clock and the newest time believed."""
    return FARTHEST if view.host_is_behind else min(max(view.host_ms, newest_ms) + max_future_ms, FARTHEST)


def _first_time(
    following_ms: NDArray[np.int64], view: ClockView, newest_ms: int, max_future_ms: int, *, at_end: bool
) -> int:
    """Return a time for a partition's first record, whose own is not believed; -1 if it has to wait."""
    latest_ms = _latest_ms(view, newest_ms, max_future_ms)
    believed = following_ms[(following_ms > 0) & (following_ms <= latest_ms)]
    if len(believed):
        return int(believed[0])
    if len(following_ms) < LOOK_AHEAD and not at_end:
        return -1
    return newest_ms if newest_ms >= 0 else max(0, view.host_ms)


def _contradicted(following_ms: NDArray[np.int64], old_ms: int, new_ms: int) -> bool:
    """Return whether one of the records that follow is nearer to the old time than to the new one."""
    positive = following_ms[following_ms > 0]
    return bool(len(positive)) and int(positive.min()) < (old_ms + new_ms) / 2


@entry
def count_and_median(stamps, counted, counts, chosen, found):
    """Write, for each stretch of timestamps, how many are `counted`, and their lower median, to `found`.

    `counts` has the lengths of the stretches. The median is -1 if none is counted, and `UNSORTED` if they are
    not in order; return the number of the latter stretches. `chosen` is work space as long as `stamps`.
    """
    start = unsorted = 0
    for part in range(counts.shape[0]):
        count = 0
        is_sorted = True
        for i in range(start, start + counts[part]):
            if counted[i]:
                chosen[count] = stamps[i]
                is_sorted = is_sorted and (count == 0 or chosen[count - 1] <= stamps[i])
                count += 1
        start += counts[part]
        found[part, 0] = count
        middle = (count - 1) // 2
        if count == 0:
            found[part, 1] = -1
        else:
            found[part, 1] = chosen[middle] if is_sorted else UNSORTED
            unsorted += not is_sorted
    return unsorted


UNSORTED: Final = -(2**63)
"""Instead of a median: the timestamps must be sorted first."""


def lower_medians(
    stamps_ms: NDArray[np.int64], counted: NDArray[np.bool_], counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return how many timestamps of each stretch are `counted`, and the lower median of these.

    `counts` has the lengths of the stretches.

    Returns
    -------
    int64, shape (stretches, 2); the median is -1 where none is counted.
    """
    found = np.empty((len(counts), 2), np.int64)
    unsorted: int = count_and_median(stamps_ms, counted, counts, np.empty(len(stamps_ms), np.int64), found)
    for part in np.flatnonzero(found[:, 1] == UNSORTED).tolist() if unsorted else ():
        end = int(counts[: part + 1].sum())
        stretch = slice(end - int(counts[part]), end)
        found[part, 1] = np.sort(stamps_ms[stretch][counted[stretch]])[(int(found[part, 0]) - 1) // 2]
    return found


# Detection of a host clock that is behind, by a vote of the partitions on their records' timestamps.
#
# If the timestamp of one record is in the future, its producer's clock is wrong. If all are, the host's clock
# is: after a virtual machine was resumed, or without NTP.
# Each partition has one vote, that of most of its latest records, so that a producer whose clock is ahead
# does not decide by writing much.


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
