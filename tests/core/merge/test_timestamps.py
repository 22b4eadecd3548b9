"""Timestamps that are believed, and those that are not: SEMANTICS, one clock and one order."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from streamwatch.core.merge.partitions import Bounds
from streamwatch.core.merge.queues import HeldRecords
from streamwatch.core.merge.timestamps import (
    LOOK_AHEAD,
    REASONS,
    ClockView,
    Judged,
    judge,
)
from streamwatch.core.records.batch import ROW, words_of
from tests.tiers import by_tier

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
NOW = 1_700_000_000_000
MAX_FUTURE = 5 * MINUTE
HOST = ClockView(NOW, NOW, host_is_behind=False)


def agree_where_plain(
    moving: NDArray[np.int64], readable: NDArray[np.bool_], running_ms: int, found: Judged
) -> None:
    """Where every timestamp is plain, judging many partitions at once says the same as one by one."""
    count, held, alike = len(moving), HeldRecords(), np.zeros(3, np.int64)
    running, odd = np.array([running_ms, running_ms, -1]), np.zeros(3, np.bool_)
    held.reorder(np.empty(0, np.int64), 3)
    indices = np.repeat(np.arange(3), count)
    rows = words_of(np.zeros(3 * count, ROW))
    ids = held.put(rows, np.concatenate((moving,) * 3), np.concatenate((readable,) * 3), indices, 0)
    assert ids.tolist() == list(range(3 * count))
    left = held.queue_plain(ids, running, odd, alike, MAX_FUTURE)
    assert odd[0] == odd[1]
    assert odd[2] or not count, "of a new partition nothing is plain"
    assert left == count * odd.sum()
    assert len(held) == alike.sum() == 3 * count - left
    taken = held.take(Bounds(), (-1, -1), -1, 3 * count)
    for index in np.flatnonzero(~odd).tolist():
        own = taken.indices == index
        assert taken.ids[own].tolist() == list(range(index * count, (index + 1) * count))
        assert taken.times_ms[own].tolist() == found.times_ms.tolist()
        assert taken.reasons[own].tolist() == found.reasons.tolist()
        assert not any(REASONS[code] for code in found.reasons.tolist())


def judged(
    stamps: list[int],
    running_ms: int = NOW,
    view: ClockView = HOST,
    *,
    decodable: list[bool] | None = None,
    appended: bool = False,
    at_end: bool = True,
) -> tuple[list[int], list[str]]:
    readable = np.array(decodable or [True] * len(stamps), np.bool_)
    moving = np.where(readable, np.array(stamps, np.int64), -1)
    found = judge(moving, readable, running_ms, view, MAX_FUTURE, appended=appended, at_end=at_end)
    agree_where_plain(moving, readable, running_ms, found)
    return found.times_ms.tolist(), [REASONS[code] for code in found.reasons.tolist()]


def test_the_time_of_a_record_is_the_running_maximum_of_its_partition() -> None:
    assert judged([NOW + 5, NOW + 3, NOW + 9]) == ([NOW + 5, NOW + 5, NOW + 9], ["", "", ""])


@pytest.mark.parametrize("ahead", [HOUR, DAY, 8_000 * 365 * DAY])
def test_one_record_from_the_future_takes_the_newest_time(ahead: int) -> None:
    times, reasons = judged([NOW + 1, NOW + ahead, NOW + 2])
    assert times == [NOW + 1, NOW + 1, NOW + 2]
    assert reasons == ["", "future", ""]


def test_in_a_backlog_a_jump_that_the_next_records_contradict_is_not_believed() -> None:
    old = NOW - 30 * DAY
    times, reasons = judged([old + 1, old + HOUR, old + 2], old)
    assert times == [old + 1, old + 1, old + 2]
    assert reasons == ["", "jump", ""]


def test_a_weekends_gap_is_believed() -> None:
    old = NOW - 30 * DAY
    stamps = [old, old + 2 * DAY, old + 2 * DAY + 5]
    assert judged(stamps, old) == (stamps, ["", "", ""])


def test_a_jump_waits_for_the_records_that_follow_or_the_end() -> None:
    old = NOW - 30 * DAY
    jump = [old + 1, old + HOUR, old + HOUR + 1]
    assert judged(jump, old, at_end=False) == ([old + 1], [""])
    assert judged(jump, old, at_end=True) == (jump, ["", "", ""])
    followed = [old + 1] + [old + HOUR] * LOOK_AHEAD
    assert len(judged(followed, old, at_end=False)[0]) == 1
    assert len(judged([*followed, old + HOUR], old, at_end=False)[0]) == len(followed) + 1


@pytest.mark.parametrize("stamp", [0, -1, -(2**62)])
def test_no_time_is_the_newest_time(stamp: int) -> None:
    assert judged([stamp, NOW + 1]) == ([NOW, NOW + 1], ["not_positive", ""])


def test_the_brokers_own_timestamps_are_believed() -> None:
    stamps = [NOW + 30 * DAY]
    assert judged(stamps, appended=True) == (stamps, [""])


def test_records_that_cannot_be_decoded_move_no_time() -> None:
    stamps = [NOW + DAY, NOW + 1, NOW + 2 * MINUTE]
    assert judged(stamps, decodable=[False, True, False])[0] == [NOW, NOW + 1, NOW + 1]
    assert judged([NOW], -1, decodable=[False])[0] == [-1]


def test_records_that_cannot_be_decoded_do_not_contradict_a_jump() -> None:
    old = NOW - 30 * DAY
    times, _ = judged([old + HOUR, old + 1, old + HOUR + 1], old, decodable=[True, False, True])
    assert times == [old + HOUR, old + HOUR, old + HOUR + 1]


def test_a_partitions_first_timestamp_is_judged_by_the_clocks_alone() -> None:
    assert judged([NOW - DAY], -1) == ([NOW - DAY], [""])
    assert judged([NOW + HOUR, NOW + 1], -1) == ([NOW + 1, NOW + 1], ["future", ""])
    assert judged([NOW + HOUR], -1) == ([NOW], ["future"]), "nothing else is known"
    assert judged([NOW + HOUR], -1, at_end=False) == ([], [])


def test_what_another_partition_has_reached_is_not_the_future() -> None:
    view = ClockView(NOW, NOW + HOUR, host_is_behind=False)
    assert judged([NOW + HOUR], view=view) == ([NOW + HOUR], [""])


def test_with_the_hosts_clock_behind_timestamps_are_believed_unless_contradicted() -> None:
    view = ClockView(NOW - 30 * DAY, -1, host_is_behind=True)
    assert judged([NOW, NOW + 1], -1, view) == ([NOW, NOW + 1], ["", ""])
    assert judged([NOW + HOUR, NOW + 1], NOW, view)[1] == ["jump", ""]


@pytest.mark.parametrize("stamp", [2**45 + 1, 2**62, 2**63 - 1])
def test_no_producer_is_believed_after_the_year_3084_though_the_hosts_clock_is_behind(stamp: int) -> None:
    """A state with such a time could not be read again."""
    view = ClockView(NOW - 30 * DAY, NOW, host_is_behind=True)
    assert judged([NOW + 1, stamp], NOW, view) == ([NOW + 1, NOW + 1], ["", "future"])
    assert judged([stamp, NOW + 1], -1, view) == ([NOW + 1, NOW + 1], ["future", ""])


def test_what_may_be_the_future_waits_until_the_host_is_known_to_be_right() -> None:
    unknown = ClockView(NOW, NOW, host_is_behind=None)
    assert judged([NOW + 1, NOW + HOUR, NOW + 2], view=unknown) == ([NOW + 1], [""])
    assert judged([NOW + HOUR], -1, unknown) == ([], [])
    assert judged([NOW + 1, NOW + 2], view=unknown) == ([NOW + 1, NOW + 2], ["", ""])


def test_looking_at_records_together_says_the_same_as_at_each(monkeypatch: pytest.MonkeyPatch):
    random = np.random.default_rng(7)
    for _ in range(by_tier(fast=40, default=200, everything=2_000)):
        count = int(random.integers(1, 600))
        stamps = NOW + np.cumsum(random.integers(-50, 100, count))
        for _ in range(int(random.integers(0, 6))):
            first = int(random.integers(0, count))
            stamps[first : first + 3] += int(random.choice([-DAY, -HOUR, HOUR, DAY, 10**12]))
        readable = random.random(count) >= random.choice([0.0, 0.01, 0.3])
        stamps[~readable] = -1
        stamps[random.integers(0, count, 2)] = random.choice([0, -5, NOW])
        running = int(random.choice([-1, NOW, NOW - HOUR, NOW + HOUR]))
        view = ClockView(NOW, int(random.choice([-1, NOW])), (None, True, False)[random.integers(3)])
        found: list[tuple[list[int], list[int]]] = []
        for stretch in (1, 7, 64, 256):
            monkeypatch.setattr("streamwatch.core.merge.timestamps._STRETCH", stretch)
            alike = judge(stamps, readable, running, view, MAX_FUTURE, appended=False, at_end=bool(count % 2))
            found.append((alike.times_ms.tolist(), alike.reasons.tolist()))
        assert found == [found[0]] * 4


def plainly(
    stamps: list[int],
    readable: list[bool],
    running_ms: int,
    view: ClockView,
    *,
    appended: bool,
    at_end: bool,
    look_ahead: int,
    max_future_ms: int,
) -> tuple[list[int], list[str]]:
    """The rule as the module's docstring has it, record by record; stops at one that waits."""
    newest_ms, times, reasons = view.newest_ms, list[int](), list[str]()
    for i, stamp_ms in enumerate(stamps):
        following = [each for each in stamps[i + 1 : i + 1 + look_ahead] if each > 0]
        may_wait = len(stamps[i + 1 : i + 1 + look_ahead]) < look_ahead and not at_end
        latest_ms = float("inf") if view.host_is_behind else max(view.host_ms, newest_ms) + max_future_ms
        reason = ""
        if readable[i] and not appended:
            if stamp_ms <= 0:
                reason = "not_positive"
            elif running_ms < 0 or stamp_ms > running_ms + max_future_ms:
                if stamp_ms > latest_ms:
                    if view.host_is_behind is None:
                        break
                    reason = "future"
                elif running_ms >= 0 and any(abs(p - running_ms) < abs(stamp_ms - p) for p in following):
                    reason = "jump"
                elif running_ms >= 0 and may_wait:
                    break
        if reason and running_ms < 0:
            believed = [each for each in following if each <= latest_ms]
            if not believed and may_wait:
                break
            known_ms = newest_ms if newest_ms >= 0 else view.host_ms
            running_ms = believed[0] if believed else known_ms
        elif readable[i] and not reason:
            running_ms = max(running_ms, stamp_ms)
        newest_ms = max(newest_ms, running_ms)
        times.append(running_ms)
        reasons.append(reason)
    return times, reasons


@pytest.mark.parametrize("appended", [False, True])
def test_any_timestamps_are_judged_as_the_rule_says(
    monkeypatch: pytest.MonkeyPatch, *, appended: bool
) -> None:
    """Times are so few, and so few records are looked at ahead, that all limits are met exactly."""
    random = np.random.default_rng(11)
    for _ in range(by_tier(fast=1_500, default=4_000, everything=40_000)):
        count, look_ahead = int(random.integers(0, 9)), int(random.integers(1, 4))
        monkeypatch.setattr("streamwatch.core.merge.timestamps.LOOK_AHEAD", look_ahead)
        readable = (random.random(count) < 0.85).tolist()
        stamps = np.where(readable, random.integers(1 if appended else -1, 25, count), -1).tolist()
        running_ms, at_end = int(random.integers(-1, 15)), bool(random.integers(2))
        view = ClockView(
            int(random.integers(0, 15)), int(random.integers(-1, 15)), (None, True, False)[random.integers(3)]
        )
        found = judge(
            np.array(stamps, np.int64),
            np.array(readable, np.bool_),
            running_ms,
            view,
            4,
            appended=appended,
            at_end=at_end,
        )
        expected = plainly(
            stamps,
            readable,
            running_ms,
            view,
            appended=appended,
            at_end=at_end,
            look_ahead=look_ahead,
            max_future_ms=4,
        )
        got = found.times_ms.tolist(), [REASONS[code] for code in found.reasons.tolist()]
        assert got == expected, (stamps, running_ms, view, at_end, look_ahead)
