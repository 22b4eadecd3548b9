"""Partitions that are added while the job runs, on Apache Kafka: it finds what one daemon finds."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import IO

import pytest
from confluent_kafka.admin import AdminClient

from streamwatch.core.buckets.results import MARK, mark_of
from tests.integration.conftest import Broker
from tests.integration.topic_changes import grow
from tests.integration.topics import create_topic, fresh
from tests.spark.comparing import reported_by
from tests.spark.five_models import Event, events_of, write
from tests.spark.one_machine import CONFIGURATION, DEADLINE_SECONDS
from tests.spark.results_topic import result_records

pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.usefixtures("spark_installed")]

BEFORE, AFTER = 2, 5
FOREVER_MS = "-1"
AHEAD_MS = 5_000
"""So far ahead of the clock the later events begin, to be written before the job cuts at their times."""


async def marks_until(kafka: Broker, results: str, records: int, job: subprocess.Popen[bytes]):
    """Marks of the batches, in order, once they have taken in so many records."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            assert job.poll() is None, "the job ended"
            found = await result_records(kafka.bootstrap_servers, results)
            marks = [mark_of(each.body) for each in found if each.kind == MARK]
            if marks and _records(marks[-1].positions) == records:
                return marks
            await asyncio.sleep(0.5)


def _records(positions: dict[str, dict[str, int]]) -> int:
    return sum(sum(partitions.values()) for partitions in positions.values())


def started(command: list[str], out: IO[bytes]) -> subprocess.Popen[bytes]:
    """The job."""
    return subprocess.Popen(command, stdout=out, stderr=out)


async def grown(kafka: Broker, topic: str, partitions: int) -> None:
    """Add partitions, until brokers tell of them."""
    await grow(kafka, topic, partitions)
    asking = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    async with asyncio.timeout(DEADLINE_SECONDS):
        while len(asking.list_topics(topic, 60).topics[topic].partitions) < partitions:  # noqa: ASYNC110
            await asyncio.sleep(0.1)


def later(chance: random.Random, first: list[Event]) -> list[Event]:
    """Events of other ids that begin after now, and after all that were written."""
    begin_ms = max(int(time.time() * 1_000), first[-1][0]) + AHEAD_MS
    return events_of(chance, begin_ms, range(1_000, 1_400), step_ms=20)


@pytest.mark.timeout(2_400)
async def test_the_job_reads_partitions_that_are_added_while_it_runs(kafka: Broker, tmp_path: Path):
    topics = {
        side: await create_topic(kafka, fresh(side), BEFORE, retention_ms=FOREVER_MS)
        for side in ("predictions", "labels")
    }
    chance = random.Random(5)
    first = events_of(chance, int(time.time() * 1_000) - 100_000, range(400))
    write(kafka, topics, BEFORE, first, chance)
    results = fresh("results")
    common = [
        f"kafka.bootstrap_servers={kafka.bootstrap_servers}",
        f"topics.predictions={topics['predictions']}",
        f"topics.labels={topics['labels']}",
        "join.horizon=20s",
        "join.early_horizon=2s",
    ]
    spark = [
        *common,
        f"spark.checkpoint={tmp_path}/checkpoint",
        f"spark.results_topic={results}",
        "spark.interval=1s",
        f"spark.configuration={json.dumps(CONFIGURATION)}",
    ]
    options = [option for each in spark for option in ("--set", each)]
    command = [sys.executable, "-m", "streamwatch", "spark", "--master", "local[2]", *options]
    with (tmp_path / "job.log").open("wb") as out, started(command, out) as job:
        try:
            await marks_until(kafka, results, len(first), job)
            for topic in topics.values():
                await grown(kafka, topic, AFTER)
            second = later(chance, first)
            write(kafka, topics, AFTER, second, chance)
            records = len(first) + len(second)
            marks = await marks_until(kafka, results, records, job)
            os.kill(job.pid, signal.SIGTERM)
            assert await asyncio.to_thread(job.wait, DEADLINE_SECONDS) == 0
        finally:
            job.kill()
    seen = [{topic: len(partitions) for topic, partitions in mark.positions.items()} for mark in marks]
    assert seen[0] == dict.fromkeys(topics.values(), BEFORE)
    assert seen[-1] == dict.fromkeys(topics.values(), AFTER)
    assert any(before != after for before, after in pairwise(seen)), "within one run of the job"
    alone = await reported_by(tmp_path / "daemon", records, *common)
    together = await reported_by(tmp_path / "results", records, *spark, "source=results")
    for what in ("counters", "models", "compared", "alarms"):
        assert together[what] == alone[what], what
    lost = [
        key for key in together["samples"] if key[0].startswith(("kafka_data_loss", "records_out_of_order"))
    ]
    assert not lost
