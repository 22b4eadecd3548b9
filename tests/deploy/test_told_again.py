"""What is over is reported once more with what fires next in its group, and no oftener.

Prometheus sends an alert that is over again each minute, for a quarter of an hour. Here it comes each second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.deploy.rules import DEPLOY, alerts
from tests.deploy.served_receiver import served
from tests.integration.alertmanager_server import alertmanager

pytestmark = pytest.mark.slow

POLICY = DEPLOY / "alertmanager" / "alertmanager.yml"
DEADLINE_SECONDS = 90
ROUNDS = 5
FAR = timedelta(minutes=10)
Reported = tuple[frozenset[str], frozenset[str]]
"""Names of the alerts in a notification that fire, and of those that are over."""


@dataclass
class People:
    """What the receivers are sent."""

    reported: list[Reported] = field(default_factory=list[Reported])
    heard: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self, request: web.Request) -> web.Response:
        found = (await request.json())["alerts"]
        firing, over = (
            frozenset(each["labels"]["alertname"] for each in found if each["status"] == status)
            for status in ("firing", "resolved")
        )
        self.reported.append((firing, over))
        self.heard.set()
        return web.Response()

    async def once(self, reported: Reported) -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while reported not in self.reported:
                self.heard.clear()
                await self.heard.wait()


async def post(url: str, name: str, began: datetime, ends: datetime) -> None:
    labels = {**alerts()[name]["labels"], "alertname": name, "job": "streamwatch", "instance": "daemon:9877"}
    document = [{"labels": labels, "startsAt": began.isoformat(), "endsAt": ends.isoformat()}]
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/api/v2/alerts", json=document) as answer,
    ):
        answer.raise_for_status()


@pytest.mark.real("prometheus-alertmanager")
async def test_an_alert_that_is_over_comes_once_more_with_the_next_of_its_group(
    real_component: Callable[[str], str], tmp_path: Path
) -> None:
    people = People()
    unreachable, down = frozenset({"KafkaUnreachable"}), frozenset({"Down"})
    nothing = frozenset[str]()
    program = real_component("prometheus-alertmanager")
    async with (
        served(people.listen) as address,
        alertmanager(program, address, tmp_path, POLICY, group_wait="1s", group_interval="1s") as server,
    ):
        began = datetime.now(UTC)
        await post(server.url, "KafkaUnreachable", began, began + FAR)
        await people.once((unreachable, nothing))
        over = datetime.now(UTC)
        await post(server.url, "KafkaUnreachable", began, over)
        await people.once((nothing, unreachable))
        stopped = datetime.now(UTC)
        await post(server.url, "Down", stopped, stopped + FAR)
        await people.once((down, nothing))
        for _ in range(ROUNDS):
            await post(server.url, "KafkaUnreachable", began, over)
            await asyncio.sleep(1)
        await people.once((down, unreachable))
        await post(server.url, "Down", stopped, datetime.now(UTC))
        await people.once((nothing, down))
    of_down = people.reported[2:]
    assert of_down == [(down, nothing), (down, unreachable), (nothing, down)]
