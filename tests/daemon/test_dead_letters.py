"""Invalid records go to the dead-letter topic in their turn, before the commit that is past them."""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.core.merge import MergeSpec
from streamwatch.core.metrics.series import Family
from streamwatch.core.ports import Record as AnyRecord
from streamwatch.daemon import RejectedRecords
from tests.daemon.fake_daemon import (
    AT_ONCE,
    FakeDaemon,
    Poll,
    bad,
    fake_daemon,
    label,
    poll,
    prediction,
    run_through,
    taken,
)


class FakeLetters:
    """Remembers what was put, and what of it was written."""

    def __init__(self, most: int = 1_000) -> None:
        self._most = most
        self.waiting: list[tuple[int, str]] = []
        self.written: list[tuple[int, str]] = []
        self.flushes = 0
        self.stopped = False

    @property
    def is_full(self) -> bool:
        return len(self.waiting) >= self._most

    @property
    def problem(self) -> str | None:
        return None

    def put(self, record: AnyRecord, reason: str) -> None:
        assert len(self.waiting) < self._most
        self.waiting.append((record.offset, reason))

    async def flush(self) -> None:
        self.flushes += 1
        self.written += self.waiting
        self.waiting = []

    async def stop(self) -> None:
        self.stopped = True

    def families(self) -> Sequence[Family]:
        return ()


def with_letters(letters: FakeLetters, *polls: Poll, merge: MergeSpec = AT_ONCE) -> FakeDaemon:
    return fake_daemon(*polls, merge=merge, rejected=RejectedRecords(letters))


async def test_what_is_held_is_not_written_before_its_turn() -> None:
    letters = FakeLetters()
    h = with_letters(letters, merge=MergeSpec(settle_ms=1_000))
    await taken(h.processor, poll(prediction(0), bad(1), prediction(2)))
    assert letters.waiting == [], "its settle time is not over"


async def test_every_invalid_record_is_written_once_with_its_reason() -> None:
    letters = FakeLetters()
    h = with_letters(letters, poll(prediction(0), bad(1)), poll(label(0), bad(2), prediction(3)))
    await run_through(h)
    assert letters.written == [(1, "invalid_json"), (2, "invalid_json")]
    assert letters.waiting == []


async def test_letters_are_written_before_the_commit_that_is_past_them() -> None:
    letters = FakeLetters()
    h = with_letters(letters, poll(*(bad(i) for i in range(10))))
    counts: list[int] = []
    h.source.durable = lambda _positions: counts.append(len(letters.written))  # type: ignore[method-assign]
    await run_through(h)
    assert h.reported("records_invalid_total") == 10
    assert {count for count in counts if count} == {10}


async def test_very_many_are_written_in_between() -> None:
    letters = FakeLetters(most=500)
    h = with_letters(letters, poll(*(bad(i) for i in range(2_500))))
    await run_through(h)
    assert len(letters.written) == 2_500
    assert letters.flushes > 4


async def test_without_a_topic_for_them_nothing_is_kept() -> None:
    rejected = RejectedRecords()
    h = fake_daemon(rejected=rejected)
    await taken(h.processor, poll(bad(0)))
    assert not rejected.__getattribute__("_records")
