"""A receiver of notifications that behaves as it is set: answers, hangs, breaks off."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import msgspec
from aiohttp import web
from aiohttp.test_utils import TestServer

from tests.cpu_budget import until


@dataclass(frozen=True)
class Post:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


@dataclass
class Endpoint:
    """What it answers next, and what it was sent.

    `script` is used up answer by answer; the last one stays. An answer is a status, (status, headers), "hang"
    until it is released, "reset" without an answer, or "late": 200 once it is released.
    """

    script: list[Any] = field(default_factory=lambda: [200])
    posts: list[Post] = field(default_factory=list)
    url: str = ""
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: web.Request) -> web.Response:
        self.posts.append(Post(request.path_qs, dict(request.headers), await request.read()))
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        if answer in ("hang", "late"):  # answers need not be hashable
            await self.released.wait()
            answer = 200
        if answer == "reset":
            assert request.transport is not None
            request.transport.abort()
            return web.Response()
        status, headers = answer if isinstance(answer, tuple) else (answer, {})
        return web.Response(status=status, headers=headers)

    async def received(self, number: int) -> list[Post]:
        """The posts, once there are so many."""
        await until(lambda: len(self.posts) >= number)
        return self.posts


@contextlib.asynccontextmanager
async def endpoint(*script: Any) -> AsyncIterator[Endpoint]:
    """Serve on a free port; leave without waiting for what hangs."""
    made = Endpoint(list(script) or [200])
    app = web.Application()
    app.router.add_route("*", "/{any:.*}", made.handle)
    server = TestServer(app, shutdown_timeout=0.01)
    await server.start_server()
    made.url = str(server.make_url("/hook"))
    try:
        yield made
    finally:
        made.released.set()
        await server.close()
