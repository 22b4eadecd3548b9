"""The broker is killed and started again while records are being written and read."""

from __future__ import annotations

import asyncio
import contextlib
import os

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from streamwatch.edge.sources.kafka import KafkaSpec
from streamwatch.telemetry import InternalEvent, KafkaLost, KafkaRecovered
from tests.cpu_budget import OwnTime
from tests.integration.kafka_broker import KafkaBroker
from tests.integration.polling import Reader
from tests.integration.topics import create_topic, fresh, reading

RECORDS = 6_000


async def write(servers: str, topic: str) -> None:
    """As an idempotent producer would: every record once, however often the broker goes away."""
    client = AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True, request_timeout_ms=600_000)
    await client.start()
    try:
        futures = []
        for i in range(RECORDS):
            futures.append(await client.send(topic, b"%d" % i, partition=i % 4))
            if i % 100 == 0:
                await asyncio.sleep(0.03)
        await asyncio.gather(*futures)
    finally:
        with contextlib.suppress(KafkaError):
            await client.stop()


async def test_a_killed_broker_costs_no_record_and_doubles_none(killable_kafka: KafkaBroker):
    topic = await create_topic(killable_kafka, fresh("outage"), 4)
    heard: list[InternalEvent] = []
    spec = KafkaSpec(
        bootstrap_servers=killable_kafka.bootstrap_servers,
        alive_ms=2_000,
        watermark_grace_ms=5_000,
        poll_timeout_ms=50,
        group_id=fresh("g"),
    )
    async with reading(spec, topic, emit=heard.append) as source:
        reader = Reader(source)
        writing = asyncio.create_task(write(killable_kafka.bootstrap_servers, topic))
        await reader.until(lambda: len(reader.seen) > RECORDS / 10)
        assert source.up
        killable_kafka.kill()
        own = OwnTime(os.getpid())
        await reader.until(lambda: not source.up)
        assert own.look().seconds < 6
        await reader.until(lambda: not reader.caught_up())
        await reader.until(lambda: any(isinstance(h, KafkaLost) for h in heard))
        await asyncio.to_thread(killable_kafka.start)
        await reader.until(lambda: source.up)
        assert any(isinstance(h, KafkaRecovered) for h in heard)
        await reader.until(lambda: len(reader.seen) >= RECORDS and reader.caught_up())
        await writing
        await reader.until_caught_up()
        assert sorted(reader.values) == sorted(b"%d" % i for i in range(RECORDS))
        for partition in range(4):
            offsets = [o for p, o in reader.offsets if p == partition]
            assert offsets == list(range(len(offsets)))
