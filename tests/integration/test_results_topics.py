"""Outcomes and events in topics of their own: each once, in order, whatever is killed, as a replay says."""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from streamwatch.core.publishing.publications import Event, Publication, encoded
from streamwatch.daemon.publisher import Publisher
from streamwatch.edge.sources.kafka.spec import KafkaSpec
from streamwatch.edge.sources.kafka.transactions import KafkaTransactions, TransactionsSpec
from streamwatch.telemetry import InternalEvent, PublishingDelayed
from tests.daemon.fake_transactions import publication
from tests.integration.conftest import Broker
from tests.integration.kafka_broker import KafkaBroker
from tests.integration.one_log import all_evaluated, dumped, killed_again_and_again
from tests.integration.results_topics import (
    Topics,
    assert_numbered_events_once,
    assert_outcomes_once,
    committed,
    replayed_outcomes,
)
from tests.integration.running import DEADLINE_SECONDS, Child, child, value
from tests.integration.test_one_order import MODELS, PARTITIONS, Written, overrides
from tests.integration.topics import create_topic, fresh
from tests.integration.toxiproxy import Toxiproxy, toxiproxy


async def read_topics(broker: Broker) -> dict[str, str]:
    return {
        side: await create_topic(broker, fresh(side), PARTITIONS, message_timestamp_type="LogAppendTime")
        for side in ("predictions", "labels")
    }


async def all_published(daemon: Child, records: int, models: Sequence[str] = MODELS) -> dict[str, object]:
    """What a daemon says once everything is evaluated, and is in its topic."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            found = await all_evaluated(daemon, records, models)
            if value(found["samples"], "publishing_waiting_records") == 0:
                return found
            await asyncio.sleep(0.1)


@pytest.mark.timeout(900)
async def test_ten_kills_leave_each_outcome_and_event_in_its_topic_once(
    kafka: Broker, tmp_path: Path
) -> None:
    topics, results = await read_topics(kafka), await Topics.on(kafka)
    (tmp_path / "killed").mkdir()
    settings = overrides(kafka, topics, "both", tmp_path / "state")
    durable = [*settings, *results.settings()]
    writer = Written(kafka, topics, seed=3)
    writing = asyncio.create_task(writer.write())
    await killed_again_and_again(tmp_path / "killed", durable, writing, random.Random(1))
    with child(tmp_path / "killed", *durable) as daemon:
        told = await all_published(daemon, writer.records)
        assert daemon.end(signal.SIGTERM)[0] == 0
    dumped(kafka, topics, PARTITIONS, tmp_path / "log.jsonl")
    expected = await asyncio.to_thread(replayed_outcomes, tmp_path / "log.jsonl", settings)
    [outcomes] = committed(kafka.bootstrap_servers, results.outcomes)
    [events] = committed(kafka.bootstrap_servers, results.events)
    assert len(outcomes) > 10_000
    assert {"alarm", "notification"} <= {document["type"] for _, document in events}
    assert_outcomes_once(outcomes, expected)
    assert_numbered_events_once(events, told["alarms"])


@pytest.fixture
async def network(
    killable_kafka: KafkaBroker, real_component: Callable[[str], str]
) -> AsyncIterator[Toxiproxy]:
    ports = killable_kafka.ports
    async with toxiproxy(real_component("toxiproxy-server"), ports["proxy"], ports["behind"]) as between:
        yield between


class States:
    """States of one deployment, each going on where the last was killed: what commits leave in the store."""

    def __init__(self, results: Topics, servers: str) -> None:
        kafka = KafkaSpec(bootstrap_servers=servers, request_timeout_ms=2_000, stop_timeout_ms=500)
        self._spec = TransactionsSpec(
            kafka, results.outcomes, results.events, results.ledger, "tested", transaction_seconds=3.0
        )
        self._waiting: dict[int, Publication] = {}
        self._chance = random.Random(7)
        self.told: list[InternalEvent] = []
        self.commits = self.outcomes = self.events = 0

    def begin(self) -> Publisher:
        """Begin a process that knows what the state has."""
        publisher = Publisher(KafkaTransactions(self._spec), "topics", self.told.append)
        publisher.begin("state.0", self.commits, {n: encoded(each) for n, each in self._waiting.items()})
        return publisher

    def commit(self, publisher: Publisher) -> None:
        """Commit some outcomes and events; the commit removes what is written."""
        for commit in publisher.take_written():
            del self._waiting[commit]
        self.commits += 1
        count, events = self._chance.choice((1, 7, 400)), self._chance.choice((0, 0, 2))
        decided = [
            Event(f"m{n}", b'{"number":%d}' % n, n) for n in range(self.events + 1, self.events + events + 1)
        ]
        published = publication(
            self.commits, self.outcomes + 1, count, decided, self.events, [f"m{n}" for n in range(5)]
        )
        self.outcomes, self.events = self.outcomes + count, self.events + events
        self._waiting[self.commits] = published
        publisher.add(published)


@pytest.mark.timeout(900)
async def test_cut_networks_dead_brokers_and_dead_processes_double_and_lose_nothing(
    killable_kafka: KafkaBroker, network: Toxiproxy
) -> None:
    results = await Topics.on(killable_kafka, partitions=3)
    states, chance = States(results, network.servers), random.Random(11)
    publisher = states.begin()
    task = asyncio.create_task(publisher.run())
    for turn in range(60):
        for _ in range(chance.randrange(1, 8)):
            states.commit(publisher)
            await asyncio.sleep(chance.uniform(0, 0.05))
        match turn % 6:
            case 0:
                task.cancel()
                await asyncio.wait({task})
                publisher = states.begin()
                task = asyncio.create_task(publisher.run())
            case 1:
                await network.enable(enabled=False)
                await asyncio.sleep(chance.uniform(0, 0.5))
                await network.enable(enabled=True)
            case 2:
                await network.poison("limit_data", stream="upstream", bytes=chance.randrange(200, 60_000))
                await asyncio.sleep(chance.uniform(0.1, 0.6))
                await network.cure("limit_data", stream="upstream")
            case 3:
                await network.poison("timeout", timeout=0)
                await asyncio.sleep(chance.uniform(0.1, 4.0))
                await network.cure("timeout")
            case 4 if turn % 12 == 4:
                await asyncio.to_thread(killable_kafka.kill)
                await asyncio.to_thread(killable_kafka.start)
            case _:
                await asyncio.sleep(chance.uniform(0, 0.3))
    await publisher.drain(DEADLINE_SECONDS)
    task.cancel()
    await asyncio.wait({task})
    assert sum(isinstance(each, PublishingDelayed) for each in states.told) > 5
    outcomes = committed(killable_kafka.bootstrap_servers, results.outcomes)
    numbers = [[document["number"] for _, document in partition] for partition in outcomes]
    assert sorted(each for partition in numbers for each in partition) == list(range(1, states.outcomes + 1))
    for partition, ordered in zip(outcomes, numbers, strict=True):
        assert ordered == sorted(ordered)
        assert all(key == f"m{document['number'] % 5}" for key, document in partition)
    events = committed(killable_kafka.bootstrap_servers, results.events)
    assert sorted(d["number"] for partition in events for _, d in partition) == list(
        range(1, states.events + 1)
    )
