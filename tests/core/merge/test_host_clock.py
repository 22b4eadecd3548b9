"""The host's clock is found behind by most partitions, each by most of its latest records."""

from __future__ import annotations

import numpy as np
import pytest

from streamwatch.core.merge.timestamps import HostClock
from streamwatch.core.records.events import Partition

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
NOW = 1_700_000_000_000
A, B, C = (Partition("t", n) for n in range(3))


class Clock:
    """A clock and the records it is shown, second by second."""

    def __init__(self) -> None:
        self.clock = HostClock(5 * MINUTE)
        self.now_ms = 0

    def look(self, *stamps: tuple[Partition, int, int]) -> None:
        """Show (partition, stamp, how often)."""
        self.now_ms += 1_000
        counts = np.array([count for *_, count in stamps], np.int64)
        stamps_ms = np.repeat(np.array([ms for _, ms, _ in stamps], np.int64), counts)
        decodable = np.ones(len(stamps_ms), np.bool_)
        self.clock.look([name for name, *_ in stamps], stamps_ms, decodable, counts, self.now_ms)

    def is_behind(self, host_ms: int = NOW, *unread: Partition) -> bool:
        self.clock.judge(host_ms, unread)
        return self.clock.is_behind


def test_ten_records_are_needed() -> None:
    shown = Clock()
    shown.look((A, NOW + DAY, 9))
    assert not shown.is_behind()
    shown.look((A, NOW + DAY, 1))
    assert shown.is_behind()


def test_it_is_right_again_once_it_was_put_right_or_most_records_are_of_today() -> None:
    shown = Clock()
    shown.look((A, NOW + DAY, 100))
    assert shown.is_behind()
    assert not shown.is_behind(NOW + DAY)
    assert shown.is_behind()
    shown.look((A, NOW, 60))
    assert shown.is_behind(), "most of the last hundred are from the future"
    shown.look((A, NOW, 60))
    assert not shown.is_behind()


@pytest.mark.parametrize(("future", "expected"), [(51, True), (49, False)])
@pytest.mark.parametrize("polls_between", [0, 7, 63, 64, 65, 200])
def test_the_last_hundred_records_count_however_many_polls_brought_them(
    future: int,
    polls_between: int,
    expected: bool,  # noqa: FBT001 - a parameter
) -> None:
    """B, which is quiet, has few records, and they stay what they were however much A brings."""
    shown = Clock()
    shown.look((B, NOW + DAY, 3))
    for _ in range(polls_between):
        shown.look((A, NOW + DAY * (1 - expected), 1))
    for _ in range(100 - future):
        shown.look((A, NOW, 1))
    for _ in range(future):
        shown.look((A, NOW + DAY, 1))
    assert shown.is_behind(NOW) is expected


def test_a_partition_far_ahead_does_not_win_by_the_number_of_its_records() -> None:
    shown = Clock()
    shown.look((A, NOW, 1), (B, NOW, 1), (C, NOW + DAY, 5_000))
    for _ in range(20):
        shown.look((C, NOW + DAY, 500))
        assert not shown.is_behind()


def test_partitions_yet_to_be_read_may_say_otherwise() -> None:
    shown = Clock()
    shown.look((A, NOW + DAY, 500))
    assert not shown.is_behind(NOW, A, B)
    shown.look((B, NOW + DAY, 1))
    assert shown.is_behind(NOW, A, B)


def test_evidence_counts_from_the_arrival_of_the_record_in_doubt() -> None:
    shown = Clock()
    shown.look((A, NOW, 500), (B, NOW, 500))
    since = shown.now_ms + 1_000
    shown.look((A, NOW + DAY, 1))
    assert shown.clock.behind_since(A, since, NOW, ()) is None
    shown.look((B, NOW + DAY, 8))
    assert shown.clock.behind_since(A, since, NOW, ()) is None
    shown.look((B, NOW + DAY, 1))
    assert shown.clock.behind_since(A, since, NOW, ()) is True
    assert not shown.is_behind(), "of the last hundred of each most are of today"


def test_others_that_are_of_today_tell_that_a_record_is_not() -> None:
    shown = Clock()
    since = shown.now_ms + 1_000
    shown.look((A, NOW + DAY, 1), (B, NOW, 9))
    assert shown.clock.behind_since(A, since, NOW, ()) is False


def test_the_next_record_of_its_partition_may_tell_that_a_record_is_not_of_today() -> None:
    shown = Clock()
    shown.look((A, NOW + DAY, 1))
    assert shown.clock.behind_since(A, 0, NOW, ()) is None
    shown.look((A, NOW - DAY, 1))
    assert shown.clock.behind_since(A, 0, NOW, (B,)) is None, "one says so and one otherwise"
    shown.look((A, NOW - DAY, 1))
    assert shown.clock.behind_since(A, 0, NOW, (B,)) is False


def test_a_backlog_does_not_tell_that_the_clock_is_right_until_it_is_read() -> None:
    shown = Clock()
    shown.look((A, NOW + DAY, 1), (B, NOW - DAY, 500))
    assert shown.clock.behind_since(A, 0, NOW, (B,)) is None
    assert shown.clock.behind_since(A, 0, NOW, ()) is False


def test_what_is_gone_has_no_vote() -> None:
    shown = Clock()
    shown.look((A, NOW + DAY, 50), (B, NOW, 50), (C, NOW, 50))
    shown.clock.keep([A])
    assert shown.is_behind()


def test_without_the_partition_that_voted_the_clock_is_not_doubted() -> None:
    shown = Clock()
    shown.look((A, NOW + DAY, 20))
    assert shown.is_behind()
    shown.clock.keep([B])
    shown.is_behind()
    assert not shown.is_behind()
    assert not shown.clock.may_be_behind(NOW)
