"""The HTTP server: serves the last published report by exporters, and sends events to listeners."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TypeAlias, TypeVar

from aiohttp import web, web_response

from streamwatch.core.metrics.series import Report
from streamwatch.edge.web.access import Access, Admission
from streamwatch.edge.web.answers import Buffers, add_headers, asked_of, errors_as_json, json_answer, zipped
from streamwatch.edge.web.connections import (
    Acceptor,
    ClientLog,
    Connections,
    HttpLimits,
    ListenError,
    Refused,
    advice,
)
from streamwatch.edge.web.documents import Alive, Ready
from streamwatch.edge.web.ports import Asked, ChoosesMediaType, Exporter, Health, Observer, Route
from streamwatch.edge.web.routes.json_api import NewsStream

# Listeners of the stream of events: limited in number, and in unsent events.


MAX_LISTENERS = 32
"""Listeners at most; further ones are answered 503."""
MAX_UNSENT = 8
"""Unsent events of a listener at most; with more it is cut off, and may reconnect."""
HEARTBEAT_SECONDS = 15.0
"""Time without events after which a comment is sent, so that both ends notice a dead connection."""
PREAMBLE = b"retry: 2000\n\n"
HEARTBEAT = b": still here\n\n"
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "X-Accel-Buffering": "no",  # otherwise nginx buffers events
}


class Listener:
    """One client of the stream."""

    def __init__(self, request: web.Request, buffers: Buffers) -> None:
        self._request = request
        self._buffers = buffers
        self._unsent: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_UNSENT)
        self.has_begun = False
        """Whether it was sent a first event, so that it gets changes from then on."""

    def notify(self, events: bytes | None) -> None:
        """Queue events, or the end (None); a listener with `MAX_UNSENT` unsent ones is cut off."""
        if events == b"":
            return
        try:
            self._unsent.put_nowait(events)
        except asyncio.QueueFull:
            if self._request.transport is not None:
                self._request.transport.abort()

    async def serve(self) -> web.StreamResponse:
        """Send events as they come, until the end or the client's leaving."""
        answer = web.StreamResponse(headers=HEADERS)
        await self._buffers.send(self._request, answer, PREAMBLE)
        while (events := await self._next()) is not None:
            await self._buffers.send(self._request, answer, events)
        return answer

    async def _next(self) -> bytes | None:
        try:
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                return await self._unsent.get()
        except TimeoutError:
            return HEARTBEAT


class Listeners:
    """All clients of the stream."""

    def __init__(self, buffers: Buffers) -> None:
        self._buffers = buffers
        self._open: set[Listener] = set()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Listener]:
        return iter(tuple(self._open))

    def admit(self, request: web.Request) -> Listener:
        """Add a listener, which the caller removes after serving it; raises 503 beyond `MAX_LISTENERS`."""
        if len(self._open) >= MAX_LISTENERS:
            raise web.HTTPServiceUnavailable(
                reason=f"{MAX_LISTENERS} streams are open already", headers={"Retry-After": "5"}
            )
        listener = Listener(request, self._buffers)
        self._open.add(listener)
        return listener

    def remove(self, listener: Listener) -> None:
        """Remove a listener that has left."""
        self._open.discard(listener)

    @property
    def has_new(self) -> bool:
        """Tell whether a listener waits for its first event."""
        return any(not listener.has_begun for listener in self._open)

    def notify(self, whole: bytes, changes: bytes) -> None:
        """Queue `whole` for new listeners, and `changes` for the others."""
        for listener in self:
            if listener.has_begun:
                listener.notify(changes)
            elif whole:
                listener.has_begun = True
                listener.notify(whole)

    def dismiss(self) -> None:
        """End the streams of all listeners."""
        for listener in self:
            listener.notify(None)


ALIVE = Route(
    "/healthz", "Whether the daemon lives: its event loop turns", "Alive", tag="daemon", public=True
)
READY = Route(
    "/readyz",
    "Whether state is open and partitions are assigned",
    "Ready",
    tag="daemon",
    public=True,
    also={"503": "Not ready, and why"},
)
STOP_SECONDS = 2.0
MAX_WAITING = 64
"""Requests that may wait for the rendering thread; further ones are answered 503."""
SWITCH_SECONDS = 0.0005
"""Interpreter's switch interval while serving. In a backlog the event loop never sleeps, and its turns take
about 3 ms: with CPython's interval of 5 ms, the rendering thread waited up to half a minute to run."""

_Rendered = TypeVar("_Rendered")
_Bodies: TypeAlias = "tuple[bytes | bytearray | None, bytes | None]"


# The library itself answers requests that are no HTTP; its default header names its version and Python's.
web_response.SERVER_SOFTWARE = "streamwatch"  # pyright: ignore[reportPrivateImportUsage]


class HttpServer:
    """A `Sink` that serves the last report over HTTP.

    Parameters
    ----------
    health
        Present state of the daemon, read at each request.
    exporters
        Routes and their rendering.
    host, port
        Address to listen on; port 0 is any free one.
    access
        Token, TLS and admitted names; None: no protection.
    stream
        Stream of events; None: there is no such route.
    observers
        Receive each report in the rendering thread.
    limits
        Limits on clients; None: the defaults.
    refused
        Called with the reason when a client was refused or cut off.
    """

    def __init__(  # noqa: PLR0913 - what it serves, where, to whom, how much
        self,
        health: Health,
        exporters: Sequence[Exporter],
        *,
        host: str = "127.0.0.1",
        port: int = 9877,
        access: Access | None = None,
        stream: NewsStream | None = None,
        observers: Sequence[Observer] = (),
        limits: HttpLimits | None = None,
        refused: Refused = lambda _: None,
    ) -> None:
        self._health = health
        self._exporters = exporters
        self._host = host
        self._port = port
        self._access = access or Access()
        self._stream = stream
        self._observers = observers
        self._report: Report | None = None
        self._observed: Report | None = None
        self._limits = limits or HttpLimits()
        self._refused = refused
        self._runner: web.AppRunner | None = None
        self._acceptor: Acceptor | None = None
        self._connections = Connections(self._limits, self._speak, refused, time.monotonic)
        self._admission = Admission(self._connections, self._access, host)
        self._buffers = Buffers(self._limits, refused, time.monotonic)
        self._making = asyncio.Lock()
        self._renderer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="render")
        self._waiting = 0
        self._listeners = Listeners(self._buffers)
        self._news = asyncio.Event()
        self._sending: asyncio.Task[None] | None = None
        self._switch_seconds = sys.getswitchinterval()

    @property
    def url(self) -> str:
        """URL of the server; from `start` on with the real port."""
        host, port = self._host, self._port
        if self._acceptor is not None and self._acceptor.address is not None:
            host, port = self._acceptor.address
        return f"{self._access.scheme}://" + (f"[{host}]:{port}" if ":" in host else f"{host}:{port}")

    def publish(self, report: Report) -> None:
        """Serve this report from now on, and send events to listeners."""
        self._report = report
        self._news.set()
        if self._sending is not None and self._sending.done() and not self._sending.cancelled():
            self._sending.result()  # raises the exception of a bug in an observer

    async def start(self) -> None:
        """Listen and serve.

        Raises
        ------
        ListenError
            The address is in use, not this machine's or needs more rights; or the certificate is invalid.
        """
        context = self._access.ssl_context()
        runner = web.AppRunner(
            self._application(),
            access_log=None,
            shutdown_timeout=STOP_SECONDS / 2,
            logger=ClientLog(self._refused).logger(),
            keepalive_timeout=2 * self._limits.idle_seconds,  # `Connections` closes earlier
            lingering_time=0.0,
            auto_decompress=False,
        )
        await runner.setup()
        self._runner = runner
        acceptor = Acceptor(self._connections, context)
        try:
            await acceptor.start(self._host, self._port)
        except (OSError, OverflowError) as error:
            self._runner = None
            await runner.cleanup()
            raise ListenError(advice(self._host, self._port, error)) from error
        self._acceptor = acceptor
        self._sending = asyncio.create_task(self._send_to_listeners(), name="http-stream")
        self._switch_seconds = sys.getswitchinterval()
        sys.setswitchinterval(min(SWITCH_SECONDS, self._switch_seconds))

    async def stop(self) -> None:
        """Stop listening, give open requests `STOP_SECONDS` to finish, and close."""
        runner, self._runner = self._runner, None
        if runner is not None:
            self._listeners.dismiss()
            if self._sending is not None:
                self._sending.cancel()
            if self._acceptor is not None:
                await self._acceptor.stop()
            with suppress(TimeoutError):  # requests still open are cut off
                async with asyncio.timeout(STOP_SECONDS):
                    await runner.cleanup()
            self._connections.close()
            sys.setswitchinterval(self._switch_seconds)
        self._renderer.shutdown(wait=False, cancel_futures=True)

    def _application(self) -> web.Application:
        app = web.Application(middlewares=[self._admission.take_slot, errors_as_json, self._admission.check])
        app.on_response_prepare.append(add_headers)
        app.router.add_get(ALIVE.path, self._healthz)
        app.router.add_get(READY.path, self._readyz)
        if self._stream is not None:
            app.router.add_get(self._stream.route.path, self._listen, allow_head=False)
        for exporter in self._exporters:
            for route in exporter.routes:
                resource = app.router.add_get(route.path, partial(self._export, exporter, route)).resource
                if route.public and resource is not None:
                    self._admission.make_public(resource.canonical)
        return app

    def _speak(self) -> asyncio.Protocol:
        server = None if self._runner is None else self._runner.server
        assert server is not None  # noqa: S101 - sockets are accepted between start and stop
        return server()

    async def _healthz(self, request: web.Request) -> web.Response:
        del request
        return json_answer(200, Alive("alive"))

    async def _readyz(self, request: web.Request) -> web.Response:
        del request
        reasons = list(self._health.unready())
        return json_answer(503 if reasons else 200, Ready(not reasons, reasons, self._health.role))

    async def _export(self, exporter: Exporter, route: Route, request: web.Request) -> web.StreamResponse:
        if self._waiting >= MAX_WAITING:
            raise web.HTTPServiceUnavailable(
                reason="too many requests are waiting", headers={"Retry-After": "1"}
            )
        path = dict(request.match_info)
        values = path | asked_of(route.query, request)
        media_type = route.media_types[0]
        if isinstance(exporter, ChoosesMediaType):
            media_type = exporter.media_type(request.headers.get("Accept", ""), values)
        accept_encoding = request.headers.get("Accept-Encoding", "")

        def render(asked: Asked) -> _Bodies:
            """Render the answer, and compress it where that is accepted."""
            body = exporter.render(asked)
            return body, None if body is None else zipped(body, accept_encoding)

        self._waiting += 1
        try:
            async with self._making:  # at most one body is not yet counted by the buffers
                await self._buffers.room()
                asked = Asked(self._report, values, self._health.families(), media_type)
                body, compressed = await self._in_thread(partial(render, asked))
        finally:
            self._waiting -= 1
        if body is None:
            raise web.HTTPNotFound(reason=f"no such {' or '.join(path) or 'page'}")
        answer = web.StreamResponse(
            headers={"Content-Type": media_type, "Vary": "Accept, Accept-Encoding", **route.headers}
        )
        if compressed is not None:
            answer.headers["Content-Encoding"] = "gzip"
        sent = compressed or body
        answer.content_length = len(sent)
        del body, compressed
        await self._buffers.send(request, answer, sent)
        return answer

    async def _listen(self, request: web.Request) -> web.StreamResponse:
        listener = self._listeners.admit(request)
        self._news.set()
        try:
            return await listener.serve()
        finally:
            self._listeners.remove(listener)

    async def _send_to_listeners(self) -> None:
        """Show each report to observers and listeners; of those that came meanwhile, only the latest."""
        while True:
            await self._news.wait()
            self._news.clear()
            report, whole, anybody = self._report, self._listeners.has_new, len(self._listeners) > 0
            if report is not None and report is not self._observed:
                self._observed = report
                for observer in self._observers:
                    await self._in_thread(partial(observer.observe, report))
            if self._stream is not None and anybody:
                self._listeners.notify(
                    *await self._in_thread(partial(self._stream.events, report, whole=whole))
                )

    async def _in_thread(self, render: Callable[[], _Rendered]) -> _Rendered:
        return await asyncio.get_running_loop().run_in_executor(self._renderer, render)
