"""Receivers that hang, stream for ever, redirect, or are names that turn into other addresses."""

from __future__ import annotations

import asyncio
import socket
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from streamwatch.core.alerting.outbox import Delivered, DeliveryResult, Failed
from streamwatch.edge.receivers import EndpointSpec
from streamwatch.edge.receivers.http import HttpReceiver
from streamwatch.edge.receivers.slack import Slack
from tests.edge.receivers.endpoint import endpoint
from tests.edge.receivers.notifications import NOW_MS, firing

MOST_BYTES = 20_000_000
PATIENCE_SECONDS = 120.0


class Sequence(AbstractResolver):
    """Answers the first time, the second time and so on as it is told; the last answer stays."""

    def __init__(self, *answers: tuple[str, ...]) -> None:
        self.answers = list(answers)

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        del family
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=0,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        pass


async def told(url: str, seconds: float, resolver: AbstractResolver | None = None) -> DeliveryResult:
    receiver = HttpReceiver(EndpointSpec("chat", url, timeout_seconds=seconds), Slack(), resolver=resolver)
    await receiver.open()
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await receiver.deliver(firing(), NOW_MS)
    finally:
        await receiver.close()


@asynccontextmanager
async def streaming(head: bytes, more: bytes) -> AsyncIterator[str]:
    """A receiver that answers with a beginning, and then without end."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(head)
            while more:
                writer.write(more)
                await writer.drain()
            if not more:
                await reader.read()  # until the other side has had enough
        writer.transport.abort()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    finally:
        server.close()


@pytest.mark.parametrize(
    ("head", "more"),
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"10000\r\n" + b"x" * 65_536 + b"\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 65_536),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 999999\r\n\r\n", b"\x1f\x8b" * 9_999),
        (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 10_000),
        (b"HTTP/1.1 200 ", b"O" * 65_536),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000),
        (b"", b""),
        (b"HTTP/1.1 200 OK\r\nX-Half: ", b""),
        (b"\x00\xff\x00", b"\x00" * 65_536),
    ],
)
async def test_an_answer_without_end_costs_bounded_time_and_memory(head: bytes, more: bytes) -> None:
    async with streaming(head, more) as url:
        tracemalloc.start()
        try:
            answer = await told(url, seconds=2.0)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert answer == Delivered() or isinstance(answer, Failed)
    assert peak < MOST_BYTES


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_is_followed_be_it_to_the_metadata_address(status: int) -> None:
    async with endpoint() as elsewhere:
        for target in (
            elsewhere.url,
            "http://169.254.169.254/latest/meta-data/",
            "file:///etc/passwd",
            "//x",
        ):
            async with endpoint((status, {"Location": target})) as receiver:
                assert await told(receiver.url, PATIENCE_SECONDS) == Failed(f"http_{status}")
        assert elsewhere.posts == []


async def test_a_name_that_turns_into_the_metadata_address_is_refused_from_then_on() -> None:
    async with endpoint() as receiver:
        url = receiver.url.replace("127.0.0.1", "hook.example")
        names = Sequence(("127.0.0.1",), ("169.254.169.254",))
        assert await told(url, PATIENCE_SECONDS, names) == Delivered()
        assert await told(url, PATIENCE_SECONDS, names) == Failed("address_refused")
        assert len(receiver.posts) == 1


@pytest.mark.parametrize(
    "addresses",
    [
        ("127.0.0.1", "169.254.169.254"),
        ("169.254.169.254", "127.0.0.1"),
        ("::ffff:0:a9fe:a9fe",),
        ("fe80::1",),
    ],
)
async def test_a_name_of_several_addresses_is_refused_for_one_of_them(addresses: tuple[str, ...]) -> None:
    async with endpoint() as receiver:
        url = receiver.url.replace("127.0.0.1", "hook.example")
        assert await told(url, PATIENCE_SECONDS, Sequence(addresses)) == Failed("address_refused")
        assert receiver.posts == []


async def test_the_address_that_was_looked_at_is_the_one_that_is_spoken_to() -> None:
    """A second look-up between check and connection would let the name turn in between."""
    async with endpoint() as receiver:
        url = receiver.url.replace("127.0.0.1", "hook.example")
        names = Sequence(("127.0.0.1",), ("192.0.2.1",))
        assert await told(url, PATIENCE_SECONDS, names) == Delivered()
        assert names.answers == [("192.0.2.1",)]
        assert len(receiver.posts) == 1
