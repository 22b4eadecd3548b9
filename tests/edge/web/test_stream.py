"""The stream of news: who listens is sent every report and alarm, and cannot harm who does not."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any

import aiohttp
import pytest

from streamwatch.core.metrics.series import Family, Report
from streamwatch.edge.web import server as listeners
from streamwatch.edge.web.routes.json_api import NewsStream
from streamwatch.edge.web.server import STOP_SECONDS, HttpServer
from tests.cpu_budget import OwnTime
from tests.edge.web.http_faces import FakeHealth, Model, alarm, report_of, serving

DEADLINE_SECONDS = 300.0


class Listening:
    """One open stream."""

    def __init__(self, answer: aiohttp.ClientResponse) -> None:
        self.answer = answer

    async def block(self) -> str:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return (await self.answer.content.readuntil(b"\n\n")).decode()

    async def event(self) -> tuple[str, Any]:
        """The next event; comments and settings are passed over."""
        while True:
            fields = dict(line.split(": ", 1) for line in (await self.block()).strip().splitlines())
            if "event" in fields:
                data = json.loads(fields["data"])
                published = data["published_timestamp_seconds"]
                assert fields.get("id") == (None if published is None else str(round(published * 1000)))
                return fields["event"], data


@pytest.fixture
async def session() -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, read_bufsize=2**22) as session:
        yield session


Listen = Callable[[HttpServer], Awaitable[Listening]]


@pytest.fixture
async def listen(session: aiohttp.ClientSession) -> AsyncIterator[Listen]:
    answers: list[aiohttp.ClientResponse] = []

    async def opened(server: HttpServer) -> Listening:
        answer = await session.get(f"{server.url}/api/v1/stream", timeout=aiohttp.ClientTimeout(total=None))
        answers.append(answer)
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["Cache-Control"] == "no-store"
        return Listening(answer)

    yield opened
    for answer in answers:
        answer.close()


async def test_a_newcomer_is_sent_the_report_at_hand_and_then_every_other(listen: Listen) -> None:
    async with serving() as server:
        early = await listen(server)
        assert "retry: 2000" in await early.block()
        kind, news = await early.event()
        assert (kind, news) == ("report", {"published_timestamp_seconds": None, "models": 0, "alarms": []})

        models = {"a": Model(), "b": Model(accuracy=0.7)}
        server.publish(report_of(models, 1, [alarm("a")]))
        kind, news = await early.event()
        assert (kind, news["models"], [a["model"] for a in news["alarms"]]) == ("report", 2, ["a"])

        late = await listen(server)
        kind, reported = await late.event()
        assert (kind, reported) == ("report", {**news, "alarms": []})

        server.publish(report_of({**models, "c": Model()}, 2, [alarm("a")]))
        for one in (early, late):
            kind, news = await one.event()
            assert (kind, news["models"], news["alarms"]) == ("report", 3, [])


async def test_alarms_are_reported_once_even_when_old_ones_are_forgotten(listen: Listen) -> None:
    raised = [alarm("m", ordinal) for ordinal in range(1, 8)]
    async with serving() as server:
        server.publish(report_of({"m": Model()}, 0, raised[:3]))
        listening = await listen(server)
        await listening.event()
        for second, (first, last) in enumerate(((1, 4), (2, 4), (3, 6), (6, 7)), 1):
            server.publish(report_of({"m": Model(outcomes=second)}, second, raised[first:last]))
            _, changes = await listening.event()
            reported = [a["ordinal"] for a in changes["alarms"]]
            assert reported == {1: [4], 2: [], 3: [6, 5], 4: [7]}[second]


class CountedStream:
    """Counts how often it renders; what it sends may be large."""

    route = NewsStream.route

    def __init__(self, size: int = 0) -> None:
        self.renderings = 0
        self.size = size

    def events(self, report: Report | None, *, whole: bool) -> tuple[bytes, bytes]:
        self.renderings += report is not None
        event = b"nothing_yet" if report is None else b"report"
        reported = b"event: " + event + b"\ndata: {}\n\n" + b":" + b"x" * self.size + b"\n\n"
        return (reported if whole else b""), reported


class Idle:
    role: str | None = None

    def unready(self) -> Sequence[str]:
        return ()

    def families(self) -> Sequence[Family]:
        return ()


async def test_a_report_is_rendered_once_for_all_who_listen(listen: Listen) -> None:
    stream = CountedStream()
    server = HttpServer(Idle(), (), port=0, stream=stream)
    await server.start()
    listening = [await listen(server) for _ in range(10)]
    for one in listening:
        while "nothing_yet" not in await one.block():
            pass
    server.publish(report_of({}))
    for one in listening:
        while "report" not in await one.block():
            pass
    assert stream.renderings == 1
    await server.stop()


async def test_nothing_is_rendered_for_nobody() -> None:
    stream = CountedStream()
    server = HttpServer(Idle(), (), port=0, stream=stream)
    await server.start()
    server.publish(report_of({}))
    async with aiohttp.ClientSession(server.url) as session, session.get("/healthz") as answer:
        assert answer.status == 200
    await server.stop()
    assert stream.renderings == 0


async def test_too_many_listeners_are_turned_away_and_a_free_slot_is_given_again(
    session: aiohttp.ClientSession,
    listen: Listen,
) -> None:
    async with serving() as server:
        listening = [await listen(server) for _ in range(listeners.MAX_LISTENERS)]
        async with session.get(f"{server.url}/api/v1/stream") as refused:
            assert refused.status == 503
            assert refused.headers["Retry-After"] == "5"
        async with session.get(f"{server.url}/healthz") as answer:
            assert answer.status == 200
        listening[0].answer.close()
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                server.publish(report_of({"m": Model()}))
                async with session.get(f"{server.url}/api/v1/stream") as again:
                    if again.status == 200:
                        break
                await asyncio.sleep(0.02)


async def test_who_does_not_read_is_dropped_and_the_others_go_on(listen: Listen) -> None:
    stream = CountedStream(size=2_000_000)
    server = HttpServer(Idle(), (), port=0, stream=stream)
    await server.start()
    port = int(server.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1_000)
    writer.write(b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert (await reader.read(15)).startswith(b"HTTP/1.1 200")
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    async with asyncio.timeout(DEADLINE_SECONDS):
        for number in range(1_000):
            server.publish(report_of({}, number))
            before = stream.renderings
            while stream.renderings == before and len(server._listeners):  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            if not len(server._listeners):
                break
    assert stream.renderings <= 4 * listeners.MAX_UNSENT
    writer.close()
    again = await listen(server)
    while "report" not in await again.block():
        pass
    await server.stop()


@pytest.mark.slow
async def test_a_silent_stream_still_sends_comments(listen: Listen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listeners, "HEARTBEAT_SECONDS", 0.02)
    async with serving() as server:
        listening = await listen(server)
        await listening.event()
        assert await listening.block() == ": still here\n\n"


async def test_stopping_ends_open_streams_at_once(listen: Listen) -> None:
    async with serving(FakeHealth()) as server:
        listening = await listen(server)
        await listening.event()
        own = OwnTime(os.getpid())
        await server.stop()
        assert own.look().seconds < STOP_SECONDS / 2
        assert await listening.answer.content.read() == b""


async def test_a_defect_in_an_observer_is_not_passed_over_in_silence() -> None:
    class Broken:
        def observe(self, report: Report) -> None:
            raise ZeroDivisionError(report.published_ms)

    server = HttpServer(Idle(), (), port=0, observers=(Broken(),))
    await server.start()

    async def publish_on() -> None:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                server.publish(report_of({}))
                await asyncio.sleep(0.001)

    with pytest.raises(ZeroDivisionError):
        await publish_on()
    await server.stop()
