"""Bodies on their way: written piece by piece, bounded in time and, all together, in memory."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager

from aiohttp import web

from streamwatch.edge.web.connections import Refused
from streamwatch.edge.web.limits import CHUNK_BYTES, HttpLimits

STALLED_SECONDS = 1.0
"""Who takes less than a piece in this time is cut off when others need the room."""
ROOM_SECONDS = 5.0
"""A request waits this long for room before it is turned away."""
_LOOK_SECONDS = 0.05


class Sending:
    """One body on its way."""

    def __init__(self, request: web.Request, body: bytes, now: float) -> None:
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
        Told why a client was cut off.
    now
        Seconds that never go back.
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

    async def send(self, request: web.Request, answer: web.StreamResponse, body: bytes) -> None:
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
    def _holding(self, request: web.Request, body: bytes) -> Generator[Sending]:
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
