"""A first day on one's own topics: `inspect` writes settings, `check` and `run` use them."""

from __future__ import annotations

import json
import time
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from streamwatch.cli import app
from streamwatch.edge.sources.kafka import KafkaSpec
from streamwatch.edge.sources.kafka.checking import sample
from tests.commands import CliRunner
from tests.inspection.story import HOUR, iso, story
from tests.integration.conftest import Broker
from tests.integration.running import DEADLINE_SECONDS, Child, child
from tests.integration.topics import admin, create_topic, fresh, producer, send

ITEMS = 3_000


@pytest.fixture
def streamwatch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    """Runs commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    return CliRunner()


async def produced(broker: Broker) -> tuple[str, str, float]:
    """Topics of a company: nested and with ISO times here, by key and with words there; the true accuracy."""
    scores, disputes = [await create_topic(broker, fresh(name), 2) for name in ("scoring-events", "disputes")]
    items = story(401, ITEMS, weights=(0.5, 0.5), right=0.9, delay_ms=HOUR)
    start_ms = round(time.time() * 1_000) - 12 * HOUR - items[0].made_ms
    async with producer(broker.bootstrap_servers) as client:
        for item in items:
            value = {
                "transaction": {"uuid": item.uuid, "amount": item.amount, "customer": item.user},
                "decision": item.predicted == "fraud",
                "score": item.score,
                "scored_at": iso(item.made_ms + start_ms),
            }
            await client.send(
                scores,
                json.dumps(value).encode(),
                key=item.user.encode(),
                headers=[("model-version", b"fraud-v3")],
                timestamp_ms=item.made_ms + start_ms,
            )
        for item in sorted(items, key=lambda item: item.labelled_ms):
            value = {"result": item.true, "customer": item.user}
            await client.send(
                disputes,
                json.dumps(value).encode(),
                key=item.uuid.encode(),
                timestamp_ms=item.labelled_ms + start_ms,
            )
        await client.flush()
    return scores, disputes, sum(item.predicted == item.true for item in items) / len(items)


def model_of(running: Child, condition: str) -> Mapping[str, Any]:
    """The only row of the overview, once it has what is waited for."""
    url, deadline = running.url(), time.monotonic() + DEADLINE_SECONDS
    while True:
        assert time.monotonic() < deadline, running.log
        running.pause()
        with urllib.request.urlopen(f"{url}/api/v1/overview") as answer:  # noqa: S310
            models: dict[str, dict[str, Any]] = json.loads(answer.read())["models"]
        for row in models.values():
            if row.get("outcomes", 0) >= ITEMS - 5 and condition in row:
                assert list(models) == ["fraud-v3"]
                return row


async def test_from_inspect_to_a_right_verdict(kafka: Broker, tmp_path: Path, streamwatch: CliRunner) -> None:
    scores, disputes, accuracy = await produced(kafka)
    settings = tmp_path / "streamwatch.yaml"
    asked = ["-b", kafka.bootstrap_servers, "-t", disputes, "-t", scores, "--write", str(settings)]
    inspected = await _invoked(streamwatch, ["inspect", *asked])
    assert inspected.exit_code == 0, inspected.output
    assert f"join rate of the sample: {ITEMS:,} of {ITEMS:,} predictions (100.0%)" in inspected.stderr
    for line in (
        "id: value.transaction.uuid",
        "id: key",
        "model: header:model-version",
        "timestamp_unit: iso8601",
    ):
        assert line in settings.read_text()
    checked = await _invoked(streamwatch, ["check", "-c", str(settings)])
    assert checked.exit_code == 0, checked.output
    with child(tmp_path, anew=True) as running:  # it finds streamwatch.yaml in its folder
        row = model_of(running, "verdict_since_timestamp_seconds")
    assert row["verdict"] == "better"
    assert row["accuracy"] == pytest.approx(accuracy, abs=0.05)
    assert row["joined"] > 0.99


async def _invoked(runner: CliRunner, command: Sequence[str]) -> Result:
    """A command in a thread: it has an event loop of its own."""
    import asyncio  # noqa: PLC0415

    return await asyncio.to_thread(runner.invoke, app, list(command))


async def test_a_sample_is_bounded_reaches_back_in_time_and_leaves_no_trace(kafka: Broker) -> None:
    topic = await create_topic(kafka, fresh("long"), 2)
    now_ms = round(time.time() * 1_000)
    for partition in (0, 1):
        async with producer(kafka.bootstrap_servers) as client:
            for number in range(3_000):  # one a minute: two days
                stamp = now_ms - (3_000 - number) * 60_000
                await client.send(topic, b'{"id":1}', partition=partition, timestamp_ms=stamp)
            await client.flush()
    found = (await sample(KafkaSpec(kafka.bootstrap_servers, group_id="mine"), [topic], 400))[topic]
    assert found.in_log == 6_000
    assert len(found.records) <= 400
    ages = [(now_ms - record.timestamp) / 60_000 for record in found.records]
    assert min(ages) < 3
    assert max(ages) > 24 * 60
    assert len({(record.partition, record.offset) for record in found.records}) == len(found.records)
    async with admin(kafka.bootstrap_servers) as client:
        assert "mine" not in {name for name, *_ in await client.list_consumer_groups()}


async def test_a_small_topic_is_read_whole(broker: Broker) -> None:
    topic = await create_topic(broker, fresh("small"))
    await send(broker.bootstrap_servers, topic, [b"{}"] * 50)
    found = (await sample(KafkaSpec(broker.bootstrap_servers), [topic], 1_000))[topic]
    assert [record.offset for record in found.records] == list(range(50))


async def test_a_misspelt_topic_is_refused_with_the_nearest_name(
    kafka: Broker, streamwatch: CliRunner
) -> None:
    topic = await create_topic(kafka, fresh("outcomes"))
    asked = ["-b", kafka.bootstrap_servers, "-t", topic.replace("outcomes", "outcomse"), "-t", topic]
    result = await _invoked(streamwatch, ["inspect", *asked])
    assert result.exit_code == 2
    assert f"did you mean {topic}" in result.output
