"""Listening sockets: bound, accepted from in small portions, never an error because a client came or went."""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress

from streamwatch.edge.web.connections import Connection, Connections

BACKLOG = 128
PORTION = 16
"""Sockets accepted in one turn of the event loop at most."""
SWEEP_SECONDS = 0.25
BREATH_SECONDS = 0.1
"""Pause after the system had no descriptor or memory for a further connection."""
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


class Acceptor:
    """Accepts connections for a server.

    Parameters
    ----------
    connections
        Where they go.
    context
        TLS; None for plain HTTP.
    """

    def __init__(self, connections: Connections, context: ssl.SSLContext | None) -> None:
        self._connections = connections
        self._context = context
        self._sockets: Sequence[socket.socket] = ()
        self.address: tuple[str, int] | None = None
        """Host and port of the first socket, also when it is closed; None before it is bound."""
        self._tasks: list[asyncio.Task[None]] = []
        self._establishing: set[asyncio.Task[None]] = set()

    async def start(self, host: str, port: int) -> None:
        """Listen on every address the host stands for.

        Raises
        ------
        OSError, OverflowError
            When it cannot be listened on.
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
                        await asyncio.sleep(BREATH_SECONDS)
                    continue  # else the client left before it was accepted
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
        """Begin to speak; the time for a TLS handshake is that for a header."""
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
    except BaseException:
        for sock in made:
            sock.close()
        raise
    return made


def _socket(family: int, kind: int, protocol: int) -> socket.socket | None:
    """A socket that may be bound; None where the machine lacks the address family."""
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
