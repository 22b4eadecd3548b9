"""Writes batches made byte by byte to Apache Kafka, and damages its log on the disk."""

from __future__ import annotations

import asyncio
import struct
from pathlib import Path
from typing import Any

import aiokafka.errors as kafka_errors
from aiokafka.client import AIOKafkaClient
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.structs import TopicPartition

from tests.integration.kafka_broker import KafkaBroker

NOT_LEADER = 6


async def produce(servers: str, topic: str, batches: dict[int, list[bytes]]) -> None:
    """Write batches to partitions as they are, each in its own request; raises what the broker refuses."""
    client: Any = AIOKafkaClient(bootstrap_servers=servers)
    await client.bootstrap()
    try:
        await client.set_topics([topic])
        for partition, raw in batches.items():
            for data in raw:
                await _accepted(client, TopicPartition(topic, partition), data)
    finally:
        await client.close()


async def _accepted(client: Any, tp: TopicPartition, data: bytes) -> None:
    request = ProduceRequest(None, 1, 60_000, [(tp.topic, [(tp.partition, data)])])
    error = NOT_LEADER
    async with asyncio.timeout(60):
        while error == NOT_LEADER:  # a broker learns a moment later what it leads
            answer = await client.send(client.cluster.leader_for_partition(tp), request)
            [(_, [(_, error, *_)])] = answer.topics
    if error:
        raise kafka_errors.for_code(error)(tp)


def segment(broker: KafkaBroker, topic: str, partition: int) -> Path:
    """The first segment of a partition's log."""
    return broker.folder / "log" / f"{topic}-{partition}" / f"{0:020}.log"


def batch_starts(log: bytes) -> list[int]:
    """Where batches begin in a segment."""
    starts, at = [], 0
    while at < len(log):
        starts.append(at)
        at += 12 + struct.unpack_from(">i", log, at + 8)[0]
    return starts


def flip(file: Path, at: int, bits: int = 0x40) -> None:
    """Flip bits of one byte on the disk; the broker is to be stopped."""
    with file.open("r+b") as log:
        log.seek(at)
        [byte] = log.read(1)
        log.seek(at)
        log.write(bytes([byte ^ bits]))
