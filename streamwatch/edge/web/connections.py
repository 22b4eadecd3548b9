"""Connections: a bounded number, each with a bounded time to ask, some always left for health.

A connection is *waiting* while its request is incomplete, *busy* while it is answered, *idle* between two.
When there is no place for a new one, the one that has waited longest makes room. Requests other than health
are answered on all but the reserved places, so a waiting connection always exists or there is room: whoever
sends a whole request at once is heard, however many others send half of one.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from enum import Enum, auto

from streamwatch.edge.web.limits import CHUNK_BYTES, HttpLimits

Refused = Callable[[str], None]
"""Told the reason each time a client was refused or cut off."""


class Phase(Enum):
    """Phase of a connection between two answers."""

    WAITING = auto()
    BUSY = auto()
    IDLE = auto()


class Connection(asyncio.Protocol):
    """One accepted socket in front of the protocol that speaks HTTP on it."""

    def __init__(self, owner: Connections, inner: asyncio.Protocol, accepted: socket.socket) -> None:
        self._owner = owner
        self.inner = inner
        self._socket = accepted
        self._transport: asyncio.Transport | None = None
        self._received = 0
        self.establishing: asyncio.Task[None] | None = None
        """The handshake, while it goes on."""
        self.phase = Phase.WAITING
        self.since = owner.now()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Bound what the transport buffers, and begin to speak."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - TCP and TLS are
        self._transport = transport
        transport.set_write_buffer_limits(high=CHUNK_BYTES)
        self.inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on while they are few enough to be a request."""
        if self.phase is Phase.IDLE:
            self._enter(Phase.WAITING)
        self._received += len(data)
        if self._received > self._owner.limits.request_bytes:
            self.drop("request_too_large")
            return
        self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass the end of the client's side on."""
        return self.inner.eof_received()

    def pause_writing(self) -> None:
        """Pass on that the client takes nothing for now."""
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the client takes bytes again."""
        self.inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the place."""
        self._owner.forget(self)
        self.inner.connection_lost(exc)

    def begin(self) -> None:
        """Note that a whole request has arrived."""
        self._enter(Phase.BUSY)

    def end(self) -> None:
        """Note that it has been answered."""
        self._received = 0
        self._enter(Phase.IDLE)

    def drop(self, reason: str | None = None) -> None:
        """Cut the client off at once, and free its place; count the reason if there is one."""
        if reason is not None:
            self._owner.refused(reason)
        self._owner.forget(self)
        if self._transport is not None:
            self._transport.abort()
        elif self.establishing is not None:
            self.establishing.cancel()
        else:
            self._socket.close()

    def _enter(self, phase: Phase) -> None:
        self.phase, self.since = phase, self._owner.now()


class Connections:
    """Every open connection.

    Parameters
    ----------
    limits
        How many, and how long they may wait.
    speak
        Makes the protocol that speaks HTTP on one connection.
    refused
        Told why a client was cut off.
    now
        Seconds that never go back.
    """

    def __init__(
        self,
        limits: HttpLimits,
        speak: Callable[[], asyncio.Protocol],
        refused: Refused,
        now: Callable[[], float],
    ) -> None:
        self.limits = limits
        self.refused = refused
        self.now = now
        self._speak = speak
        self._open: dict[asyncio.Protocol, Connection] = {}

    def __len__(self) -> int:
        return len(self._open)

    @property
    def busy(self) -> int:
        """Connections whose request is being answered."""
        return sum(connection.phase is Phase.BUSY for connection in self._open.values())

    @property
    def full(self) -> bool:
        """Tell whether only the reserved places are left for further answers."""
        return self.busy >= self.limits.connections - self.limits.reserved

    def admit(self, accepted: socket.socket) -> Connection | None:
        """A place for an accepted socket, or None where every place is busy; the socket is closed then."""
        if len(self._open) >= self.limits.connections and not self.make_room():
            self.refused("too_many_connections")
            accepted.close()
            return None
        connection = Connection(self, self._speak(), accepted)
        self._open[connection.inner] = connection
        return connection

    def make_room(self) -> bool:
        """Close the connection that has waited longest; whether there was one."""
        candidates = [c for c in self._open.values() if c.phase is not Phase.BUSY]
        if not candidates:
            return False
        min(candidates, key=lambda connection: connection.since).drop("too_many_connections")
        return True

    def of(self, inner: object) -> Connection | None:
        """The connection on which a protocol speaks; None once it is gone."""
        return self._open.get(inner) if isinstance(inner, asyncio.Protocol) else None

    def forget(self, connection: Connection) -> None:
        """Free the place of a connection that is closed."""
        self._open.pop(connection.inner, None)

    def sweep(self) -> None:
        """Close those whose time to ask is over."""
        now, limits = self.now(), self.limits
        for connection in tuple(self._open.values()):
            waited = now - connection.since
            if connection.phase is Phase.WAITING and waited > limits.header_seconds:
                connection.drop("slow_request")
            elif connection.phase is Phase.IDLE and waited > limits.idle_seconds:
                connection.drop()

    def close(self) -> None:
        """Cut everybody off."""
        for connection in tuple(self._open.values()):
            connection.drop()
