"""Toxiproxy between reader and Apache Kafka: half-open, slow, cut, reset; no record lost, none twice."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable

import pytest

from streamwatch.edge.sources.kafka import KafkaSpec
from streamwatch.telemetry import InternalEvent, KafkaLost, KafkaRecovered
from tests.integration.kafka_broker import KafkaBroker
from tests.integration.polling import Reader
from tests.integration.test_kafka_source_network import RECORDS, filled, whole
from tests.integration.topics import reading
from tests.integration.toxiproxy import Toxiproxy, toxiproxy

IMPATIENT = {
    "alive_ms": 700,
    "stall_ms": 2_000,
    "request_timeout_ms": 2_000,
    "poll_timeout_ms": 50,
    "backoff_initial_ms": 50,
    "max_partition_fetch_bytes": 4_096,
}
PATIENT = IMPATIENT | {"alive_ms": 20_000, "stall_ms": 60_000, "request_timeout_ms": 60_000}


@pytest.fixture
async def network(
    killable_kafka: KafkaBroker, real_component: Callable[[str], str]
) -> AsyncIterator[Toxiproxy]:
    ports = killable_kafka.ports
    async with toxiproxy(real_component("toxiproxy-server"), ports["proxy"], ports["behind"]) as network:
        yield network


def spec(network: Toxiproxy, choices: dict[str, int]) -> KafkaSpec:
    return KafkaSpec(bootstrap_servers=network.servers, **choices)  # type: ignore[arg-type]


async def until_whole(reader: Reader) -> None:
    await reader.until(lambda: len(reader.seen) >= RECORDS)
    await reader.until_caught_up()
    assert whole(reader)


async def test_connections_over_which_nothing_comes_any_more_are_noticed_and_outlasted(
    killable_kafka: KafkaBroker, network: Toxiproxy
) -> None:
    """Half-open: a timeout of 0 holds every byte back and closes nothing."""
    topic = await filled(killable_kafka)
    heard: list[InternalEvent] = []
    async with reading(spec(network, IMPATIENT), topic, emit=heard.append) as source:
        reader = Reader(source)
        await reader.until(lambda: len(reader.seen) > RECORDS / 4)
        await network.poison("timeout", timeout=0)
        await reader.until(lambda: not source.up)
        await reader.until(lambda: any(isinstance(event, KafkaLost) for event in heard))
        await network.cure("timeout")
        await until_whole(reader)
        assert any(isinstance(event, KafkaRecovered) for event in heard)
        assert source.losses == {}


@pytest.mark.parametrize(
    ("toxic", "attributes"),
    [
        ("latency", {"latency": 300, "jitter": 200}),
        ("bandwidth", {"rate": 40}),
        ("slicer", {"average_size": 7, "size_variation": 5, "delay": 10}),
    ],
)
async def test_a_slow_network_is_slow_and_nothing_else(
    killable_kafka: KafkaBroker, network: Toxiproxy, toxic: str, attributes: dict[str, int]
) -> None:
    topic = await filled(killable_kafka)
    heard: list[InternalEvent] = []
    wide = PATIENT | {"max_partition_fetch_bytes": 65_536}
    await network.poison(toxic, **attributes)
    async with reading(spec(network, wide), topic, emit=heard.append) as source:
        reader = Reader(source)
        await until_whole(reader)
        assert (source.up, source.losses) == (True, {})
    assert not any(isinstance(event, KafkaLost) for event in heard)


@pytest.mark.parametrize(
    ("toxic", "attributes"),
    [("reset_peer", {"timeout": 30}), ("limit_data", {"bytes": 6_000}), ("slow_close", {"delay": 1_000})],
)
async def test_connections_that_end_anywhere_again_and_again_lose_and_repeat_nothing(
    killable_kafka: KafkaBroker, network: Toxiproxy, toxic: str, attributes: dict[str, int]
) -> None:
    topic = await filled(killable_kafka)
    async with reading(spec(network, IMPATIENT), topic) as source:
        reader = Reader(source)
        for share in range(1, 5):
            await reader.until(lambda share=share: len(reader.seen) >= RECORDS * share / 6)
            await network.poison(toxic, **attributes)
            began = time.monotonic()
            await reader.until(lambda began=began: time.monotonic() - began > 0.3)
            if toxic == "slow_close":
                await network.enable(enabled=False)
                await network.enable(enabled=True)
            await network.cure(toxic)
        await until_whole(reader)
        assert source.losses == {}


async def test_a_proxy_that_is_down_for_a_while_is_waited_for(
    killable_kafka: KafkaBroker, network: Toxiproxy
) -> None:
    topic = await filled(killable_kafka)
    async with reading(spec(network, IMPATIENT), topic) as source:
        reader = Reader(source)
        await reader.until(lambda: len(reader.seen) > RECORDS / 4)
        await network.enable(enabled=False)
        await reader.until(lambda: not source.up)
        await network.enable(enabled=True)
        await until_whole(reader)
        assert source.losses == {}
