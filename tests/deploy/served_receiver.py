"""An HTTP server on the loopback that Alertmanager may notify, whatever the receiver."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web


@asynccontextmanager
async def served(listen: Callable[[web.Request], Awaitable[web.Response]]) -> AsyncGenerator[str]:
    """Serve `POST /{receiver}` while entered; gives the address."""
    app = web.Application()
    app.router.add_post("/{receiver}", listen)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()
