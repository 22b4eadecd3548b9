"""What operators and clusters do to a topic under its readers, on Apache Kafka."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from aiokafka.admin import NewPartitions, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.admin import CreateAclsRequest
from aiokafka.structs import TopicPartition

from tests.integration.conftest import Broker
from tests.integration.topics import admin, create_topic


async def delete_records(kafka: Broker, topic: str, before: int, partition: int = 0) -> None:
    """As retention would: the log begins at this offset."""
    async with admin(kafka.bootstrap_servers) as client:
        await client.delete_records({TopicPartition(topic, partition): RecordsToDelete(before)})


READ, DESCRIBE = 3, 8


async def allow(kafka: Broker, user: str, operation: int, topic: str) -> None:
    """Grant a right on a topic, on a broker that runs with an authorizer."""
    topics, literal, any_host, allowed = 2, 3, "*", 3
    client: Any = AIOKafkaClient(bootstrap_servers=kafka.bootstrap_servers)
    await client.bootstrap()
    try:
        request = CreateAclsRequest(topics, topic, literal, f"User:{user}", any_host, operation, allowed)
        answer = await client.send(next(iter(client.cluster.brokers())).nodeId, request)
        assert [error for error, _ in answer.creation_responses] == [0]
    finally:
        await client.close()


async def delete_topic(kafka: Broker, topic: str) -> None:
    async with admin(kafka.bootstrap_servers) as client:
        await client.delete_topics([topic])
        async with asyncio.timeout(300):
            while topic in await client.list_topics():
                pass


async def change_topic(kafka: Broker, topic: str, settings: Mapping[str, str]) -> None:
    async with admin(kafka.bootstrap_servers) as client:
        await client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, topic, dict(settings))])


async def recreate(kafka: Broker, topic: str, partitions: int = 1) -> None:
    await delete_topic(kafka, topic)
    await create_topic(kafka, topic, partitions)


async def grow(kafka: Broker, topic: str, partitions: int) -> None:
    async with admin(kafka.bootstrap_servers) as client:
        await client.create_partitions({topic: NewPartitions(partitions)})
