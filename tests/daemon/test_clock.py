"""A host's clock that is set back and forth."""

from __future__ import annotations

from streamwatch.daemon.status import SteadyClock


def test_a_clock_that_is_set_back_goes_on_by_itself_and_follows_when_set_forward() -> None:
    wall, monotonic = [1_000_000], [5.0]
    clock = SteadyClock(lambda: wall[0], lambda: monotonic[0])
    assert clock() == 1_000_000
    wall[0], monotonic[0] = 400, 7.5
    assert clock() == 1_002_500
    wall[0] = 2_000_000
    assert clock() == 2_000_000
    clock.not_before(3_000_000)
    assert clock() == 3_000_000


def test_a_clock_that_was_ahead_and_was_set_right_is_believed_after_an_hour() -> None:
    year_ms = 365 * 86_400_000
    wall, monotonic = [1_000_000 + year_ms], [0.0]
    clock = SteadyClock(lambda: wall[0], lambda: monotonic[0])
    for seconds in range(0, 3_601, 60):
        monotonic[0], wall[0] = float(seconds), 1_000_000 + 1_000 * seconds
        expected = wall[0] + (year_ms if seconds < 3_600 else 0)
        assert clock() == expected


def test_a_clock_that_is_set_back_for_less_than_an_hour_was_never_believed() -> None:
    wall, monotonic = [10_000_000], [0.0]
    clock = SteadyClock(lambda: wall[0], lambda: monotonic[0])
    for minute in range(1, 200):
        monotonic[0], right_ms = 60.0 * minute, 10_000_000 + 60_000 * minute
        wall[0] = right_ms if minute % 50 == 0 else right_ms - 9_000_000
        assert clock() == right_ms
