"""The job with the real buckets on Apache Kafka, killed at chosen moments: it says what one daemon says.

`STREAMWATCH_SPARK_KILLS=21` sets how often both jobs together are.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from streamwatch.core.buckets.results import MARK
from tests.integration.conftest import Broker
from tests.integration.running import value
from tests.integration.topics import create_topic, fresh
from tests.spark.aimed_kills import HOLDS, WHOLE, aims, run_through_aims
from tests.spark.comparing import reported_by
from tests.spark.five_models import MODELS, events_of, write
from tests.spark.one_machine import CONFIGURATION
from tests.spark.results_topic import result_records
from tests.tiers import number

LOGGER = logging.getLogger(__name__)
pytestmark = [pytest.mark.real, pytest.mark.slow, pytest.mark.usefixtures("spark_installed")]

PARTITIONS = 4
KILLS = number("STREAMWATCH_SPARK_KILLS", default=6, everything=21)
"""Of both jobs together."""
STEPS = 1_000
FOREVER_MS = "-1"
VICTIMS = {
    "local[2]": ("everything", "python", "java", "worker", "holder"),
    "local-cluster[2,1,1024]": ("everything", "python", "java", "worker", "holder", "executor"),
}
RULES = {
    "plain": [],
    "by the time of predictions": ["join.order=prediction_time", "join.reorder_window=2s"],
}


@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(
    ("master", "rules", "kills"),
    [
        ("local-cluster[2,1,1024]", "by the time of predictions", KILLS - KILLS // 3),
        ("local[2]", "plain", KILLS // 3),
    ],
)
async def test_a_job_killed_at_chosen_moments_says_what_one_daemon_says(
    kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, master: str, rules: str, kills: int
):
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    topics = {
        side: await create_topic(kafka, fresh(side), PARTITIONS, retention_ms=FOREVER_MS)
        for side in ("predictions", "labels")
    }
    chance = random.Random(16)
    events = events_of(chance, int(time.time() * 1_000) - 200_000, range(STEPS))
    write(kafka, topics, PARTITIONS, events, chance)
    results = fresh("results")
    common = [
        f"kafka.bootstrap_servers={kafka.bootstrap_servers}",
        f"topics.predictions={topics['predictions']}",
        f"topics.labels={topics['labels']}",
        "join.horizon=20s",
        "join.early_horizon=2s",
        *RULES[rules],
    ]
    spark = [
        *common,
        f"spark.results_topic={results}",
        "spark.id_buckets=4",
        "spark.model_buckets=3",
        f"spark.batch_records={len(events) // (kills + 3)}",
        f"spark.configuration={json.dumps(CONFIGURATION)}",
    ]
    alone = await reported_by(tmp_path / "daemon", len(events), *common)
    command = [sys.executable, "-m", "tests.spark.held_job", str(tmp_path), master, "available now", *spark]
    wanted = aims(VICTIMS[master], kills, chance)
    hits = await asyncio.to_thread(run_through_aims, command, tmp_path, wanted)
    at_sink = [hit for hit in hits if hit.aim.moment in HOLDS and hit.aim.victim in WHOLE]
    LOGGER.info("%s: %s", master, Counter((hit.aim.victim, hit.aim.moment) for hit in hits))
    assert len(hits) == kills
    assert all(hit.unfinished for hit in at_sink)
    assert {hit.aim.victim for hit in hits} & {"worker", "holder", "executor"}
    found = await result_records(kafka.bootstrap_servers, results)
    marks = Counter(each.batch for each in found if each.kind == MARK)
    assert sum(marks.values()) - len(marks) >= sum(hit.aim.moment == "written" for hit in at_sink)
    bodies: dict[tuple[int, str, str], bytes] = {}
    for each in found:
        if each.kind != MARK:
            assert bodies.setdefault((each.batch, each.kind, each.name), each.body) == each.body
    together = await reported_by(tmp_path / "results", len(events), *spark, "source=results")
    assert together["counters"] == alone["counters"]
    assert together["models"] == alone["models"]
    assert together["compared"] == alone["compared"]
    assert together["alarms"] == alone["alarms"] != []
    assert together["document"].keys() == alone["document"].keys() == set(MODELS)
    assert value(together["samples"], "join_identities_violated") == 0
