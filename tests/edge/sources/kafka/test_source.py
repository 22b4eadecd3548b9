"""The source over the Kafka protocol, on the embedded broker: what needs no real one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaProducer

from streamwatch.core.ports import Poll
from streamwatch.core.records.events import Partition
from streamwatch.demo.embedded import EmbeddedBroker
from streamwatch.edge.sources.kafka import (
    KafkaSource,
    KafkaSpec,
    KafkaUnreachable,
    Probed,
    TopicsMissing,
    list_topics,
    probe,
)
from streamwatch.telemetry import InternalEvent, KafkaLost, KafkaRecovered, TopicsAssigned

PATIENCE_SECONDS = 30


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        broker.create_topic("events", 3)
        yield broker


def spec(broker: EmbeddedBroker, **choices: object) -> KafkaSpec:
    fast = {
        "alive_ms": 1_500,
        "poll_timeout_ms": 50,
        "backoff_initial_ms": 50,
        "request_timeout_ms": 3_000,
        "topic_grace_ms": 200,
    }
    return KafkaSpec(bootstrap_servers=broker.bootstrap_servers, **(fast | choices))


async def send(broker: EmbeddedBroker, count: int, first: int = 0) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    await producer.start()
    try:
        for i in range(first, first + count):
            await producer.send("events", b"%d" % i, partition=i % 3)
        await producer.flush()
    finally:
        await producer.stop()


@asynccontextmanager
async def started(
    spec: KafkaSpec, emit: Callable[[InternalEvent], None] = lambda _: None, **clocks: Callable[[], float]
) -> AsyncIterator[KafkaSource]:
    source = KafkaSource(spec, ["events"], emit, **clocks)
    try:
        await source.start({})
        yield source
    finally:
        await source.stop()


async def polls(source: KafkaSource, until: Callable[[Poll], bool]) -> list[tuple[int, int]]:
    """Poll until a condition holds, in bounded time; the (partition, offset) of all that was delivered."""
    seen: list[tuple[int, int]] = []
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        poll = await source.poll()
        for partition, records in poll.records.items():
            assert partition == (records[0].topic, records[0].partition)
            seen += [(r.partition, r.offset) for r in records]
        source.evaluated({partition: records[-1] for partition, records in poll.records.items()})
        source.release_findings()
        if until(poll):
            return seen
        assert time.monotonic() < deadline, f"waited too long: {poll.partitions}"


def all_caught_up(poll: Poll) -> bool:
    return bool(poll.partitions) and all(state.caught_up for state in poll.partitions.values())


async def test_everything_is_read_once_in_small_batches_and_then_caught_up(broker: EmbeddedBroker):
    await send(broker, 3_000)
    heard: list[InternalEvent] = []
    async with started(spec(broker, max_poll_records=2_000), heard.append) as source:
        assert source.assigned
        first = await source.poll()
        assert sum(map(len, first.records.values())) <= 2_000
        seen = [(r.partition, r.offset) for records in first.records.values() for r in records]
        seen += await polls(source, all_caught_up)
        assert sorted(seen) == [(p, o) for p in range(3) for o in range(1_000)]
        assert source.up
    assert heard == [TopicsAssigned(("events",), 3)]
    assert not source.up
    assert not source.assigned


async def test_an_absent_topic_is_refused_by_name_and_not_created(broker: EmbeddedBroker):
    source = KafkaSource(spec(broker), ["events", "event"], lambda _: None)
    with pytest.raises(TopicsMissing, match=r"topic 'event' does not exist \(did you mean events\?\)"):
        await source.start({})
    await source.stop()
    with pytest.raises(TopicsMissing):
        await probe(spec(broker), ["event"])
    assert await list_topics(spec(broker)) == {"events": 3}
    assert await probe(spec(broker), ["events"]) == {"events": Probed(3, has_records=False)}


@pytest.mark.slow
async def test_a_topic_that_brokers_come_to_know_a_moment_later_is_no_mistake(broker: EmbeddedBroker):
    source = KafkaSource(spec(broker, topic_grace_ms=5_000), ["late"], lambda _: None)
    starting = asyncio.create_task(source.start({}))
    await asyncio.wait({starting}, timeout=0.5)
    broker.create_topic("late")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await starting
    assert source.assigned
    await source.stop()


async def test_a_broker_that_is_not_there_is_reported_with_the_reason(broker: EmbeddedBroker):
    broker.set_down()
    with pytest.raises(KafkaUnreachable, match="Unable"):
        await probe(spec(broker, request_timeout_ms=500), ["events"])


async def test_stored_positions_win_over_the_start_and_other_topics_are_ignored(broker: EmbeddedBroker):
    await send(broker, 30)
    source = KafkaSource(spec(broker, start_from="latest"), ["events"], lambda _: None)
    await source.start({Partition("events", 0): 4, Partition("events", 1): 9, Partition("gone", 0): 7})
    seen = await polls(source, all_caught_up)
    # Partition 2 was not among the stored ones of a topic that was: it was added since, and starts at 0.
    assert sorted(seen) == [(0, o) for o in range(4, 10)] + [(1, 9)] + [(2, o) for o in range(10)]
    await source.stop()


async def test_held_partitions_deliver_nothing_and_lose_nothing(broker: EmbeddedBroker):
    await send(broker, 3_000)
    async with started(spec(broker)) as source:
        held = frozenset({Partition("events", 1)})
        seen = await polls(source, lambda poll: bool(poll.records))
        source.pause(held)
        delivered = len([o for p, o in seen if p == 1])
        seen += await polls(
            source, lambda poll: all(s.caught_up for p, s in poll.partitions.items() if p not in held)
        )
        assert len([o for p, o in seen if p == 1]) == delivered
        source.pause(frozenset(Partition("events", p) for p in range(3)))
        assert (await source.poll()).records == {}
        assert source.up
        source.pause(frozenset())
        seen += await polls(source, all_caught_up)
        assert sorted(seen) == [(p, o) for p in range(3) for o in range(1_000)]


@pytest.mark.slow
async def test_with_everything_held_listings_show_that_brokers_are_there(broker: EmbeddedBroker):
    await send(broker, 300)
    async with started(spec(broker, alive_ms=3_000)) as source:
        await polls(source, lambda poll: bool(poll.records))
        source.pause(frozenset(Partition("events", p) for p in range(3)))
        until = time.monotonic() + 6.0
        while time.monotonic() < until:
            await source.poll()
            assert source.up


@pytest.mark.slow
async def test_an_outage_is_noticed_survived_and_costs_no_record(broker: EmbeddedBroker):
    await send(broker, 300)
    heard: list[InternalEvent] = []
    async with started(spec(broker), heard.append) as source:
        seen = await polls(source, all_caught_up)
        broker.set_down()
        seen += await polls(source, lambda _: not source.up)
        began = time.monotonic()
        poll = await source.poll()
        assert time.monotonic() - began < 20, "a poll waits for nobody"
        assert poll.records == {}
        seen += await polls(source, lambda _: any(isinstance(h, KafkaLost) for h in heard))
        broker.set_up()
        await send(broker, 300, first=300)
        seen += await polls(source, lambda poll: len(seen) + sum(map(len, poll.records.values())) >= 600)
        assert source.up
        assert sorted(seen) == [(p, o) for p in range(3) for o in range(200)]
        assert any(isinstance(h, KafkaRecovered) for h in heard)


@pytest.mark.slow
async def test_a_connection_that_stays_silent_is_replaced(broker: EmbeddedBroker):
    heard: list[InternalEvent] = []
    async with started(spec(broker, stall_ms=2_000, alive_ms=500), heard.append) as source:
        await polls(source, all_caught_up)
        broker.set_down()
        await polls(source, lambda _: not source.assigned)
        broker.set_up()
        await polls(source, lambda _: source.assigned)
        await polls(source, all_caught_up)
        assert len([h for h in heard if isinstance(h, TopicsAssigned)]) == 2


async def test_start_waits_for_brokers_that_are_away(broker: EmbeddedBroker):
    broker.set_down()
    heard: list[InternalEvent] = []
    source = KafkaSource(spec(broker), ["events"], heard.append)
    starting = asyncio.create_task(source.start({}))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not any(isinstance(h, KafkaLost) for h in heard):
            await asyncio.wait({starting}, timeout=0.05)
    assert not source.up
    broker.set_up()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await starting
    assert source.up
    await source.stop()


@pytest.mark.slow
@pytest.mark.parametrize("group", [None, "lag-tools"])
async def test_leaving_takes_bounded_time_while_brokers_are_away(broker: EmbeddedBroker, group: str | None):
    source = KafkaSource(spec(broker, group_id=group, stop_timeout_ms=1_500), ["events"], lambda _: None)
    await source.start({})
    await polls(source, all_caught_up)
    broker.set_down()
    began = time.monotonic()
    await source.stop()
    assert time.monotonic() - began < 20


@pytest.mark.slow
async def test_an_answer_older_than_the_grace_does_not_make_a_partition_caught_up(broker: EmbeddedBroker):
    now = 1_000.0
    async with started(spec(broker, watermark_grace_ms=60_000), monotonic=lambda: now) as source:
        poll = Poll()

        def remember(latest: Poll) -> bool:
            nonlocal poll
            poll = latest
            return all_caught_up(latest)

        await polls(source, remember)
        now += 59.9
        assert all(state.caught_up for state in source._empty().partitions.values())
        now += 0.2
        assert not any(state.caught_up for state in source._empty().partitions.values())


@pytest.mark.slow
async def test_brokers_are_not_reported_lost_while_only_the_event_loop_is_busy(broker: EmbeddedBroker):
    heard: list[InternalEvent] = []
    async with started(spec(broker, alive_ms=500, stall_ms=1_500), heard.append) as source:
        for _ in range(4):
            await source.poll()
            time.sleep(2.0)  # noqa: ASYNC251 - what keeps the loop busy
    assert [event for event in heard if isinstance(event, KafkaLost)] == []


@pytest.mark.slow
async def test_brokers_are_not_reported_lost_while_nothing_is_polled(broker: EmbeddedBroker):
    heard: list[InternalEvent] = []
    await send(broker, 30)
    async with started(spec(broker, alive_ms=1_500, stall_ms=3_000), heard.append) as source:
        await source.poll()
        await asyncio.sleep(4.0)  # as long as a commit may wait for dead letters, for its part
        await source.poll()
        assert source.up
    assert [event for event in heard if isinstance(event, KafkaLost)] == []
