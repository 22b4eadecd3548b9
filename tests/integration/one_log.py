"""One log as several daemons and a replay read it: what each of them says at its end."""

from __future__ import annotations

import asyncio
import json
import random
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
from confluent_kafka import TIMESTAMP_LOG_APPEND_TIME, Consumer, TopicPartition

from tests.integration.conftest import Broker
from tests.integration.running import DEADLINE_SECONDS, Child, child, parsed, value
from tests.integration.watched import summed

KILLS = 10
JOIN_COUNTERS = (
    "pairs_",
    "predictions_",
    "labels_",
    "outcomes_",
    "errors_",
    "alarms_total",
    "records_",
    "null_records",
)
"""Of alarms those that were raised: what is announced of them is decided at commits, by the host's clock."""


async def told(url: str, models: Sequence[str]) -> dict[str, Any]:
    """Everything a daemon says of its models and of the join."""
    async with aiohttp.ClientSession() as session:
        async with session.get(f"{url}/metrics") as answer:
            samples = parsed(await answer.text())
        found = {}
        for model in models:
            async with session.get(f"{url}/api/v1/models/{model}") as answer:
                found[model] = await answer.json()
            found[model].pop("published_timestamp_seconds", None)  # of the report, not of the log
        async with session.get(f"{url}/api/v1/models") as answer:
            document = (await answer.json())["models"]
        for each in (*found.values(), *document.values()):
            each.get("details", {}).pop("open_incidents", None)  # what is announced is no part of the promise
            for beside in ("alarms_open", "alarms_unconfirmed", "model_info"):  # of settings
                each.get("metrics", {}).pop(beside, None)
        async with session.get(f"{url}/api/v1/comparisons") as answer:
            compared = (await answer.json())["comparisons"]
        async with session.get(f"{url}/api/v1/alarms?limit=9999") as answer:
            alarms = (await answer.json())["alarms"]
    counters = {key: number for key, number in samples.items() if key[0].startswith(JOIN_COUNTERS)}
    return {
        "models": found,
        "document": document,
        "counters": counters,
        "samples": samples,
        "compared": compared,
        "alarms": alarms,
    }


async def all_evaluated(daemon: Child, records: int, models: Sequence[str]) -> dict[str, Any]:
    """What a daemon says once its report tells of so many records."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while True:
            found = await told(daemon.url(), models)
            samples = found["samples"]
            if (
                summed(samples, "records_evaluated_total") == records
                and value(samples, "merge_held_records") == 0
                and value(samples, "caught_up") == 1
            ):
                return found
            await asyncio.sleep(0.2)


def dumped(broker: Broker, topics: Mapping[str, str], partitions: int, file: Path) -> None:
    """Write the log as `kcat -C -e -J` does, partition by partition."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "dump"})
    places = [TopicPartition(topic, n, 0) for topic in topics.values() for n in range(partitions)]
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
                    "key": _text(record.key()),
                    "payload": _text(record.value()),
                }
                lines.write(json.dumps(line) + "\n")
                left -= 1
    consumer.close()


def _text(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode()


def replayed(file: Path, settings: list[str]) -> dict[str, Any]:
    """What `streamwatch replay` says of the models, and of each beside the others."""
    options = [option for each in settings for option in ("--set", each)]
    command = [sys.executable, "-m", "streamwatch", "replay", str(file), "--json", *options]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)


async def killed_again_and_again(
    folder: Path, settings: list[str], writing: asyncio.Task[None], chance: random.Random
) -> None:
    """Run daemons that each end by SIGKILL, at any moment, until everything was written."""
    for _ in range(KILLS):
        with child(folder, *settings) as daemon:
            await asyncio.sleep(chance.uniform(0.5, 5.0))
            daemon.process.send_signal(signal.SIGKILL)
            daemon.process.wait()
    await writing


def _marks(alarm: Mapping[str, Any]) -> tuple[object, ...]:
    """Whose alarm it is, at which outcome, and of a detector in prediction time at which prediction.

    Of those of the API and of a replay, which names times otherwise.
    """
    predicted = alarm.get("predicted_timestamp_seconds")
    if alarm.get("predicted_ms") is not None:
        predicted = alarm["predicted_ms"] / 1000
    return (*(alarm[name] for name in ("model", "detector", "ordinal", "outcome")), predicted)


def differences(one: object, other: object, path: str = "") -> list[str]:
    """Paths at which two documents differ, with both values."""
    if isinstance(one, dict) and isinstance(other, dict):
        keys = sorted({*one, *other}, key=str)
        return [line for key in keys for line in differences(one.get(key), other.get(key), f"{path}/{key}")]
    return [] if one == other else [f"{path}: {one!r}, not {other!r}"]


def assert_same_numbers(
    backlog: Mapping[str, Any], others: Sequence[Mapping[str, Any]], replay: Mapping[str, Any]
) -> None:
    """Compare, to the last bit, what daemons and a replay say of each model and of the join."""
    for found in (backlog, *others):
        assert not [key for key in found["samples"] if key[0] == "records_out_of_order_total"]
        assert not [key for key in found["samples"] if key[0] == "timestamps_corrected_total"]
        assert value(found["samples"], "join_identities_violated") == 0
    for found in others:
        assert found["counters"] == backlog["counters"]
        differ = differences(found["models"], backlog["models"])
        assert not differ, differ[:20]
        assert found["compared"] == backlog["compared"]
        assert found["alarms"] == backlog["alarms"]
    assert [_marks(a) for a in replay["alarms"][::-1][: len(backlog["alarms"])]] == [
        _marks(a) for a in backlog["alarms"]
    ]
    assert replay["comparisons"] == backlog["compared"]
    assert backlog["document"].keys() == replay["models"].keys() > set()
    for model, of_replay in replay["models"].items():
        of_daemon = backlog["document"][model]
        assert {n: v for n, v in of_replay["metrics"].items() if of_daemon["metrics"].get(n) != v} == {}
        assert of_daemon["metrics"].keys() - of_replay["metrics"].keys() == set()
        assert of_replay["metrics"].keys() - of_daemon["metrics"].keys() == set()
        assert of_replay["details"] == of_daemon["details"]
