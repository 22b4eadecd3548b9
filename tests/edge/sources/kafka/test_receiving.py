"""A connection of the client's that is read directly gives what it gave before, however its bytes come."""

from __future__ import annotations

import asyncio
import resource
import struct
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from aiokafka.conn import AIOKafkaConnection
from aiokafka.consumer.fetcher import READ_COMMITTED
from aiokafka.errors import KafkaConnectionError
from aiokafka.protocol.admin import ApiVersionRequest
from aiokafka.protocol.fetch import FetchRequest, FetchResponse_v11
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.records.fetched import PADDING
from streamwatch.edge.sources.kafka.batches.scan import with_padding
from streamwatch.edge.sources.kafka.wire import (
    FIRST_BYTES,
    KEPT_BYTES,
    OWN_BYTES,
    Receiving,
    receive_directly,
)
from tests.tiers import examples

FETCH = FetchRequest(100, 1, 1 << 20, READ_COMMITTED, [("events", [(0, 0, 1 << 20)])])
ALL_VERSIONS = struct.pack(">hi", 0, 2) + struct.pack(">hhhhhh", 1, 0, 11, 18, 0, 0)


def fetch_answer(*records: bytes | None) -> bytes:
    """Body of an answer that has these records, one partition each."""
    partitions = [(n, 0, 7, 7, 0, [(5, 6)], -1, data) for n, data in enumerate(records)]
    return FetchResponse_v11(0, 0, 0, [("events", partitions)]).encode()


def content(response: Any) -> list[Any]:
    """Contents of an answer, records as bytes."""
    return [
        [(*rest, None if data is None else bytes(data)) for *rest, data in partitions]
        for _, partitions in response.topics
    ]


class Asked:
    """A connection that so many fetches were asked of, with answers given to it by hand."""

    def __init__(self, fetches: int, loop: asyncio.AbstractEventLoop) -> None:
        request = FETCH.prepare({1: (0, 11)})
        self.futures = [loop.create_future() for _ in range(fetches)]
        self._requests = deque((n, request, future) for n, future in enumerate(self.futures))
        self._last_action = 0.0
        self.closed: list[Exception] = []

    def connected(self) -> bool:
        return not self.closed

    def close(self, *, reason: object, exc: Exception) -> None:
        del reason
        self.closed.append(exc)


def receiving(asked: Asked) -> Receiving:
    silent = SimpleNamespace(connection_lost=None, eof_received=None, pause_writing=None, resume_writing=None)
    return Receiving(asked, silent)  # type: ignore[arg-type]


def feed(protocol: Receiving, sent: bytes, most: int) -> None:
    """As a transport does that never has more than so many bytes."""
    while sent:
        room = protocol.get_buffer(-1)
        count = min(len(room), most, len(sent))
        assert count
        room[:count] = sent[:count]
        sent = sent[count:]
        protocol.buffer_updated(count)


def framed(correlation_id: int, body: bytes) -> bytes:
    return struct.pack(">ii", 4 + len(body), correlation_id) + body


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_a_length_that_is_announced_takes_no_memory_before_its_bytes_arrive() -> None:
    loop = asyncio.new_event_loop()
    protocol = receiving(Asked(1, loop))
    before = resident_bytes()
    feed(protocol, b"HTTP/1.1 502 Bad Gateway\r\n\r\n", 1_000)
    assert len(protocol.get_buffer(-1)) > 1 << 30
    assert resident_bytes() - before < 1 << 27
    loop.close()


def resident_bytes() -> int:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


CONTENTS = st.lists(
    st.none() | st.sampled_from([0, 1, OWN_BYTES - 1, OWN_BYTES, 3 * OWN_BYTES, FIRST_BYTES]), max_size=3
)


@settings(max_examples=examples(1))
@given(
    st.lists(CONTENTS, min_size=1, max_size=5), st.sampled_from([1_000, 4_099, 1 << 20]) | st.integers(1, 9)
)
def test_answers_are_those_that_the_client_reads_wherever_their_bytes_are_cut(
    sizes: list[list[int | None]], most: int
) -> None:
    loop = asyncio.new_event_loop()
    asked = Asked(len(sizes), loop)
    contents = [
        [None if size is None else bytes(k % 251 for k in range(size)) for size in answer] for answer in sizes
    ]
    if most < 10:  # byte by byte only what is short
        contents = [[None if each is None else each[:50] for each in answer] for answer in contents]
    bodies = [fetch_answer(*answer) for answer in contents]
    feed(receiving(asked), b"".join(framed(n, body) for n, body in enumerate(bodies)), most)
    for future, body in zip(asked.futures, bodies, strict=True):
        found = future.result()
        assert content(found) == content(FetchResponse_v11.decode(body))
        for *_, data in found.topics[0][1]:
            if data is not None and len(data) >= OWN_BYTES:
                whole = with_padding(data)
                assert whole is not None
                assert not whole[-PADDING:].any()
                assert np.array_equal(whole[:-PADDING], np.frombuffer(data, np.uint8))
    assert not asked.closed
    assert not asked._requests
    loop.close()


def test_memory_of_a_very_large_answer_is_given_back() -> None:
    loop = asyncio.new_event_loop()
    asked = Asked(2, loop)
    protocol = receiving(asked)
    large = framed(0, fetch_answer(bytes(KEPT_BYTES)))
    feed(protocol, large[:-1], 1 << 20)
    assert len(protocol._buffer) == len(large)
    feed(protocol, large[-1:], 1)
    assert len(protocol._buffer) == FIRST_BYTES
    feed(protocol, framed(1, fetch_answer(b"abc")), 7)
    assert content(asked.futures[1].result()) == content(FetchResponse_v11.decode(fetch_answer(b"abc")))
    loop.close()


@pytest.mark.parametrize(
    "sent",
    [struct.pack(">i", -1), framed(0, b"\0\0\0"), framed(0, fetch_answer(b"abc")) * 2],
    ids=["a negative length", "an answer cut short", "an answer that nobody asked for"],
)
def test_what_cannot_be_an_answer_ends_the_connection(sent: bytes) -> None:
    loop = asyncio.new_event_loop()
    asked = Asked(1, loop)
    feed(receiving(asked), sent, 1 << 20)
    assert len(asked.closed) == 1
    loop.close()


class Broker:
    """Answers requests in turn with what it was given, and hangs up when there is nothing more."""

    def __init__(self, *bodies: bytes) -> None:
        self._bodies = list(bodies)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                request = await reader.readexactly(size)
                key, _, correlation_id = struct.unpack(">hhi", request[:8])
                if key == 18:
                    writer.write(framed(correlation_id, ALL_VERSIONS))
                elif self._bodies:
                    writer.write(framed(correlation_id, self._bodies.pop(0)))
                else:
                    return
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def connected(*bodies: bytes) -> AsyncIterator[AIOKafkaConnection]:
    server = await asyncio.start_server(Broker(*bodies).serve, "127.0.0.1", 0)
    host, port = server.sockets[0].getsockname()
    connection = AIOKafkaConnection(host, port, request_timeout_ms=30_000)
    await connection.connect()
    try:
        yield connection
    finally:
        await connection.close()
        server.close()
        await server.wait_closed()


def test_a_connection_of_the_client_goes_on_as_before_when_it_is_read_directly() -> None:
    body = fetch_answer(b"a" * 3_000_000, b"b" * 5, None)

    async def scenario() -> None:
        async with connected(body, body) as connection:
            by_itself = await connection.send(FETCH)
            receive_directly(connection)
            receive_directly(connection)
            assert content(await connection.send(FETCH)) == content(by_itself)
            versions = await connection.send(ApiVersionRequest())  # anything else is the client's to read
            assert [tuple(each) for each in versions.api_versions] == [(1, 0, 11), (18, 0, 0)]
            with pytest.raises(KafkaConnectionError):  # the broker hangs up
                await connection.send(FETCH)
            assert not connection.connected()

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_connection_is_left_to_the_client_while_an_answer_is_on_its_way() -> None:
    async def scenario() -> None:
        async with connected(fetch_answer(b"abc")) as connection:
            waiting = asyncio.ensure_future(connection.send(FETCH))
            receive_directly(connection)
            assert not isinstance(connection._writer.transport.get_protocol(), Receiving)
            assert content(await waiting) == content(FetchResponse_v11.decode(fetch_answer(b"abc")))
            receive_directly(connection)
            assert isinstance(connection._writer.transport.get_protocol(), Receiving)

    asyncio.run(asyncio.wait_for(scenario(), 60))
