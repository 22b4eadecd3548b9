"""A real Prometheus that scrapes one address once a second, and answers queries."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.ports import free_port

DEADLINE_SECONDS = 300
POLL_SECONDS = 0.05


@dataclass(frozen=True)
class Prometheus:
    """Queries to a running server."""

    session: aiohttp.ClientSession

    async def get(self, path: str, **parameters: str) -> Any:
        async with self.session.get(f"/api/v1/{path}", params=parameters) as answer:
            answer.raise_for_status()
            return (await answer.json())["data"]

    async def answer(self, query: str) -> list[tuple[dict[str, str], str]]:
        """(labels without the scrape's own, value as text) once the query has an answer."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not (found := (await self.get("query", query=query))["result"]):
            if time.monotonic() > deadline:
                raise AssertionError(f"no answer to {query}; targets: {await self.get('targets')}")
            await asyncio.sleep(POLL_SECONDS)
        own = {"__name__", "instance", "job"}
        return [({k: v for k, v in s["metric"].items() if k not in own}, s["value"][1]) for s in found]


@contextlib.asynccontextmanager
async def prometheus(
    program: str,
    target: str,
    directory: Path,
    rule_files: Sequence[Path] = (),
    alertmanager: str | None = None,
    scrape_seconds: int = 1,
    evaluation_seconds: int = 1,
) -> AsyncIterator[Prometheus]:
    """Start it on a free port, wait until it answers, end it; `alertmanager` is who it tells of alerts.

    It scrapes every `scrape_seconds`, gives up a scrape after as long, and evaluates rules every
    `evaluation_seconds`.
    """
    told = [{"static_configs": [{"targets": [alertmanager]}]}] if alertmanager else []
    settings = {
        "alerting": {"alertmanagers": told},
        "global": {
            "scrape_interval": f"{scrape_seconds}s",
            "scrape_timeout": f"{scrape_seconds}s",
            "evaluation_interval": f"{evaluation_seconds}s",
        },
        "rule_files": [str(file) for file in rule_files],
        "scrape_configs": [{"job_name": "streamwatch", "static_configs": [{"targets": [target]}]}],
    }
    config = directory / "prometheus.yml"
    config.write_text(yaml.safe_dump(settings))
    port = free_port()
    with (directory / "prometheus.log").open("wb") as log:
        server = await asyncio.create_subprocess_exec(
            program,
            f"--config.file={config}",
            f"--storage.tsdb.path={directory / 'tsdb'}",
            f"--web.listen-address=127.0.0.1:{port}",
            stdout=log,
            stderr=log,
        )
    try:
        async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
            await _until_ready(session, directory / "prometheus.log")
            yield Prometheus(session)
    finally:
        server.terminate()
        await asyncio.wait_for(server.wait(), DEADLINE_SECONDS)


async def _until_ready(session: aiohttp.ClientSession, log: Path) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(aiohttp.ClientConnectionError):
            async with session.get("/-/ready") as answer:
                if answer.status == 200:
                    return
        await asyncio.sleep(POLL_SECONDS)
    raise AssertionError(f"Prometheus did not become ready, see {log}")
