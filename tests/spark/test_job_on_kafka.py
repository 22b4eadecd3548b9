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
from confluent_kafka import Producer

from streamwatch.core.buckets.results import MARK
from tests.integration.conftest import Broker
from tests.integration.one_log import all_evaluated
from tests.integration.running import child
from tests.integration.topics import create_topic, fresh
from tests.spark.five_models import MODELS, events_of, write
from tests.spark.one_machine import CONFIGURATION, run_through_kills
from tests.spark.results_topic import result_records

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.usefixtures("spark_installed")]

PARTITIONS = 4
RECORDS = 1_000
KILLS = 3
FOREVER_MS = "-1"


@pytest.mark.timeout(2_400)
async def test_a_job_that_is_killed_again_and_again_counts_every_record_once(kafka: Broker, tmp_path: Path):
    topics = [await create_topic(kafka, fresh("words"), 2, retention_ms=FOREVER_MS) for _ in range(2)]
    chance = random.Random(11)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 5})
    words: Counter[str] = Counter()
    for number in range(RECORDS):
        chosen = [f"w{chance.randrange(50)}", f"w{chance.randrange(9)}"]
        words.update(chosen)
        topic, partition = chance.choice(topics), chance.randrange(2)
        producer.produce(topic, " ".join(chosen), partition=partition, timestamp=1_000_000 + 10 * number)
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
    bodies: dict[tuple[int, str, str], bytes] = {}
    for each in found:
        if each.kind != MARK:
            key = each.batch, each.kind, each.name
            assert bodies.setdefault(key, each.body) == each.body, "a batch again says the same again"


@pytest.mark.timeout(2_400)
async def test_the_job_says_what_one_daemon_says_to_the_last_bit(kafka: Broker, tmp_path: Path):
    topics = {
        side: await create_topic(kafka, fresh(side), PARTITIONS, retention_ms=FOREVER_MS)
        for side in ("predictions", "labels")
    }
    chance = random.Random(7)
    events = events_of(chance, int(time.time() * 1_000) - 200_000, range(2_000))
    write(kafka, topics, PARTITIONS, events, chance)
    records = len(events)
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
    overrides = [*spark, "source=results", f"state.directory={tmp_path}/reported"]
    with child(tmp_path / "results", *overrides) as daemon:
        together = await all_evaluated(daemon, records, MODELS)
    assert together["counters"] == alone["counters"]
    assert together["models"] == alone["models"]
    assert together["compared"] == alone["compared"]
    assert together["document"].keys() == set(MODELS)
    watermarks = [
        {key: at for key, at in run["samples"].items() if key[0] == "watermark_timestamp_seconds"}
        for run in (together, alone)
    ]
    assert watermarks[0] == watermarks[1] != {}
    waiting = {key: n for key, n in together["samples"].items() if key[0] == "results_waiting_records"}
    assert set(waiting.values()) == {0.0}, "the last batch has all there was"
    assert len(waiting) == 2
