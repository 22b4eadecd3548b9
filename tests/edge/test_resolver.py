"""A name server that does not answer costs a thread, and nobody else anything."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from streamwatch.core.alerting.outbox import Delivered, DeliveryResult, Failed
from streamwatch.edge.outgoing import SystemResolver
from streamwatch.edge.receivers import EndpointSpec
from streamwatch.edge.receivers.http import HttpReceiver
from streamwatch.edge.receivers.slack import Slack
from tests.cpu_budget import until
from tests.edge.receivers.endpoint import endpoint
from tests.edge.receivers.notifications import NOW_MS, firing


class NameServer:
    """Answers when it may."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.may_answer = threading.Event()
        self._really = socket.getaddrinfo

    def __call__(self, host: str, *arguments: Any, **keywords: Any) -> Any:
        if not host.endswith(".example"):
            return self._really(host, *arguments, **keywords)
        self.asked.append(host)
        self.may_answer.wait(300.0)
        return self._really("127.0.0.1", *arguments, **keywords)


@pytest.fixture
def name_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[NameServer]:
    server = NameServer()
    monkeypatch.setattr(socket, "getaddrinfo", server)
    yield server
    server.may_answer.set()


async def reported(url: str, times: int = 1) -> list[DeliveryResult]:
    receiver = HttpReceiver(EndpointSpec("o", url, timeout_seconds=0.05), Slack())
    await receiver.open()
    try:
        return [await receiver.deliver(firing(), NOW_MS) for _ in range(times)]
    finally:
        await receiver.close()


async def test_names_that_hang_leave_the_pool_of_the_loop_to_others(name_server: NameServer) -> None:
    slow = [reported(f"http://slow-{number}.example/", times=3) for number in range(40)]
    answers = await asyncio.gather(*slow)
    assert {answer for each in answers for answer in each} == {Failed("timeout")}
    await until(lambda: len(name_server.asked) >= 40)
    assert len(name_server.asked) == 40, "a name that hangs is not asked again"
    async with asyncio.timeout(300):
        assert await asyncio.to_thread(lambda: "flushed") == "flushed"


def test_the_end_waits_for_no_name(name_server: NameServer) -> None:
    del name_server
    began = time.monotonic()
    assert asyncio.run(reported("http://slow.example/")) == [Failed("timeout")]
    assert time.monotonic() - began < 100.0


async def test_a_name_that_answers_late_is_known_to_whoever_asks_next(name_server: NameServer) -> None:
    resolver = SystemResolver()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await resolver.resolve("late.example", 80)
    waiting = asyncio.create_task(resolver.resolve("late.example", 80))
    await asyncio.sleep(0)
    name_server.may_answer.set()
    assert [result["host"] for result in await waiting] == ["127.0.0.1"]
    assert name_server.asked == ["late.example"]


async def test_where_no_thread_can_be_started_a_delivery_fails_and_the_next_one_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    resolver = SystemResolver()
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        assert await reported("http://receiver.example/") == [Failed("dns")]
        with pytest.raises(OSError, match="can't start new thread"):
            await resolver.resolve("localhost", 80)
    async with asyncio.timeout(60):
        assert await resolver.resolve("localhost", 80)


async def test_no_such_name_and_no_name_at_all_are_errors_of_the_name_server() -> None:
    for host in ("no-such-host.invalid", "a" * 64 + ".invalid"):
        with pytest.raises(socket.gaierror):
            await SystemResolver().resolve(host)


async def test_a_name_of_this_machine_is_reached() -> None:
    async with endpoint() as server:
        receiver = HttpReceiver(EndpointSpec("o", server.url.replace("127.0.0.1", "localhost")), Slack())
        await receiver.open()
        assert await receiver.deliver(firing(), NOW_MS) == Delivered()
        await receiver.close()
