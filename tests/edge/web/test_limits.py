"""What clients may take of the server: slots, time, memory, names."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Callable
from contextlib import suppress
from io import StringIO
from pathlib import Path

import aiohttp
import pytest
import trustme

from streamwatch.edge.web.access import host_admitted
from streamwatch.edge.web.server import HttpServer
from streamwatch.telemetry import Telemetry
from tests.cpu_budget import TURN_SECONDS
from tests.edge.web.http_faces import Model, report_of, serving

DEADLINE_SECONDS = 120
HALF = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@pytest.fixture
def log() -> StringIO:
    return StringIO()


@pytest.fixture
def telemetry(log: StringIO) -> Telemetry:
    return Telemetry(form="json", stream=log)


def reasons(log: StringIO) -> list[str]:
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    return [line["reason"] for line in lines if line["event"] == "http_client_refused"]


async def opened(server: HttpServer, text: bytes = b"") -> Ends:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", int(server.url.rpartition(":")[2]), limit=1_024
    )
    writer.write(text)
    await writer.drain()
    return reader, writer


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(TURN_SECONDS / 10)


async def closed(end: Ends) -> bytes:
    """What came before the other side closed."""
    answer = b""
    with suppress(ConnectionError):
        async with asyncio.timeout(DEADLINE_SECONDS):
            while piece := await end[0].read(1_000_000):
                answer += piece
    end[1].transport.abort()
    return answer


async def health(server: HttpServer, **headers: str) -> int:
    timeout = aiohttp.ClientTimeout(total=DEADLINE_SECONDS)
    async with (
        aiohttp.ClientSession(timeout=timeout, headers={"Connection": "close", **headers}) as session,
        session.get(f"{server.url}/healthz") as answer,
    ):
        return answer.status


async def test_when_all_slots_are_taken_the_one_that_waited_longest_makes_room(
    telemetry: Telemetry, log: StringIO
) -> None:
    async with serving(telemetry=telemetry, max_connections=8) as server:
        ends = [await opened(server, HALF) for _ in range(20)]
        for end in ends[:12]:
            assert await closed(end) == b""
        assert await health(server) == 200
        assert reasons(log) == ["too_many_connections"]
        ends[-1][1].write(b"\r\n")
        assert (await ends[-1][0].read(15)) == b"HTTP/1.1 200 OK"
        for _, writer in ends:
            writer.transport.abort()


@pytest.mark.slow
async def test_a_request_that_does_not_arrive_in_time_is_cut_off(telemetry: Telemetry, log: StringIO) -> None:
    async with serving(telemetry=telemetry, header_timeout="300ms") as server:
        silent, half = await opened(server), await opened(server, HALF)
        second = await opened(server, HALF + b"\r\n")
        await second[0].readuntil(b"\r\n\r\n")
        second[1].write(b"G")  # a further request of the same connection has its own time
        for end in (silent, half, second):
            await closed(end)
        assert set(reasons(log)) == {"slow_request"}


async def test_slots_are_kept_for_health_while_every_other_is_busy(
    telemetry: Telemetry, log: StringIO
) -> None:
    async with serving(telemetry=telemetry, max_connections=8) as server:
        streams = [
            await opened(server, b"GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\n\r\n") for _ in range(6)
        ]
        for reader, _ in streams:
            await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), DEADLINE_SECONDS)
        turned_away = await closed(await opened(server, HALF + b"\r\n"))
        assert turned_away.startswith(b"HTTP/1.1 503")
        assert b"Retry-After: 1" in turned_away
        assert await health(server) == 200
        assert reasons(log) == ["too_many_requests"]
        for _, writer in streams:
            writer.transport.abort()


def large(models: int = 30_000) -> dict[str, Model]:
    return {f"{'a-name-that-is-rather-long-' * 4}{number}": Model() for number in range(models)}


@pytest.mark.slow
@pytest.mark.parametrize("bound", ["send_timeout", "max_buffered_bytes"])
async def test_who_does_not_read_is_cut_off(telemetry: Telemetry, log: StringIO, bound: str) -> None:
    limits = {"send_timeout": "500ms"} if bound == "send_timeout" else {"max_buffered_bytes": 1_048_576}
    async with serving(telemetry=telemetry, **limits) as server:
        server.publish(report_of(large()))
        ask = b"GET /api/v1/overview HTTP/1.1\r\nHost: localhost\r\n\r\n"
        lazy = await opened(server, ask)
        await until(lambda: server._buffers.bytes > 1_048_576 or "slow_reader" in reasons(log))
        if bound == "max_buffered_bytes":  # only when others need the room
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=DEADLINE_SECONDS)) as session,
                session.get(f"{server.url}/api/v1/overview") as answer,
            ):
                assert answer.status == 200
                assert len((await answer.json())["models"]) == 30_000
        await until(lambda: server._buffers.bytes == 0)
        assert reasons(log) == ["slow_reader"]
        lazy[1].transport.abort()


@pytest.mark.parametrize(
    "text",
    [
        b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 10_000,
        b"GET /" + b"a" * 100_000,
        b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n" + b"b" * 1_000_000,
        b"\x16\x03\x01 no HTTP at all \x00\xff\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
)
async def test_what_is_no_request_is_cut_off_and_counted_without_a_traceback(
    telemetry: Telemetry, log: StringIO, caplog: pytest.LogCaptureFixture, text: bytes
) -> None:
    async with serving(telemetry=telemetry) as server:
        reader, writer = await opened(server)
        with suppress(ConnectionError):
            writer.write(text)
            await writer.drain()
        answer = await closed((reader, writer))
        assert answer[:12] in {b"", b"HTTP/1.0 400", b"HTTP/1.1 400", b"HTTP/1.1 405"}
        assert [line for line in answer.split(b"\r\n") if line.lower().startswith(b"server:")] == [
            b"Server: streamwatch"
        ] * bool(answer)
        assert set(reasons(log)) <= {"malformed_request", "request_too_large"}
        assert len(reasons(log)) >= (not answer.startswith(b"HTTP/1.1 405"))
        assert not caplog.records


@pytest.mark.slow
async def test_a_client_that_leaves_in_the_middle_of_an_answer_is_no_news(
    telemetry: Telemetry, log: StringIO, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(telemetry=telemetry) as server:
        server.publish(report_of(large()))
        end = await opened(server, b"GET /api/v1/overview HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await end[0].read(1_000)
        end[1].transport.abort()
        await until(lambda: server._buffers.bytes == 0)
        assert await health(server) == 200
        assert not reasons(log)
        assert not caplog.records


@pytest.mark.slow
async def test_a_handshake_that_does_not_come_holds_a_slot_for_a_bounded_time(
    telemetry: Telemetry, log: StringIO, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pem = tmp_path / "server.pem"
    authority = trustme.CA()
    authority.issue_cert("localhost", "127.0.0.1").private_key_and_cert_chain_pem.write_to_path(pem)
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    tls = {"certificate_file": pem, "key_file": pem}
    async with serving(telemetry=telemetry, tls=tls, header_timeout="1s", max_connections=8) as server:
        ends = [await opened(server, b"\x16") for _ in range(30)]
        ends.append(await opened(server, b"GET / HTTP/1.1\r\n\r\n"))
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"{server.url}/healthz", ssl=trusting) as answer,
        ):
            assert answer.status == 200
        for end in ends:
            await closed(end)
        assert set(reasons(log)) <= {"too_many_connections", "handshake_failed", "slow_request"}
        assert {"too_many_connections", "handshake_failed"} <= set(reasons(log))
        assert not caplog.records


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:9877", "169.254.169.254", "localhost.evil.example"]
)
async def test_on_a_loopback_address_another_host_s_name_is_refused(host: str) -> None:
    async with serving() as server, aiohttp.ClientSession(server.url) as session:
        for path in ("/metrics", "/", "/api/v1/models", "/nowhere"):
            async with session.get(path, headers={"Host": host}) as answer:
                assert answer.status == 421, path
                assert "http.allowed_hosts" in (await answer.json())["error"]
        assert await health(server, Host=host) == 200


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:9877", "[::1]:9", "x.localhost", "own.example"]
)
async def test_on_a_loopback_address_this_machine_s_names_and_allowed_ones_are_served(host: str) -> None:
    async with (
        serving(allowed_hosts="own.example") as server,
        aiohttp.ClientSession(server.url) as session,
        session.get("/metrics", headers={"Host": host}) as answer,
    ):
        assert answer.status == 200


@pytest.mark.parametrize(
    ("header", "listening_on", "allowed", "admitted"),
    [
        ("anything.example", "0.0.0.0", (), True),  # noqa: S104
        ("anything.example", "0.0.0.0", ("own.example",), False),  # noqa: S104
        ("own.example.:443", "0.0.0.0", ("own.example",), True),  # noqa: S104
        ("", "127.0.0.1", (), True),
        ("127.0.0.1.evil.example", "::1", (), False),
        ("[::ffff:10.0.0.1]", "::1", (), False),
    ],
)
def test_elsewhere_the_allowed_names_decide(
    header: str, listening_on: str, allowed: tuple[str, ...], *, admitted: bool
) -> None:
    assert host_admitted(header, listening_on, allowed) is admitted
