"""Replicas that write in turn: each outcome and event once, each notification delivered."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import numpy as np
import pytest

from streamwatch.core.alerting.notification import IncidentAlarm, Notification
from streamwatch.core.metrics.series import Family
from streamwatch.core.ports import Record
from streamwatch.core.publishing.candidacy import Candidacy, Decisions, SessionSpec, from_parts
from streamwatch.core.publishing.kept import Digests
from streamwatch.core.publishing.publication_log import PublicationLog
from streamwatch.core.publishing.publications import Ledger, Publication
from streamwatch.core.records.batch import batch_of
from streamwatch.core.records.events import Alarm
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch
from streamwatch.daemon import standby as module
from streamwatch.daemon.alerting import AlertDecisions, Alerting
from streamwatch.daemon.publisher import Publisher
from streamwatch.daemon.standby import LogProgress, SharedPublishing, StandbyPublisher
from streamwatch.telemetry import InternalEvent, StandbyDiverged, StandbyTookOver
from tests.cpu_budget import until
from tests.daemon.fake_transactions import Broker, FakeTransactions
from tests.edge.decoders.records import FakeRecord
from tests.tiers import examples

SESSION = SessionSpec(6.0, 1.0, 1.0)
ALARM_EVERY = 7
"""One outcome in so many raises an alarm."""
INVALID_EVERY = 5
"""After one outcome in so many there are invalid records, two of one millisecond."""


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", (0.0,))
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.0)


@dataclass
class SharedBroker(Broker):
    """Topics, and the decisions beside the ledger."""

    parts: list[bytes] = field(default_factory=list)
    letters: list[tuple[int, int]] = field(default_factory=list)
    """Offset of each invalid record in its topic, and number of the replica that wrote it."""


@dataclass
class LetterTopic:
    """Implements `DeadLetters`."""

    written: list[tuple[int, int]]
    number: int
    is_full: bool = False
    problem: str | None = None
    waiting: list[int] = field(default_factory=list)

    def put(self, record: Record, reason: str) -> None:
        assert (record.value, reason) == (b"{broken %d" % record.offset, "invalid_json")
        self.waiting.append(record.offset)

    async def flush(self) -> None:
        await asyncio.sleep(0)
        self.written += [(each, self.number) for each in self.waiting]
        self.waiting.clear()

    async def stop(self) -> None:
        self.waiting.clear()

    def families(self) -> Sequence[Family]:
        return ()


class FakeShared(FakeTransactions):
    """Implements `SharedTransactions`."""

    def __init__(self, broker: SharedBroker) -> None:
        super().__init__(broker)
        self._shared = broker
        self._seen: tuple[Ledger | None, list[bytes]] = (None, [])

    async def prepare(self) -> None:
        self._require_reachable()

    async def open(self) -> Ledger | None:
        await super().open()
        return self._look()

    async def read(self) -> Ledger | None:
        await super().read()
        return self._look()

    def _look(self) -> Ledger | None:
        self._seen = self._shared.ledger, self._shared.parts
        return self._shared.ledger

    async def write(
        self, publications: Sequence[Publication], ledger: Ledger, parts: Sequence[bytes] = ()
    ) -> None:
        before = self._shared.transactions
        try:
            await super().write(publications, ledger)
        finally:
            if parts and self._shared.transactions > before:
                self._shared.parts = list(parts)

    async def follow(self, _seconds: float) -> Ledger | None:
        return await self.read()

    def decisions(self) -> Decisions | None:
        ledger, parts = self._seen
        return None if ledger is None or not ledger.decisions else from_parts(parts)

    async def leave(self) -> None:
        await self.close()


class FakeElection:
    """A member that learns of elections from the test alone."""

    problem: str | None = None

    async def run(self) -> None:
        await asyncio.Event().wait()


class FakeAlerting(Alerting):
    """Announces each alarm, and delivers at once what it may; remembers by ids alone."""

    def __init__(self, delivered: list[str], speaks: Callable[[], bool]) -> None:
        self._delivered = delivered
        self._speaks = speaks
        self._entries: dict[str, bytes] = {}
        self._announced: list[str] = []
        self._outgoing: list[str] = []
        self.is_silent = True
        self.broken_off = 0

    def take_over(self, decisions: Decisions) -> None:
        self._announced = json.loads(decisions.alarms)
        self._entries = dict(decisions.outbox)
        self._outgoing, self.is_silent = list(self._entries), False

    def take_broken_off(self) -> int:
        count, self.broken_off = self.broken_off, 0
        return count

    def silence(self) -> None:
        self._outgoing, self.is_silent = [], True

    def follow(self, decisions: Decisions) -> None:
        self._announced = json.loads(decisions.alarms)

    def shown(self) -> AlertDecisions:
        return AlertDecisions()

    def decide(
        self,
        alarms: Sequence[Alarm],
        retired: Sequence[str],  # noqa: ARG002 - as `Alerting`
        **_: bool,
    ) -> AlertDecisions:
        assert not self.is_silent
        notifications: list[Notification] = []
        for alarm in alarms:
            name = f"{alarm.model}-{alarm.ordinal}"
            assert name not in self._announced
            self._announced.append(name)
            self._entries[name] = b""
            part = IncidentAlarm(alarm, "warning", alarm.event_ms, alarm.resolved_ms, 0.0, alarm.event_ms)
            notifications.append(Notification(name, "firing", "warning", 0, name, (part,)))
        return AlertDecisions(notifications=notifications, announced=notifications)

    def decided(self, event: int, retired: int, verdicts: list[tuple[str, str, int]]) -> Decisions:
        announced = json.dumps(self._announced).encode()
        return Decisions(event, retired, announced, b"", dict(self._entries), verdicts)

    def deliver(self, outgoing: AlertDecisions) -> None:
        self._outgoing += [each.id for each in outgoing.notifications]

    def send(self) -> None:
        while self._outgoing and self._speaks():
            name = self._outgoing.pop(0)
            self._delivered.append(name)
            self._entries.pop(name, None)


class Replica:
    """One replica: what its state keeps through kills, and its process."""

    def __init__(self, broker: SharedBroker, chance: random.Random, deployment: str = "fraud") -> None:
        self._broker = broker
        self._chance = chance
        self._deployment = deployment
        self.delivered: list[str] = []
        self.events: list[InternalEvent] = []
        self._section: bytes | None = None
        self._kept: dict[int, bytes] = {}
        self._commits = self._evaluated = self._durable = 0
        self.now = 0.0
        self.number = 0

    @property
    def commits(self) -> int:
        return self._commits

    @property
    def kept(self) -> Mapping[int, bytes]:
        return dict(self._kept)

    def copy(self) -> Replica:
        """Another one with a copy of the state."""
        made = Replica(self._broker, self._chance, self._deployment)
        made._section, made._kept, made._commits = self._section, dict(self._kept), self._commits
        made._durable = self._durable
        return made

    def begin(self) -> None:
        """Begin a process on what the state has."""
        self.candidacy = Candidacy(SESSION)
        self.candidacy.join()
        self.publisher = StandbyPublisher(
            FakeShared(self._broker),
            "topics",
            self.events.append,
            self.candidacy,
            lambda _: FakeElection(),
            lambda: self.now,
            deployment="fraud",
            dead_letters=LetterTopic(self._broker.letters, self.number),
        )
        self.publisher.caught_up = lambda: True
        self.alerting = FakeAlerting(self.delivered, self.publisher.speaks)
        self.log = PublicationLog(
            "state",
            self._commits,
            outcomes=True,
            events=True,
            ids_at_hand=False,
            comparisons=list,
            section=self._section,
            deployment=self._deployment,
        )
        self.keeper = self.log.keep_invalid(lambda: clock_ms(self._evaluated))
        self.state = SharedPublishing(self.log, self.publisher, self.alerting, dict(self._kept))
        self.state.begin()
        self._evaluated = self._durable
        self.task = asyncio.create_task(self.publisher.run())

    async def kill(self) -> None:
        self.task.cancel()
        with suppress(asyncio.CancelledError):
            await self.task

    def commit(self, until: int, seed: int = 0) -> None:
        """Evaluate the log up to a record, and commit; `seed` makes another log."""
        alarms: list[Alarm] = []
        while self._evaluated < until:
            records = np.zeros(min(until - self._evaluated, self._chance.randrange(1, 9)), OUTCOME)
            first = self._evaluated + 1
            numbers = np.arange(first, first + len(records))
            records["event_ms"] = numbers + seed
            self.log.take(OutcomeBatch(records, ["m"], ["a"]), batch_of([], np.zeros(0, np.int64)))
            self._evaluated += len(records)
            for number in numbers[numbers % INVALID_EVERY == 0].tolist():
                for offset in (2 * number, 2 * number + 1):
                    self.keeper.keep(invalid_record(offset), "invalid_json", clock_ms(number))
            found = numbers[numbers % ALARM_EVERY == 0].tolist()
            alarms += [Alarm("m", "adwin", n // ALARM_EVERY, n, n, n, 1.0, 1.0, 0.0, 1.0, 1.0) for n in found]
        outgoing = self.state.decide(alarms, [], in_backlog=False, behind=False)
        self._commits += 1
        closed = self.state.close(self._commits, outgoing)
        for commit, value in closed.values.items():
            if value is None:
                self._kept.pop(commit, None)
            else:
                self._kept[commit] = value
        self._section = closed.sections["publishing"]
        self._durable = self._evaluated
        self.state.durable(closed, lambda: self.alerting.deliver(outgoing))

    def win(self) -> None:
        self.candidacy.win(self.now)
        self.publisher._queue.wake()

    def lose(self) -> None:
        self.candidacy.lose()
        self.publisher._queue.wake()


def clock_ms(number: int) -> int:
    """The clock at an outcome; several in a row have the same."""
    return 1_000 + number // 12


def invalid_record(offset: int) -> FakeRecord:
    return FakeRecord(b"{broken %d" % offset, offset=offset)


def invalid_offsets(reached: int) -> list[int]:
    """Offsets of the invalid records among so many outcomes."""
    numbers = range(INVALID_EVERY, reached + 1, INVALID_EVERY)
    return [offset for number in numbers for offset in (2 * number, 2 * number + 1)]


@asynccontextmanager
async def replicas(broker: SharedBroker, seed: int = 0, number: int = 2) -> AsyncIterator[list[Replica]]:
    made = [Replica(broker, random.Random(seed + n)) for n in range(number)]
    for index, each in enumerate(made):
        each.number = index
        each.begin()
    try:
        yield made
    finally:
        for each in made:
            await each.kill()


async def turns(number: int = 40) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def numbers(broker: Broker) -> list[int]:
    return [json.loads(value)["number"] for _, value in broker.outcomes]


def events(broker: Broker, kind: str) -> list[Mapping[str, object]]:
    return [each for value in broker.events if (each := json.loads(value))["type"] == kind]


async def test_the_next_holder_writes_what_is_missing_and_delivers_what_was_not_delivered() -> None:
    broker = SharedBroker()
    async with replicas(broker) as (first, second):
        first.win()
        await until(first.publisher.speaks)
        first.commit(10)
        second.commit(25)
        await until(lambda: len(broker.outcomes) == 10)
        await turns()
        assert first.delivered == []
        assert second.publisher.role == "standby"
        await first.kill()  # decided and written that alarm 1 is announced, and not delivered
        second.win()
        await until(lambda: len(broker.outcomes) == 25)
        second.commit(30)
        await until(lambda: len(broker.outcomes) == 30)
        second.alerting.send()
        assert numbers(broker) == list(range(1, 31))
        assert [each["number"] for each in events(broker, "alarm")] == [1, 2, 3, 4]
        assert [each["id"] for each in events(broker, "notification")] == ["m-1", "m-2", "m-3", "m-4"]
        assert second.delivered == ["m-1", "m-2", "m-3", "m-4"]
        [took_over] = [each for each in second.events if isinstance(each, StandbyTookOver)]
        assert took_over.published_outcome == 10
        first.begin()


async def test_what_a_holder_broke_off_when_another_replica_joined_is_in_doubt() -> None:
    broker = SharedBroker()
    async with replicas(broker) as (holder, _):
        holder.win()
        await until(holder.publisher.speaks)
        holder.lose()
        await until(lambda: holder.alerting.is_silent)
        holder.alerting.broken_off = 2
        holder.win()
        await until(holder.publisher.speaks)
        counted = {each.name: dict(each.samples) for each in holder.publisher.families()}
        assert counted["standby_notifications_in_doubt_total"] == {(): 2.0}
        assert counted["standby_takeovers_total"] == {(): 0.0}


async def test_invalid_records_are_written_by_the_holder_alone_and_the_rest_by_the_next() -> None:
    broker = SharedBroker()
    async with replicas(broker) as (first, second):
        first.win()
        await until(first.publisher.speaks)
        for reached in range(1, 43):
            first.commit(reached)
            if reached % 4 == 0:
                second.commit(reached + 3)
            await turns(10)
        await until(lambda: broker.ledger is not None and broker.ledger.outcome == 42)
        assert broker.letters == [(offset, 0) for offset in invalid_offsets(42)]
        second.commit(66)
        await until(lambda: first.publisher._queue.records == 0)
        await first.kill()
        await second.kill()  # what it keeps is in its state
        second.begin()
        second.win()
        await until(lambda: broker.ledger is not None and broker.ledger.outcome == 66)
        written = len(invalid_offsets(42))
        assert broker.letters[written:] == [(offset, 1) for offset in invalid_offsets(66)[written:]]
        first.begin()
        first.commit(66)
        await until(lambda: first.publisher._queue.records == 0)
        assert len(broker.letters) == len(invalid_offsets(66))


async def test_a_holder_that_fails_after_the_topic_has_invalid_records_writes_them_once() -> None:
    broker = SharedBroker()
    async with replicas(broker) as (first, second):
        first.win()
        await until(first.publisher.speaks)
        broker.fails.append("commit")
        first.commit(20)
        await until(lambda: len(broker.outcomes) == 20)
        assert [offset for offset, _ in broker.letters] == invalid_offsets(20)
        second.commit(20)
        await until(lambda: second.publisher._queue.records == 0)


async def test_a_follower_keeps_nothing_where_the_holder_writes_down_no_position() -> None:
    broker = SharedBroker()
    async with replicas(broker) as (old, new):
        old.publisher._dead_letters = None  # as of a version that writes them before its commits
        old.log._keeper = None
        old.win()
        await until(old.publisher.speaks)
        old.commit(20)
        await until(lambda: len(broker.outcomes) == 20)
        assert broker.ledger is not None
        assert broker.ledger.invalid is None
        new.commit(20)
        await until(lambda: new.publisher._queue.records == 0)
        new.commit(30)
        await old.kill()
        new.win()
        await until(lambda: len(broker.outcomes) == 30)
        assert [offset for offset, _ in broker.letters] == invalid_offsets(30)[len(invalid_offsets(20)) :]
        old.begin()


async def test_a_holder_divides_what_takes_too_long_in_one_transaction() -> None:
    broker = SharedBroker()
    async with replicas(broker) as (holder, _):
        for reached in range(1, 41):
            holder.commit(reached)
        broker.most_outcomes = 3
        holder.win()
        await until(lambda: len(broker.outcomes) == 40)
        assert numbers(broker) == list(range(1, 41))


async def test_nothing_is_delivered_before_the_ledger_has_it() -> None:
    broker = SharedBroker()
    async with replicas(broker) as (holder, _):
        holder.win()
        await until(holder.publisher.speaks)
        broker.reachable = False
        holder.commit(8)
        await turns()
        holder.alerting.send()
        assert holder.delivered == []
        assert not holder.publisher.speaks()  # its transaction has failed
        broker.reachable = True
        await until(holder.publisher.speaks)
        holder.commit(9)
        await until(lambda: len(broker.outcomes) == 9)
        holder.alerting.send()
        assert holder.delivered == ["m-1"]
        assert [each["id"] for each in events(broker, "notification")] == ["m-1"]


async def test_a_follower_keeps_only_what_the_ledger_does_not_have() -> None:
    broker = SharedBroker()
    async with replicas(broker) as (holder, follower):
        holder.win()
        await until(holder.publisher.speaks)
        follower.commit(10)
        follower.commit(20)
        holder.commit(12)
        await until(lambda: follower.publisher.take_written() == [1])
        holder.commit(20)
        await until(lambda: follower.publisher.take_written() == [2])


@pytest.mark.parametrize("ahead", [True, False])
async def test_a_replica_with_other_outcomes_stands_no_more(ahead: bool) -> None:  # noqa: FBT001
    broker = SharedBroker()
    async with replicas(broker) as (holder, other):
        holder.win()
        await until(holder.publisher.speaks)
        if ahead:
            other.commit(20, seed=1)
        holder.commit(12)
        await until(lambda: len(broker.outcomes) == 12)
        if not ahead:
            await turns()
            other.commit(20, seed=1)
        await until(lambda: other.publisher.role == "diverged")
        assert any(isinstance(each, StandbyDiverged) for each in other.events)
        other.win()
        [why] = other.publisher.unready()
        assert why.endswith(
            "it stops reading once 64 MB of results wait in it: copy the holder's state to it"
        )
        await holder.kill()
        await turns()
        assert numbers(broker) == list(range(1, 13))
        holder.begin()


@pytest.mark.parametrize("holds", [False, True])
async def test_a_replica_that_lost_outcomes_stands_no_more_once_it_has_evaluated_its_log(
    holds: bool,  # noqa: FBT001
) -> None:
    broker = SharedBroker()
    async with replicas(broker) as (first, other):
        progress = LogProgress(1_000, None)
        other.publisher.log_progress = lambda: progress
        first.win()
        await until(first.publisher.speaks)
        first.commit(40)
        await until(lambda: len(broker.outcomes) == 40)
        other.commit(5)
        if holds:
            await first.kill()
            other.win()
            await until(other.publisher.speaks)
        await until(lambda: other.publisher.reached == (40, 5))
        for evaluated_ms in (None, 999 + module.BEHIND_MS):
            progress = LogProgress(90_000, evaluated_ms)
            await turns()
            assert other.publisher.role == ("holder" if holds else "standby")
        progress = LogProgress(90_000, 1_000 + module.BEHIND_MS)
        await until(lambda: other.publisher.role == "diverged")
        [diverged] = [each for each in other.events if isinstance(each, StandbyDiverged)]
        assert "end at number 5, those of the replica that wrote them at 40" in diverged.difference
        await turns()
        assert not other.publisher.speaks()
        assert other.alerting.is_silent
        if holds:
            first.begin()


async def test_a_replica_that_comes_as_far_as_the_ledger_was_stays_one() -> None:
    broker = SharedBroker()
    async with replicas(broker) as (first, other):
        progress = LogProgress(1_000, None)
        other.publisher.log_progress = lambda: progress
        first.win()
        await until(first.publisher.speaks)
        for reached in range(10, 60, 10):  # always beyond the follower
            first.commit(reached)
            await until(lambda expected=reached: len(broker.outcomes) == expected)
            await turns()
            other.commit(reached - 5)
            progress = LogProgress(progress.now_ms + module.BEHIND_MS, progress.now_ms)
            await turns()
        assert other.publisher.role == "standby"


async def test_a_replica_of_another_life_stands_no_more() -> None:
    broker = SharedBroker()
    other = Replica(broker, random.Random(1), deployment="another")
    async with replicas(broker, number=1) as (holder,):
        holder.win()
        await until(holder.publisher.speaks)
        holder.commit(3)
        await until(lambda: len(broker.outcomes) == 3)
        other.begin()
        await until(lambda: other.publisher.role == "diverged")
        await other.kill()


async def test_a_holder_that_was_stopped_writes_nothing_and_says_nothing_when_it_goes_on() -> None:
    broker = SharedBroker()
    async with replicas(broker) as (first, second):
        first.win()
        await until(first.publisher.speaks)
        first.commit(8)
        await until(lambda: len(broker.outcomes) == 8)
        second.commit(8)
        second.win()
        await until(second.publisher.speaks)
        first.now = SESSION.timeout  # it was stopped, and nobody has told it anything
        assert not first.publisher.speaks()
        first.commit(20)
        await turns(200)
        first.alerting.send()
        assert first.delivered == []
        assert numbers(broker) == list(range(1, 9))
        second.commit(20)
        await until(lambda: len(broker.outcomes) == 20)
        second.alerting.send()
        assert second.delivered == ["m-1", "m-2"]


async def test_a_replica_that_is_behind_the_ledger_decides_once_it_has_come_as_far() -> None:
    broker = SharedBroker()
    async with replicas(broker) as (first, second):
        first.win()
        await until(first.publisher.speaks)
        first.commit(15)
        await until(lambda: len(broker.outcomes) == 15)
        await first.kill()
        second.commit(5)
        second.win()
        await until(second.publisher.speaks)
        second.commit(10)
        await turns()
        assert [each["id"] for each in events(broker, "notification")] == ["m-1", "m-2"]
        second.commit(22)
        await until(lambda: len(broker.outcomes) == 22)
        assert numbers(broker) == list(range(1, 23))
        assert [each["id"] for each in events(broker, "notification")] == ["m-1", "m-2", "m-3"]
        first.begin()


@pytest.mark.parametrize("seed", range(examples(0.4)))
async def test_whoever_holds_and_whatever_fails_nothing_is_lost_or_written_twice(seed: int) -> None:
    broker, chance = SharedBroker(), random.Random(seed)
    reached = 0
    async with replicas(broker, seed, number=3) as all_of_them:
        for _ in range(120):
            each = chance.choice(all_of_them)
            match chance.randrange(8):
                case 0 | 1 | 2:
                    reached += chance.randrange(0, 12)
                    each.commit(max(each._durable, reached - chance.randrange(0, 30)))
                case 3:
                    for other in all_of_them:
                        if other is not each and chance.random() < 0.6:  # else it does not know that it lost
                            other.lose()
                    each.win()
                case 4:
                    broker.fails.append(chance.choice(("begin", "send", "commit", "answer")))
                case 5:
                    await each.kill()
                    each.begin()
                case 6:
                    each.alerting.send()
                case _:
                    broker.reachable = chance.random() < 0.8
            await turns(chance.randrange(0, 30))
        broker.reachable, broker.fails[:] = True, []
        for other in all_of_them[1:]:
            other.lose()
        last = all_of_them[0]
        last.win()
        for each in all_of_them:
            each.commit(reached)
        await until(lambda: last.publisher.speaks() and len(broker.outcomes) == reached)
        last.commit(reached)
        alarms = reached // ALARM_EVERY
        await until(lambda: len(events(broker, "notification")) == alarms)
        await turns()
        last.alerting.send()
        assert numbers(broker) == list(range(1, reached + 1))
        assert [each["number"] for each in events(broker, "alarm")] == list(range(1, alarms + 1))
        expected = {f"m-{number}" for number in range(1, alarms + 1)}
        assert sorted(str(each["id"]) for each in events(broker, "notification")) == sorted(expected)
        assert {name for each in all_of_them for name in each.delivered} == expected
        assert not [
            each for replica in all_of_them for each in replica.events if isinstance(each, StandbyDiverged)
        ]
        assert {offset for offset, _ in broker.letters} == set(invalid_offsets(reached))
        ledger = broker.ledger
        assert ledger is not None
        assert ledger.digests is not None
        assert ledger.digests == Digests(last.log.digests.outcomes, last.log.digests.events)


async def test_a_copy_of_the_holders_state_stands_where_an_empty_one_has_another_log() -> None:
    broker = SharedBroker()
    async with replicas(broker, number=1) as (holder,):
        holder.win()
        await until(holder.publisher.speaks)
        holder.commit(30)
        await until(lambda: len(broker.outcomes) == 30)
        late = Replica(broker, random.Random(5))
        late.begin()
        late.commit(30, seed=9)  # retention had taken the beginning
        await until(lambda: late.publisher.role == "diverged")
        await late.kill()
        copied = holder.copy()
        copied.begin()
        copied.commit(35)
        await until(lambda: copied.publisher.unready() == [])
        await holder.kill()
        copied.win()
        await until(lambda: len(broker.outcomes) == 35)
        copied.commit(36)
        await until(lambda: len(broker.outcomes) == 36)
        assert numbers(broker) == list(range(1, 37))
        assert [each["id"] for each in events(broker, "notification")] == [f"m-{n}" for n in range(1, 6)]
        await copied.kill()
        holder.begin()


async def test_a_process_alone_goes_on_where_replicas_have_written() -> None:
    broker = SharedBroker()
    async with replicas(broker) as (holder, follower):
        holder.win()
        await until(holder.publisher.speaks)
        for reached in (4, 9, 12):
            holder.commit(reached)
        await until(lambda: len(broker.outcomes) == 12)
        follower.commit(7)
        follower.commit(20)
        alone = Publisher(FakeTransactions(broker), "topics", follower.events.append)
        alone.begin("fraud", follower.commits, follower.kept)
        writing = asyncio.create_task(alone.run())
        await until(lambda: len(broker.outcomes) == 20)
        writing.cancel()
        await asyncio.wait({writing})
        assert numbers(broker) == list(range(1, 21))
        assert [each["number"] for each in events(broker, "alarm")] == [1, 2]
        ledger = broker.ledger
        assert ledger is not None
        assert (ledger.digests, ledger.decisions, ledger.invalid) == (None, 0, None)


async def test_a_replica_that_had_run_alone_goes_on_with_its_own_decisions_and_not_with_older_ones() -> None:
    broker = SharedBroker()
    async with replicas(broker, number=1) as (holder,):
        holder.win()
        await until(holder.publisher.speaks)
        holder.commit(10)
        await until(lambda: len(broker.outcomes) == 10)
        await turns()
        await holder.kill()  # decided that alarm 1 is announced, and has not delivered it
        alone = Publisher(FakeTransactions(broker), "topics", holder.events.append)
        alone.begin("fraud", holder.commits, holder.kept)
        writing = asyncio.create_task(alone.run())
        await until(lambda: broker.ledger is not None and broker.ledger.decisions == 0)
        writing.cancel()
        await asyncio.wait({writing})
        holder.begin()
        holder.alerting._announced = ["of its own state"]
        holder.win()
        await until(holder.publisher.speaks)
        assert holder.alerting._announced == ["of its own state"]
        assert holder.alerting._entries == {}
        assert holder.publisher.role == "holder"
