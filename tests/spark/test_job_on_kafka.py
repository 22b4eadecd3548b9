"""The job on Apache Kafka, four buckets of ids and three of models: it finds what one daemon finds."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from confluent_kafka import Producer

from streamwatch.core.results import MARK, result_of
from tests.integration.conftest import Broker
from tests.integration.one_log import all_evaluated
from tests.integration.running import child
from tests.integration.topics import create_topic, fresh
from tests.spark.one_machine import CONFIGURATION, run_through_kills

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.usefixtures("spark_installed")]

MODELS = ("copycat", "fallen", "poor", "fair", "good")
PARTITIONS = 4
RECORDS = 1_000
KILLS = 3
FOREVER_MS = "-1"


async def result_records(servers: str, topic: str):
    """Everything on a results topic, in order."""
    consumer = AIOKafkaConsumer(bootstrap_servers=servers, isolation_level="read_committed")
    await consumer.start()
    try:
        place = TopicPartition(topic, 0)
        consumer.assign([place])
        await consumer.seek_to_beginning(place)
        end = (await consumer.end_offsets([place]))[place]
        found = []
        while await consumer.position(place) < end:
            for records in (await consumer.getmany(timeout_ms=500)).values():
                found += [result_of(record.key, record.value) for record in records]
        return found
    finally:
        await consumer.stop()


@pytest.mark.timeout(2_400)
async def test_a_job_that_is_killed_again_and_again_counts_every_record_once(kafka: Broker, tmp_path: Path):
    topics = [await create_topic(kafka, fresh("words"), 2, retention_ms=FOREVER_MS) for _ in range(2)]
    chance = random.Random(11)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 5})
    words: Counter[str] = Counter()
    for number in range(RECORDS):
        said = [f"w{chance.randrange(50)}", f"w{chance.randrange(9)}"]
        words.update(said)
        topic, partition = chance.choice(topics), chance.randrange(2)
        producer.produce(topic, " ".join(said), partition=partition, timestamp=1_000_000 + 10 * number)
    assert await asyncio.to_thread(producer.flush, 60) == 0
    results = fresh("results")
    command = [sys.executable, "-m", "tests.spark.counting_job", kafka.bootstrap_servers, str(tmp_path)]
    command += [f"topics.predictions={topics[0]}", f"topics.labels={topics[1]}"]
    command += [f"spark.results_topic={results}"]
    code = await asyncio.to_thread(run_through_kills, command, tmp_path, KILLS, chance)
    assert code == 0, (tmp_path / "job.log").read_text()[-3_000:]
    found = await result_records(kafka.bootstrap_servers, results)
    last = {(each.kind, each.name): each for each in found}
    counted = {
        name: msgspec.msgpack.decode(each.body) for (kind, name), each in last.items() if kind == "word"
    }
    assert counted == words
    said_before: dict[tuple[int, str, str], bytes] = {}
    for each in found:
        if each.kind != MARK:
            place = each.batch, each.kind, each.name
            assert said_before.setdefault(place, each.body) == each.body, "a batch again says the same again"


@pytest.mark.timeout(2_400)
async def test_the_job_says_what_one_daemon_says_to_the_last_bit(kafka: Broker, tmp_path: Path):
    topics = {
        side: await create_topic(kafka, fresh(side), PARTITIONS, retention_ms=FOREVER_MS)
        for side in ("predictions", "labels")
    }
    records = written(kafka, topics)
    for name in ("daemon", "results"):
        (tmp_path / name).mkdir()
    common = [
        f"kafka.bootstrap_servers={kafka.bootstrap_servers}",
        f"topics.predictions={topics['predictions']}",
        f"topics.labels={topics['labels']}",
        "join.horizon=20s",
        "join.early_horizon=2s",
        'monitors.comparisons=[{champion: good, challengers: ["*"]}]',
    ]
    with child(tmp_path / "daemon", *common, f"state.directory={tmp_path}/state") as daemon:
        alone = await all_evaluated(daemon, records, MODELS)
    spark = [
        *common,
        f"spark.checkpoint={tmp_path}/checkpoint",
        f"spark.results_topic={fresh('results')}",
        f"spark.batch_records={records // 4}",
        f"spark.configuration={json.dumps(CONFIGURATION)}",
    ]
    options = [option for each in spark for option in ("--set", each)]
    command = [sys.executable, "-m", "streamwatch", "spark", "--master", "local[2]", "--available-now"]
    job = await asyncio.to_thread(subprocess.run, [*command, *options], capture_output=True, check=False)
    assert job.returncode == 0, job.stderr.decode()[-3_000:]
    overrides = [*spark, "source=results", f"state.directory={tmp_path}/told"]
    with child(tmp_path / "results", *overrides) as daemon:
        together = await all_evaluated(daemon, records, MODELS)
    assert together["counters"] == alone["counters"]
    assert together["models"] == alone["models"]
    assert together["compared"] == alone["compared"]
    assert together["document"].keys() == set(MODELS)


def written(broker: Broker, topics: dict[str, str]) -> int:
    """Write a log of five models, one of which falls; the number of records.

    With duplicates, corrections, labels before their predictions, late ones, and some that never come.
    """
    chance = random.Random(7)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5})
    began_ms = int(time.time() * 1_000) - 200_000
    events: list[tuple[int, str, dict[str, str]]] = []
    truth = "a"
    for number in range(2_000):
        at_ms = began_ms + 80 * number
        truth = truth if chance.random() < 0.8 else chance.choice("abc")
        right = (0.9, 0.9 if number < 1_200 else 0.4, 0.4, 0.7, 0.95)
        for model, share in zip(MODELS, right, strict=True):
            said = truth if chance.random() < share else chance.choice("abc")
            events.append((at_ms, "predictions", {"id": str(number), "model": model, "prediction": said}))
            if chance.random() < 0.02:
                again = {"id": str(number), "model": model, "prediction": chance.choice("abc")}
                events.append((at_ms + 5, "predictions", again))
        if chance.random() < 0.95:
            delay_ms = chance.choice([-50, 100, 300, 1_000, 3_000, 30_000])
            events.append((at_ms + delay_ms, "labels", {"id": str(number), "label": truth}))
            if chance.random() < 0.03:
                corrected = {"id": str(number), "label": chance.choice("abc")}
                events.append((at_ms + delay_ms + 700, "labels", corrected))
    events.sort(key=lambda event: event[0])
    for at_ms, side, document in events:
        where = chance.randrange(PARTITIONS)
        producer.produce(topics[side], json.dumps(document), partition=where, timestamp=at_ms)
        producer.poll(0)
    assert producer.flush(60) == 0
    return len(events)
