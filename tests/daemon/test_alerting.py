"""Alarms are decided with the commit that holds them and told once it is durable; nobody waits for more."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.receiver import Delivered, DeliveryResult
from streamwatch.core.alerting.rules import AlarmRule, AlarmsSpec
from streamwatch.core.commit.batch import CommitBatch
from streamwatch.core.commit.checkpoint import Resumed
from streamwatch.core.estimators.class_shift import ClassShift, Moved
from streamwatch.core.estimators.level import Level
from streamwatch.core.events import Alarm, Partition
from streamwatch.core.merge import MergeProgress
from streamwatch.core.predictions.active_hint import ActiveHint
from streamwatch.core.results import Lost
from streamwatch.core.series import Report
from streamwatch.daemon import (
    CommitSpec,
    ConsumeLoopSpec,
    DaemonStatus,
    RejectedRecords,
    SourcePositions,
    State,
)
from streamwatch.daemon.alerting import ALARMS, Alerting
from streamwatch.daemon.commits import Commits, Durable
from streamwatch.daemon.consume_loop import ConsumeLoop
from streamwatch.daemon.delivery import Deliveries
from streamwatch.daemon.receiver_queue import DeliverySpec
from streamwatch.edge.stores.errors import StateFailed
from streamwatch.telemetry import Telemetry
from tests.core.model_store import ModelStore
from tests.daemon.fake_daemon import FakeSource, until

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
SPEC = AlarmsSpec(otherwise=AlarmRule(cooldown_ms=0), resolve_timeout_ms=2 * HOUR_MS, stale_after_ms=HOUR_MS)


def alarm(model: str = "m", ordinal: int = 1, event_ms: int = NOW_MS) -> Alarm:
    return Alarm(model, "page_hinkley", ordinal, 1_000 * ordinal, event_ms, 51.0, 50.0, 0.1, 0.4, 900.0)


@dataclass
class FakeReceiver:
    """Takes everything; `kinds` is what it was told."""

    told: list[Notification] = field(default_factory=list)
    reminded: list[str] = field(default_factory=list)
    repeat_interval_seconds: float | None = None
    name: str = "people"
    host: str = "people.example"

    def wants(self, notification: Notification) -> bool:
        return bool(notification.id)

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def deliver(self, notification: Notification, now_ms: int) -> DeliveryResult:
        del now_ms
        self.told.append(notification)
        return Delivered()

    async def remind(self, open_alarms: Sequence[Notification], now_ms: int) -> DeliveryResult:
        del now_ms
        self.reminded += [notification.id for notification in open_alarms]
        return Delivered()

    @property
    def kinds(self) -> list[str]:
        return [notification.kind for notification in self.told]


@dataclass
class FakeModels:
    """How models do."""

    found: dict[str, Level] = field(default_factory=dict)

    def first_ms(self, model: str) -> int:
        return len(model)

    def accuracy_misleads(self, model: str) -> bool:
        del model
        return False

    def class_shift(self, model: str, level: float) -> ClassShift | None:
        moved = Moved(model, 0.1, 0.4)
        return ClassShift("classes", 0.135, 0.135, 0.0, 0.02, moved, None) if level < 1 else None

    def segment_change(self, model: str) -> None:
        del model

    def levels(self, models: Sequence[str]) -> Mapping[str, Level]:
        return {model: self.found[model] for model in models if model in self.found}


@dataclass
class FakeBatchProcessor:
    """Hands over the alarms a test puts in."""

    alarms: list[Alarm] = field(default_factory=list)
    retired: list[str] = field(default_factory=list)
    positions: Mapping[Partition, int] = field(default_factory=dict)
    uncommitted: int = 0
    uncommitted_scores: int = 0
    has_report: bool = True
    lost: Lost = field(default_factory=Lost)
    records: int = 0
    has_ready: bool = False
    upkeep: None = None
    progress: MergeProgress = field(default_factory=MergeProgress)
    rejected: RejectedRecords = field(default_factory=RejectedRecords)

    def settle(self) -> tuple[list[Alarm], list[str]]:
        found = self.alarms, self.retired
        self.alarms, self.retired = [], []
        self.uncommitted = self.uncommitted_scores = 0
        return found

    def report_in_slices(self) -> Generator[None, None, Report]:
        yield
        return Report([], NOW_MS, {})


class FakeCheckpoint:
    commits = 0

    def changes(self, sections: Mapping[str, bytes], outbox: Mapping[str, bytes | None]) -> CommitBatch:
        return CommitBatch(sections=sections, outbox=outbox)


@dataclass
class FakeStore:
    """Commits to a model store; a flush waits until it may."""

    model_store: ModelStore
    durable: bool = True
    fails: bool = False
    closed: bool = False
    identity: str = "state-1"
    may_flush: threading.Event = field(default_factory=threading.Event)

    def commit(self, changes: CommitBatch) -> None:
        self.model_store.commit(changes)

    def flush(self) -> None:
        assert self.may_flush.wait(300.0)
        if self.fails:
            raise StateFailed("input/output error")

    def close(self) -> None:
        self.closed = True

    def families(self) -> Sequence[Any]:
        return ()


class FakeDaemon:
    """One process: deliveries, and runs of the state in a model store."""

    def __init__(self, model_store: ModelStore | None = None, *, durable: bool = True) -> None:
        self.model_store = model_store or ModelStore()
        self.receiver = FakeReceiver()
        self.now_ms = NOW_MS
        self.behind = False
        self.shown: list[Durable] = []
        self.deliveries = Deliveries(
            [self.receiver], DeliverySpec(), lambda _: None, lambda: self.now_ms, lambda: 0.0
        )
        self.models = FakeModels()
        self._durable = durable
        self.begin_life()

    def begin_life(self) -> None:
        """State as the model store has it."""
        saved = self.model_store.saved()
        self.store, self.processor = FakeStore(self.model_store, self._durable), FakeBatchProcessor()
        self.store.may_flush.set()
        book = AlarmBook(SPEC, "state-1")
        if ALARMS in saved.sections:
            book.restore(saved.sections[ALARMS])
        models: Any = self.models
        self.alerting = Alerting(book, self.deliveries, models, lambda: self.now_ms, saved.outbox)
        parts: list[Any] = [self.store, FakeCheckpoint(), self.processor]
        self.state = State(*parts, SourcePositions(), Resumed(), self.alerting)
        spec = CommitSpec(interval_seconds=0.0, events=100)
        self.commits = Commits(
            self.state, SourcePositions, spec, self.shown.append, behind=lambda: self.behind
        )

    def find(self, *alarms: Alarm) -> None:
        """What a poll brought."""
        self.processor.alarms += alarms
        self.processor.uncommitted += 1

    async def turns(self, condition: Callable[[], bool]) -> None:
        """Polls that deliver nothing, until something is true."""
        async with asyncio.timeout(300):
            while not condition():
                await self.commits.settle(soon=True)
                await asyncio.sleep(0.001)

    async def rests(self) -> None:
        """Polls that deliver nothing, until nothing is left to commit."""
        await self.turns(lambda: not self.alerting.due(behind=self.behind) and bool(self.shown))
        await self.commits.abandon()


@contextlib.asynccontextmanager
async def telling(fake_daemon: FakeDaemon) -> AsyncIterator[FakeDaemon]:
    """While deliveries run; none is on its way at the beginning."""
    fake_daemon.alerting.begin()
    running = asyncio.create_task(fake_daemon.deliveries.run())
    try:
        yield fake_daemon
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await fake_daemon.commits.abandon(1.0)


async def test_a_notification_is_kept_with_the_alarm_that_made_it_and_told_when_both_are_durable() -> None:
    async with telling(FakeDaemon()) as fake_daemon:
        fake_daemon.store.may_flush.clear()
        fake_daemon.find(alarm())
        await fake_daemon.commits.settle(soon=True)
        (kept,) = fake_daemon.model_store.outbox
        assert kept.encode() in fake_daemon.model_store.sections[ALARMS], "one commit holds both"
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert fake_daemon.receiver.told == []
        assert fake_daemon.shown == []
        fake_daemon.store.may_flush.set()
        await until(lambda: fake_daemon.receiver.kinds == ["firing"])
        assert fake_daemon.receiver.told[0].id == kept
        assert [each.outgoing.notifications[0].id for each in fake_daemon.shown] == [kept]


async def test_an_idle_stream_commits_that_a_notification_was_told_and_then_nothing_more() -> None:
    async with telling(FakeDaemon()) as fake_daemon:
        fake_daemon.find(alarm())
        await fake_daemon.turns(
            lambda: fake_daemon.receiver.kinds == ["firing"] and fake_daemon.model_store.outbox == {}
        )
        await fake_daemon.rests()
        commits = fake_daemon.model_store.commits
        for _ in range(20):
            await fake_daemon.commits.settle(soon=True)
            await asyncio.sleep(0.001)
        assert fake_daemon.model_store.commits == commits


async def test_an_idle_stream_ends_an_alarm_whose_time_is_over() -> None:
    async with telling(FakeDaemon()) as fake_daemon:
        fake_daemon.find(alarm())
        await fake_daemon.rests()
        fake_daemon.now_ms += 2 * HOUR_MS
        await fake_daemon.turns(lambda: fake_daemon.receiver.kinds == ["firing", "resolved"])
        assert fake_daemon.receiver.told[1].parts[0].reason == "accepted_as_new_level"
        await fake_daemon.turns(lambda: fake_daemon.model_store.outbox == {})
        assert fake_daemon.alerting.due(behind=False) is False


async def test_an_alarm_ends_with_its_model_be_it_within_one_commit() -> None:
    async with telling(FakeDaemon()) as fake_daemon:
        fake_daemon.find(alarm())
        fake_daemon.processor.retired.append("m")
        await fake_daemon.turns(lambda: fake_daemon.receiver.kinds == ["firing", "resolved"])
        assert fake_daemon.receiver.told[1].parts[0].reason == "model_retired"


def test_hints_told_by_a_life_with_notify_are_over_in_one_without_and_told_anew_in_the_next_with() -> None:
    active = {"m": ActiveHint(1, NOW_MS, "fraud", more=True, before=0.1, now=0.4)}
    kept, kinds, incidents = b"", list[list[str]](), set[str]()
    for hints in (lambda: active, None, None, lambda: active):
        daemon, book = FakeDaemon(), AlarmBook(SPEC, "state-1")
        if kept:
            book.restore(kept)
        models: Any = daemon.models
        alerting = Alerting(book, daemon.deliveries, models, lambda: NOW_MS, {}, hints)
        decided = alerting.decide([], [], in_backlog=False, behind=False)
        kept = decided.sections[ALARMS]
        kinds.append([each.kind for each in decided.notifications])
        incidents |= {each.incident for each in decided.notifications}
    assert kinds == [["firing"], ["resolved"], [], ["firing"]]
    assert len(incidents) == 2


async def test_state_in_memory_tells_at_once_and_keeps_nothing() -> None:
    async with telling(FakeDaemon(durable=False)) as fake_daemon:
        fake_daemon.find(alarm())
        await fake_daemon.turns(lambda: fake_daemon.receiver.kinds == ["firing"])
        fake_daemon.models.found["m"] = Level(0.1, 0.05, 10.0, 2_000)
        fake_daemon.find()
        await fake_daemon.turns(lambda: fake_daemon.receiver.kinds == ["firing", "resolved"])
        await fake_daemon.rests()
        assert fake_daemon.receiver.told[1].parts[0].reason == "back_to_level"
        assert fake_daemon.model_store.commits == 0


@pytest.mark.parametrize("written", [True, False])
async def test_what_could_not_be_flushed_is_told_by_the_next_life_if_it_is_there(*, written: bool) -> None:
    async with telling(FakeDaemon()) as fake_daemon:
        fake_daemon.store.fails = True
        before = fake_daemon.model_store if written else ModelStore()
        fake_daemon.find(alarm())
        with pytest.raises(StateFailed):
            await fake_daemon.turns(lambda: False)
        assert fake_daemon.receiver.told == []
        fake_daemon.model_store = before
        fake_daemon.begin_life()
        fake_daemon.alerting.begin()
        if not written:
            assert fake_daemon.model_store.saved().outbox == {}
            fake_daemon.find(alarm())  # read again
        await fake_daemon.turns(
            lambda: fake_daemon.receiver.kinds == ["firing"] and fake_daemon.model_store.outbox == {}
        )


async def test_killed_after_the_commit_the_next_life_owes_the_same_id_and_knows_the_alarm_as_open() -> None:
    async with telling(FakeDaemon()) as fake_daemon:
        fake_daemon.store.may_flush.clear()
        fake_daemon.find(alarm())
        await fake_daemon.commits.settle(soon=True)
        (kept,) = fake_daemon.model_store.outbox
        fake_daemon.store.may_flush.set()
    async with telling(FakeDaemon(fake_daemon.model_store)) as again:
        await until(lambda: [notification.id for notification in again.receiver.told] == [kept])
        again.find(alarm(ordinal=2))
        await again.rests()
        assert again.receiver.kinds == ["firing"], "it is open already"


async def test_the_end_of_a_backlog_is_part_of_it_and_what_comes_after_is_not() -> None:
    """The poll that reads the last of a backlog says that it is caught up; so may all of a short one."""
    old_ms = NOW_MS - 3 * HOUR_MS
    async with telling(FakeDaemon()) as fake_daemon:
        fake_daemon.find(alarm("a", event_ms=old_ms), alarm("b", event_ms=old_ms), alarm("now"))
        await fake_daemon.turns(lambda: len(fake_daemon.receiver.told) == 2)
        assert sorted(fake_daemon.receiver.kinds) == ["digest", "firing"]
        (found,) = (told.digest for told in fake_daemon.receiver.told if told.digest is not None)
        assert found.alarms == 2
        await fake_daemon.rests()
        fake_daemon.find(alarm("late", event_ms=old_ms))
        await fake_daemon.turns(lambda: len(fake_daemon.receiver.told) == 3)
        assert fake_daemon.receiver.kinds[2] == "firing"
        fake_daemon.behind = True
        fake_daemon.find(alarm("c", event_ms=old_ms))
        await fake_daemon.turns(lambda: fake_daemon.processor.uncommitted == 0)
        fake_daemon.behind = False
        await fake_daemon.turns(lambda: len(fake_daemon.receiver.told) == 4)
        assert fake_daemon.receiver.kinds[3] == "digest"


async def test_what_is_owed_and_what_is_open_does_not_wait_for_kafka() -> None:
    async with telling(FakeDaemon()) as first:
        first.find(alarm("told"))
        await first.turns(lambda: first.receiver.kinds == ["firing"] and first.model_store.outbox == {})
    first.find(alarm("owed"))
    await first.turns(lambda: first.model_store.outbox != {})
    await first.commits.abandon()
    again = FakeDaemon(first.model_store)
    again.receiver.repeat_interval_seconds = 60.0
    source = FakeSource(hang=asyncio.Event())
    telemetry = Telemetry("error")
    reading = ConsumeLoop(
        source,
        ConsumeLoopSpec(lambda: again.state, CommitSpec()),
        DaemonStatus(source, telemetry),
        telemetry,
        again.shown.append,
    )
    stop = asyncio.Event()
    delivering = asyncio.create_task(again.deliveries.run())
    running = asyncio.create_task(reading.run(stop))
    try:
        (kept,) = first.model_store.outbox
        await until(lambda: [notification.id for notification in again.receiver.told] == [kept])
        await until(lambda: again.receiver.reminded == [first.receiver.told[0].id])
        assert not source.assigned
    finally:
        delivering.cancel()
        running.cancel()
        await asyncio.gather(running, delivering, return_exceptions=True)
    assert again.store.closed
