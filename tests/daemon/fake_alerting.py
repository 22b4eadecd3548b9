"""A process that notifies of alarms, made of fakes: receiver, models, batches, a store whose flush waits."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamwatch.core.alerting.book import AlarmBook
from streamwatch.core.alerting.notification import Notification
from streamwatch.core.alerting.outbox import Delivered, DeliveryResult
from streamwatch.core.alerting.pacing import Pacing, PacingSpec
from streamwatch.core.alerting.rules import AlarmRule, AlarmsSpec
from streamwatch.core.buckets.results import DataLoss
from streamwatch.core.estimators.notifying.class_shift import ClassShift, Moved
from streamwatch.core.estimators.notifying.model_facts import Level
from streamwatch.core.merge import MergeProgress
from streamwatch.core.metrics.series import Report
from streamwatch.core.pipeline.checkpoint import RestoreReport
from streamwatch.core.ports import CommitBatch
from streamwatch.core.records.events import Alarm, Partition
from streamwatch.daemon import (
    CommitSpec,
    RejectedRecords,
    SourcePositions,
    State,
)
from streamwatch.daemon.alerting import ALARMS, PACING, Alerting
from streamwatch.daemon.commits import Commits, Durable
from streamwatch.daemon.deliveries import Deliveries, DeliverySpec
from streamwatch.edge.stores.kind import StateFailed
from tests.core.model_store import ModelStore

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
SPEC = AlarmsSpec(otherwise=AlarmRule(cooldown_ms=0), resolve_timeout_ms=2 * HOUR_MS, stale_after_ms=HOUR_MS)


def alarm(model: str = "m", ordinal: int = 1, event_ms: int = NOW_MS) -> Alarm:
    return Alarm(
        model, "page_hinkley", ordinal, 1_000 * ordinal, event_ms, event_ms, 51.0, 50.0, 0.1, 0.4, 900.0
    )


@dataclass
class FakeReceiver:
    """Takes everything; `kinds` is what it was sent."""

    delivered: list[Notification] = field(default_factory=list)
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
        self.delivered.append(notification)
        return Delivered()

    async def remind(self, open_alarms: Sequence[Notification], now_ms: int) -> DeliveryResult:
        del now_ms
        self.reminded += [notification.id for notification in open_alarms]
        return Delivered()

    @property
    def kinds(self) -> list[str]:
        return [notification.kind for notification in self.delivered]


@dataclass
class FakeModels:
    """How models do."""

    found: dict[str, Level] = field(default_factory=dict)

    def first_ms(self, model: str) -> int:
        return len(model)

    def headlines(self, models: Sequence[str]) -> dict[str, int]:
        del models
        return {}

    def accuracy_misleads(self, model: str) -> bool:
        del model
        return False

    def confirmation_expected_ms(self, model: str, at_ms: int) -> None:
        del model, at_ms

    def confirmation(self, model: str, at_ms: int, rise: float) -> None:
        del model, at_ms, rise

    def false_alarms_monthly(self, alarm: Alarm) -> None:
        del alarm

    def delays_moved(self, model: str) -> tuple[()]:
        del model
        return ()

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
    data_loss: DataLoss = field(default_factory=DataLoss)
    records: int = 0
    has_ready: bool = False
    may_commit: bool = True
    maintenance: None = None
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

    def __init__(
        self,
        model_store: ModelStore | None = None,
        *,
        durable: bool = True,
        paced: PacingSpec | None = None,
        closing: bool = False,
    ) -> None:
        self._paced, self._closing = paced, closing
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
        pacing = None
        if self._paced is not None:
            names = [self.receiver.name]
            pacing = Pacing(self._paced, names, "state-1", names if self._closing else ())
            if PACING in saved.sections:
                pacing.restore(saved.sections[PACING])
        self.alerting = Alerting(
            book, self.deliveries, lambda: models, lambda: self.now_ms, saved.outbox, pacing=pacing
        )
        parts: list[Any] = [self.store, FakeCheckpoint(), self.processor]
        self.state = State(*parts, SourcePositions(), RestoreReport(), self.alerting)
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
        """Polls that deliver nothing, until nothing is left to commit or to report."""
        await self.turns(
            lambda: (
                not self.alerting.due(behind=self.behind)
                and bool(self.shown)
                and not self.commits._unreported
            )
        )
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
