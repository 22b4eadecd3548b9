"""Topics and records for the tests, over any broker."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from confluent_kafka import Consumer, TopicPartition

from streamwatch.demo.embedded import EmbeddedBroker
from streamwatch.edge.sources.kafka import KafkaSource, KafkaSpec
from streamwatch.telemetry import InternalEvent


def fresh(name: str) -> str:
    """A topic name no other test has."""
    return f"{name}-{uuid.uuid4().hex[:8]}"


@asynccontextmanager
async def admin(servers: str) -> AsyncIterator[AIOKafkaAdminClient]:
    client = AIOKafkaAdminClient(bootstrap_servers=servers)
    await client.start()
    try:
        yield client
    finally:
        await client.close()


async def create_topic(
    broker: object, name: str, partitions: int = 1, replicas: int = 1, **configs: str
) -> str:
    if isinstance(broker, EmbeddedBroker):
        broker.create_topic(name, partitions)
        return name
    named = {key.replace("_", "."): value for key, value in configs.items()}
    async with admin(broker.bootstrap_servers) as client:  # type: ignore[attr-defined]
        await client.create_topics([NewTopic(name, partitions, replicas, topic_configs=named)])
        async with asyncio.timeout(300):
            while name not in await client.list_topics():  # the controller knows it before the broker does
                pass
    return name


@asynccontextmanager
async def producer(servers: str, **options: object) -> AsyncIterator[AIOKafkaProducer]:
    client = AIOKafkaProducer(bootstrap_servers=servers, **options)
    await client.start()
    try:
        yield client
    finally:
        await client.stop()


async def send(
    servers: str, topic: str, values: Iterable[bytes], partition: int = 0, record_ms: int | None = None
) -> None:
    async with producer(servers) as client:
        for value in values:
            await client.send(topic, value, partition=partition, timestamp_ms=record_ms)
        await client.flush()


@asynccontextmanager
async def reading(
    spec: KafkaSpec,
    *topics: str,
    emit: Callable[[InternalEvent], None] = lambda _: None,
    **clocks: Callable[[], float],
) -> AsyncIterator[KafkaSource]:
    """A started source, stopped at the end."""
    source = KafkaSource(spec, topics, emit, **clocks)
    try:
        await source.start({})
        yield source
    finally:
        await source.stop()


def every_record(servers: str, topic: str) -> list[Any]:
    """The records of a topic with one partition, as the client gives them."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "look"})
    place = TopicPartition(topic, 0, 0)
    consumer.assign([place])
    found: list[Any] = []
    while len(found) < consumer.get_watermark_offsets(place)[1]:
        found += consumer.consume(1_000, 1.0)
    consumer.close()
    return found
