"""What a broker sends, read into one buffer that is used again, in place of the client's stream.

The stream copies an answer four times, into memory that is new each time. All else remains the client's:
requests, the answers to all but fetches, and what happens when a connection ends.
"""

from __future__ import annotations

import asyncio
import time
from io import BytesIO
from typing import Any, Final, cast

from aiokafka.conn import CloseReason
from aiokafka.protocol.api import Response
from aiokafka.protocol.fetch import FetchRequest

from streamwatch.edge.sources.kafka.batches.padded import padded_copy

LENGTH_BYTES: Final = 4
FIRST_BYTES: Final = 1 << 16
KEPT_BYTES: Final = 1 << 24
"""A buffer larger than this is given back as soon as nothing is in it."""
OWN_BYTES: Final = 1 << 12
"""What is read at once and has so many bytes is records: it gets memory of its own, as of `padded_copy`."""


class Frame:
    """One answer, as the client's types read it; they get the records of a partition as a view.

    Parameters
    ----------
    content
        Valid during the call that it was made in.
    """

    def __init__(self, content: memoryview) -> None:
        self._content = content
        self._at = 0

    def read(self, size: int) -> bytes | memoryview:
        """The next bytes, fewer at the end."""
        found = self._content[self._at : self._at + size]
        self._at += len(found)
        if len(found) < OWN_BYTES:
            return bytes(found)
        return padded_copy(found)


class Receiving(asyncio.BufferedProtocol):
    """Protocol of a connection of the client's, from when it is read directly.

    Parameters
    ----------
    connection
        The client's.
    before
        Its protocol until now: told of all but data.
    """

    def __init__(self, connection: Any, before: asyncio.Protocol) -> None:
        self._connection = connection
        self._before = before
        self._buffer = bytearray(FIRST_BYTES)
        self._filled = 0
        self.connection_lost = before.connection_lost
        self.eof_received = before.eof_received
        self.pause_writing = before.pause_writing
        self.resume_writing = before.resume_writing

    def get_buffer(self, sizehint: int) -> memoryview:
        """The free part of the buffer."""
        del sizehint
        return memoryview(self._buffer)[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Take the whole answers out of the buffer, and make room for the one that is not whole."""
        self._filled += nbytes
        start, needed = 0, LENGTH_BYTES
        view = memoryview(self._buffer)
        while self._filled - start >= LENGTH_BYTES:
            size = int.from_bytes(view[start : start + LENGTH_BYTES], "big", signed=True)
            needed = LENGTH_BYTES + size
            if size < 0:
                self._close(CloseReason.OUT_OF_SYNC, ValueError(f"an answer of {size} bytes"))
                return
            if self._filled - start < needed:
                break
            if not self._take(view[start + LENGTH_BYTES : start + needed]):
                return
            start += needed
            needed = LENGTH_BYTES
        self._move(start, needed)

    def _move(self, start: int, needed: int) -> None:
        """Begin with what is left of the next answer, which needs so much room."""
        left = self._filled - start
        if needed > len(self._buffer) or (not left and len(self._buffer) > KEPT_BYTES):
            larger = bytearray(max(needed, FIRST_BYTES))
            larger[:left] = memoryview(self._buffer)[start : self._filled]
            self._buffer = larger
        elif start:
            self._buffer[:left] = self._buffer[start : self._filled]
        self._filled = left

    def _take(self, frame: memoryview) -> bool:
        """Hand one answer to whoever asked; whether the connection goes on."""
        connection = self._connection
        try:
            if _answers_a_fetch(connection, frame):
                _, request, future = connection._requests[0]  # noqa: SLF001
                if not future.done():
                    future.set_result(_read(request, frame))
                connection._last_action = time.monotonic()  # noqa: SLF001
                connection._requests.popleft()  # noqa: SLF001
            else:
                connection._handle_frame(bytes(frame))  # noqa: SLF001
        except Exception as error:  # noqa: BLE001 - whatever an answer that is not sound makes its types raise
            self._close(CloseReason.CONNECTION_BROKEN, error)
        return connection.connected()

    def _close(self, reason: CloseReason, error: Exception) -> None:
        self._connection.close(reason=reason, exc=error)


def _answers_a_fetch(connection: Any, frame: memoryview) -> bool:
    """Tell whether the request that is answered next is a fetch, and this is its answer."""
    correlation_id, request, _ = connection._requests[0]  # noqa: SLF001
    return (
        request is not None
        and request.API_KEY == FetchRequest.API_KEY
        and not request.FLEXIBLE_VERSION
        and int.from_bytes(frame[:4], "big", signed=True) == correlation_id
    )


def _read(request: Any, frame: memoryview) -> Response:
    answer = cast("BytesIO", Frame(frame))
    request.parse_response_header(answer)
    return request.RESPONSE_TYPE.decode(answer)


def receive_directly(connection: Any) -> None:
    """Read a connection of the client's directly from now on, if nothing is on its way to it."""
    writer, reader = connection._writer, connection._reader  # noqa: SLF001
    if writer is None or connection._requests or reader._buffer:  # noqa: SLF001
        return
    before = writer.transport.get_protocol()
    if not isinstance(before, Receiving):
        writer.transport.set_protocol(Receiving(connection, before))
