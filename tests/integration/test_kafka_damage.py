"""Content that cannot be read, on Apache Kafka: passed over, counted and named; all else is read."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from streamwatch.core.records.events import Partition
from streamwatch.edge.sources.kafka import KafkaSpec, LogLost
from streamwatch.telemetry import BatchSkipped, InternalEvent, KafkaLost
from tests import real
from tests.edge.sources.kafka.batches.raw_batches import GZIP, LZ4, SNAPPY, ZSTD, RawBatch, of, record
from tests.integration.bombs import bomb
from tests.integration.conftest import Broker
from tests.integration.kafka_broker import KafkaBroker
from tests.integration.polling import Reader
from tests.integration.raw_produce import batch_starts, flip, produce, segment
from tests.integration.topics import create_topic, fresh, reading, send

ROOT = Path(__file__).parents[2]
MEBIBYTE = 1 << 20
LONGEST_PAUSE_SECONDS = 1.0
"""Of the event loop; what it takes on a quiet machine stands in the README (`make attack`)."""
HEADER_BYTES = 61
EACH = 3
"""Records of a batch, of some kilobytes together: the log's index has an entry for each batch."""


def spec(broker: Broker, **choices: object) -> KafkaSpec:
    return KafkaSpec(bootstrap_servers=broker.bootstrap_servers, poll_timeout_ms=50, **choices)  # type: ignore[arg-type]


async def test_a_header_whose_name_is_not_utf8_costs_one_record(kafka: Broker):
    topic = await create_topic(kafka, fresh("headers"))
    written = [
        record(0),
        record(1, b"hidden", headers=[(b"\xc3\x28", b"x")]),
        record(2, headers=[(b"a", b"b")]),
    ]
    await produce(kafka.bootstrap_servers, topic, {0: [RawBatch(written).bytes()]})
    await send(kafka.bootstrap_servers, topic, [b"after"])
    heard: list[InternalEvent] = []
    faults: list[str | None] = []
    async with reading(spec(kafka), topic, emit=heard.append) as source:
        reader = Reader(source)

        def caught_up() -> bool:
            faults.extend(r.fault for records in reader.poll.records.values() for r in records)
            return reader.caught_up()

        await reader.until(caught_up)
        assert reader.values == [b"v", None, b"v", b"after"]
        assert faults == [None, "header_encoding", None, None]
        assert source.losses == {}
    assert not any(isinstance(h, KafkaLost) for h in heard)


@pytest.mark.parametrize(
    ("codec", "size", "times"),
    [
        (ZSTD, 300 * MEBIBYTE, 10),
        (GZIP, 500 * MEBIBYTE, 1),
        (LZ4, 100 * MEBIBYTE, 1),
        (SNAPPY, 10 * MEBIBYTE, 1),
    ],
)
async def test_a_decompression_bomb_is_passed_in_bounded_memory_while_the_loop_turns(
    kafka: Broker, codec: int, size: int, times: int
):
    topic = await create_topic(kafka, fresh("bomb"), max_message_bytes="20000000")
    batch = bomb(codec, size, times).bytes()
    await send(kafka.bootstrap_servers, topic, [b"before"])
    await produce(kafka.bootstrap_servers, topic, {0: [batch]})
    await send(kafka.bootstrap_servers, topic, [b"after"])
    del batch
    allowed = 64 * MEBIBYTE if size * times > 64 * MEBIBYTE else 4 * MEBIBYTE
    found = await read_apart(kafka, topic, allowed)
    assert found["values"] == ["before", "after"]
    assert (found["losses"], found["records_lost"]) == ({"oversized_batch": 1}, {"oversized_batch": times})
    assert found["skipped"] == [[topic, 0, 1, times]]
    assert found["bytes"] < allowed + 32 * MEBIBYTE
    assert found["longest_pause"] < LONGEST_PAUSE_SECONDS


async def read_apart(kafka: Broker, topic: str, max_batch_bytes: int) -> dict[str, Any]:
    """What reading takes in an interpreter that does nothing else."""
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.integration.reading_process",
        kafka.bootstrap_servers, topic, str(max_batch_bytes),
        stdout=subprocess.PIPE, cwd=ROOT,
    )  # fmt: skip
    said, _ = await child.communicate()
    assert child.returncode == 0
    return json.loads(said)


async def test_a_large_batch_within_the_cap_is_read_whole(kafka: Broker):
    topic = await create_topic(kafka, fresh("large"))
    await produce(kafka.bootstrap_servers, topic, {0: [bomb(ZSTD, 5 * MEBIBYTE, 10).bytes()]})
    limits = {"max_poll_records": 3, "max_record_bytes": 5 * MEBIBYTE}
    async with reading(spec(kafka, **limits), topic) as source:
        reader = Reader(source)
        await reader.until_caught_up()
        assert [len(value or b"") for value in reader.values] == [5 * MEBIBYTE] * 10
        assert source.losses == {}


@pytest.fixture(scope="module")
def damaged_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """One of its own: a broker that is killed does not start again over a damaged log."""
    real.need("tests/integration/test_kafka_damage.py", "a Kafka of its own")
    broker = KafkaBroker(tmp_path_factory.mktemp("damaged"))
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


async def written(broker: KafkaBroker, partitions: int) -> str:
    """A topic with four batches in each partition."""
    topic = await create_topic(broker, fresh("damaged"), partitions, retention_ms="-1")
    batches = [of([b"%d" % i * 1_500 for i in range(b * EACH, b * EACH + EACH)]).bytes() for b in range(4)]
    await produce(broker.bootstrap_servers, topic, dict.fromkeys(range(partitions), batches))
    return topic


def damaged(broker: KafkaBroker, change: Callable[[], None]) -> None:
    broker.stop()
    try:
        change()
    finally:
        broker.start()


async def test_one_flipped_byte_anywhere_in_a_batch_costs_that_batch_and_stalls_nothing(
    damaged_kafka: KafkaBroker,
):
    places = [*range(HEADER_BYTES + 9), 1_000]
    topic = await written(damaged_kafka, len(places))
    intact = await create_topic(damaged_kafka, fresh("intact"))
    await send(damaged_kafka.bootstrap_servers, intact, [b"%d" % i for i in range(100)])

    def change() -> None:
        for partition, place in enumerate(places):
            file = segment(damaged_kafka, topic, partition)
            start = batch_starts(file.read_bytes())[1]
            flip(file, start + place)

    damaged(damaged_kafka, change)
    heard: list[InternalEvent] = []
    async with reading(spec(damaged_kafka, backoff_max_ms=500), topic, intact, emit=heard.append) as source:
        reader = Reader(source)
        at_once = {Partition(intact, 0)}
        await reader.until(lambda: at_once <= {p for p, s in reader.poll.partitions.items() if s.caught_up})
        await reader.until_caught_up()
        seen: dict[int, set[int]] = {}
        for partition, offset, value in reader.seen:
            if value is not None and len(value) > 100:
                assert value == b"%d" % offset * 1_500, (places[partition], offset)
                seen.setdefault(partition, set()).add(offset)
        named = {h.partition: h for h in heard if isinstance(h, BatchSkipped)}
        for partition, place in enumerate(places):
            lost = set(range(4 * EACH)) - seen.get(partition, set())
            if 12 <= place < 16:  # the leader epoch, which nobody reads
                assert lost == set()
            else:
                assert lost == set(range(EACH, 2 * EACH)), place
                assert (named[partition].offset, named[partition].records) == (EACH, EACH), place
    assert not any(isinstance(h, KafkaLost) for h in heard)


async def test_a_corrupt_batch_ends_reading_where_that_was_asked_for(damaged_kafka: KafkaBroker):
    topic = await written(damaged_kafka, 1)
    file = segment(damaged_kafka, topic, 0)
    damaged(damaged_kafka, lambda: flip(file, batch_starts(file.read_bytes())[1] + 1_000))
    async with reading(spec(damaged_kafka, on_data_loss="fail"), topic) as source:
        reader = Reader(source)
        said = (
            rf"{topic}/0 cannot be read from offset 3 to 5: checksum \(corrupt_batch\): "
            r"set kafka\.on_data_loss"
        )
        with pytest.raises(LogLost, match=said):
            await reader.until_caught_up()
        assert reader.offsets == [(0, 0), (0, 1), (0, 2)]
        assert source.losses == {}
