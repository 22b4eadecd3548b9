"""The daemon's HTTP face over real sockets."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

import aiohttp
import pytest
from yarl import URL

from streamwatch.core.metrics.series import Family
from streamwatch.edge.web import connections
from streamwatch.edge.web.connections import ListenError
from streamwatch.edge.web.page import StatusPage
from streamwatch.edge.web.ports import Asked, Route
from streamwatch.edge.web.routes.json_api import JsonExporter
from streamwatch.edge.web.routes.prometheus import PrometheusExporter
from streamwatch.edge.web.server import MAX_WAITING, STOP_SECONDS, HttpServer
from tests.cpu_budget import OwnTime
from tests.edge.web.exposition import OPENMETRICS, PLAIN, parsed, realistic, report

DEADLINE_SECONDS = 300


@dataclass
class FakeHealth:
    reasons: list[str] = field(default_factory=list)
    up: int = 1

    role: str | None = None

    def unready(self) -> Sequence[str]:
        return self.reasons

    def families(self) -> Sequence[Family]:
        return [
            Family("build_info", "gauge", "Version in the label", ("version",), [(("0.1.0",), 1)]),
            Family("kafka_up", "gauge", "1 while the broker answers", (), [((), self.up)]),
        ]


class SlowExporter:
    """Takes until it is let go."""

    routes: Sequence[Route] = (Route("/slow", "Slow", media_types=("text/plain",)),)

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.let_go = asyncio.Event()
        self.rendering = asyncio.Event()

    def render(self, asked: Asked) -> bytes:
        del asked
        self.loop.call_soon_threadsafe(self.rendering.set)
        asyncio.run_coroutine_threadsafe(self.let_go.wait(), self.loop).result(DEADLINE_SECONDS)
        return b"done"


@pytest.fixture
def health() -> FakeHealth:
    return FakeHealth()


@pytest.fixture
async def server(health: FakeHealth) -> AsyncIterator[HttpServer]:
    server = HttpServer(health, (PrometheusExporter(), JsonExporter(), StatusPage()), port=0)
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
async def client(server: HttpServer) -> AsyncIterator[aiohttp.ClientSession]:
    timeout = aiohttp.ClientTimeout(total=DEADLINE_SECONDS)
    async with aiohttp.ClientSession(server.url, timeout=timeout) as session:
        yield session


async def test_before_the_first_report_everything_answers(client: aiohttp.ClientSession) -> None:
    for path in ("/metrics", "/api/v1/models", "/", "/healthz", "/readyz"):
        async with client.get(path) as answer:
            assert answer.status == 200, path
    async with client.get("/metrics") as answer:
        text = await answer.text()
    assert 'streamwatch_build_info{version="0.1.0"} 1\n' in text
    assert "streamwatch_kafka_up 1\n" in text


async def test_the_last_published_report_is_served(server: HttpServer, client: aiohttp.ClientSession) -> None:
    for seed in (1, 2):
        made = realistic(seed=seed)
        server.publish(report(made))
        async with client.get("/metrics") as answer:
            served = parsed(await answer.text(), PLAIN)
        alone = (
            PrometheusExporter()
            .render(Asked(report(made), live=FakeHealth().families(), media_type=PLAIN))
            .decode()
        )
        assert served == parsed(alone, PLAIN)
        async with client.get("/api/v1/models/model-1") as answer:
            document = await answer.json()
        assert document["metrics"]["outcomes_total"] == dict(made[0].samples)[("model-1",)]


async def test_live_facts_do_not_wait_for_a_report(
    server: HttpServer, client: aiohttp.ClientSession, health: FakeHealth
) -> None:
    server.publish(report(realistic()))
    for health.up in (1, 0, 1):
        async with client.get("/metrics") as answer:
            assert f"streamwatch_kafka_up {health.up}\n" in await answer.text()


async def test_ready_says_why_not(client: aiohttp.ClientSession, health: FakeHealth) -> None:
    health.reasons = ["no partitions assigned: the broker at kafka:9092 does not answer"]
    async with client.get("/readyz") as answer:
        assert answer.status == 503
        assert await answer.json() == {"ready": False, "reasons": health.reasons}
    async with client.get("/healthz") as answer:
        assert (answer.status, await answer.json()) == (200, {"status": "alive"})
    health.reasons = []
    async with client.get("/readyz") as answer:
        assert (answer.status, await answer.json()) == (200, {"ready": True, "reasons": []})
    health.role = "standby"
    async with client.get("/readyz") as answer:
        assert await answer.json() == {"ready": True, "reasons": [], "role": "standby"}


async def test_openmetrics_is_negotiated(server: HttpServer, client: aiohttp.ClientSession) -> None:
    server.publish(report(realistic()))
    accept = {"Accept": "application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5"}
    async with client.get("/metrics", headers=accept) as answer:
        assert answer.headers["Content-Type"] == OPENMETRICS
        assert (await answer.text()).endswith("\n# EOF\n")
    async with client.get("/metrics") as answer:
        assert answer.headers["Content-Type"] == PLAIN


@pytest.mark.parametrize(
    ("accepted", "zipped"),
    [
        ("gzip", True),
        ("deflate, gzip;q=0.5", True),
        ("GZIP", True),
        ("gzip;q=0", False),
        ("br", False),
        ("", False),
    ],
)
async def test_gzip_is_sent_to_who_accepts_it(
    server: HttpServer, client: aiohttp.ClientSession, accepted: str, *, zipped: bool
) -> None:
    server.publish(report(realistic()))
    async with client.get("/metrics", headers={"Accept-Encoding": accepted}) as answer:
        assert (answer.headers.get("Content-Encoding") == "gzip") is zipped
        assert parsed(await answer.text(), PLAIN)


@pytest.mark.parametrize("path", ["/metrics", "/", "/api/v1/models", "/healthz", "/readyz", "/nowhere"])
async def test_no_answer_is_cached_sniffed_or_framed(client: aiohttp.ClientSession, path: str) -> None:
    async with client.get(path) as answer:
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers.getall("Server") == ["streamwatch"]


async def test_errors_are_json(client: aiohttp.ClientSession) -> None:
    async with client.get("/nowhere") as answer:
        assert (answer.status, await answer.json()) == (404, {"error": "Not Found", "status": 404})
    async with client.get("/api/v1/models/nobody") as answer:
        assert (answer.status, await answer.json()) == (404, {"error": "no such model", "status": 404})
    async with client.post("/metrics") as answer:
        assert answer.status == 405
        assert answer.headers["Allow"] == "GET,HEAD"
        assert (await answer.json())["status"] == 405


@pytest.mark.parametrize("model", ["a/b", "ß 1", "50%", "a?b#c"])
async def test_a_model_is_found_by_any_name(server: HttpServer, model: str) -> None:
    server.publish(report([Family("outcomes_total", "counter", "h", ("model",), [((model,), 1)])]))
    quoted = URL(f"{server.url}/api/v1/models/{quote(model, safe='')}", encoded=True)
    async with aiohttp.ClientSession() as session, session.get(quoted) as answer:
        assert (await answer.json())["model"] == model


async def test_a_taken_port_is_an_error_that_says_what_to_change(server: HttpServer) -> None:
    port = int(server.url.rpartition(":")[2])
    second = HttpServer(FakeHealth(), (), port=port)
    with pytest.raises(
        ListenError, match=rf"127\.0\.0\.1:{port}: something listens there already.*http\.listen"
    ):
        await second.start()
    await second.stop()


@pytest.mark.parametrize(
    ("host", "port", "shown"),
    [
        ("192.0.2.1", 9877, "no address of this machine"),
        ("no-such-host.invalid", 9877, "does not resolve"),
        ("127.0.0.1", 70_000, "0 to 65535"),
    ],
)
async def test_an_impossible_address_is_an_error_that_says_what_to_change(
    host: str, port: int, shown: str
) -> None:
    server = HttpServer(FakeHealth(), (), host=host, port=port)
    with pytest.raises(ListenError, match=shown):
        await server.start()
    await server.stop()


async def test_an_ipv6_address_has_a_url_that_works() -> None:
    server = HttpServer(FakeHealth(), (), host="::1", port=0)
    await server.start()
    async with aiohttp.ClientSession() as session, session.get(f"{server.url}/healthz") as answer:
        assert server.url.startswith("http://[::1]:")
        assert answer.status == 200
    await server.stop()


@pytest.mark.slow
async def test_stopping_is_bounded_with_a_request_open_and_frees_the_port() -> None:
    slow = SlowExporter(asyncio.get_running_loop())
    server = HttpServer(FakeHealth(), (slow,), port=0)
    await server.start()
    port = int(server.url.rpartition(":")[2])
    async with aiohttp.ClientSession() as session:
        request = asyncio.create_task(session.get(f"{server.url}/slow"))
        await asyncio.wait_for(slow.rendering.wait(), DEADLINE_SECONDS)
        own = OwnTime(os.getpid())
        await server.stop()
        assert own.look().seconds < STOP_SECONDS + 1
        slow.let_go.set()
        await asyncio.gather(request, return_exceptions=True)
    assert server.url.endswith(f":{port}"), "who reports it at the end still knows where it was"
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


async def test_health_answers_while_a_render_takes_long_and_too_many_are_turned_away() -> None:
    slow = SlowExporter(asyncio.get_running_loop())
    server = HttpServer(FakeHealth(), (slow,), port=0)
    await server.start()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(server.url, connector=connector) as session:
        waiting = [asyncio.create_task(session.get("/slow")) for _ in range(MAX_WAITING + 1)]
        await asyncio.wait_for(slow.rendering.wait(), DEADLINE_SECONDS)
        (refused,), _ = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert refused.result().status == 503
        assert refused.result().headers["Retry-After"] == "1"
        async with session.get("/healthz") as answer:
            assert answer.status == 200
        slow.let_go.set()
        answers = await asyncio.wait_for(asyncio.gather(*waiting), DEADLINE_SECONDS)
        assert sorted(answer.status for answer in answers) == [200] * MAX_WAITING + [503]
        for answer in answers:
            answer.close()
    await server.stop()


async def test_a_scrape_is_answered_while_the_event_loop_is_never_idle(
    server: HttpServer, client: aiohttp.ClientSession
) -> None:
    """A backlog: the loop folds for 3 ms, gives way to whoever is ready, and folds again."""
    server.publish(report(realistic(models=40, classes=20)))
    scrape = asyncio.create_task(client.get("/metrics"))
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not scrape.done() and time.monotonic() < deadline:
        turn = time.perf_counter() + 0.003
        while time.perf_counter() < turn:
            pass
        await asyncio.sleep(0)
    assert scrape.done()
    async with scrape.result() as answer:
        assert answer.status == 200


async def test_the_interpreter_switches_fast_only_while_serving() -> None:
    before = sys.getswitchinterval()
    server = HttpServer(FakeHealth(), (), port=0)
    await server.start()
    assert sys.getswitchinterval() < 0.001
    await server.stop()
    assert sys.getswitchinterval() == before


async def test_an_address_of_a_family_that_the_machine_lacks_is_explained(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "_socket", lambda *_: None)
    with pytest.raises(ListenError, match=r"Address family not supported.*; change http\.listen"):
        await HttpServer(FakeHealth(), (), port=0).start()
