"""`streamwatch report` of a daemon on Apache Kafka tells what its API tells."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from confluent_kafka import Producer

from streamwatch.cli import app
from tests.commands import CliRunner
from tests.integration.conftest import Broker
from tests.integration.running import daemon, value
from tests.integration.topics import create_topic, fresh

OUTCOMES = 600


def write(broker: Broker, topics: dict[str, str]) -> None:
    """Write predictions of two models, one of which is named like a path, and their labels."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for i in range(OUTCOMES):
        label = "ab"[(i // 3) % 2]
        for model, every in (("m", 10), ("a/b", 4)):
            answer = label if i % every else "ba"[(i // 3) % 2]
            prediction = {"id": str(i), "model": model, "prediction": answer}
            producer.produce(topics["predictions"], json.dumps(prediction).encode())
        producer.produce(topics["labels"], json.dumps({"id": str(i), "label": label}).encode())
    assert producer.flush(60) == 0


@pytest.mark.timeout(600)
async def test_a_report_of_a_running_daemon_has_its_numbers(kafka: Broker, tmp_path: Path) -> None:
    topics = {side: await create_topic(kafka, fresh(side)) for side in ("predictions", "labels")}
    write(kafka, topics)
    token = tmp_path / "token"
    token.write_text("a-token-of-many-letters-0123456789\n")
    document = {
        "kafka": {"bootstrap_servers": kafka.bootstrap_servers},
        "topics": topics,
        "http": {"listen": "127.0.0.1:0"},
    }
    async with daemon(document) as running:
        samples = await running.until(
            lambda s: all(value(s, "outcomes_total", model=m) == OUTCOMES for m in ("m", "a/b"))
        )
        arguments = ["report", running.url, "-o", str(tmp_path / "r.md"), "-o", str(tmp_path / "r.html")]
        made = await asyncio.to_thread(CliRunner().invoke, app, [*arguments, "--token-file", str(token)])
        tuning = ["tune", "--url", running.url, "--token-file", str(token)]
        tuned = await asyncio.to_thread(CliRunner().invoke, app, tuning, env={"COLUMNS": "200"})
    assert made.exit_code == 0, made.output
    assert tuned.exit_code == 1, tuned.output
    for model, error in (("m", 0.1), ("a/b", 0.25)):  # counts are those of the daemon, and too few to promise
        assert f"{model}: {OUTCOMES} outcomes, error {error:.4f}" in tuned.output
    assert tuned.output.count("tune from recorded outcomes") == 2
    text = (tmp_path / "r.md").read_text(encoding="utf-8")
    for model, shown in (("m", "m"), ("a/b", "a/b")):
        accuracy = value(samples, "accuracy_ratio", model=model, forgetting="landmark")
        section = text.split(f"\n## Model {shown}\n")[1].split("\n## ")[0]
        assert f"| landmark | {accuracy:.4f} |" in section
    assert "streamwatch of the daemon" in text
    assert "<h2>Model a/b</h2>" in (tmp_path / "r.html").read_text(encoding="utf-8")
