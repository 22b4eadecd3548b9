"""Those who listen to the stream of events: a bounded number, none of them buffered for without bound."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from aiohttp import web

from streamwatch.edge.web.sending import Buffers

MAX_LISTENERS = 32
"""Pages that may be open at once; further ones are turned away with 503."""
MAX_UNSENT = 8
"""Events a listener may be behind before it is dropped; it may come back and start anew."""
HEARTBEAT_SECONDS = 15.0
"""A comment is sent when nothing else was, so that both ends notice a dead connection."""
PREAMBLE = b"retry: 2000\n\n"
HEARTBEAT = b": still here\n\n"
HEADERS = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "X-Accel-Buffering": "no",  # nginx would hold events back
}


class Listener:
    """One open stream."""

    def __init__(self, request: web.Request, buffers: Buffers) -> None:
        self._request = request
        self._buffers = buffers
        self._unsent: asyncio.Queue[bytes | None] = asyncio.Queue(MAX_UNSENT)
        self.told = False
        """Whether it has been given the whole picture, so that changes mean something to it."""

    def tell(self, events: bytes | None) -> None:
        """Send soon, None for the end; a listener too far behind is cut off."""
        if events == b"":
            return
        try:
            self._unsent.put_nowait(events)
        except asyncio.QueueFull:
            if self._request.transport is not None:
                self._request.transport.abort()

    async def serve(self) -> web.StreamResponse:
        """Send what there is to tell until either side leaves."""
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
    """Everybody who listens now."""

    def __init__(self, buffers: Buffers) -> None:
        self._buffers = buffers
        self._open: set[Listener] = set()

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Listener]:
        return iter(tuple(self._open))

    def admit(self, request: web.Request) -> Listener:
        """A new listener, to be removed when it has been served; raises 503 when there are too many."""
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
    def untold(self) -> bool:
        """Tell whether somebody waits for the whole picture."""
        return any(not listener.told for listener in self._open)

    def tell(self, whole: bytes, changes: bytes) -> None:
        """Newcomers get the whole picture, the others what changed."""
        for listener in self:
            if listener.told:
                listener.tell(changes)
            elif whole:
                listener.told = True
                listener.tell(whole)

    def dismiss(self) -> None:
        """The server stops."""
        for listener in self:
            listener.tell(None)
