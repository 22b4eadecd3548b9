"""Records that a broker deletes by age while the daemon is down are counted and named; the rest is read."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import aiohttp
import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from tests import real
from tests.integration.kafka_broker import START_SECONDS, KafkaBroker
from tests.integration.running import DEADLINE_SECONDS, Child, Samples, child, parsed, value
from tests.integration.topics import create_topic, fresh, send

HASTY = {"log.retention.check.interval.ms": "200", "log.initial.task.delay.ms": "200"}


@pytest.fixture
def hasty_kafka(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KafkaBroker]:
    """Apache Kafka that deletes what is too old at once."""
    real.need(request.node.nodeid, "a Kafka of its own")
    broker = KafkaBroker(tmp_path / "kafka", HASTY)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


def keep(broker: KafkaBroker, topic: str, milliseconds: int) -> None:
    """How long records of a topic are kept from now on; -1 for ever."""
    entry = ConfigEntry("retention.ms", str(milliseconds), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for done in client.incremental_alter_configs([resource]).values():
        done.result(START_SECONDS)


def begins_at(broker: KafkaBroker, topic: str) -> int:
    """The first offset that the log holds."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "looks"})
    try:
        found: tuple[int, int] = consumer.get_watermark_offsets(TopicPartition(topic, 0), START_SECONDS)
    finally:
        consumer.close()
    return found[0]


def predictions(first: int, last: int) -> list[bytes]:
    return [json.dumps({"id": str(i), "model": "m", "prediction": "a"}).encode() for i in range(first, last)]


async def until_accepted(running: Child, count: int) -> Samples:
    """The numbers once so many predictions are durable."""
    url = await asyncio.to_thread(running.url)
    async with asyncio.timeout(DEADLINE_SECONDS), aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"{url}/metrics") as answer:
                samples = parsed(await answer.text())
            if value(samples, "predictions_accepted_total") >= count:
                return samples
            running.pause()


async def test_what_retention_took_while_it_was_down_is_counted_and_named(
    hasty_kafka: KafkaBroker, tmp_path: Path
) -> None:
    servers = hasty_kafka.bootstrap_servers
    topics = [await create_topic(hasty_kafka, fresh(side), retention_ms="-1") for side in ("made", "labels")]
    settings = (
        f"kafka.bootstrap_servers={servers}",
        f"topics.predictions={topics[0]}",
        f"topics.labels={topics[1]}",
        f"state.directory={tmp_path / 'state'}",
    )
    await send(servers, topics[0], predictions(0, 10))
    with child(tmp_path, *settings) as running:
        await until_accepted(running, 10)
        code, _ = await asyncio.to_thread(running.end, signal.SIGTERM)
        assert code == 0
    await send(servers, topics[0], predictions(10, 30))
    keep(hasty_kafka, topics[0], 1)
    deadline = time.monotonic() + DEADLINE_SECONDS
    while await asyncio.to_thread(begins_at, hasty_kafka, topics[0]) < 30:
        assert time.monotonic() < deadline
    keep(hasty_kafka, topics[0], -1)
    await send(servers, topics[0], predictions(30, 35))
    with child(tmp_path, *settings) as running:
        samples = await until_accepted(running, 15)
        deadline = time.monotonic() + DEADLINE_SECONDS
        while '"position_lost"' not in running.log:
            assert time.monotonic() < deadline, running.log
            running.pause()
        lost = [json.loads(line) for line in running.log.splitlines() if '"position_lost"' in line]
    assert value(samples, "predictions_accepted_total") == 15
    assert value(samples, "kafka_data_loss_total", cause="retention") == 1
    assert value(samples, "kafka_records_lost_total", cause="retention") == 20
    [told] = lost
    assert (told["topic"], told["partition"], told["cause"]) == (topics[0], 0, "retention")
    assert {10, 30} <= set(told.values())
