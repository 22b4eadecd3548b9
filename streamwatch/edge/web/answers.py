"""Common parts of all answers: headers, errors as JSON, compression, and bounded sending."""

from __future__ import annotations

import asyncio
import gzip
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeAlias

import msgspec
from aiohttp import web
from msgspec import Struct

from streamwatch.edge.web.connections import CHUNK_BYTES, HttpLimits, Refused
from streamwatch.edge.web.documents import Error
from streamwatch.edge.web.ports import Query

GZIP_FROM_BYTES = 1_000
HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
JSON = "application/json"
_PASSED_ON = ("Allow", "Retry-After", "WWW-Authenticate")

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


def json_answer(status: int, document: Struct) -> web.Response:
    """Make an answer of a small document."""
    return web.Response(status=status, body=msgspec.json.encode(document), headers={"Content-Type": JSON})


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Middleware: answer errors by the same JSON document everywhere."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        answer = json_answer(error.status, Error(error.reason, error.status))
        for name in _PASSED_ON:
            if name in error.headers:
                answer.headers[name] = error.headers[name]
        return answer


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers that forbid caching, sniffing of types and framing."""
    del request
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


def zipped(body: bytes | bytearray, accept_encoding: str) -> bytes | None:
    """Compress a body by gzip; None where that is not accepted, or the body is small."""
    if len(body) < GZIP_FROM_BYTES or not _accepts_gzip(accept_encoding):
        return None
    return gzip.compress(body, compresslevel=1, mtime=0)


def _accepts_gzip(accept_encoding: str) -> bool:
    for accepted in accept_encoding.lower().split(","):
        coding, _, weight = accepted.replace(" ", "").partition(";")
        if coding == "gzip":
            return weight.removeprefix("q=").strip("0.") != "" or not weight
    return False


def asked_of(query: Sequence[Query], request: web.Request) -> dict[str, str]:
    """Return the values of a route's parameters; raises 400 for one that does not match its pattern."""
    asked: dict[str, str] = {}
    for parameter in query:
        value = request.query.get(parameter.name)
        if value is None:
            continue
        if not re.fullmatch(parameter.pattern, value, re.DOTALL):
            raise web.HTTPBadRequest(reason=f"{parameter.name} must match {parameter.pattern}")
        asked[parameter.name] = value
    return asked


# Bodies are written in pieces, with a limit in time for each and in memory for all together.


STALLED_SECONDS = 1.0
"""Time without a piece taken after which a client may be cut off when others need memory."""
ROOM_SECONDS = 5.0
"""Time that a request waits for memory before it is answered 503."""
_LOOK_SECONDS = 0.05


class Sending:
    """One body that is being sent."""

    def __init__(self, request: web.Request, body: bytes | bytearray, now: float) -> None:
        self._request = request
        self.body = body
        self.progressed = now
        """Time at which the client last took a piece."""

    def abort(self) -> None:
        """Close the client's connection at once."""
        if self._request.transport is not None:
            self._request.transport.abort()


class Buffers:
    """Sends bodies, and limits their bytes in memory; a body sent to several clients counts once.

    Parameters
    ----------
    limits
        Bytes of all bodies, and time for one.
    refused
        Called with the reason for which a client was cut off.
    now
        Monotonic clock in seconds.
    """

    def __init__(self, limits: HttpLimits, refused: Refused, now: Callable[[], float]) -> None:
        self._limits = limits
        self._refused = refused
        self._now = now
        self._under_way: dict[Sending, None] = {}
        self._shared: Counter[int] = Counter()
        self.bytes = 0

    async def room(self) -> None:
        """Wait until another body may be made, cutting off stalled clients if need be.

        Raises
        ------
        web.HTTPServiceUnavailable
            There was no memory for `ROOM_SECONDS`.
        """
        deadline = self._now() + ROOM_SECONDS
        while self.bytes >= self._limits.buffered_bytes:
            if self._now() > deadline:
                self._refused("buffers_full")
                raise web.HTTPServiceUnavailable(
                    reason="too much is being sent already", headers={"Retry-After": "1"}
                )
            self._cut_off_stalled()
            await asyncio.sleep(_LOOK_SECONDS)

    async def send(self, request: web.Request, answer: web.StreamResponse, body: bytes | bytearray) -> None:
        """Write a body to an answer whose headers are set.

        Raises
        ------
        ConnectionAbortedError
            The client did not take the body within `send_seconds`, and was cut off.
        """
        with self._holding(request, body) as sending:
            try:
                async with asyncio.timeout(self._limits.send_seconds):
                    if not answer.prepared:
                        await answer.prepare(request)
                    if request.method != "HEAD":
                        await self._write(answer, sending)
            except TimeoutError:
                self._refused("slow_reader")
                sending.abort()
                raise ConnectionAbortedError("the client took too long") from None

    async def _write(self, answer: web.StreamResponse, sending: Sending) -> None:
        view = memoryview(sending.body)
        for start in range(0, len(view), CHUNK_BYTES):
            await answer.write(view[start : start + CHUNK_BYTES])
            sending.progressed = self._now()

    def _cut_off_stalled(self) -> None:
        """Cut off stalled clients, the longest stalled first, until there is memory."""
        now = self._now()
        for sending in sorted(self._under_way, key=lambda sending: sending.progressed):
            stalled = now - sending.progressed > STALLED_SECONDS
            if not stalled or self.bytes < self._limits.buffered_bytes:
                return
            self._refused("slow_reader")
            self._drop(sending)
            sending.abort()

    @contextmanager
    def _holding(self, request: web.Request, body: bytes | bytearray) -> Generator[Sending]:
        sending = Sending(request, body, self._now())
        self._under_way[sending] = None
        self._shared[id(body)] += 1
        if self._shared[id(body)] == 1:
            self.bytes += len(body)
        try:
            yield sending
        finally:
            self._drop(sending)

    def _drop(self, sending: Sending) -> None:
        if sending not in self._under_way:
            return
        del self._under_way[sending]
        key = id(sending.body)
        self._shared[key] -= 1
        if not self._shared[key]:
            del self._shared[key]
            self.bytes -= len(sending.body)
