"""What every answer has in common: headers, errors as JSON, compression where it is accepted."""

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
    """A small document."""
    return web.Response(status=status, body=msgspec.json.encode(document), headers={"Content-Type": JSON})


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """An error says what is wrong in the same form everywhere."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        answer = json_answer(error.status, Error(error.reason, error.status))
        for name in _PASSED_ON:
            if name in error.headers:
                answer.headers[name] = error.headers[name]
        return answer


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Nothing is cached, sniffed or framed."""
    del request
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


def zipped(body: bytes | bytearray, accept_encoding: str) -> bytes | None:
    """The body compressed, or None where that is not accepted or not worth it."""
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
    """Values of the parameters a route understands; raises 400 for one that does not match its pattern."""
    asked: dict[str, str] = {}
    for parameter in query:
        value = request.query.get(parameter.name)
        if value is None:
            continue
        if not re.fullmatch(parameter.pattern, value, re.DOTALL):
            raise web.HTTPBadRequest(reason=f"{parameter.name} must match {parameter.pattern}")
        asked[parameter.name] = value
    return asked


# Bodies on their way: written piece by piece, bounded in time and, all together, in memory.


STALLED_SECONDS = 1.0
"""Who takes less than a piece in this time is cut off when others need the room."""
ROOM_SECONDS = 5.0
"""A request waits this long for room before it is turned away."""
_LOOK_SECONDS = 0.05


class Sending:
    """One body on its way."""

    def __init__(self, request: web.Request, body: bytes | bytearray, now: float) -> None:
        self._request = request
        self.body = body
        self.progressed = now
        """When a piece was last taken."""

    def abort(self) -> None:
        """Cut the client off."""
        if self._request.transport is not None:
            self._request.transport.abort()


class Buffers:
    """Counts the bytes of all bodies under way, one that several clients are sent only once.

    Parameters
    ----------
    limits
        How many bytes, and how long one body may take.
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
        """Wait until a further body may be made, cutting off who takes nothing.

        Raises
        ------
        web.HTTPServiceUnavailable
            When there is none for `ROOM_SECONDS`.
        """
        deadline = self._now() + ROOM_SECONDS
        while self.bytes >= self._limits.buffered_bytes:
            if self._now() > deadline:
                self._refused("buffers_full")
                raise web.HTTPServiceUnavailable(
                    reason="too much is being sent already", headers={"Retry-After": "1"}
                )
            self._relieve()
            await asyncio.sleep(_LOOK_SECONDS)

    async def send(self, request: web.Request, answer: web.StreamResponse, body: bytes | bytearray) -> None:
        """Write a body to an answer whose headers are set; a client too slow for it is cut off."""
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

    def _relieve(self) -> None:
        """Cut off those who stall, longest first, until there is room."""
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
