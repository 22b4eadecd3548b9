"""A network between reader and broker that hangs, breaks or is slow: no record lost, none twice."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator

import pytest

from streamwatch.edge.sources.kafka import KafkaSpec
from streamwatch.telemetry import InternalEvent, KafkaLost, KafkaRecovered
from tests.cpu_budget import OwnTime
from tests.integration.faulty_network import FaultyNetwork, faulty_network
from tests.integration.kafka_broker import KafkaBroker
from tests.integration.polling import PATIENCE_SECONDS, Reader
from tests.integration.topic_changes import recreate
from tests.integration.topics import create_topic, fresh, reading, send

RECORDS = 4_000


@pytest.fixture
async def network(killable_kafka: KafkaBroker) -> AsyncIterator[FaultyNetwork]:
    """The way to the broker; nothing else reaches its listener BEHIND."""
    ports = killable_kafka.ports
    async with faulty_network(ports["proxy"], ports["behind"]) as network:
        yield network


def spec(network: FaultyNetwork, **choices: object) -> KafkaSpec:
    impatient = {
        "alive_ms": 700,
        "stall_ms": 2_000,
        "request_timeout_ms": 60_000,  # whatever the client notifications by itself comes too late
        "poll_timeout_ms": 50,
        "backoff_initial_ms": 50,
        "max_partition_fetch_bytes": 4_096,
    }
    return KafkaSpec(bootstrap_servers=network.servers, **(impatient | choices))


async def filled(kafka: KafkaBroker) -> str:
    topic = await create_topic(kafka, fresh("network"), 2)
    for partition in (0, 1):
        await send(kafka.bootstrap_servers, topic, (b"%d" % i for i in range(RECORDS // 2)), partition)
    return topic


def whole(reader: Reader) -> bool:
    return sorted(reader.offsets) == [(p, o) for p in (0, 1) for o in range(RECORDS // 2)]


async def test_a_connection_that_hangs_half_open_is_noticed_and_replaced(
    killable_kafka: KafkaBroker, network: FaultyNetwork
):
    topic = await filled(killable_kafka)
    heard: list[InternalEvent] = []
    async with reading(spec(network), topic, emit=heard.append) as source:
        reader = Reader(source)
        await reader.until(lambda: len(reader.seen) > RECORDS / 4)
        network.stall_open()
        own, began, accepted = OwnTime(os.getpid()), time.monotonic(), network.accepted
        await reader.until(lambda: not source.up)
        assert own.look().seconds < 2
        await reader.until(lambda: network.accepted > accepted and source.assigned)
        assert time.monotonic() - began > 1.5
        assert own.look().seconds < 6
        lost = [h.error for h in heard if isinstance(h, KafkaLost)]
        silent = [int(said[1]) for error in lost if (said := re.search(r"no answer for (\d+) s", error))]
        assert max(silent) >= 2, lost
        assert any(isinstance(h, KafkaRecovered) for h in heard)
        await reader.until(lambda: len(reader.seen) >= RECORDS)
        await reader.until_caught_up()
        assert whole(reader)
        assert source.losses == {}


async def test_a_network_that_hangs_altogether_is_outlasted(
    killable_kafka: KafkaBroker, network: FaultyNetwork
):
    topic = await filled(killable_kafka)
    async with reading(spec(network, request_timeout_ms=2_000), topic) as source:
        reader = Reader(source)
        await reader.until(lambda: len(reader.seen) > RECORDS / 4)
        network.stall_all()
        await reader.until(lambda: not source.assigned)
        began = time.monotonic()
        await reader.until(lambda: time.monotonic() - began > 3)
        assert not source.up
        network.heal()
        await reader.until(lambda: len(reader.seen) >= RECORDS)
        await reader.until_caught_up()
        assert whole(reader)


async def test_connections_reset_again_and_again_cost_nothing(
    killable_kafka: KafkaBroker, network: FaultyNetwork
):
    topic = await filled(killable_kafka)
    network.latency_seconds = 0.01
    async with reading(spec(network), topic) as source:
        reader = Reader(source)
        for share in range(1, 8):
            await reader.until(lambda share=share: len(reader.seen) >= RECORDS * share / 8)
            network.reset()
        await reader.until(lambda: len(reader.seen) >= RECORDS)
        await reader.until_caught_up()
        assert whole(reader)
        assert source.losses == {}


async def test_a_network_with_long_delays_is_slow_and_nothing_else(
    killable_kafka: KafkaBroker, network: FaultyNetwork
):
    topic = await filled(killable_kafka)
    network.latency_seconds = 0.4
    heard: list[InternalEvent] = []
    patient = {"alive_ms": 10_000, "stall_ms": 30_000, "max_partition_fetch_bytes": 65_536}
    async with reading(spec(network, **patient), topic, emit=heard.append) as source:
        reader = Reader(source)
        await reader.until(lambda: len(reader.seen) >= RECORDS)
        await reader.until_caught_up()
        assert whole(reader)
        assert (source.up, source.losses) == (True, {})
    assert not any(isinstance(h, KafkaLost) for h in heard)


async def test_a_topic_made_anew_while_the_network_was_cut_is_read_from_its_beginning(
    killable_kafka: KafkaBroker, network: FaultyNetwork
):
    topic = await create_topic(killable_kafka, fresh("anew"))
    await send(killable_kafka.bootstrap_servers, topic, [b"old"] * 10)
    async with reading(spec(network, stall_ms=60_000), topic) as source:
        reader = Reader(source)
        await reader.until_caught_up()
        network.cut()
        await recreate(killable_kafka, topic)
        # Longer than the old log: fetches at the position simply go on, once the client has reconnected.
        await send(killable_kafka.bootstrap_servers, topic, [b"new"] * 25)
        network.heal()
        await reader.until(lambda: len(reader.seen) >= 35)
        await reader.until_caught_up()
        assert reader.offsets == [(0, o) for o in range(10)] + [(0, o) for o in range(25)]
        assert source.losses == {"recreated": 1}


async def test_leaving_over_a_network_that_hangs_takes_bounded_time(
    killable_kafka: KafkaBroker, network: FaultyNetwork
):
    topic = await filled(killable_kafka)
    async with reading(spec(network, stop_timeout_ms=1_500, group_id=fresh("g")), topic) as source:
        await Reader(source).until(lambda: source.up)
        network.stall_all()
        own = OwnTime(os.getpid())
        async with asyncio.timeout(PATIENCE_SECONDS):
            await source.stop()
        assert own.look().seconds < 4
