"""Two brokers, whose partitions change their leader while a daemon reads and somebody writes."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiokafka.admin import NewTopic
from aiokafka.errors import KafkaError
from confluent_kafka import Producer

from tests import real
from tests.integration.kafka_broker import KafkaBroker
from tests.integration.running import daemon, value
from tests.integration.topics import admin, fresh
from tests.integration.watched import summed

PARTITIONS = 4
CHANGES = 2
PART = 300


@pytest.fixture
def two_brokers(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[KafkaBroker, KafkaBroker]]:
    """A broker that is the controller, too, and a second one that may be killed."""
    real.need(request.node.nodeid, "a Kafka of its own")
    moved_back = {
        "leader.imbalance.check.interval.seconds": "1",
        "leader.imbalance.per.broker.percentage": "0",
    }
    first = KafkaBroker(tmp_path / "first", moved_back)
    second = KafkaBroker(tmp_path / "second", beside=first)
    try:
        first.start()
        second.start()
        yield first, second
    finally:
        second.kill()
        first.kill()


async def leaders(broker: KafkaBroker, topics: list[str]) -> set[int]:
    """Brokers that lead some partition; none while a broker that is gone was asked."""
    try:
        async with admin(broker.bootstrap_servers) as client:
            described = await client.describe_topics(topics)
    except KafkaError:
        return set()
    return {partition["leader"] for topic in described for partition in topic["partitions"]}


async def led_by(broker: KafkaBroker, topics: list[str], expected: set[int]) -> None:
    async with asyncio.timeout(300):
        while await leaders(broker, topics) != expected:  # noqa: ASYNC110  (over Kafka)
            await asyncio.sleep(0.2)


@pytest.mark.timeout(1_200)
async def test_partitions_that_change_their_leader_cost_no_record_and_double_none(
    two_brokers: tuple[KafkaBroker, KafkaBroker],
) -> None:
    first, second = two_brokers
    servers = f"{first.bootstrap_servers},{second.bootstrap_servers}"
    topics = {side: fresh(side) for side in ("predictions", "labels")}
    async with admin(first.bootstrap_servers) as client:
        await client.create_topics([NewTopic(name, PARTITIONS, 2) for name in topics.values()])
    names = list(topics.values())
    await led_by(first, names, {1, 2})
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "linger.ms": 1})
    written = 0

    async def write() -> None:
        nonlocal written
        for number in range(written, written + PART):
            prediction = {"id": str(number), "model": "m", "prediction": "a"}
            producer.produce(topics["predictions"], json.dumps(prediction), partition=number % PARTITIONS)
            label = json.dumps({"id": str(number), "label": "a"})
            producer.produce(topics["labels"], label, partition=number // 3 % PARTITIONS)
        written += PART
        assert await asyncio.to_thread(producer.flush, 300) == 0

    document = {"kafka": {"bootstrap_servers": servers, "start_from": "earliest"}, "topics": topics}
    async with daemon(document) as running:
        for _ in range(CHANGES):
            await write()
            second.kill()
            await led_by(first, names, {1})
            await write()
            second.start()
            await led_by(first, names, {1, 2})
        await write()
        samples = await running.until(lambda s: value(s, "predictions_resolved_total") == written)
    for counted in ("predictions_duplicate", "labels_duplicate", "labels_orphaned", "predictions_expired"):
        assert value(samples, f"{counted}_total") == 0
    # What a producer wrote again to the new leader comes later than `time.settle`, so some is out of order.
    for counted in ("kafka_data_loss_total", "kafka_records_lost_total"):
        assert summed(samples, counted) == 0
