"""`streamwatch doctor` on a daemon that reads from Apache Kafka what cannot join."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path

import pytest
from typer.testing import Result

from streamwatch.cli import app
from tests.commands import CliRunner
from tests.inspection.story import HOUR, story
from tests.integration.conftest import Broker
from tests.integration.running import daemon, value
from tests.integration.topics import create_topic, fresh, producer

COUNT = 300


@pytest.fixture
def streamwatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """Runs commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return CliRunner()


async def produced(broker: Broker) -> tuple[str, str]:
    """Predictions whose ids have a prefix, and labels of which every fourth has no class."""
    predictions, labels = [await create_topic(broker, fresh(side)) for side in ("predictions", "labels")]
    items = story(501, COUNT, delay_ms=HOUR)
    start_ms = round(time.time() * 1_000) - 12 * HOUR - items[0].made_ms
    async with producer(broker.bootstrap_servers) as client:
        for item in items:
            said = {"id": f"pre-{item.number}", "model": "m", "prediction": item.predicted}
            await client.send(predictions, json.dumps(said).encode(), timestamp_ms=item.made_ms + start_ms)
        for item in sorted(items, key=lambda item: item.labelled_ms):
            true = {"id": str(item.number)} | ({"label": item.true} if item.number % 4 else {})
            await client.send(labels, json.dumps(true).encode(), timestamp_ms=item.labelled_ms + start_ms)
        await client.flush()
    return predictions, labels


def written(name: str, text: str) -> None:
    Path(name).write_text(text)


async def invoked(runner: CliRunner, *command: str) -> Result:
    """A command in a thread: it has an event loop of its own."""
    return await asyncio.to_thread(runner.invoke, app, list(command))


async def test_ids_with_a_prefix_and_labels_without_a_class_are_found_with_what_to_change(
    kafka: Broker, streamwatch: CliRunner
) -> None:
    predictions, labels = await produced(kafka)
    document = {
        "kafka": {"bootstrap_servers": kafka.bootstrap_servers},
        "topics": {"predictions": predictions, "labels": labels},
    }
    written("streamwatch.json", json.dumps(document))  # YAML holds JSON
    async with daemon(document) as running:
        await running.until(lambda samples: value(samples, "nothing_joins", model="m") == 1.0)
        asked = ["doctor", "--url", running.url, "--seconds", "0", "-c", "streamwatch.json"]
        told = await invoked(streamwatch, *asked)
        as_json = await invoked(streamwatch, *asked, "--json")
        without_topics = await invoked(streamwatch, "doctor", "--url", running.url, "--seconds", "0")
    assert told.exit_code == 1, told.output
    assert f"model m has no label for any of {COUNT} predictions" in told.output
    assert "start with 'pre-'" in told.output
    assert f"topic {labels} has 25.0% invalid records (75), mostly missing_label, such as" in told.output
    assert "partition 0 offset 29" in told.output  # of the last such record
    rules = [found["rule"] for found in json.loads(as_json.output)["findings"]]
    # Labels are the last that was written, hours after the last prediction.
    assert set(rules) == {"nothing_joins", "undecodable", "not_durable", "predictions_stopped"}
    assert rules[-2:] == ["not_durable", "predictions_stopped"]
    assert without_topics.exit_code == 1
    assert "the two sides probably write ids differently" in without_topics.output


async def rare_and_late(broker: Broker) -> tuple[str, str]:
    """2,000 predictions of which one in 100 is a fraud, all frauds found; 12 labels of 100 come too late."""
    predictions, labels = [await create_topic(broker, fresh(side)) for side in ("predictions", "labels")]
    start_ms = round(time.time() * 1_000) - 12 * HOUR
    told: list[tuple[int, str, str]] = []
    async with producer(broker.bootstrap_servers) as client:
        for number in range(2_000):
            made_ms = start_ms + number * 10_000
            true = "fraud" if number % 100 == 50 else "legit"
            predicted = "fraud" if true == "fraud" or number % 20 == 7 else "legit"
            said = {"id": str(number), "model": "fraud-v3", "prediction": predicted}
            await client.send(predictions, json.dumps(said).encode(), timestamp_ms=made_ms)
            told.append((made_ms + (2 * HOUR if number % 25 in {1, 2, 3} else 600_000), str(number), true))
        for known_ms, id_, true in sorted(told):
            await client.send(labels, json.dumps({"id": id_, "label": true}).encode(), timestamp_ms=known_ms)
        await client.flush()
    return predictions, labels


async def test_a_horizon_that_is_too_short_and_a_rare_class_judged_by_accuracy_are_found(
    kafka: Broker, streamwatch: CliRunner
) -> None:
    predictions, labels = await rare_and_late(kafka)
    document = {
        "kafka": {"bootstrap_servers": kafka.bootstrap_servers},
        "topics": {"predictions": predictions, "labels": labels},
        "join": {"horizon": "1h", "dedup_horizon": "4h"},
    }
    written("streamwatch.json", json.dumps(document))
    async with daemon(document) as running:
        found = await running.until(
            lambda samples: (
                value(samples, "labels_late_total") + value(samples, "labels_joined_total") == 2_000
            )
        )
        told = await invoked(
            streamwatch, "doctor", "--url", running.url, "--seconds", "0", "-c", "streamwatch.json"
        )
    assert value(found, "labels_late_total") == 240
    assert "is too short for 12.0% of the labels: 240 arrived after expiry" in told.output
    assert re.search(
        r"right in 9\d\.\d%, the previous label in 9\d\.\d%, but classes are 99 : 1", told.output
    )
    assert "utility_by_model: {fraud-v3: balanced}" in told.output


async def test_where_nothing_serves_it_says_so_with_exit_code_2(streamwatch: CliRunner) -> None:
    result = await invoked(streamwatch, "doctor", "--url", "http://127.0.0.1:1")
    assert result.exit_code == 2
    assert result.output.startswith("http://127.0.0.1:1/metrics: ")


async def test_a_daemon_that_asks_for_a_token_is_asked_with_it(kafka: Broker, streamwatch: CliRunner) -> None:
    topics = [await create_topic(kafka, fresh(side)) for side in ("predictions", "labels")]
    document = {
        "kafka": {"bootstrap_servers": kafka.bootstrap_servers},
        "topics": {"predictions": topics[0], "labels": topics[1]},
        "http": {"listen": "127.0.0.1:0", "token": "a-token-that-is-long-enough"},
    }
    written("token", "a-token-that-is-long-enough\n")
    async with daemon(document) as running:
        refused = await invoked(streamwatch, "doctor", "--url", running.url, "--seconds", "0")
        let_in = await invoked(
            streamwatch, "doctor", "--url", running.url, "--seconds", "0", "--token-file", "token"
        )
    assert refused.exit_code == 2
    assert "it asks for a token: --token-file" in refused.output
    assert let_in.exit_code in {0, 1}, let_in.output
