"""Alarms are decided with the commit that holds them and told once it is durable; nobody waits for more."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from streamwatch.core.alarm_book import AlarmBook
from streamwatch.core.alarm_rules import AlarmRule, AlarmsSpec
from streamwatch.core.checkpoint import Resumed
from streamwatch.core.events import Alarm, Partition
from streamwatch.core.level import Level
from streamwatch.core.notices import Notice
from streamwatch.core.outlets import Answer, Delivered
from streamwatch.core.saving import Changes
from streamwatch.core.series import Report
from streamwatch.daemon import CommitSpec, Places, ReadingSpec, State, Vitals
from streamwatch.daemon.alerting import ALARMS, Alerting
from streamwatch.daemon.commits import Commits, Durable
from streamwatch.daemon.delivery import Deliveries
from streamwatch.daemon.lane import DeliverySpec
from streamwatch.daemon.reading import Reading
from streamwatch.edge.stores.errors import StateFailed
from streamwatch.telemetry import Telemetry
from tests.core.shelf import Shelf
from tests.house import FakeSource, until

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
SPEC = AlarmsSpec(otherwise=AlarmRule(cooldown_ms=0), alarm_ttl_ms=2 * HOUR_MS, max_alarm_age_ms=HOUR_MS)


def alarm(model: str = "m", ordinal: int = 1, at_ms: int = NOW_MS) -> Alarm:
    return Alarm(model, "page_hinkley", ordinal, 1_000 * ordinal, at_ms, 51.0, 50.0, 0.1, 0.4, 900.0)


@dataclass
class FakeOutlet:
    """Takes everything; `kinds` is what it was told."""

    told: list[Notice] = field(default_factory=list)
    reminded: list[str] = field(default_factory=list)
    repeat_seconds: float | None = None
    name: str = "people"
    host: str = "people.example"

    def wants(self, notice: Notice) -> bool:
        return bool(notice.id)

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def deliver(self, notice: Notice, now_ms: int) -> Answer:
        del now_ms
        self.told.append(notice)
        return Delivered()

    async def remind(self, standing: Sequence[Notice], now_ms: int) -> Answer:
        del now_ms
        self.reminded += [notice.id for notice in standing]
        return Delivered()

    @property
    def kinds(self) -> list[str]:
        return [notice.kind for notice in self.told]


@dataclass
class FakeModels:
    """How models do."""

    found: dict[str, Level] = field(default_factory=dict)

    def first_ms(self, model: str) -> int:
        return len(model)

    def levels(self, models: Sequence[str]) -> Mapping[str, Level]:
        return {model: self.found[model] for model in models if model in self.found}


@dataclass
class FakeIntake:
    """Hands over the alarms a test puts in."""

    alarms: list[Alarm] = field(default_factory=list)
    retired: list[str] = field(default_factory=list)
    positions: Mapping[Partition, int] = field(default_factory=dict)
    uncommitted: int = 0
    records: int = 0

    def settle(self) -> tuple[list[Alarm], list[str]]:
        found = self.alarms, self.retired
        self.alarms, self.retired, self.uncommitted = [], [], 0
        return found

    def report_in_slices(self) -> Generator[None, None, Report]:
        yield
        return Report([], NOW_MS, {})


class FakeCheckpoint:
    commits = 0

    def changes(self, sections: Mapping[str, bytes], outbox: Mapping[str, bytes | None]) -> Changes:
        return Changes(sections=sections, outbox=outbox)


@dataclass
class FakeStore:
    """Commits to a shelf; a flush waits until it may."""

    shelf: Shelf
    durable: bool = True
    fails: bool = False
    closed: bool = False
    identity: str = "state-1"
    may_flush: threading.Event = field(default_factory=threading.Event)

    def commit(self, changes: Changes) -> None:
        self.shelf.commit(changes)

    def flush(self) -> None:
        assert self.may_flush.wait(300.0)
        if self.fails:
            raise StateFailed("input/output error")

    def close(self) -> None:
        self.closed = True

    def families(self) -> Sequence[Any]:
        return ()


class House:
    """One process: deliveries, and lives of the state on a shelf."""

    def __init__(self, shelf: Shelf | None = None, *, durable: bool = True) -> None:
        self.shelf = shelf or Shelf()
        self.outlet = FakeOutlet()
        self.now_ms = NOW_MS
        self.behind = False
        self.shown: list[Durable] = []
        self.deliveries = Deliveries(
            [self.outlet], DeliverySpec(), lambda _: None, lambda: self.now_ms, lambda: 0.0
        )
        self.models = FakeModels()
        self._durable = durable
        self.begin_life()

    def begin_life(self) -> None:
        """State as the shelf has it."""
        saved = self.shelf.saved()
        self.store, self.intake = FakeStore(self.shelf, self._durable), FakeIntake()
        self.store.may_flush.set()
        book = AlarmBook(SPEC, "state-1")
        if ALARMS in saved.sections:
            book.restore(saved.sections[ALARMS])
        models: Any = self.models
        self.alerting = Alerting(book, self.deliveries, models, lambda: self.now_ms, saved.outbox)
        parts: list[Any] = [self.store, FakeCheckpoint(), self.intake]
        self.state = State(*parts, Places(), Resumed(), self.alerting)
        spec = CommitSpec(interval_seconds=0.0, events=100)
        self.commits = Commits(self.state, Places, spec, self.shown.append, behind=lambda: self.behind)

    def find(self, *alarms: Alarm) -> None:
        """What a poll brought."""
        self.intake.alarms += alarms
        self.intake.uncommitted += 1

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
async def telling(house: House) -> AsyncIterator[House]:
    """While deliveries run; none is on its way at the beginning."""
    house.alerting.begin()
    running = asyncio.create_task(house.deliveries.run())
    try:
        yield house
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await house.commits.abandon(1.0)


async def test_a_notice_is_kept_with_the_alarm_that_made_it_and_told_when_both_are_durable() -> None:
    async with telling(House()) as house:
        house.store.may_flush.clear()
        house.find(alarm())
        await house.commits.settle(soon=True)
        (kept,) = house.shelf.outbox
        assert kept.encode() in house.shelf.sections[ALARMS], "one commit holds both"
        for _ in range(20):
            await asyncio.sleep(0.001)
        assert house.outlet.told == []
        assert house.shown == []
        house.store.may_flush.set()
        await until(lambda: house.outlet.kinds == ["firing"])
        assert house.outlet.told[0].id == kept
        assert [each.outgoing.notices[0].id for each in house.shown] == [kept]


async def test_an_idle_stream_commits_that_a_notice_was_told_and_then_nothing_more() -> None:
    async with telling(House()) as house:
        house.find(alarm())
        await house.turns(lambda: house.outlet.kinds == ["firing"] and house.shelf.outbox == {})
        await house.rests()
        commits = house.shelf.commits
        for _ in range(20):
            await house.commits.settle(soon=True)
            await asyncio.sleep(0.001)
        assert house.shelf.commits == commits


async def test_an_idle_stream_ends_an_alarm_whose_time_is_over() -> None:
    async with telling(House()) as house:
        house.find(alarm())
        await house.rests()
        house.now_ms += 2 * HOUR_MS
        await house.turns(lambda: house.outlet.kinds == ["firing", "resolved"])
        assert house.outlet.told[1].reason == "accepted_as_new_level"
        await house.turns(lambda: house.shelf.outbox == {})
        assert house.alerting.due(behind=False) is False


async def test_an_alarm_ends_with_its_model_be_it_within_one_commit() -> None:
    async with telling(House()) as house:
        house.find(alarm())
        house.intake.retired.append("m")
        await house.turns(lambda: house.outlet.kinds == ["firing", "resolved"])
        assert house.outlet.told[1].reason == "model_retired"


async def test_state_in_memory_tells_at_once_and_keeps_nothing() -> None:
    async with telling(House(durable=False)) as house:
        house.find(alarm())
        await house.turns(lambda: house.outlet.kinds == ["firing"])
        house.models.found["m"] = Level(0.1, 0.05, 10.0, 2_000)
        house.find()
        await house.turns(lambda: house.outlet.kinds == ["firing", "resolved"])
        await house.rests()
        assert house.outlet.told[1].reason == "back_to_level"
        assert house.shelf.commits == 0


@pytest.mark.parametrize("written", [True, False])
async def test_what_could_not_be_flushed_is_told_by_the_next_life_if_it_is_there(*, written: bool) -> None:
    async with telling(House()) as house:
        house.store.fails = True
        before = house.shelf if written else Shelf()
        house.find(alarm())
        with pytest.raises(StateFailed):
            await house.turns(lambda: False)
        assert house.outlet.told == []
        house.shelf = before
        house.begin_life()
        house.alerting.begin()
        if not written:
            assert house.shelf.saved().outbox == {}
            house.find(alarm())  # read again
        await house.turns(lambda: house.outlet.kinds == ["firing"] and house.shelf.outbox == {})


async def test_killed_after_the_commit_the_next_life_owes_the_same_id_and_knows_the_alarm_as_open() -> None:
    async with telling(House()) as house:
        house.store.may_flush.clear()
        house.find(alarm())
        await house.commits.settle(soon=True)
        (kept,) = house.shelf.outbox
        house.store.may_flush.set()
    async with telling(House(house.shelf)) as again:
        await until(lambda: [notice.id for notice in again.outlet.told] == [kept])
        again.find(alarm(ordinal=2))
        await again.rests()
        assert again.outlet.kinds == ["firing"], "it is open already"


async def test_the_end_of_a_backlog_is_part_of_it_and_what_comes_after_is_not() -> None:
    """The poll that reads the last of a backlog says that it is caught up; so may all of a short one."""
    old_ms = NOW_MS - 3 * HOUR_MS
    async with telling(House()) as house:
        house.find(alarm("a", at_ms=old_ms), alarm("b", at_ms=old_ms), alarm("now"))
        await house.turns(lambda: len(house.outlet.told) == 2)
        assert sorted(house.outlet.kinds) == ["digest", "firing"]
        assert next(notice.alarms for notice in house.outlet.told if notice.kind == "digest") == 2
        await house.rests()
        house.find(alarm("late", at_ms=old_ms))
        await house.turns(lambda: len(house.outlet.told) == 3)
        assert house.outlet.kinds[2] == "firing"
        house.behind = True
        house.find(alarm("c", at_ms=old_ms))
        await house.turns(lambda: house.intake.uncommitted == 0)
        house.behind = False
        await house.turns(lambda: len(house.outlet.told) == 4)
        assert house.outlet.kinds[3] == "digest"


async def test_what_is_owed_and_what_is_open_does_not_wait_for_kafka() -> None:
    async with telling(House()) as first:
        first.find(alarm("told"))
        await first.turns(lambda: first.outlet.kinds == ["firing"] and first.shelf.outbox == {})
    first.find(alarm("owed"))
    await first.turns(lambda: first.shelf.outbox != {})
    await first.commits.abandon()
    again = House(first.shelf)
    again.outlet.repeat_seconds = 60.0
    source = FakeSource(hang=asyncio.Event())
    telemetry = Telemetry("error")
    reading = Reading(
        source,
        ReadingSpec(lambda: again.state, CommitSpec()),
        Vitals(source, telemetry),
        telemetry,
        again.shown.append,
    )
    stop = asyncio.Event()
    delivering = asyncio.create_task(again.deliveries.run())
    running = asyncio.create_task(reading.run(stop))
    try:
        (kept,) = first.shelf.outbox
        await until(lambda: [notice.id for notice in again.outlet.told] == [kept])
        await until(lambda: again.outlet.reminded == [first.outlet.told[0].id])
        assert not source.assigned
    finally:
        delivering.cancel()
        running.cancel()
        await asyncio.gather(running, delivering, return_exceptions=True)
    assert again.store.closed
