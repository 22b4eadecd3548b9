"""The shipped rules and policy over 500 models: what reaches people of an outage, and of ten drifts at once.

A real Prometheus evaluates the rules with their waits shortened, and a real Alertmanager routes, inhibits and
groups by the shipped configuration, with its waits shortened, too. Messages are written by the template.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from aiohttp import web

from tests.deploy.rules import DEPLOY, RULE_FILES
from tests.integration.prometheus_server import prometheus
from tests.ports import free_port

pytestmark = pytest.mark.slow

MODELS = 500
DRIFTING = 10
DEADLINE_SECONDS = 90.0
WAIT_SECONDS = {
    "for": {"5m": 1, "10m": 3, "15m": 3, "2m": 1, "3m": 1, "1m": 1, "30m": 3, "1h": 3},
    "keep_firing_for": {"5m": 3, "20m": 10},  # a busy Prometheus takes seconds to end 500 alerts
    "quiet": 15.0,
    "over": 8.0,
}
"""How long alerts wait, or go on, by how long they usually do; for how long nothing more may come; and when
Alertmanager has forgotten a group whose alerts are over, so that the next one waits anew."""


@dataclass
class Fleet:
    """What a scrape finds of a daemon that watches many models."""

    predictions_silent: bool = False
    labels_silent: bool = False
    kafka_up: bool = True
    drifting: int = 0
    started: float = field(default_factory=time.time)

    async def scrape(self, _: web.Request) -> web.Response:
        now = time.time()
        predicted = now - (7_200 if self.predictions_silent else 1)
        labelled = now - (36_000 if self.labels_silent else 1)
        count = int((now - self.started) * 10)
        lines = [
            f"streamwatch_kafka_up {int(self.kafka_up)}",
            f"streamwatch_caught_up {int(self.kafka_up)}",
            f'streamwatch_watermark_timestamp_seconds{{topic="predictions",partition="0"}} {predicted}',
            f'streamwatch_watermark_timestamp_seconds{{topic="labels",partition="0"}} {labelled}',
            f'streamwatch_topic_predictions_total{{topic="predictions"}} {count}',
            f'streamwatch_topic_labels_total{{topic="labels"}} {count}',
            f"streamwatch_predictions_accepted_total {count}",
        ]
        for number in range(MODELS):
            model = f'model="fraud-{number:03d}"'
            lines += [
                f'streamwatch_model_info{{{model},topic="predictions",label_topic="labels",team="risk"}} 1',
                f"streamwatch_last_prediction_timestamp_seconds{{{model}}} {predicted}",
                f"streamwatch_last_label_timestamp_seconds{{{model}}} {labelled}",
                f"streamwatch_pending_predictions{{{model}}} {count}",
                f'streamwatch_label_delay_seconds_bucket{{{model},le="1.0"}} 100',
                f'streamwatch_label_delay_seconds_bucket{{{model},le="+Inf"}} 100',
            ]
            if number < self.drifting:
                lines.append(f'streamwatch_alarms_open{{{model},severity="warning"}} 1')
        return web.Response(text="\n".join([*lines, ""]))


@dataclass
class People:
    """What the receivers of Alertmanager are sent, as the template writes it."""

    reported: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Receiver, title and text of each message."""

    async def listen(self, request: web.Request) -> web.Response:
        message = (await request.json())["attachments"][0]
        self.reported.append((request.match_info["receiver"], message["title"], message.get("text", "")))
        return web.Response(text="ok")

    async def once(self, wanted: Callable[[tuple[str, str, str]], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not any(map(wanted, self.reported)):
            assert time.monotonic() < deadline, self.reported
            await asyncio.sleep(0.1)


@asynccontextmanager
async def serving(fleet: Fleet, people: People) -> AsyncGenerator[str]:
    app = web.Application()
    app.router.add_get("/metrics", fleet.scrape)
    app.router.add_post("/people/{receiver}", people.listen)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"{host}:{port}"
    finally:
        await runner.cleanup()


def shortened_rules(directory: Path) -> list[Path]:
    """The shipped rules, waiting seconds where they wait minutes."""
    files: list[Path] = []
    for file in RULE_FILES:
        text = re.sub(
            r"(?m)^( +)(for|keep_firing_for): (\w+)$",
            lambda found: f"{found[1]}{found[2]}: {WAIT_SECONDS[found[2]][found[3]]}s",
            file.read_text(encoding="utf-8"),
        )
        files.append(directory / file.name)
        files[-1].write_text(text, encoding="utf-8")
    return files


@asynccontextmanager
async def alertmanager(program: str, people: str, directory: Path) -> AsyncIterator[str]:
    """Alertmanager with the shipped configuration, but for its waits and for whom it notifies."""
    shipped = DEPLOY / "alertmanager"
    document: dict[str, Any] = yaml.safe_load((shipped / "alertmanager.yml").read_text(encoding="utf-8"))
    for route in (document["route"], *document["route"]["routes"]):
        route |= {"group_wait": "5s", "group_interval": "5s"}
    document["templates"] = [str(shipped / "templates" / "*.tmpl")]
    for each in document["receivers"]:
        each["slack_configs"] = [
            {
                "api_url": f"http://{people}/people/{each['name']}",
                "title": '{{ template "streamwatch.title" . }}',
                "text": '{{ template "streamwatch.lines" . }}',
                "send_resolved": True,
            }
        ]
    config, port = directory / "alertmanager.yml", free_port()
    config.write_text(yaml.safe_dump(document), encoding="utf-8")
    with (directory / "alertmanager.log").open("wb") as log:
        server = await asyncio.create_subprocess_exec(
            program,
            f"--config.file={config}",
            f"--storage.path={directory / 'alertmanager'}",
            f"--web.listen-address=127.0.0.1:{port}",
            "--cluster.listen-address=",
            stdout=log,
            stderr=log,
        )
    try:
        await ready(f"http://127.0.0.1:{port}/-/ready", directory / "alertmanager.log")
        yield f"127.0.0.1:{port}"
    finally:
        server.terminate()
        await asyncio.wait_for(server.wait(), DEADLINE_SECONDS)


async def ready(url: str, log: Path) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    async with aiohttp.ClientSession() as session:
        while time.monotonic() < deadline:
            try:
                async with session.get(url) as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.1)
    raise AssertionError(f"Alertmanager did not become ready, see {log}")


@pytest.mark.real("prometheus", "prometheus-alertmanager")
async def test_an_outage_of_500_models_is_one_notification_and_ten_drifts_are_ten_lines_of_one(
    real_component: Callable[[str], str], tmp_path: Path
) -> None:
    fleet, people = Fleet(), People()
    table: list[tuple[str, list[tuple[str, str, str]], float]] = []

    async def story(name: str, begins: dict[str, Any], ends: dict[str, Any]) -> list[tuple[str, str, str]]:
        """What is notified while something is the case; then it ends, until that is notified, too.

        What comes later of its end is found among what is notified next.
        """
        began = time.monotonic()
        for key, value in begins.items():
            setattr(fleet, key, value)
        await people.once(lambda reported: "firing" in reported[1])
        seconds = time.monotonic() - began
        await asyncio.sleep(WAIT_SECONDS["quiet"])
        reported = list(people.reported)
        table.append((name, reported, seconds))
        people.reported.clear()
        for key, value in ends.items():
            setattr(fleet, key, value)
        await people.once(lambda reported: "resolved" in reported[1])
        await asyncio.sleep(WAIT_SECONDS["over"])
        table.append((f"{name}, over", list(people.reported), 0.0))
        people.reported.clear()
        return reported

    async with (
        serving(fleet, people) as served,
        alertmanager(real_component("prometheus-alertmanager"), served, tmp_path) as reported_at,
        prometheus(
            real_component("prometheus"), served, tmp_path, shortened_rules(tmp_path), reported_at
        ) as asked,
    ):
        await asked.answer(f"count(streamwatch_model_info) == {MODELS}")
        await asyncio.sleep(5)
        outage = await story("no predictions", {"predictions_silent": True}, {"predictions_silent": False})
        unlabelled = await story("no labels", {"labels_silent": True}, {"labels_silent": False})
        drifts = await story("ten drifts", {"drifting": DRIFTING}, {"drifting": 0})
        down = await story("broker down", {"kafka_up": False}, {"kafka_up": True})
        await asyncio.sleep(WAIT_SECONDS["quiet"])
    for name, reported, seconds in table:
        print(f"{name:24} {len(reported)} notification(s), first after {seconds:4.1f} s: {reported}")  # noqa: T201

    assert [reported[0] for reported in outage] == ["critical"], outage
    assert outage[0][2].startswith("No predictions come in on predictions")
    assert [reported[0] for reported in unlabelled] == ["critical"], unlabelled
    assert unlabelled[0][2].startswith("No labels come in on labels")
    assert [reported[0] for reported in drifts] == ["warning"], drifts
    lines = drifts[0][2].splitlines()
    assert len(lines) == DRIFTING
    assert all(f"fraud-{n:03d}" in " ".join(lines) for n in range(DRIFTING))
    assert "risk" in drifts[0][1]
    assert [reported[0] for reported in down] == ["critical"], down
    assert all(len(reported) == 1 for name, reported, _ in table if name.endswith("over")), table
    assert people.reported == []
