"""After damage reading goes on at the first offset from which anything can be read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.edge.sources.kafka.batches.frames import Look, ResumePositions, next_readable
from streamwatch.edge.sources.kafka.fetching import Backoff


class Log:
    """Batches of ten records; a broker reaches one from the offset that its index has of it, or any later."""

    def __init__(self, damaged: set[int], batches: int, *, indexed_by_last: bool) -> None:
        self.damaged = damaged
        self.end = batches * 10
        self._shift = 9 if indexed_by_last else 0
        self.asked: list[int] = []

    async def look(self, offset: int) -> Look:
        self.asked.append(offset)
        if offset >= self.end:
            return "end"
        batch = offset // 10
        reached = batch not in self.damaged and (batch - 1 not in self.damaged or offset % 10 >= self._shift)
        return batch * 10 if reached else "unreadable"


@given(st.integers(0, 30), st.integers(1, 5), st.integers(1, 50), st.booleans())
@settings(deadline=None)
async def test_the_first_sound_batch_after_the_damage_is_found_in_few_steps(
    first: int,
    wide: int,
    after: int,
    indexed_by_last: bool,  # noqa: FBT001 - drawn
):
    log = Log(set(range(first, first + wide)), first + wide + after, indexed_by_last=indexed_by_last)
    found = await next_readable(log.look, first * 10, log.end)
    sound = (first + wide) * 10
    assert found is not None
    assert found.position == sound
    assert found.asked == (sound + 9 if indexed_by_last else found.asked)
    assert len(log.asked) < 20


@pytest.mark.parametrize(("to_the_end", "found"), [(True, ResumePositions(30, 30)), (False, None)])
async def test_a_tail_that_cannot_be_read_is_passed_only_where_it_was_seen_to_be_broken(
    to_the_end: bool,  # noqa: FBT001 - a case
    found: ResumePositions | None,
):
    log = Log({1, 2}, 3, indexed_by_last=False)
    assert await next_readable(log.look, 10, log.end, to_the_end=to_the_end) == found


async def test_a_log_whose_end_cannot_be_read_either_is_waited_for():
    async def look(_: int) -> Look:
        return "unreadable"

    assert await next_readable(look, 5, 1 << 40) is None


async def test_damage_that_is_gone_when_it_is_looked_at_again_costs_nothing():
    log = Log(set(), 5, indexed_by_last=False)
    assert await next_readable(log.look, 20, log.end) == ResumePositions(20, 20)
    assert await next_readable(log.look, 29, log.end) == ResumePositions(29, 29)  # the last of its batch


def test_waits_double_up_to_their_maximum_until_there_is_a_success():
    backoff = Backoff(0.25, 2.0, lambda: 1.0)
    assert [backoff.next_seconds() for _ in range(5)] == [0.25, 0.5, 1.0, 2.0, 2.0]
    backoff.reset()
    assert backoff.next_seconds() == 0.25
