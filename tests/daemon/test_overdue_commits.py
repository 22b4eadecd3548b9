"""Commits that wait, be it for dead letters or a disk: they do not relax the next ones, and are reported."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

from streamwatch.core.metrics.series import Family, Report
from streamwatch.core.pipeline.checkpoint import RestoreReport
from streamwatch.core.ports import CommitBatch
from streamwatch.core.ports import Record as AnyRecord
from streamwatch.daemon import CommitSpec, RejectedRecords, SourcePositions, State
from streamwatch.daemon.commits import Commits, Durable
from streamwatch.edge.stores.memory import MemoryStore
from tests.cpu_budget import until
from tests.daemon.fake_daemon import (
    FakeDaemon,
    bad,
    fake_daemon,
    poll,
    prediction,
    quiet,
    run_through,
    taken,
)


@dataclass
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class SlowLetters:
    """Takes `seconds` for each flush, and hangs while it may not go on."""

    clock: Clock = field(default_factory=Clock)
    seconds: float = 0.0
    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)
    flushing: bool = False
    is_full: bool = False
    waiting: int = 0

    @property
    def problem(self) -> str | None:
        return "2 dead letters wait for topic dead: NotEnoughReplicas" if self.flushing else None

    def put(self, record: AnyRecord, reason: str) -> None:
        del record, reason
        self.waiting += 1

    async def flush(self) -> None:
        if self.waiting:
            self.flushing = True
            await self.may_go_on.wait()
            self.clock.now += self.seconds
            self.flushing, self.waiting = False, 0

    async def stop(self) -> None:
        self.waiting = 0

    def families(self) -> Sequence[Family]:
        return ()


class StalledStore(MemoryStore):
    """Its writes take as long as the clock is set, its disk as long as the test wants."""

    def __init__(self, clock: Clock, seconds: float = 0.0) -> None:
        super().__init__()
        self.clock = clock
        self.seconds = seconds
        self.may_flush = threading.Event()
        self.may_flush.set()

    @property
    def durable(self) -> bool:
        return True

    def commit(self, changes: CommitBatch) -> None:
        del changes
        self.clock.now += self.seconds

    def flush(self) -> None:
        assert self.may_flush.wait(60.0)


def commits_of(
    h: FakeDaemon,
    clock: Clock,
    store: MemoryStore,
    shown: Callable[[Durable], object] = lambda _: None,
    behind: Callable[[], bool] = lambda: False,
) -> Commits:
    assert h.checkpoint is not None
    state = State(
        store, h.checkpoint, h.processor, SourcePositions(), RestoreReport(), quiet(h.checkpoint.monitors)
    )
    return Commits(state, SourcePositions, CommitSpec(1.0), shown, clock, behind)


def take_long(h: FakeDaemon, clock: Clock, seconds: float) -> None:
    """Let each report take so long."""
    build = h.processor.report_in_slices

    def slow_report() -> Generator[None, None, Report]:
        clock.now += seconds
        return (yield from build())

    h.processor.report_in_slices = slow_report  # type: ignore[method-assign]


async def test_time_spent_on_dead_letters_does_not_relax_the_commits_after_it() -> None:
    letters = SlowLetters(seconds=30.0)
    letters.may_go_on.set()
    clock, shown = letters.clock, list[Durable]()
    h = fake_daemon(rejected=RejectedRecords(letters))
    commits = commits_of(h, clock, MemoryStore(), shown.append)
    await taken(h.processor, poll(prediction(0), bad(1)))
    await commits.settle(soon=True)
    assert len(shown) == 1
    await taken(h.processor, poll(prediction(2)))
    clock.now += 1.0
    await commits.settle(soon=False)
    assert len(shown) == 2, "an interval has passed"


async def test_a_report_that_takes_long_comes_all_the_same_after_a_minute() -> None:
    clock, shown = Clock(), list[Durable]()
    h = fake_daemon()
    commits = commits_of(h, clock, MemoryStore(), shown.append)
    take_long(h, clock, 4.0)  # of which a thirtieth of the time would be two minutes
    for number, (later, is_reported) in enumerate([(0.0, True), (59.0, False), (2.0, True), (58.0, False)]):
        clock.now += later
        await taken(h.processor, poll(prediction(number)))
        await commits.settle(soon=False)
        assert (shown[-1].report is not None) is is_reported, number


async def test_the_end_of_a_backlog_is_reported_within_ten_times_what_a_report_takes_once_a_minute() -> None:
    clock, shown, behind = Clock(), list[Durable](), [True]
    h = fake_daemon()
    commits = commits_of(h, clock, MemoryStore(), shown.append, lambda: behind[0])
    take_long(h, clock, 1.0)
    turns = [
        # seconds later, whether behind, whether there is a report: thirty times a second after the one before
        (0.0, False, True),  # the end of one that is reported at once does not count
        (8.0, True, False),
        (1.0, False, False),  # the end of the backlog, nine seconds after the report
        (2.0, False, True),
        (12.0, True, False),
        (1.0, False, False),  # a second end within a minute
        (18.0, False, True),
        (30.0, True, True),
        (10.0, True, False),
        (1.0, False, True),
    ]
    for number, (later, is_behind, is_reported) in enumerate(turns):
        clock.now += later
        behind[0] = is_behind
        await taken(h.processor, poll(prediction(number)))
        await commits.settle(soon=False)
        assert (shown[-1].report is not None) is is_reported, number


async def test_a_disk_that_stalls_once_relaxes_commits_to_no_more_than_two_intervals() -> None:
    clock = Clock()
    store = StalledStore(clock, seconds=30.0)
    h = fake_daemon()
    shown = list[Durable]()
    commits = commits_of(h, clock, store, shown.append)
    await taken(h.processor, poll(prediction(0)))
    await commits.settle(soon=True)
    await until(lambda: len(shown) == 1)
    store.seconds = 0.0
    await taken(h.processor, poll(prediction(2)))
    clock.now += 2.0
    await commits.settle(soon=False)
    await until(lambda: len(shown) == 2)


async def test_waiting_for_the_flush_before_does_not_count_as_time_of_a_commit() -> None:
    clock = Clock()
    store = StalledStore(clock)
    h = fake_daemon()
    shown = list[Durable]()
    commits = commits_of(h, clock, store, shown.append)
    store.may_flush.clear()
    await taken(h.processor, poll(prediction(0)))
    await commits.settle(soon=True)
    await taken(h.processor, poll(*(prediction(i) for i in range(1, 10_002))))
    waiting = asyncio.create_task(commits.settle(soon=False))
    await asyncio.sleep(0)
    clock.now += 60.0
    store.may_flush.set()
    await waiting
    await until(lambda: len(shown) == 2)
    await taken(h.processor, poll(prediction(10_002)))
    clock.now += 1.0
    await commits.settle(soon=False)
    await until(lambda: len(shown) == 3)


async def test_records_uncommitted_for_three_intervals_are_reported_with_what_they_wait_for() -> None:
    letters = SlowLetters()
    h = fake_daemon(rejected=RejectedRecords(letters))
    commits = commits_of(h, letters.clock, MemoryStore())
    await taken(h.processor, poll(prediction(0), bad(1)))
    commits.evaluated()
    waiting = asyncio.create_task(commits.settle(soon=True))
    await until(lambda: letters.flushing)
    letters.clock.now += 3.0
    assert commits.overdue is None
    letters.clock.now += 1.0
    assert commits.overdue == (
        "evaluated records have not been committed for 4 s: "
        "2 dead letters wait for topic dead: NotEnoughReplicas"
    )
    assert not commits.waits_for_disk
    letters.may_go_on.set()
    await waiting
    assert commits.overdue is None


async def test_a_commit_that_the_disk_does_not_take_is_overdue_until_it_has() -> None:
    clock = Clock()
    store = StalledStore(clock)
    h = fake_daemon()
    shown = list[Durable]()
    commits = commits_of(h, clock, store, shown.append)
    store.may_flush.clear()
    await taken(h.processor, poll(prediction(0)))
    await commits.settle(soon=True)
    clock.now += 5.0
    assert commits.overdue == (
        "evaluated records have not been committed for 5 s: the disk of the state has not taken them"
    )
    h.status.commits, h.status.stage = commits, None
    assert commits.waits_for_disk
    assert h.status.stalled == commits.overdue
    store.may_flush.set()
    await until(lambda: len(shown) == 1)
    assert commits.overdue is None
    assert not commits.waits_for_disk
    assert h.status.stalled is None


def test_a_disk_without_room_and_a_state_that_is_closed_keep_a_daemon_from_evaluating() -> None:
    status = fake_daemon().status
    status.stage = None
    assert status.stalled is None
    status.disk_low = True
    assert status.stalled == "reading waits for room on the disk of the state"
    status.stage = "state is being opened"
    assert status.stalled == "state is being opened"


async def test_a_daemon_whose_dead_letters_hold_its_commits_up_is_not_ready_and_says_why() -> None:
    letters = SlowLetters()
    h = fake_daemon(poll(prediction(0), bad(1)), rejected=RejectedRecords(letters), monotonic=letters.clock)
    running = asyncio.create_task(h.daemon.run())
    await until(lambda: letters.flushing)
    letters.clock.now += 10.0
    assert any("dead letters wait for topic dead" in reason for reason in h.status.unready())
    assert h.live("ready") == 0.0
    letters.may_go_on.set()
    await until(lambda: not h.status.unready())
    h.daemon.stop()
    await running


async def test_a_daemon_is_not_ready_before_the_series_of_its_state_are_shown() -> None:
    h = fake_daemon(poll(prediction(0)))
    seen: list[tuple[bool, int]] = []
    publish = h.server.publish

    def watched(report: object) -> None:
        seen.append((not h.status.unready(), len(h.server.reports)))
        publish(report)  # type: ignore[arg-type]

    h.server.publish = watched  # type: ignore[method-assign]
    poll_of = h.source.poll

    async def polled():
        seen.append((not h.status.unready(), len(h.server.reports)))
        return await poll_of()

    h.source.poll = polled  # type: ignore[method-assign]
    await run_through(h)
    assert any(ready for ready, _ in seen)
    assert all(reports > 0 for ready, reports in seen if ready)
