"""Publications on their way to their topics: each once, whatever fails, and by one process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from streamwatch.core.publishing.publications import Event, Ledger, encoded
from streamwatch.daemon import publisher as module
from streamwatch.daemon import publisher as publishing
from streamwatch.daemon.publisher import Publisher
from streamwatch.edge.sources.kafka.transactions import PublishingFenced
from streamwatch.telemetry import (
    InternalEvent,
    PublishingBegun,
    PublishingDelayed,
    PublishingResumed,
    StateOlderThanTopics,
)
from tests.cpu_budget import until
from tests.daemon.fake_transactions import Broker, FakeTransactions, publication, records_of

LIFE = "state.0"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RETRY_SECONDS", (0.0,))
    monkeypatch.setattr(module, "FENCED_SECONDS", 0.0)


class Process:
    """A publisher of a process, and the events that it emitted."""

    def __init__(self, broker: Broker, most_bytes: int = 1 << 20) -> None:
        self.emitted: list[InternalEvent] = []
        self.transactions = FakeTransactions(broker)
        self.publisher = Publisher(self.transactions, "topic outcomes", self.emitted.append, most_bytes)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Publisher]:
        task = asyncio.create_task(self.publisher.run())
        try:
            yield self.publisher
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def numbers(broker: Broker) -> list[int]:
    documents = [json.loads(value) for _, value in broker.outcomes]
    assert [str(document["number"]) for document in documents] == [d["id"] for d in documents]
    return [document["number"] for document in documents]


@pytest.mark.parametrize("fault", ["begin", "send", "commit", "answer"])
async def test_a_transaction_that_fails_is_written_once(fault: str) -> None:
    broker = Broker(fails=["", fault, fault])  # the first writes this process's name into the ledger
    process = Process(broker)
    async with process.running() as publisher:
        publisher.begin(LIFE, 0, {})
        publisher.add(publication(1, 1, 3))
        publisher.add(publication(2, 4, 2))
        await until(lambda: publisher.take_written() == [1, 2] or len(broker.outcomes) > 5)
    assert numbers(broker) == [1, 2, 3, 4, 5]
    assert broker.ledger is not None
    assert (broker.ledger.commit, broker.ledger.outcome) == (2, 5)
    assert [type(each) for each in process.emitted if isinstance(each, PublishingDelayed)]


@pytest.mark.parametrize(("confirmed", "removed"), [(0, False), (2, False), (2, True), (3, False)])
async def test_a_process_that_was_killed_writes_what_the_ledger_lacks(
    confirmed: int, *, removed: bool
) -> None:
    """Killed before the transaction, after it, or after the commit that removes what it wrote."""
    kept = {commit: publication(commit, 2 * commit - 1, 2) for commit in (1, 2, 3)}
    broker = Broker(ledger=Ledger(1, LIFE, confirmed, 2 * confirmed, 0, "killed"))
    for commit in range(1, confirmed + 1):
        broker.outcomes += records_of(kept[commit])
    waiting = {
        commit: encoded(each) for commit, each in kept.items() if not (removed and commit <= confirmed)
    }
    async with Process(broker).running() as publisher:
        publisher.begin(LIFE, 3, waiting)
        await until(lambda: len(broker.outcomes) == 6)
        await publisher.drain(10)
        assert publisher.take_written() == list(waiting)
    assert numbers(broker) == [1, 2, 3, 4, 5, 6]


async def test_an_older_copy_of_the_state_writes_only_what_is_new() -> None:
    """Evaluated anew with other commits: outcomes that are there are not written again, decisions are."""
    broker = Broker(ledger=Ledger(1, LIFE, 20, 10, 2, "before"))
    process = Process(broker)
    decided = Event("m", b"notification", None)
    async with process.running() as publisher:
        publisher.begin(LIFE, 5, {5: encoded(publication(5, 1, 4))})
        publisher.add(publication(6, 5, 4, [Event("m", b"second", 2), decided], events_before=1))
        publisher.add(publication(7, 9, 4, [Event("m", b"third", 3)], events_before=2))
        await publisher.drain(10)
    assert numbers(broker) == [11, 12]
    assert broker.events == [b"notification", b"third"]
    assert process.emitted == [StateOlderThanTopics(5, 20)]
    assert broker.ledger is not None
    assert (broker.ledger.commit, broker.ledger.outcome, broker.ledger.event) == (7, 12, 3)


async def test_a_state_that_begins_anew_is_numbered_from_one() -> None:
    broker = Broker(ledger=Ledger(1, "another.0", 20, 10, 2, "before"))
    process = Process(broker)
    async with process.running() as publisher:
        publisher.begin(LIFE, 0, {})
        publisher.add(publication(1, 1, 2))
        await publisher.drain(10)
    assert numbers(broker) == [1, 2]
    assert process.emitted == [PublishingBegun(LIFE, "another.0", 10)]


async def test_of_two_processes_the_one_that_began_first_ends() -> None:
    broker = Broker()
    first, second = Process(broker), Process(broker)
    first.publisher.begin(LIFE, 0, {})
    ended = asyncio.create_task(first.publisher.run())
    await until(lambda: broker.transactions == 1)
    async with second.running() as publisher:
        publisher.begin("other.0", 0, {})
        await until(lambda: broker.transactions == 2)
        first.publisher.add(publication(1, 1, 2))
        with pytest.raises(PublishingFenced, match=r"ledger\.transactional_id"):
            await ended
        publisher.add(publication(1, 1, 1))
        await publisher.drain(10)
    assert numbers(broker) == [1]
    assert first.transactions.opened == 1


async def test_a_process_whose_own_transaction_timed_out_goes_on() -> None:
    """Brokers refuse it as they do one that was fenced, but the ledger has its name."""
    broker = Broker()
    process = Process(broker)
    async with process.running() as publisher:
        publisher.begin(LIFE, 0, {})
        await until(lambda: broker.transactions == 1)
        broker.epoch += 1
        publisher.add(publication(1, 1, 2))
        await publisher.drain(10)
    assert numbers(broker) == [1, 2]
    assert process.transactions.opened == 2


async def test_commits_wait_while_too_much_waits_for_brokers() -> None:
    broker = Broker(reachable=False)
    process = Process(broker, most_bytes=8)
    async with process.running() as publisher:
        publisher.begin(LIFE, 0, {})
        await publisher.room()
        publisher.add(publication(1, 1, 6))
        waits = asyncio.create_task(publisher.room())
        await until(lambda: publisher.problem is not None)
        assert publisher.problem == "6 records wait for topic outcomes: nobody answers"
        assert not waits.done()
        values = {family.name: family.samples[0][1] for family in publisher.families()}
        assert (values["publishing_waiting_records"], values["publishing_up"]) == (6, 0)
        assert values["publishing_delayed_commits_total"] == 1
        broker.reachable = True
        await asyncio.wait_for(waits, 10)
        await until(lambda: publisher.problem is None)
    assert numbers(broker) == [1, 2, 3, 4, 5, 6]
    assert isinstance(process.emitted[-1], PublishingResumed)


async def test_what_waits_is_written_in_the_order_of_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "TRANSACTION_BYTES", 4)
    broker = Broker(fails=["", "answer", "", "send", "answer"])
    async with Process(broker).running() as publisher:
        publisher.begin(LIFE, 0, {})
        first = 1
        for commit in range(1, 12):
            publisher.add(publication(commit, first, commit % 4))
            first += commit % 4
        await publisher.drain(10)
    assert numbers(broker) == list(range(1, first))


async def test_a_transaction_that_takes_too_long_is_divided() -> None:
    broker = Broker(most_outcomes=3)
    async with Process(broker).running() as publisher:
        publisher.begin(LIFE, 0, {})
        for commit in range(1, 101):
            publisher.add(publication(commit, commit, 1))
        await publisher.drain(10)
        assert numbers(broker) == list(range(1, 101))
        broker.most_outcomes, before = None, broker.transactions
        for commit in range(101, 201):
            publisher.add(publication(commit, commit, 1))
        await publisher.drain(10)
    assert numbers(broker) == list(range(1, 201))
    assert broker.transactions - before < 100
