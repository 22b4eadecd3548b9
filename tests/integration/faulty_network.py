"""A TCP proxy that fails as networks do: connections that hang without closing, resets, latency."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

CHUNK_BYTES = 65_536


class FaultyNetwork:
    """Between a client and one broker; faults hit the connections that are open when they happen.

    Parameters
    ----------
    port
        Where clients connect.
    upstream
        The broker's port.
    """

    def __init__(self, port: int, upstream: int) -> None:
        self._port = port
        self._upstream = upstream
        self._server: asyncio.Server | None = None
        self._pipes: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._stalled: set[asyncio.StreamWriter] = set()
        self._all_stalled = False
        self._cut = False
        self.latency_seconds = 0.0
        """Added to each chunk, in either direction."""
        self.accepted = 0
        """Connections clients made so far."""

    @property
    def servers(self) -> str:
        return f"127.0.0.1:{self._port}"

    def stall_open(self) -> None:
        """Half-open: what is open stays open, and not a byte passes any more; new connections work."""
        self._stalled |= self._writers

    def stall_all(self) -> None:
        """As `stall_open`, and new connections hang too, until `heal`."""
        self._all_stalled = True

    def heal(self) -> None:
        """New connections work again; those that hung go on hanging."""
        if self._all_stalled:
            self.stall_open()
        self._all_stalled = self._cut = False

    def cut(self) -> None:
        """Every open connection is reset, and new ones are until `heal`."""
        self._cut = True
        self.reset()

    def reset(self) -> None:
        """Every open connection ends with a reset."""
        for writer in self._writers - self._stalled:
            writer.transport.abort()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for pipe in self._pipes:
            pipe.cancel()
        await asyncio.gather(*self._pipes, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        if self._cut:
            writer.transport.abort()
            return
        self._writers.add(writer)
        try:
            broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", self._upstream)
        except OSError:
            writer.transport.abort()
            return
        self._writers.add(broker_writer)
        for source, sink in ((reader, broker_writer), (broker_reader, writer)):
            pipe = asyncio.create_task(self._pipe(source, sink))
            self._pipes.add(pipe)

    async def _pipe(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await reader.read(CHUNK_BYTES):
                if self.latency_seconds:
                    await asyncio.sleep(self.latency_seconds)
                if self._all_stalled or writer in self._stalled:
                    self._stalled.add(writer)
                    await asyncio.Event().wait()  # the chunk is lost, and nothing closes
                writer.write(chunk)
                await writer.drain()
        if writer not in self._stalled:
            writer.close()


@asynccontextmanager
async def faulty_network(port: int, upstream: int) -> AsyncIterator[FaultyNetwork]:
    """A proxy that passes everything until it is told otherwise."""
    network = FaultyNetwork(port, upstream)
    await network.open()
    try:
        yield network
    finally:
        await network.close()
