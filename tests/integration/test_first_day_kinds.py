"""A first day with each kind of payload: `check` and `run` take the settings that `inspect` writes."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from typer.testing import Result

from streamwatch.cli import app
from tests import real
from tests.commands import CliRunner
from tests.inspection.story import HOUR, Item, story
from tests.integration.apicurio import Apicurio
from tests.integration.conftest import Broker
from tests.integration.first_days import CLASSES, DAYS, Day
from tests.integration.running import DEADLINE_SECONDS, Child, child
from tests.integration.topics import create_topic, fresh

ITEMS = 3_000


def items() -> list[Item]:
    """Requests of this morning, labelled about an hour later."""
    start_ms = round(time.time() * 1_000) - 12 * HOUR
    told = story(703, ITEMS, classes=CLASSES, weights=(0.5, 0.5), right=0.9, delay_ms=HOUR)
    shift = start_ms - told[0].made_ms
    return [
        Item(
            each.number,
            each.made_ms + shift,
            each.labelled_ms + shift,
            each.predicted,
            each.true,
            max(each.score, 0.51),
            each.user,
            each.uuid,
            each.amount,
            each.country,
        )
        for each in told
    ]


async def produced(broker: Broker, day: Day, told: Sequence[Item], registry: Apicurio | None) -> list[str]:
    """Write the story to two topics; their names, that of the labels first."""
    topics = {side: await create_topic(broker, fresh(side[:4]), 2) for side in ("labels", "predictions")}
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for sent in sorted(day.records(told, registry), key=lambda sent: sent.record_ms):
        headers = [(name, text.encode()) for name, text in sent.headers.items()]
        key = None if sent.key is None else sent.key.encode()
        producer.produce(topics[sent.side], sent.value, key, headers=headers, timestamp=sent.record_ms)
    assert producer.flush(60) == 0
    return list(topics.values())


def invoked(*command: str) -> Result:
    """Result of a command; what it did not expect is raised here, where its place can be seen."""
    result = CliRunner().invoke(app, list(command))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def model_of(running: Child) -> tuple[str, dict[str, Any]]:
    """The only model, once it has a verdict on all but the newest outcomes."""
    url, deadline = running.url(), time.monotonic() + DEADLINE_SECONDS
    while True:
        assert time.monotonic() < deadline, running.log
        running.pause()
        with urllib.request.urlopen(f"{url}/api/v1/overview") as answer:  # noqa: S310
            models: dict[str, dict[str, Any]] = json.loads(answer.read())["models"]
        found = [name for name, row in models.items() if row.get("outcomes", 0) >= ITEMS - 5]
        if found and "verdict_since_timestamp_seconds" in models[found[0]]:
            assert len(models) == 1
            return found[0], models[found[0]]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("day", DAYS, ids=lambda day: day.name)
async def test_from_inspect_to_a_right_verdict(
    kafka: Broker,
    day: Day,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told, registry = items(), None
    if day.needs_registry:
        real.need(request.node.nodeid, "schema registry")
        registry = request.getfixturevalue("registry")
    topics = await produced(kafka, day, told, registry)
    monkeypatch.chdir(tmp_path)
    settings = tmp_path / "streamwatch.yaml"
    asked = ["-b", kafka.bootstrap_servers, *(part for topic in topics for part in ("-t", topic))]
    asked += [] if registry is None else ["--schema-registry", registry.url]
    inspected = await asyncio.to_thread(invoked, "inspect", *asked, "--write", str(settings))
    assert inspected.exit_code == 0, inspected.output
    for line in day.settings:
        assert line in settings.read_text()
    checked = await asyncio.to_thread(invoked, "check", "-c", str(settings))
    assert checked.exit_code == 0, checked.output
    with child(tmp_path) as running:
        model, row = await asyncio.to_thread(model_of, running)
    right = sum(item.predicted == item.true for item in told) / len(told)
    assert model == day.model
    assert row["verdict"] == "better"
    assert row["accuracy"] == pytest.approx(right, abs=0.06)  # it fades: the last outcomes count more
    assert row["joined"] > 0.99
