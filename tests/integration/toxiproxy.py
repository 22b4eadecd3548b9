"""Toxiproxy between reader and broker: a faulty network by somebody else's hand.

https://github.com/Shopify/toxiproxy; `.ci/run` builds it where Go modules can be had.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp

from tests.ports import free_port

HOST = "127.0.0.1"
START_SECONDS = 60
PROXY = "kafka"


class Toxiproxy:
    """One proxy of a running server, and the faults it is told to make.

    Parameters
    ----------
    api
        Address of the server.
    listen
        Port of the proxy on the loopback.
    """

    def __init__(self, api: str, listen: int) -> None:
        self._api = api
        self.servers = f"{HOST}:{listen}"

    async def call(self, method: str, path: str, **content: object) -> None:
        """Ask the server; raises what it refuses."""
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, f"{self._api}{path}", json=content or None) as answer,
        ):
            assert answer.ok, await answer.text()

    async def poison(self, toxic: str, stream: str = "downstream", **attributes: int) -> None:
        """Put a toxic on every connection, those that there are and those to come.

        Parameters
        ----------
        toxic
            latency, bandwidth, slow_close, timeout, reset_peer, slicer or limit_data.
        stream
            downstream is from the broker, upstream towards it.
        attributes
            As its documentation names them.
        """
        named = {"name": f"{toxic}-{stream}", "type": toxic, "stream": stream, "attributes": attributes}
        await self.call("POST", f"/proxies/{PROXY}/toxics", **named)

    async def cure(self, toxic: str, stream: str = "downstream") -> None:
        """Take a toxic away."""
        await self.call("DELETE", f"/proxies/{PROXY}/toxics/{toxic}-{stream}")

    async def enable(self, *, enabled: bool) -> None:
        """Close every connection and listen no more, or listen again."""
        await self.call("POST", f"/proxies/{PROXY}", enabled=enabled)


@asynccontextmanager
async def toxiproxy(program: str, listen: int, upstream: int) -> AsyncIterator[Toxiproxy]:
    """Start a server with one proxy between two ports of the loopback."""
    port = free_port()
    server = await asyncio.create_subprocess_exec(
        program, "-host", HOST, "-port", str(port),
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        proxy = Toxiproxy(f"http://{HOST}:{port}", listen)
        async with asyncio.timeout(START_SECONDS):
            while not await _answers(proxy):  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        between = {"listen": f"{HOST}:{listen}", "upstream": f"{HOST}:{upstream}"}
        await proxy.call("POST", "/proxies", name=PROXY, enabled=True, **between)
        yield proxy
    finally:
        if server.returncode is None:
            server.kill()
        await server.wait()


async def _answers(proxy: Toxiproxy) -> bool:
    with suppress(aiohttp.ClientConnectionError):
        await proxy.call("GET", "/version")
        return True
    return False
