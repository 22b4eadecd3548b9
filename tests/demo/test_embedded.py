"""The broker inside the process."""

from __future__ import annotations

import asyncio
import importlib

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError

from streamwatch.demo.embedded import EmbeddedBroker, EmbeddedBrokerMissingError

pytestmark = pytest.mark.slow


@pytest.fixture
def broker():
    with EmbeddedBroker() as running:
        yield running


async def test_what_is_produced_is_consumed_with_its_key_and_timestamp(broker):
    broker.create_topic("events", partitions=2)
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for number in range(100):
            await producer.send(
                "events", b"v%d" % number, key=b"k%d" % number, timestamp_ms=1_700_000_000_000 + number
            )
        await producer.flush()
    partitions = [TopicPartition("events", p) for p in range(2)]
    async with AIOKafkaConsumer(
        bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="none", isolation_level="read_committed"
    ) as consumer:
        consumer.assign(partitions)
        await consumer.seek_to_beginning()
        seen = {}
        async with asyncio.timeout(300):
            while len(seen) < 100:
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    seen |= {r.key: (r.value, r.timestamp) for r in records}
    assert seen == {b"k%d" % n: (b"v%d" % n, 1_700_000_000_000 + n) for n in range(100)}


async def test_topics_have_the_partitions_they_were_made_with(broker):
    broker.create_topic("three", partitions=3)
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        assert await producer.partitions_for("three") == {0, 1, 2}


def test_a_topic_is_made_once_and_not_without_partitions(broker):
    broker.create_topic("once")
    with pytest.raises(ValueError, match=r"once was not created.*already exists"):
        broker.create_topic("once")
    with pytest.raises(ValueError, match="at least one partition"):
        broker.create_topic("none", partitions=0)


async def test_it_can_go_down_and_come_back_with_what_it_holds(broker):
    broker.create_topic("kept")
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        assert (await producer.send_and_wait("kept", b"before")).offset == 0
    broker.set_down()
    refused = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
    with pytest.raises(KafkaError):
        await refused.start()
    await refused.stop()
    broker.set_up()
    async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        assert (await producer.send_and_wait("kept", b"after")).offset == 1


def test_two_brokers_do_not_know_each_other(broker):
    with EmbeddedBroker() as other:
        assert other.bootstrap_servers != broker.bootstrap_servers
        other.create_topic("mine")
        broker.create_topic("mine")


def test_outside_its_block_it_says_so():
    broker = EmbeddedBroker()
    with pytest.raises(RuntimeError, match="`with` block"):
        broker.create_topic("late")
    with broker:
        assert broker.bootstrap_servers.startswith("127.0.0.1:")
    with pytest.raises(RuntimeError, match="`with` block"):
        _ = broker.bootstrap_servers


def test_without_the_extra_the_error_names_what_to_install(monkeypatch):
    real_import = importlib.import_module

    def absent(name, package=None):
        if name.startswith("confluent_kafka"):
            raise ImportError("No module named 'confluent_kafka'")
        return real_import(name, package)

    monkeypatch.setattr(importlib, "import_module", absent)
    with (
        pytest.raises(EmbeddedBrokerMissingError, match=r"pip install 'streamwatchd\[demo\]'"),
        EmbeddedBroker(),
    ):
        pass
