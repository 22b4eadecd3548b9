"""Connections of the server: a limited number, with limited time for a request, and some reserved for health.

A connection is *waiting* while its request is incomplete, *busy* while it is answered, *idle* between
requests. If no slot is free for a new connection, the one that has waited longest is closed. Requests other
than health are not answered in the reserved slots; so there is always a free slot or a waiting connection to
close, and a client that sends a complete request is answered, however many others send incomplete ones.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum, auto

from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_exceptions import HTTPException
from aiohttp.web_protocol import RequestPayloadError

# Limits on clients: slots, time, memory.


CHUNK_BYTES = 65_536
"""Size of the pieces in which a body is written, each after the client took the previous one."""


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits for all clients together, and for each.

    A client that exceeds one is cut off or answered 503, and counted by reason; that is no error of the
    daemon.
    """

    connections: int = 256
    """Open connections at most; to admit another, the one that has waited longest for a request is closed."""
    header_seconds: float = 10.0
    """Time from a connection's beginning, or a further request's first byte, to the end of the header."""
    send_seconds: float = 30.0
    """Time from the first byte of an answer to its last."""
    idle_seconds: float = 75.0
    """Time between two requests of one connection."""
    buffered_bytes: int = 67_108_864
    """Bytes of the bodies of all answers being sent, below which another is begun, however large."""
    request_bytes: int = 32_768
    """Bytes of one request, header and body together; no route reads a body."""

    @property
    def reserved(self) -> int:
        """Number of slots that are reserved for health and waiting connections."""
        return max(2, self.connections // 8)


Refused = Callable[[str], None]
"""Function that is called with the reason when a client was refused or cut off."""


class Phase(Enum):
    """Phase of a connection: its request is incomplete, being answered, or the next has not begun."""

    WAITING = auto()
    BUSY = auto()
    IDLE = auto()


class Connection(asyncio.Protocol):
    """Protocol of one accepted socket, which passes data to the HTTP library's protocol (`inner`)."""

    def __init__(self, owner: Connections, inner: asyncio.Protocol, accepted: socket.socket) -> None:
        self._owner = owner
        self.inner = inner
        self._socket = accepted
        self._transport: asyncio.Transport | None = None
        self._received = 0
        self.establishing: asyncio.Task[None] | None = None
        """Task of the TLS handshake, while it runs."""
        self.phase = Phase.WAITING
        self.since = owner.now()
        self.eof_received = inner.eof_received
        self.pause_writing = inner.pause_writing
        self.resume_writing = inner.resume_writing

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Limit the transport's buffer, and begin HTTP."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - those of TCP and TLS are
        self._transport = transport
        transport.set_write_buffer_limits(high=CHUNK_BYTES)
        self.inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass bytes on, up to `request_bytes` for a request; beyond that, cut the client off."""
        if self.phase is Phase.IDLE:
            self._enter(Phase.WAITING)
        self._received += len(data)
        if self._received > self._owner.limits.request_bytes:
            self.drop("request_too_large")
            return
        self.inner.data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Free the slot, and pass the end on."""
        self._owner.forget(self)
        self.inner.connection_lost(exc)

    def begin(self) -> None:
        """Note that a complete request has arrived."""
        self._enter(Phase.BUSY)

    def end(self) -> None:
        """Note that the request has been answered."""
        self._received = 0
        self._enter(Phase.IDLE)

    def drop(self, reason: str | None = None) -> None:
        """Close the connection at once, and free its slot; count the reason if there is one."""
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
    """All open connections.

    Parameters
    ----------
    limits
        Number of connections, and limits of time.
    speak
        Function that makes the HTTP library's protocol for one connection.
    refused
        Called with the reason for which a client was cut off.
    now
        Monotonic clock in seconds.
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
        """Number of connections whose request is being answered."""
        return sum(connection.phase is Phase.BUSY for connection in self._open.values())

    @property
    def full(self) -> bool:
        """Tell whether all slots but the reserved ones are busy."""
        return self.busy >= self.limits.connections - self.limits.reserved

    def admit(self, accepted: socket.socket) -> Connection | None:
        """Give an accepted socket a slot; if all are busy, close the socket and return None."""
        if len(self._open) >= self.limits.connections and not self.make_room():
            self.refused("too_many_connections")
            accepted.close()
            return None
        connection = Connection(self, self._speak(), accepted)
        self._open[connection.inner] = connection
        return connection

    def make_room(self) -> bool:
        """Close the connection that has waited longest; tell whether there was one."""
        candidates = [c for c in self._open.values() if c.phase is not Phase.BUSY]
        if not candidates:
            return False
        min(candidates, key=lambda connection: connection.since).drop("too_many_connections")
        return True

    def of(self, inner: object) -> Connection | None:
        """Return the connection of an HTTP protocol; None once it is closed."""
        return self._open.get(inner) if isinstance(inner, asyncio.Protocol) else None

    def forget(self, connection: Connection) -> None:
        """Free the slot of a closed connection."""
        self._open.pop(connection.inner, None)

    def sweep(self) -> None:
        """Close the connections whose time for a request is over."""
        now, limits = self.now(), self.limits
        for connection in tuple(self._open.values()):
            waited = now - connection.since
            if connection.phase is Phase.WAITING and waited > limits.header_seconds:
                connection.drop("slow_request")
            elif connection.phase is Phase.IDLE and waited > limits.idle_seconds:
                connection.drop()

    def close(self) -> None:
        """Close all connections at once."""
        for connection in tuple(self._open.values()):
            connection.drop()


# Listening sockets: accepted from in small portions; a client that comes or goes never raises.


BACKLOG = 128
PORTION = 16
"""Sockets accepted in one turn of the event loop at most."""
SWEEP_SECONDS = 0.25
EXHAUSTED_SECONDS = 0.1
"""Pause after the system lacked a descriptor or memory for another connection."""
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Acceptor:
    """Listens, and accepts connections.

    Parameters
    ----------
    connections
        Gets the accepted sockets.
    context
        TLS context; None for plain HTTP.
    """

    def __init__(self, connections: Connections, context: ssl.SSLContext | None) -> None:
        self._connections = connections
        self._context = context
        self._sockets: Sequence[socket.socket] = ()
        self.address: tuple[str, int] | None = None
        """(host, port) of the first socket, also after it is closed; None before it is bound."""
        self._tasks: list[asyncio.Task[None]] = []
        self._establishing: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> None:
        """Listen on every address of a host.

        Raises
        ------
        OSError, OverflowError
            The address cannot be listened on.
        """
        self._sockets = await _bound(host, port)
        self.address = self._sockets[0].getsockname()[:2]
        self._tasks = [
            *(asyncio.create_task(self._accept(bound), name="http-accept") for bound in self._sockets),
            asyncio.create_task(self._sweep(), name="http-sweep"),
        ]

    async def stop(self) -> None:
        """Stop listening; connections stay open."""
        tasks, self._tasks = [*self._tasks, *self._establishing], []
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for bound in self._sockets:
            bound.close()

    async def _accept(self, bound: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            for _ in range(PORTION):
                try:
                    accepted, _ = await loop.sock_accept(bound)
                except OSError as error:
                    if error.errno in _EXHAUSTED:
                        self._connections.refused("no_descriptors")
                        self._connections.make_room()
                        await asyncio.sleep(EXHAUSTED_SECONDS)
                    continue  # for other errors: the client left before it was accepted
                connection = self._connections.admit(accepted)
                if connection is not None:
                    accepted.setblocking(False)
                    self._establish(connection, accepted)
            await asyncio.sleep(0)

    def _establish(self, connection: Connection, accepted: socket.socket) -> None:
        task = asyncio.create_task(self._handshake(connection, accepted), name="http-handshake")
        connection.establishing = task
        self._establishing.add(task)
        task.add_done_callback(self._establishing.discard)

    async def _handshake(self, connection: Connection, accepted: socket.socket) -> None:
        """Begin HTTP, after a TLS handshake of at most `header_seconds` if there is a context."""
        seconds = None if self._context is None else self._connections.limits.header_seconds
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                lambda: connection, accepted, ssl=self._context, ssl_handshake_timeout=seconds
            )
        except (OSError, TimeoutError):  # SSLError is one
            self._connections.forget(connection)
            self._connections.refused("handshake_failed")
            accepted.close()
        except asyncio.CancelledError:
            self._connections.forget(connection)
            accepted.close()
            raise
        finally:
            connection.establishing = None

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self._connections.sweep()


async def _bound(host: str, port: int) -> Sequence[socket.socket]:
    if not 0 <= port <= 65_535:
        raise OverflowError(port)
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    made: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            sock = _socket(family, kind, protocol)
            if sock is None:
                continue
            made.append(sock)
            sock.bind(address)
            sock.listen(BACKLOG)
        if not made:
            raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))  # noqa: TRY301 - nothing to close
    except BaseException:
        for sock in made:
            sock.close()
        raise
    return made


def _socket(family: int, kind: int, protocol: int) -> socket.socket | None:
    """Make a socket to bind; None where the machine lacks the address family."""
    try:
        sock = socket.socket(family, kind, protocol)
    except OSError:
        return None
    sock.setblocking(False)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        with suppress(OSError):
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return sock


# Errors of listening, with what to change.


class ListenError(Exception):
    """The HTTP address cannot be listened on; the message says what to change."""


def advice(host: str, port: int, error: OSError | OverflowError) -> str:
    """Explain a failed listen to an operator."""
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


# The HTTP library's log, without clients' faults, which are counted.


_CLIENTS = (
    HTTPException,
    HttpProcessingError,
    RequestPayloadError,
    TimeoutError,
    asyncio.IncompleteReadError,
    ssl.SSLError,
)


class ClientLog(logging.Handler):
    """Log handler that counts clients' faults, and passes defects of the server to the library's log."""

    def __init__(self, refused: Refused) -> None:
        super().__init__(logging.DEBUG)
        self._refused = refused

    def emit(self, record: logging.LogRecord) -> None:
        """Count a client's fault, or pass a defect on; the record's exception decides which it is."""
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, ConnectionError):
            return  # the client left, or was cut off and counted then
        if error is None or isinstance(error, _CLIENTS):
            self._refused("malformed_request")
        else:
            logging.getLogger("aiohttp.server").handle(record)

    def logger(self) -> logging.Logger:
        """Make a logger whose only handler is this one."""
        made = logging.Logger("streamwatch.http", logging.DEBUG)  # noqa: LOG001 - it must not be found by name
        made.addHandler(self)
        return made
