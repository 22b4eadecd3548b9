"""The source on Apache Kafka: topics, starting points, partitions, and logs that change under the reader."""

from __future__ import annotations

import asyncio
import contextlib
import os

import pytest
from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka import (
    Ago,
    At,
    KafkaSource,
    KafkaSpec,
    LogLost,
    Start,
    TopicsMissing,
    list_topics,
)
from streamwatch.telemetry import InternalEvent, PartitionsAdded, PositionLost
from tests.cpu_budget import OwnTime
from tests.integration.conftest import Broker
from tests.integration.polling import PATIENCE_SECONDS, Reader
from tests.integration.topic_changes import delete_records, grow
from tests.integration.topics import admin, create_topic, fresh, producer, reading, send

DAY_MS = 86_400_000


def spec(kafka: Broker, **choices: object) -> KafkaSpec:
    return KafkaSpec(bootstrap_servers=kafka.bootstrap_servers, **({"poll_timeout_ms": 100} | choices))


async def test_all_partitions_are_read_completely_and_in_order(broker: Broker):
    topic = await create_topic(broker, fresh("order"), 4)
    for partition in range(4):
        await send(broker.bootstrap_servers, topic, (b"%d" % i for i in range(1_500)), partition)
    async with reading(spec(broker), topic) as source:
        reader = Reader(source)
        await reader.until_caught_up()
        for partition in range(4):
            assert [o for p, o in reader.offsets if p == partition] == list(range(1_500))


async def test_a_misspelt_topic_is_not_created_even_where_brokers_would(kafka: Broker):
    topic = await create_topic(kafka, fresh("predictions"))
    misspelt = topic.replace("predictions", "predcitions")
    source = KafkaSource(spec(kafka), [topic, misspelt], lambda _: None)
    with pytest.raises(TopicsMissing, match=f"{misspelt!r} does not exist .did you mean {topic}"):
        await source.start({})
    await source.stop()
    listing = await list_topics(spec(kafka))
    assert topic in listing
    assert misspelt not in listing


async def test_a_topic_deleted_while_it_is_read_stays_deleted(kafka: Broker):
    doomed, other = await create_topic(kafka, fresh("doomed")), await create_topic(kafka, fresh("other"))
    async with reading(spec(kafka, metadata_refresh_ms=200), doomed, other) as source:
        reader = Reader(source)
        await reader.until_caught_up()
        async with admin(kafka.bootstrap_servers) as client:
            await client.delete_topics([doomed])
        await reader.until(lambda: not source.assigned)
        assert doomed not in await list_topics(spec(kafka))
        await create_topic(kafka, doomed)
        await send(kafka.bootstrap_servers, doomed, [b"new"])
        await reader.until(lambda: b"new" in reader.values)


@pytest.mark.parametrize(
    ("start", "first"),
    [
        ("earliest", 0),
        ("latest", 3),
        (At(2_000), 1),
        (At(2_001), 2),
        (At(9_000), 3),
        (Ago(2 * DAY_MS), 0),
        (Ago(1), 3),
    ],
)
async def test_reading_starts_where_it_was_told_to(kafka: Broker, start: Start, first: int):
    topic = await create_topic(kafka, fresh("start"))
    now = DAY_MS / 1_000 + 10
    for record_ms in (1_000, 2_000, 3_000):
        await send(kafka.bootstrap_servers, topic, [b"old"], record_ms=record_ms)
    async with reading(spec(kafka, start_from=start), topic, wall=lambda: now) as source:
        await send(kafka.bootstrap_servers, topic, [b"new"], record_ms=10_000)
        reader = Reader(source)
        await reader.until(lambda: b"new" in reader.values)
        assert [o for _, o in reader.offsets] == list(range(first, 4))


async def test_a_start_is_resolved_once_and_not_again_after_a_rebuild(kafka: Broker):
    topic = await create_topic(kafka, fresh("once"))
    await send(kafka.bootstrap_servers, topic, [b"old"])
    async with reading(spec(kafka, start_from="latest"), topic) as source:
        reader = Reader(source)
        await reader.until_caught_up()
        assert reader.seen == []
        assert source._session.connection is not None
        source._session.drop(source._session.connection, TimeoutError("as if the brokers had fallen silent"))
        await send(kafka.bootstrap_servers, topic, [b"new"])
        await reader.until(lambda: bool(reader.seen))
        assert reader.values == [b"new"]


async def test_partitions_added_are_noticed_and_read_from_their_beginning(kafka: Broker):
    topic = await create_topic(kafka, fresh("growing"))
    heard: list[InternalEvent] = []
    async with reading(
        spec(kafka, metadata_refresh_ms=200, start_from="latest"), topic, emit=heard.append
    ) as source:
        reader = Reader(source)
        await reader.until_caught_up()
        await grow(kafka, topic, 3)
        for partition in range(3):
            await send(kafka.bootstrap_servers, topic, [b"x"], partition)
        await reader.until(lambda: len(reader.seen) == 3)
        assert sorted(reader.offsets) == [(0, 0), (1, 0), (2, 0)]
        assert sum(h.partitions for h in heard if isinstance(h, PartitionsAdded)) == 2


async def test_records_that_retention_took_first_are_counted_as_lost(kafka: Broker):
    topic = await create_topic(kafka, fresh("retained"))
    await send(kafka.bootstrap_servers, topic, (b"%d" % i for i in range(10)))
    await delete_records(kafka, topic, 7)
    heard: list[InternalEvent] = []
    source = KafkaSource(spec(kafka), [topic], heard.append)
    await source.start({Partition(topic, 0): 2})
    reader = Reader(source)
    await reader.until_caught_up()
    assert reader.offsets == [(0, 7), (0, 8), (0, 9)]
    assert (source.losses, source.records_lost) == ({"retention": 1}, {"retention": 5})
    assert PositionLost(topic, 0, 2, 7, "retention") in heard
    await source.stop()


async def test_a_log_shorter_than_the_position_is_read_from_its_end(kafka: Broker):
    topic = await create_topic(kafka, fresh("short"))
    await send(kafka.bootstrap_servers, topic, [b"old"])
    source = KafkaSource(spec(kafka), [topic], lambda _: None)
    await source.start({Partition(topic, 0): 50})
    reader = Reader(source)
    await reader.until_caught_up()
    await send(kafka.bootstrap_servers, topic, [b"new"])
    await reader.until(lambda: bool(reader.seen))
    assert reader.values == [b"new"]
    assert source.losses == {"truncation": 1}
    await source.stop()


async def test_a_loss_ends_reading_where_the_operator_asked_for_that(kafka: Broker):
    topic = await create_topic(kafka, fresh("strict"))
    source = KafkaSource(spec(kafka, on_data_loss="fail"), [topic], lambda _: None)
    await source.start({Partition(topic, 0): 50})
    with pytest.raises(LogLost, match=r"was read up to offset 50, and its log now ends at 0 \(truncation"):
        await Reader(source).until(lambda: False)
    await source.stop()


async def test_durable_positions_and_no_others_are_committed_for_lag_tools(kafka: Broker):
    topic, group = await create_topic(kafka, fresh("lag")), fresh("group")
    await send(kafka.bootstrap_servers, topic, [b"x"] * 10)
    async with (
        reading(spec(kafka, group_id=group, commit_interval_ms=200), topic) as source,
        admin(kafka.bootstrap_servers) as client,
        asyncio.timeout(PATIENCE_SECONDS),
    ):
        await Reader(source).until_caught_up()
        source.durable({Partition(topic, 0): 7})
        committed = None
        while committed is None:
            await source.poll()
            with contextlib.suppress(KafkaError):  # the first group ever takes the broker a moment
                committed = (await client.list_consumer_group_offsets(group)).get(TopicPartition(topic, 0))
        assert committed.offset == 7


async def test_aborted_records_are_not_seen_and_control_records_do_not_confuse_lag(kafka: Broker):
    topic = await create_topic(kafka, fresh("transactions"))
    async with (
        producer(kafka.bootstrap_servers, transactional_id=fresh("t")) as client,
        reading(spec(kafka), topic) as source,
    ):
        reader = Reader(source)
        await client.begin_transaction()
        await client.send_and_wait(topic, b"committed")
        await client.commit_transaction()
        await client.begin_transaction()
        await client.send_and_wait(topic, b"aborted")
        await client.abort_transaction()
        await client.begin_transaction()
        await client.send_and_wait(topic, b"committed too")
        await client.commit_transaction()
        await reader.until(lambda: len(reader.seen) == 2)
        await reader.until_caught_up()
        assert reader.offsets == [(0, 0), (0, 4)]
        # Each transaction ends with a control record, and the position is after that.
        assert reader.poll.partitions[Partition(topic, 0)].position == 6
        assert reader.lag(topic) == 0


async def test_an_open_transaction_is_not_caught_up(kafka: Broker):
    topic = await create_topic(kafka, fresh("open"))
    async with (
        producer(kafka.bootstrap_servers, transactional_id=fresh("t")) as client,
        reading(spec(kafka), topic) as source,
    ):
        reader = Reader(source)
        await send(kafka.bootstrap_servers, topic, [b"plain"])
        await reader.until_caught_up()
        await client.begin_transaction()
        await client.send_and_wait(topic, b"undecided")
        await send(kafka.bootstrap_servers, topic, [b"behind it"])
        await reader.until(lambda: reader.lag(topic) == 2)
        assert not reader.caught_up()
        assert reader.values == [b"plain"]
        await client.commit_transaction()
        await reader.until_caught_up()
        assert reader.values == [b"plain", b"undecided", b"behind it"]


async def test_many_aborted_records_do_not_stop_the_reading(kafka: Broker):
    topic = await create_topic(kafka, fresh("aborted"))
    async with producer(kafka.bootstrap_servers, transactional_id=fresh("t")) as client:
        for _ in range(3):
            await client.begin_transaction()
            for _ in range(700):
                await client.send(topic, b"x" * 1_000)
            await client.abort_transaction()
    await send(kafka.bootstrap_servers, topic, [b"last"])
    async with reading(spec(kafka), topic) as source:
        reader = Reader(source)
        own = OwnTime(os.getpid())
        await reader.until_caught_up()
        assert own.look().seconds < 20
        assert reader.values == [b"last"]
