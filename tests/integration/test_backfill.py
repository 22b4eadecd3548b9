"""A state made from Parquet files, then a daemon on Kafka: they say what one daemon says of the whole log."""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Broker
from tests.integration.one_log import all_evaluated, differences
from tests.integration.running import child
from tests.integration.topics import create_topic, fresh
from tests.spark.five_models import MODELS, Event, events_of, write

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

pytestmark = [pytest.mark.real, pytest.mark.slow]

FOREVER_MS = "-1"
MONTHS = 3
SIDES = ("predictions", "labels")


def dated(events: Sequence[Event]) -> list[tuple[int, str, dict[str, Any]]]:
    """The same events with their record times in their documents."""
    return [(at_ms, side, {**document, "timestamp": at_ms}) for at_ms, side, document in events]


def archive(folder: Path, events: Sequence[tuple[int, str, dict[str, Any]]]) -> None:
    """Write the events of each side into files by time; times are timestamps of Parquet."""
    for side in SIDES:
        (folder / side).mkdir(parents=True)
        own = [(at_ms, document) for at_ms, of, document in events if of == side]
        each = -(-len(own) // MONTHS)
        for month in range(MONTHS):
            part = own[month * each : (month + 1) * each]
            names = [name for name in part[0][1] if name != "timestamp"]
            columns = {name: [document[name] for _, document in part] for name in names}
            columns["timestamp"] = pa.array([at_ms for at_ms, _ in part], pa.timestamp("ms", "UTC"))
            pq.write_table(pa.table(columns), folder / side / f"month-{month:02}.parquet")


@pytest.mark.timeout(600)
async def test_a_daemon_goes_on_from_files_as_if_it_had_read_the_log(kafka: Broker, tmp_path: Path):
    topics = {side: await create_topic(kafka, fresh(side), 1, retention_ms=FOREVER_MS) for side in SIDES}
    chance = random.Random(3)
    found = events_of(chance, int(time.time() * 1_000) - 400_000, range(1_500))
    events = dated(found)
    write(kafka, topics, 1, events, chance)
    until_ms = events[2 * len(events) // 3][0]
    before = [event for event in events if event[0] < until_ms]
    assert {side for _, side, _ in before} == set(SIDES)
    archive(tmp_path / "archive", events)  # they go beyond the time at which Kafka begins
    common = [
        f"kafka.bootstrap_servers={kafka.bootstrap_servers}",
        f"topics.predictions={topics['predictions']}",
        f"topics.labels={topics['labels']}",
        "join.horizon=20s",
        "join.early_horizon=2s",
        'monitors.comparisons=[{champion: good, challengers: ["*"]}]',
    ]
    for name in ("alone", "after"):
        (tmp_path / name).mkdir()
    with child(tmp_path / "alone", *common, f"state.directory={tmp_path}/of-the-log") as daemon:
        alone = await all_evaluated(daemon, len(events), MODELS)
    filled = [*common, f"state.directory={tmp_path}/filled"]
    command = [sys.executable, "-m", "streamwatch", "state", "backfill", "--until", str(until_ms)]
    command += [f"{topics[side]}={tmp_path}/archive/{side}/*.parquet" for side in SIDES]
    command += [option for each in filled for option in ("--set", each)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    counts = [sum(side == of for _, of, _ in before) for side in SIDES]
    said = [f"{count:,} records of {topics[side]}" for count, side in zip(counts, SIDES, strict=True)]
    assert f"{tmp_path}/filled has {', '.join(said)}" in done.stdout
    with child(tmp_path / "after", *filled) as daemon:
        after = await all_evaluated(daemon, len(events), MODELS)
    assert after["counters"] == alone["counters"]
    differ = differences(after["models"], alone["models"])
    assert not differ, differ[:20]
    assert after["compared"] == alone["compared"]
    assert after["alarms"] == alone["alarms"]


def test_a_backfill_says_what_came_to_no_outcome_and_which_times_are_doubtful(tmp_path: Path):
    day_ms, start_ms = 86_400_000, 1_790_000_000_000
    predictions = [
        {"id": k, "model": "m", "prediction": "a", "timestamp": start_ms + (9 - k) * 1_000} for k in range(9)
    ]
    labels = [{"id": k, "label": "a", "timestamp": start_ms // 1_000 + k} for k in range(20)]
    for side, found in (("p", predictions), ("l", [*labels, {"id": 1, "label": "a"}, {"id": 1}])):
        (tmp_path / f"{side}.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in found))
    late = {"id": 99, "model": "m", "prediction": "a", "timestamp": start_ms + 40 * day_ms}
    with (tmp_path / "p.jsonl").open("a") as file:
        file.write(json.dumps(late))
    command = [sys.executable, "-m", "streamwatch", "state", "backfill"]
    command += [f"{side}={tmp_path}/{side}.jsonl" for side in ("p", "l")]
    command += ["-s", f"state.directory={tmp_path}/state"]
    command += ["-s", "topics.predictions=p", "-s", "topics.labels=l", "-s", "join.horizon=7d"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    said = done.stderr.splitlines()
    assert "0 predictions met their label." in said
    assert "Predictions: 9 without a label within join.horizon." in said
    assert "1 record invalid: missing_label." in said
    assert any(line.startswith("8 records of p have an earlier time than one before them") for line in said)
    assert any(line.startswith("1 records of l have no time: ") for line in said)
    assert "The last time of l is in 1970-01: is its timestamp_unit right?" in said
    assert any(line.startswith("Labels: ") and "20 without a prediction" in line for line in said)


def test_a_backfill_leaves_a_state_that_is_there_alone(tmp_path: Path):
    state = tmp_path / "state"
    state.mkdir()
    (state / "CURRENT").write_text("x")
    archive(tmp_path, dated(events_of(random.Random(1), 1_700_000_000_000, range(20))))
    command = [
        sys.executable,
        "-m",
        "streamwatch",
        "state",
        "backfill",
        f"predictions={tmp_path}/predictions",
    ]
    command += ["--set", "topics.predictions=predictions", "--set", "topics.labels=labels"]
    done = subprocess.run(
        [*command, "--set", f"state.directory={state}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"state.directory: expected no state in {state} before a backfill" in done.stderr
    assert [each.name for each in state.iterdir()] == ["CURRENT"]
