"""What operators and clusters do to a topic under its readers, on Apache Kafka."""

from __future__ import annotations

import asyncio

from aiokafka.admin import NewPartitions, RecordsToDelete
from aiokafka.structs import TopicPartition

from tests.integration.conftest import Broker
from tests.integration.topics import admin, create_topic


async def delete_records(kafka: Broker, topic: str, before: int, partition: int = 0) -> None:
    """As retention would: the log begins at this offset."""
    async with admin(kafka.bootstrap_servers) as client:
        await client.delete_records({TopicPartition(topic, partition): RecordsToDelete(before)})


async def delete_topic(kafka: Broker, topic: str) -> None:
    async with admin(kafka.bootstrap_servers) as client:
        await client.delete_topics([topic])
        async with asyncio.timeout(300):
            while topic in await client.list_topics():
                pass


async def recreate(kafka: Broker, topic: str, partitions: int = 1) -> None:
    await delete_topic(kafka, topic)
    await create_topic(kafka, topic, partitions)


async def grow(kafka: Broker, topic: str, partitions: int) -> None:
    async with admin(kafka.bootstrap_servers) as client:
        await client.create_partitions({topic: NewPartitions(partitions)})
