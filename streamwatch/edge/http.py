"""The daemon's HTTP face: health, and whatever exporters are plugged in.

Usage::

    exporters = (PrometheusExporter(), JsonExporter(), LandingPage())
    server = HttpServer(health, exporters, host="127.0.0.1", port=9877)
    await server.start()        # ListenError when the address cannot be had; serves from here on
    log(server.url)             # http://127.0.0.1:9877 (the real port, also after port 0)
    server.publish(report)      # a Sink: from now on this report is shown
    await server.stop()         # within STOP_SECONDS, open requests or not

`health` is the daemon seen through `Health`. Before the first report everything answers, with the live facts
alone.

===================  ==================================================================================
``/healthz``         200 as long as the event loop turns
``/readyz``          200 when state is open and partitions are assigned, else 503; JSON with the reasons
exporters' routes    200; 404 for an unknown model. Rendered in one thread, off the event loop
===================  ==================================================================================
"""

from __future__ import annotations

import asyncio
import errno
import gzip
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Protocol

import msgspec
from aiohttp import web

from streamwatch.core.series import Family, Report

STOP_SECONDS = 2.0
MAX_WAITING = 64
"""Requests that may wait for the rendering thread; more are turned away with 503."""
GZIP_FROM_BYTES = 1_000
SWITCH_SECONDS = 0.0005
"""Interpreter switch interval while serving. Under backlog the loop never sleeps and its turns take about
3 ms: a thread that may ask for the interpreter only after CPython's 5 ms then waited up to half a minute."""
HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
JSON = "application/json"


class ListenError(Exception):
    """The HTTP address cannot be listened on; the message says what to change."""


class Health(Protocol):
    """What the server asks of the daemon, on the event loop, at every request."""

    def unready(self) -> Sequence[str]:
        """Why the daemon is not ready, in words; empty when state is open and partitions are assigned."""
        ...

    def families(self) -> Sequence[Family]:
        """Facts that are true right now and wait for no commit (build_info, kafka_up, caught_up …)."""
        ...


class Exporter(Protocol):
    """One face of a report."""

    @property
    def routes(self) -> Sequence[str]:
        """Paths it answers, with aiohttp's `{variables}`."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Response headers beside, or instead of, those every answer carries."""
        ...

    def media_type(self, accept: str) -> str:
        """Content type for a request's `Accept` header."""
        ...

    def render(
        self, report: Report | None, live: Sequence[Family], media_type: str, path: Mapping[str, str]
    ) -> bytes | None:
        """Body of the answer, None where nothing has that name. Runs in a thread, one call at a time."""
        ...


class HttpServer:
    """Serves the last published report through its exporters."""

    def __init__(
        self, health: Health, exporters: Sequence[Exporter], *, host: str = "127.0.0.1", port: int = 9877
    ) -> None:
        self._health = health
        self._exporters = exporters
        self._host = host
        self._port = port
        self._report: Report | None = None
        self._runner: web.AppRunner | None = None
        self._renderer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="render")
        self._waiting = 0
        self._switch_seconds = sys.getswitchinterval()

    @property
    def url(self) -> str:
        """Where it serves, with the real port; before `start`, where it will."""
        host, port = self._host, self._port
        if self._runner is not None and self._runner.addresses:
            host, port = self._runner.addresses[0][:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def publish(self, report: Report) -> None:
        """Show this report from now on."""
        self._report = report

    async def start(self) -> None:
        """Listen and serve.

        Raises
        ------
        ListenError
            When the address is taken, is not this machine's or needs more rights.
        """
        app = web.Application(middlewares=[_errors_as_json])
        app.on_response_prepare.append(_add_headers)
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        for exporter in self._exporters:
            for route in exporter.routes:
                app.router.add_get(route, partial(self._export, exporter))
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=STOP_SECONDS / 2)
        await runner.setup()
        try:
            await web.TCPSite(runner, self._host, self._port).start()
        except (OSError, OverflowError) as error:
            await runner.cleanup()
            raise ListenError(_advice(self._host, self._port, error)) from error
        self._runner = runner
        self._switch_seconds = sys.getswitchinterval()
        sys.setswitchinterval(min(SWITCH_SECONDS, self._switch_seconds))

    async def stop(self) -> None:
        """Close the listener, let open requests finish for a moment, then leave."""
        runner, self._runner = self._runner, None
        if runner is not None:
            with suppress(TimeoutError):  # what is open then dies with the process
                async with asyncio.timeout(STOP_SECONDS):
                    await runner.cleanup()
            sys.setswitchinterval(self._switch_seconds)
        self._renderer.shutdown(wait=False, cancel_futures=True)

    async def _healthz(self, request: web.Request) -> web.Response:
        del request
        return _json(200, {"status": "alive"})

    async def _readyz(self, request: web.Request) -> web.Response:
        del request
        reasons = list(self._health.unready())
        return _json(503 if reasons else 200, {"ready": not reasons, "reasons": reasons})

    async def _export(self, exporter: Exporter, request: web.Request) -> web.Response:
        if self._waiting >= MAX_WAITING:
            raise web.HTTPServiceUnavailable(
                reason="too many requests are waiting", headers={"Retry-After": "1"}
            )
        report, live, path = self._report, self._health.families(), dict(request.match_info)
        media_type = exporter.media_type(request.headers.get("Accept", ""))
        gzip_accepted = _accepts_gzip(request.headers.get("Accept-Encoding", ""))

        def render() -> tuple[bytes | None, bool]:
            body = exporter.render(report, live, media_type, path)
            if body is None or len(body) < GZIP_FROM_BYTES or not gzip_accepted:
                return body, False
            return gzip.compress(body, compresslevel=1, mtime=0), True

        self._waiting += 1
        try:
            body, zipped = await asyncio.get_running_loop().run_in_executor(self._renderer, render)
        finally:
            self._waiting -= 1
        if body is None:
            raise web.HTTPNotFound(reason=f"no such {' or '.join(path) or 'page'}")
        headers = {"Content-Type": media_type, "Vary": "Accept, Accept-Encoding", **exporter.headers}
        if zipped:
            headers["Content-Encoding"] = "gzip"
        return web.Response(body=body, headers=headers)


def _accepts_gzip(accept_encoding: str) -> bool:
    for accepted in accept_encoding.lower().split(","):
        coding, _, weight = accepted.replace(" ", "").partition(";")
        if coding == "gzip":
            return weight.removeprefix("q=").strip("0.") != "" or not weight
    return False


def _json(status: int, document: object) -> web.Response:
    return web.Response(status=status, body=msgspec.json.encode(document), headers={"Content-Type": JSON})


@web.middleware
async def _errors_as_json(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        answer = _json(error.status, {"error": error.reason, "status": error.status})
        for name in ("Allow", "Retry-After"):
            if name in error.headers:
                answer.headers[name] = error.headers[name]
        return answer


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    del request
    response.headers["Server"] = "streamwatch"
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


def _advice(host: str, port: int, error: OSError | OverflowError) -> str:
    where = f"cannot serve HTTP on {host}:{port}"
    if isinstance(error, OverflowError):
        return f"{where}: a port is 0 to 65535; change http.listen"
    if isinstance(error, socket.gaierror):
        return f"{where}: the host name does not resolve; change http.listen to an address of this machine"
    if isinstance(error, PermissionError):
        return f"{where}: ports below 1024 need more rights; change http.listen to a higher port"
    if error.errno == errno.EADDRINUSE:
        return (
            f"{where}: something listens there already (another streamwatch?); stop it or change http.listen"
        )
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{where}: that is no address of this machine; change http.listen (0.0.0.0 is all of them)"
    reason = os.strerror(error.errno) if error.errno else str(error)
    return f"{where}: {reason}; change http.listen"
