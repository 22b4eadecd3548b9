"""A real Alertmanager on a free port, and what it says is firing."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.ports import free_port

DEADLINE_SECONDS = 300
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class AlertmanagerServer:
    """Queries to a running server."""

    session: aiohttp.ClientSession
    url: str

    async def alerts(self) -> list[Any]:
        async with self.session.get(f"{self.url}/api/v2/alerts") as answer:
            answer.raise_for_status()
            return await answer.json()

    async def once(self, condition: Callable[[list[Any]], bool]) -> list[Any]:
        """The alerts once something is true of them."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition(found := await self.alerts()):
            assert time.monotonic() < deadline, f"waited too long: {found}"
            await asyncio.sleep(POLL_SECONDS)
        return found


@contextlib.asynccontextmanager
async def alertmanager(
    program: str,
    receiver: str,
    directory: Path,
    policy: Path | None = None,
    *,
    group_wait: str = "0s",
    group_interval: str = "1s",
) -> AsyncIterator[AlertmanagerServer]:
    """Start it with one webhook receiver for everything, wait until it answers, end it.

    `policy` is a configuration whose routes and inhibitions hold, without its waits.
    """
    config = directory / "alertmanager.yml"
    _configure(config, receiver, policy, {"group_wait": group_wait, "group_interval": group_interval})
    port = free_port()
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
        async with aiohttp.ClientSession() as session:
            url = f"http://127.0.0.1:{port}"
            await _until_ready(session, url, directory / "alertmanager.log")
            yield AlertmanagerServer(session, url)
    finally:
        server.terminate()
        await asyncio.wait_for(server.wait(), DEADLINE_SECONDS)


def _configure(config: Path, receiver: str, policy: Path | None, waits: Mapping[str, str]) -> None:
    """Each receiver of the policy posts to a path of its name."""
    document: dict[str, Any] = {
        "route": {"receiver": "people", "group_by": ["..."]},
        "receivers": [{"name": "people"}],
    }
    if policy is not None:
        document = yaml.safe_load(policy.read_text(encoding="utf-8"))
    for route in (document["route"], *document["route"].get("routes", ())):
        route.update(waits)
    for each in document["receivers"]:
        each["webhook_configs"] = [{"url": f"{receiver}/{each['name']}", "send_resolved": True}]
    config.write_text(yaml.safe_dump(document))


async def _until_ready(session: aiohttp.ClientSession, url: str, log: Path) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(aiohttp.ClientConnectionError):
            async with session.get(f"{url}/-/ready") as answer:
                if answer.status == 200:
                    return
        await asyncio.sleep(POLL_SECONDS)
    raise AssertionError(f"Alertmanager did not become ready, see {log}")
