"""One log, the same numbers bit for bit: read as it is written, as a backlog, through kills, replayed."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, Producer, TopicPartition

from tests.integration.conftest import Broker
from tests.integration.running import DEADLINE_SECONDS, Child, child, parsed, value
from tests.integration.topics import create_topic, fresh

PARTITIONS = 4
MODELS = ("copycat", "good", "poor")
SECONDS = 20.0
PER_SECOND = 250
KILLS = 10
JOIN_COUNTERS = (
    "pairs_",
    "predictions_",
    "labels_",
    "outcomes_",
    "errors_",
    "alarms_",
    "records_",
    "null_records",
)


class Written:
    """Predictions of three models with sticky labels, written as they happen."""

    def __init__(self, broker: Broker, topics: Mapping[str, str], seed: int) -> None:
        self._producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 5})
        self._topics = topics
        self._chance = random.Random(seed)
        self.labels = 0

    async def write(self) -> None:
        """Write for some seconds: a label comes 0.1 to 3 s after its predictions, some never."""
        truth, number, due = "a", 0, list[tuple[float, str, str]]()
        began = time.monotonic()
        while (now := time.monotonic() - began) < SECONDS or due:
            while number < min(now, SECONDS) * PER_SECOND:
                truth = truth if self._chance.random() < 0.8 else self._chance.choice("abc")
                self._predict(str(number), truth)
                if self._chance.random() < 0.97:
                    due.append((now + self._chance.choice((0.1, 0.3, 1, 3)), str(number), truth))
                number += 1
            for label in [label for label in due if label[0] <= now]:
                due.remove(label)
                self.labels += 1
                self._send("labels", {"id": label[1], "label": label[2]})
            self._producer.poll(0)
            await asyncio.sleep(0.005)
        assert await asyncio.to_thread(self._producer.flush, 60) == 0

    def _predict(self, number: str, truth: str) -> None:
        guess = {
            "copycat": getattr(self, "_last", truth),
            "good": truth if self._chance.random() < 0.9 else "b",
            "poor": self._chance.choice("abc"),
        }
        self._last = truth
        for model in MODELS:
            self._send("predictions", {"id": number, "model": model, "prediction": guess[model]})

    def _send(self, side: str, document: Mapping[str, str]) -> None:
        partition = self._chance.randrange(PARTITIONS)
        self._producer.produce(self._topics[side], json.dumps(document), partition=partition)


async def told(url: str) -> dict[str, Any]:
    """Everything a daemon says of its models and of the join."""
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}/metrics") as answer:
            samples = parsed(await answer.text())
        models = {}
        for model in MODELS:
            async with session.get(f"{url}/api/v1/models/{model}") as answer:
                models[model] = await answer.json()
            models[model].pop("published_timestamp_seconds", None)  # of the report, not of the log
        async with session.get(f"{url}/api/v1/models") as answer:
            document = (await answer.json())["models"]
        async with session.get(f"{url}/api/v1/comparisons") as answer:
            compared = (await answer.json())["comparisons"]
    counters = {key: number for key, number in samples.items() if key[0].startswith(JOIN_COUNTERS)}
    return {
        "models": models,
        "document": document,
        "counters": counters,
        "samples": samples,
        "compared": compared,
    }


async def all_evaluated(daemon: Child, labels: int) -> dict[str, Any]:
    """What a daemon says once it has evaluated everything."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            found = await told(daemon.url())
            samples = found["samples"]
            if (
                value(samples, "labels_accepted_total") == labels
                and value(samples, "merge_held_records") == 0
                and value(samples, "caught_up") == 1
            ):
                return found
            await asyncio.sleep(0.2)


def overrides(broker: Broker, topics: Mapping[str, str], state: Path | None = None) -> list[str]:
    return [
        f"kafka.bootstrap_servers={broker.bootstrap_servers}",
        f"topics.predictions={topics['predictions']}",
        f"topics.labels={topics['labels']}",
        "state.kind=memory" if state is None else f"state.directory={state}",
        "join.on_expiry={assume: a}",
        "join.horizon=2s",
        "join.early_horizon=1s",
        "time.settle=2s",
        'monitors.comparisons=[{champion: good, challengers: ["*"]}, {pairs: [[copycat, poor]]}]',
    ]


def dumped(broker: Broker, topics: Mapping[str, str], file: Path) -> None:
    """Write the log as `kcat -C -e -J` does, partition by partition."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "dump"})
    places = [TopicPartition(topic, n, 0) for topic in topics.values() for n in range(PARTITIONS)]
    consumer.assign(places)
    left = sum(consumer.get_watermark_offsets(place)[1] for place in places)
    with file.open("w") as lines:
        while left:
            for record in consumer.consume(10_000, 1.0):
                kind, stamp_ms = record.timestamp()
                line = {
                    "topic": record.topic(),
                    "partition": record.partition(),
                    "offset": record.offset(),
                    "tstype": "logappend" if kind == TIMESTAMP_LOG_APPEND_TIME else "create",
                    "ts": stamp_ms,
                    "broker": 1,
                    "key": None,
                    "payload": record.value().decode(),
                }
                lines.write(json.dumps(line) + "\n")
                left -= 1
    consumer.close()


def replayed(file: Path, settings: list[str]) -> dict[str, Any]:
    """What `streamwatch replay` says of the models, and of each beside the others."""
    options = [option for each in settings for option in ("--set", each)]
    command = [sys.executable, "-m", "streamwatch", "replay", str(file), "--json", *options]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


async def killed_again_and_again(
    folder: Path, settings: list[str], writing: asyncio.Task[None], chance: random.Random
) -> None:
    """Live lives that end by SIGKILL, at any moment."""
    for _ in range(KILLS):
        with child(folder, *settings) as daemon:
            await asyncio.sleep(chance.uniform(0.5, 5.0))
            daemon.process.send_signal(signal.SIGKILL)
            daemon.process.wait()
    await writing


@pytest.mark.timeout(900)
@pytest.mark.parametrize("times", ["CreateTime", "LogAppendTime"])
async def test_live_backlog_and_killed_daemons_say_the_same_to_the_last_bit(
    kafka: Broker, tmp_path: Path, times: str
) -> None:
    topics = {
        side: await create_topic(kafka, fresh(side), PARTITIONS, message_timestamp_type=times)
        for side in ("predictions", "labels")
    }
    chance = random.Random(1)
    for name in ("live", "killed", "backlog"):
        (tmp_path / name).mkdir()
    durable = overrides(kafka, topics, tmp_path / "state")
    with child(tmp_path / "live", *overrides(kafka, topics)) as daemon:
        daemon.url()
        writer = Written(kafka, topics, seed=3)
        writing = asyncio.create_task(writer.write())
        await killed_again_and_again(tmp_path / "killed", durable, writing, chance)
        live = await all_evaluated(daemon, writer.labels)
    with child(tmp_path / "killed", *durable) as daemon:
        killed = await all_evaluated(daemon, writer.labels)
    with child(tmp_path / "backlog", *overrides(kafka, topics)) as daemon:
        backlog = await all_evaluated(daemon, writer.labels)
    dumped(kafka, topics, tmp_path / "log.jsonl")
    replay = await asyncio.to_thread(replayed, tmp_path / "log.jsonl", overrides(kafka, topics))
    for found in (live, killed, backlog):
        assert not [key for key in found["samples"] if key[0] == "records_out_of_order_total"]
        assert not [key for key in found["samples"] if key[0] == "timestamps_corrected_total"]
        assert value(found["samples"], "join_identities_violated") == 0
    assert value(backlog["samples"], "outcomes_assumed_total") > 0
    assert value(backlog["samples"], "labels_late_total") > 0
    for found in (live, killed):
        assert found["counters"] == backlog["counters"]
        assert found["models"] == backlog["models"]
        assert found["compared"] == backlog["compared"]
    assert replay["comparisons"] == backlog["compared"]
    assert [(c["champion"], c["challenger"]) for c in backlog["compared"]] == [
        ("copycat", "poor"),
        ("good", "copycat"),
        ("good", "poor"),
    ]
    assert all(c["pairs"] > 1_000 for c in backlog["compared"])
    for model in MODELS:
        told_live, told_replay = backlog["document"][model]["metrics"], replay["models"][model]["metrics"]
        assert {n: v for n, v in told_replay.items() if told_live.get(n) != v} == {}
        assert told_live.keys() - told_replay.keys() <= {"alarms_open"}, "no alarm is announced by a replay"
        assert replay["models"][model]["details"] == backlog["document"][model]["details"]
