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

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

LOOK_AHEAD: Final = 1_000
"""Number of following records of the partition that decide whether a jump of time is real."""

FARTHEST: Final = 2**45
"""Milliseconds since the epoch from which on (in the year 3084) timestamps are doubtful (`queue_plain`)."""

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
_NEVER: Final = 2**63 - 1


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
    return _NEVER if view.host_is_behind else max(view.host_ms, newest_ms) + max_future_ms


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
