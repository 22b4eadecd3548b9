"""Logs that change under a reader with durable positions, on Apache Kafka: noticed, counted, handled."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest

from streamwatch.core.records.events import Fingerprint, Partition
from streamwatch.edge.sources.kafka import KafkaSource, KafkaSpec, LogLost
from streamwatch.telemetry import InternalEvent, PositionLost, PositionUnverified
from tests.integration.conftest import Broker
from tests.integration.polling import Reader
from tests.integration.topic_changes import delete_records, delete_topic, grow, recreate
from tests.integration.topics import create_topic, fresh, producer, send

Positions = Mapping[Partition, int]
Prints = Mapping[Partition, Fingerprint]


def spec(kafka: Broker, **choices: object) -> KafkaSpec:
    fast = {"poll_timeout_ms": 100, "backoff_initial_ms": 50, "backoff_max_ms": 200}
    return KafkaSpec(bootstrap_servers=kafka.bootstrap_servers, **(fast | choices))


@asynccontextmanager
async def going_on(
    spec: KafkaSpec,
    topic: str,
    positions: Positions,
    prints: Prints,
    heard: list[InternalEvent] | None = None,
) -> AsyncIterator[Reader]:
    """Another process, with what a store kept of the one before."""
    source = KafkaSource(spec, [topic], ([] if heard is None else heard).append)
    try:
        await source.start(positions, prints)
        yield Reader(source)
    finally:
        await source.stop()


async def read_all(spec: KafkaSpec, topic: str) -> tuple[Positions, Prints]:
    """Read a topic to its end, and take what a store would keep."""
    async with going_on(spec, topic, {}, {}) as reader:
        await reader.until_caught_up()
        return kept(reader)


def kept(reader: Reader) -> tuple[Positions, Prints]:
    return {p: s.position for p, s in reader.poll.partitions.items()}, reader.source.fingerprints()


def numbered(first: int, last: int, word: str = "") -> list[bytes]:
    return [f"{word}{i}".encode() for i in range(first, last)]


async def test_two_readers_in_turn_deliver_every_record_once(kafka: Broker):
    topic = await create_topic(kafka, fresh("turn"), 2)
    for partition in (0, 1):
        await send(kafka.bootstrap_servers, topic, numbered(0, 700), partition)
    seen: list[tuple[int, int]] = []
    positions, prints = {}, {}
    while len(seen) < 1_400:
        async with going_on(spec(kafka), topic, positions, prints) as reader:
            await reader.until(lambda: bool(reader.seen))
            positions, prints = kept(reader)
            seen += reader.offsets
            assert reader.source.losses == {}
            assert reader.source.position_unverified == 0
    assert sorted(seen) == [(p, o) for p in (0, 1) for o in range(700)]


@pytest.mark.parametrize("length", [0, 3, 10, 25])
async def test_a_topic_made_anew_between_two_runs_is_read_from_its_beginning(kafka: Broker, length: int):
    topic = await create_topic(kafka, fresh("anew"))
    await send(kafka.bootstrap_servers, topic, numbered(0, 10, "old"))
    positions, prints = await read_all(spec(kafka), topic)
    await recreate(kafka, topic)
    await send(kafka.bootstrap_servers, topic, numbered(0, length, "new"))
    heard: list[InternalEvent] = []
    async with going_on(spec(kafka), topic, positions, prints, heard) as reader:
        await reader.until_caught_up()
        assert reader.values == numbered(0, length, "new")
        assert (reader.source.losses, reader.source.records_lost) == ({"recreated": 1}, {})
        assert [h for h in heard if isinstance(h, PositionLost)] == [
            PositionLost(topic, 0, 10, 0, "recreated")
        ]
        positions, prints = kept(reader)
    async with going_on(spec(kafka), topic, positions, prints) as reader:
        await reader.until_caught_up()
        assert (reader.values, reader.source.losses) == ([], {})


@pytest.mark.parametrize("length", [3, 10, 25])
async def test_without_topic_ids_the_records_tell_that_a_topic_is_another(kafka: Broker, length: int):
    topic = await create_topic(kafka, fresh("noids"))
    for i in range(5):
        await send(kafka.bootstrap_servers, topic, numbered(2 * i, 2 * i + 2, "old"))
        if i == 0:
            positions, prints = await read_all(spec(kafka), topic)
        else:
            async with going_on(spec(kafka), topic, positions, prints) as reader:
                await reader.until_caught_up()
                positions, prints = kept(reader)
    nameless = {p: Fingerprint(None, known.marks) for p, known in prints.items()}
    await recreate(kafka, topic)
    await send(kafka.bootstrap_servers, topic, numbered(0, length, "new"))
    async with going_on(spec(kafka), topic, positions, nameless) as reader:
        await reader.until_caught_up()
        assert reader.values == numbered(0, length, "new")
        assert reader.source.losses == {"recreated": 1}


async def test_a_log_cut_at_its_end_is_read_on_from_there_if_an_earlier_record_still_matches(kafka: Broker):
    topic = await create_topic(kafka, fresh("cut"))
    await send(kafka.bootstrap_servers, topic, numbered(0, 3))
    _, prints = await read_all(spec(kafka), topic)
    # As if seven more had been read from a leader that lost them.
    cut = Partition(topic, 0)
    lost = Fingerprint(None, (type(prints[cut].marks[0])(9, 1), *prints[cut].marks))
    async with going_on(spec(kafka), topic, {cut: 10}, {cut: lost}) as reader:
        await send(kafka.bootstrap_servers, topic, [b"next"])
        await reader.until(lambda: b"next" in reader.values)
        assert reader.offsets == [(0, 3)]
        assert (reader.source.losses, reader.source.records_lost) == ({"truncation": 1}, {})


@pytest.mark.parametrize("length", [0, 3, 10, 25])
async def test_a_topic_made_anew_while_it_is_read_is_read_from_its_beginning(kafka: Broker, length: int):
    topic = await create_topic(kafka, fresh("alive"))
    await send(kafka.bootstrap_servers, topic, numbered(0, 10, "old"))
    async with going_on(spec(kafka), topic, {}, {}) as reader:
        await reader.until_caught_up()
        await recreate(kafka, topic)
        await send(kafka.bootstrap_servers, topic, numbered(0, length, "new"))
        await reader.until(lambda: bool(reader.source.losses))
        await reader.until_caught_up()
        await send(kafka.bootstrap_servers, topic, [b"last"])
        await reader.until(lambda: b"last" in reader.values)
        assert reader.values == [*numbered(0, 10, "old"), *numbered(0, length, "new"), b"last"]
        assert reader.source.losses == {"recreated": 1}


async def test_a_topic_made_anew_with_fewer_partitions_gives_up_those_that_are_gone(kafka: Broker):
    topic = await create_topic(kafka, fresh("fewer"), 2)
    for partition in (0, 1):
        await send(kafka.bootstrap_servers, topic, numbered(0, 5), partition)
    positions, prints = await read_all(spec(kafka), topic)
    await recreate(kafka, topic)
    await send(kafka.bootstrap_servers, topic, [b"new"])
    async with going_on(spec(kafka), topic, positions, prints) as reader:
        await reader.until_caught_up()
        assert reader.values == [b"new"]
        assert reader.source.losses == {"recreated": 1, "partition_vanished": 1}
        assert set(reader.source.fingerprints()) == {Partition(topic, 0)}


async def test_a_topic_gone_for_a_while_is_waited_for(kafka: Broker):
    topic = await create_topic(kafka, fresh("gone"))
    await send(kafka.bootstrap_servers, topic, [b"old"])
    async with going_on(spec(kafka), topic, {}, {}) as reader:
        await reader.until_caught_up()
        await delete_topic(kafka, topic)
        await reader.until(lambda: not reader.source.assigned)
        await create_topic(kafka, topic)
        await send(kafka.bootstrap_servers, topic, [b"new", b"newer"])
        await reader.until(lambda: len(reader.seen) == 3)
        assert reader.values == [b"old", b"new", b"newer"]
        assert reader.source.losses == {"recreated": 1}


async def test_partitions_added_while_nobody_read_are_read_from_their_beginning(kafka: Broker):
    topic = await create_topic(kafka, fresh("grown"), 2)
    for partition in (0, 1):
        await send(kafka.bootstrap_servers, topic, numbered(0, 3), partition)
    from_the_end = spec(kafka, start_from="latest")
    positions, prints = await read_all(from_the_end, topic)
    await grow(kafka, topic, 4)
    for partition in range(4):
        await send(kafka.bootstrap_servers, topic, [b"new"], partition)
    async with going_on(from_the_end, topic, positions, prints) as reader:
        await reader.until(lambda: len(reader.seen) == 4)
        await reader.until_caught_up()
        assert sorted(reader.offsets) == [(0, 3), (1, 3), (2, 0), (3, 0)]
        assert reader.source.losses == {}


async def test_partitions_added_while_reading_lose_and_repeat_nothing(kafka: Broker):
    topic = await create_topic(kafka, fresh("growing"), 2)
    async with going_on(spec(kafka, metadata_refresh_ms=200), topic, {}, {}) as reader:
        async with producer(kafka.bootstrap_servers) as client:
            for i in range(1_000):
                await client.send(topic, b"%d" % i, partition=i % 2)
        await reader.until(lambda: len(reader.seen) > 0)
        await grow(kafka, topic, 4)
        for partition in range(4):
            await send(kafka.bootstrap_servers, topic, numbered(1_000, 1_250), partition)
        await reader.until(lambda: len(reader.seen) >= 2_000)
        await reader.until_caught_up()
        expected = [(p, o) for p in (0, 1) for o in range(750)] + [(p, o) for p in (2, 3) for o in range(250)]
        assert sorted(reader.offsets) == expected
        assert reader.source.losses == {}


async def test_retention_shorter_than_an_outage_counts_what_it_took(kafka: Broker):
    topic = await create_topic(kafka, fresh("outage"))
    await send(kafka.bootstrap_servers, topic, numbered(0, 10))
    positions, prints = await read_all(spec(kafka), topic)
    await send(kafka.bootstrap_servers, topic, numbered(10, 40))
    await delete_records(kafka, topic, 25)
    heard: list[InternalEvent] = []
    async with going_on(spec(kafka), topic, positions, prints, heard) as reader:
        await reader.until_caught_up()
        assert reader.values == numbered(25, 40)
        assert (reader.source.losses, reader.source.records_lost) == ({"retention": 1}, {"retention": 15})
        # The record that would have vouched for the log was taken too; its topic id does.
        assert reader.source.position_unverified == 1
        assert PositionUnverified(topic, 0, 9) in heard


async def test_records_deleted_under_a_running_reader_are_counted(kafka: Broker):
    topic = await create_topic(kafka, fresh("head"))
    await send(kafka.bootstrap_servers, topic, numbered(0, 5))
    held = frozenset({Partition(topic, 0)})
    async with going_on(spec(kafka), topic, {}, {}) as reader:
        await reader.until_caught_up()
        await delete_records(kafka, topic, 5)  # all of it was read
        await send(kafka.bootstrap_servers, topic, numbered(5, 8))
        await reader.until(lambda: len(reader.seen) == 8)
        assert reader.source.losses == {}
        reader.source.pause(held)
        positions = {Partition(topic, 0): 8}
        await send(kafka.bootstrap_servers, topic, numbered(8, 20))
        await delete_records(kafka, topic, 15)
        await reader.source.rewind(positions, reader.source.fingerprints())
        reader.source.pause(frozenset())
        await reader.until_caught_up()
        assert reader.values == numbered(0, 8) + numbered(15, 20)
        assert (reader.source.losses, reader.source.records_lost) == ({"retention": 1}, {"retention": 7})


async def test_rewinding_reads_again_what_was_not_durable(kafka: Broker):
    topic = await create_topic(kafka, fresh("rewind"), 2)
    for partition in (0, 1):
        await send(kafka.bootstrap_servers, topic, numbered(0, 600), partition)
    async with going_on(spec(kafka), topic, {}, {}) as reader:
        await reader.until(lambda: bool(reader.seen))
        positions, prints = kept(reader)
        durable = list(reader.seen)
        await reader.until_caught_up()
        await reader.source.rewind(positions, prints)
        reader.seen[:] = durable
        await reader.until(lambda: len(reader.seen) >= 1_200)
        await reader.until_caught_up()
        assert sorted(reader.offsets) == [(p, o) for p in (0, 1) for o in range(600)]
        await reader.source.rewind({}, {})  # nothing was ever durable
        reader.seen.clear()
        await reader.until(lambda: len(reader.seen) >= 1_200)
        assert sorted(reader.offsets) == [(p, o) for p in (0, 1) for o in range(600)]
        assert reader.source.losses == {}


async def test_a_record_taken_after_it_was_read_leaves_a_fingerprint_unverifiable_and_nothing_worse(
    kafka: Broker,
):
    topic = await create_topic(kafka, fresh("absent"))
    await send(kafka.bootstrap_servers, topic, numbered(0, 3))
    positions, prints = await read_all(spec(kafka), topic)
    await delete_records(kafka, topic, 3)
    await send(kafka.bootstrap_servers, topic, [b"new"])
    async with going_on(spec(kafka, on_data_loss="fail"), topic, positions, prints) as reader:
        await reader.until_caught_up()
        assert reader.values == [b"new"]
        assert reader.source.position_unverified == 1
        assert reader.source.losses == {}


async def test_a_topic_made_anew_ends_reading_where_the_operator_asked_for_that(kafka: Broker):
    topic = await create_topic(kafka, fresh("strict"))
    strict = spec(kafka, on_data_loss="fail")
    await send(kafka.bootstrap_servers, topic, numbered(0, 4))
    positions, prints = await read_all(strict, topic)
    await recreate(kafka, topic)
    source = KafkaSource(strict, [topic], lambda _: None)
    with pytest.raises(
        LogLost, match=r"read up to offset 4, and its topic has been deleted and created again .*recreated"
    ):
        await source.start(positions, prints)
    await source.stop()
    async with going_on(strict, topic, {}, {}) as reader:
        await reader.until_caught_up()
        await recreate(kafka, topic)
        with pytest.raises(LogLost, match=r"kafka\.on_data_loss to continue, to go on at offset 0"):
            await reader.until(lambda: False)
