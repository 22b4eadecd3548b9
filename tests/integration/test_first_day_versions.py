"""Two versions of a model score each id: `inspect`, `check` and `run` show each its own accuracy."""

from __future__ import annotations

import json
import random
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.commands import CliRunner
from tests.integration.conftest import Broker
from tests.integration.running import DEADLINE_SECONDS, Child, child
from tests.integration.test_first_day import _invoked
from tests.integration.topics import create_topic, fresh, producer

IDS = 1_000
RIGHT = {7: 693, 8: 948}
"""Predictions of each version that are right."""


async def produced(broker: Broker) -> tuple[str, str]:
    """Predictions of two versions with one name, interleaved, and a label for each id."""
    chance = random.Random(30)
    right = {version: set(chance.sample(range(IDS), count)) for version, count in RIGHT.items()}
    true = [chance.choice(("fraud", "legit")) for _ in range(IDS)]
    other = {"fraud": "legit", "legit": "fraud"}
    scores, labels = [await create_topic(broker, fresh(name), 1) for name in ("scores", "outcomes")]
    start_ms = round(time.time() * 1_000) - 3_600_000
    async with producer(broker.bootstrap_servers) as client:
        for number in range(IDS):
            for version in RIGHT:
                said = true[number] if number in right[version] else other[true[number]]
                model = {"name": "fraud", "version": version}
                value = {"id": f"tx-{number}", "model": model, "prediction": said}
                await client.send(scores, json.dumps(value).encode(), timestamp_ms=start_ms + 1_000 * number)
            value = {"id": f"tx-{number}", "label": true[number]}
            stamp = start_ms + 1_000 * number + 60_000
            await client.send(labels, json.dumps(value).encode(), timestamp_ms=stamp)
        await client.flush()
    return scores, labels


def evaluated(running: Child, outcomes: int) -> dict[str, dict[str, Any]]:
    """Rows of the overview, once the models have so many outcomes together."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        assert time.monotonic() < deadline, running.log
        running.pause()
        with urllib.request.urlopen(f"{running.url()}/api/v1/overview") as answer:  # noqa: S310
            models: dict[str, dict[str, Any]] = json.loads(answer.read())["models"]
        if sum(row.get("outcomes", 0) for row in models.values()) >= outcomes:
            return models


async def test_each_version_has_its_own_accuracy_and_a_name_for_both_is_told(
    kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "300")
    runner = CliRunner()
    scores, labels = await produced(kafka)
    settings = tmp_path / "streamwatch.yaml"
    asked = ["-b", kafka.bootstrap_servers, "-t", scores, "-t", labels, "--write", str(settings)]
    inspected = await _invoked(runner, ["inspect", *asked])
    assert inspected.exit_code == 0, inspected.output
    written = settings.read_text()
    assert "model: [value.model.name, value.model.version]" in written
    checked = await _invoked(runner, ["check", "-c", str(settings)])
    assert checked.exit_code == 0, checked.output

    by_name = tmp_path / "by-name" / "streamwatch.yaml"
    by_name.parent.mkdir()
    by_name.write_text(written.replace("[value.model.name, value.model.version]", "value.model.name"))
    refused = await _invoked(runner, ["check", "-c", str(by_name)])
    assert refused.exit_code == 2, refused.output
    assert "model fraud repeats ids in 50.0% of its predictions" in refused.output
    assert "mapping: {model: [path of the name, path of the version]}" in refused.output

    with child(tmp_path) as running:
        models = evaluated(running, 2 * IDS - 10)
    assert set(models) == {"fraud/7", "fraud/8"}
    for version, right in RIGHT.items():
        row = models[f"fraud/{version}"]
        assert row["accuracy"] == pytest.approx(right / IDS, abs=0.05)
        assert row["joined"] > 0.99

    with child(by_name.parent) as running:
        assert set(evaluated(running, IDS - 10)) == {"fraud"}
        examined = await _invoked(runner, ["doctor", "--url", running.url()])
    assert examined.exit_code == 1
    assert "repeat an id and a model in" in examined.output
