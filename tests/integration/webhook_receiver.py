"""A webhook receiver that believes nothing the reference library does not verify."""

from __future__ import annotations

import asyncio
import base64
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from aiohttp.test_utils import TestServer
from standardwebhooks import Webhook

KEY = b"thirty-two bytes nobody may read"
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"
TOKEN = "t0ken-in-the-url"  # noqa: S105 - of this test
"""Part of its URL, which is as secret as the key."""
DEADLINE_SECONDS = 600.0


@dataclass(frozen=True)
class Told:
    """One notification as it arrived, verified."""

    id: str
    type: str
    data: dict[str, Any]
    at: float
    """Of `time.monotonic`."""

    @property
    def model(self) -> str:
        return self.data["model"]

    @property
    def alarms(self) -> list[dict[str, Any]]:
        """The newest alarm of each detector of the incident."""
        return [each["newest"] for each in self.data["alarms"]]

    @property
    def mark(self) -> tuple[tuple[str, str, int], ...]:
        """What notifications that begin an incident are told apart by."""
        return tuple((alarm["model"], alarm["detector"], alarm["ordinal"]) for alarm in self.alarms)

    @property
    def begun(self) -> int:
        """Alarms that began with it."""
        news, alarms = self.data["news"], self.data["alarms"]
        return sum(each["detector"] in news and each["ended_at"] is None for each in alarms)


@dataclass
class Receiver:
    """What it was told, in order.

    `answer` chooses a status for each notification; None keeps it waiting until `released`.
    """

    url: str = ""
    answer: Callable[[Told], int | None] = lambda _: 200
    told: list[Told] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    def of(self, kind: str) -> list[Told]:
        return [told for told in self.told if told.type == f"drift.{kind}"]

    def ids(self, kind: str) -> set[str]:
        return {told.id for told in self.of(kind)}

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait until something is true of what was told."""
        async with asyncio.timeout(DEADLINE_SECONDS), self._news:
            await self._news.wait_for(condition)

    async def handle(self, request: web.Request) -> web.Response:
        at, body = time.monotonic(), await request.read()
        envelope = Webhook(SECRET).verify(body, dict(request.headers))  # else: 500, and `told` lacks it
        told = Told(request.headers["webhook-id"], envelope["type"], envelope["data"], at)
        assert told.id == told.data["id"]
        self.told.append(told)
        async with self._news:
            self._news.notify_all()
        status = self.answer(told)
        if status is None:
            await self.released.wait()
        return web.Response(status=status or 200)


def webhook(receiver: Receiver, **keys: Any) -> dict[str, Any]:
    """The receiver that tells it."""
    patient = {"timeout": "120s"}  # it answers at once, and must not be told again because that took long
    return {
        "name": "people",
        "type": "webhook",
        "url": receiver.url,
        "secrets": [SECRET],
        **patient,
        **keys,
    }


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A receiver on a free port."""
    made = Receiver()
    app = web.Application()
    app.router.add_post(f"/{TOKEN}", made.handle)
    server = TestServer(app, shutdown_timeout=0.01)
    await server.start_server()
    made.url = str(server.make_url(f"/{TOKEN}"))
    try:
        yield made
    finally:
        made.released.set()
        await server.close()
