"""Schemas are fetched once, waited for as long as it takes, and never asked for without end."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from streamwatch.edge.decoders.schemas.avro import compile_avro
from streamwatch.edge.decoders.schemas.cache import (
    BELIEVED_SECONDS,
    DOUBT_SECONDS,
    MAX_SCHEMAS,
    RETRY_SECONDS,
    UNKNOWN,
    UNUSABLE,
    SchemaCache,
)
from streamwatch.edge.decoders.schemas.client import MAX_BYTES, RegistryClient
from streamwatch.edge.decoders.schemas.schema import (
    Schema,
    SchemaRef,
    SchemaRequest,
    SchemaUnavailable,
    SchemaUnknown,
    Version,
)
from streamwatch.edge.decoders.schemas.spec import RegistrySpec
from streamwatch.telemetry import InternalEvent, SchemaRegistryLost, SchemaRegistryRecovered, SchemaRejected
from tests.edge.decoders.schemas.fake_registry import FakeRegistry

BOMB = gzip.compress(bytes(100_000_000), 1)
TEXT = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}]})


def wanted(*refs: SchemaRef) -> Collection[SchemaRequest]:
    return [SchemaRequest(ref, compile_avro) for ref in refs]


def client(registry: FakeRegistry, **spec: Any) -> RegistryClient:
    return RegistryClient(RegistrySpec(registry.url, **spec))


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


async def test_a_schema_is_had_by_number_global_id_and_version_with_what_it_refers_to() -> None:
    guid = UUID(int=5)
    async with FakeRegistry() as registry:
        registry.add(1, '"c"')
        registry.add(2, '"b"', references=(("c", "subject c", 1),))
        registry.add(3, "a", "PROTOBUF", (("b", "b/b", 1), ("c", "subject c", 1)))
        registry.subjects = {("subject c", 1): 1, ("b/b", 1): 2, ("b/b", 7): 3}
        registry.guids[str(guid)] = 1
        asked = client(registry)
        try:
            assert await asked.schema(3) == Schema("PROTOBUF", "a", (("c", '"c"'), ("b", '"b"')))
            assert await asked.schema(guid) == Schema("AVRO", '"c"')
            assert (await asked.schema(Version("b/b", 1))).text == '"b"'
            assert (await asked.schema(Version("b/b"))).text == "a"
            for unknown in (9, UUID(int=9), Version("nobody"), Version("b/b", 2)):
                with pytest.raises(SchemaUnknown):
                    await asked.schema(unknown)
        finally:
            await asked.close()


async def test_references_in_a_circle_come_to_an_end() -> None:
    async with FakeRegistry() as registry:
        registry.add(1, "one", "PROTOBUF", (("two.proto", "two", 1),))
        registry.add(2, "two", "PROTOBUF", (("one.proto", "one", 1),))
        registry.subjects = {("one", 1): 1, ("two", 1): 2}
        asked = client(registry)
        found = await asked.schema(1)
        await asked.close()
    assert dict(found.references) == {"one.proto": "one", "two.proto": "two"}


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"status": 401}, "answers 401: it does not let this user in"),
        ({"status": 403}, "answers 403"),
        ({"status": 404, "body": b"<html>"}, "answers 404"),
        ({"status": 404, "body": b'{"error_code": 404}'}, "answers 404"),
        ({"status": 302}, "answers 302"),
        ({"status": 500}, "answers 500"),
        ({"body": b"<html>"}, "no schema: is it a schema registry"),
        ({"body": b'{"schema": 7}'}, "no schema: is it a schema registry"),
        ({"body": b"\xff" * (MAX_BYTES + 1)}, "answers with more than"),
        ({"body": BOMB, "encoding": "gzip"}, "no schema: is it a schema registry"),
    ],
)
async def test_whatever_is_no_answer_of_a_registry_means_that_nothing_is_known(
    state: dict[str, Any], message: str
) -> None:
    async with FakeRegistry() as registry:
        for name, value in state.items():
            setattr(registry, name, value)
        asked = client(registry)
        with pytest.raises(SchemaUnavailable, match=message):
            await asked.schema(1)
        await asked.close()


@pytest.mark.parametrize(
    ("spec", "authorization"),
    [
        (
            {"username": "Aladdin", "password": "open sesame"},
            "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
        ),  # RFC 7617
        ({"token": "mF_9.B5f-4.1JqM"}, "Bearer mF_9.B5f-4.1JqM"),
    ],
    ids=["RFC 7617", "RFC 6750"],
)
async def test_who_asks_is_told_and_never_shown(spec: dict[str, str], authorization: str) -> None:
    async with FakeRegistry(authorization=authorization) as registry:
        registry.add(1, TEXT)
        asked = client(registry, **spec)
        assert (await asked.schema(1)).text == TEXT
        await asked.close()
        registry.authorization = "another"
        with pytest.raises(SchemaUnavailable) as refusal:
            await asked.schema(1)
        await asked.close()
    secrets = [value for name, value in spec.items() if name != "username"]
    assert not [s for s in secrets if s in str(refusal.value) or s in repr(RegistrySpec("http://h", **spec))]


async def test_a_registry_at_a_link_local_address_is_never_asked() -> None:
    asked = RegistryClient(RegistrySpec("http://169.254.169.254/"))
    with pytest.raises(SchemaUnavailable, match="link-local"):
        await asked.schema(1)


async def test_a_schema_is_fetched_once_however_often_it_is_wanted() -> None:
    async with FakeRegistry() as registry:
        registry.add(1, TEXT)
        cache = SchemaCache(client(registry), lambda _: None)
        for _ in range(3):
            while not await cache.fetch(wanted(1)):
                pass
        assert not isinstance(cache.reader(*wanted(1)), str)
        assert registry.asked == ["schemas/ids/1"]
        await cache.close()


async def test_an_unknown_schema_is_believed_for_a_minute_and_then_asked_for_again() -> None:
    clock = Clock()
    async with FakeRegistry() as registry:
        cache = SchemaCache(client(registry), lambda _: None, clock)
        while not await cache.fetch(wanted(1)):
            pass
        assert cache.reader(*wanted(1)) == UNKNOWN
        assert cache.problem is None
        registry.add(1, TEXT)
        assert await cache.fetch(wanted(1))
        assert len(registry.asked) == 1
        clock.seconds += BELIEVED_SECONDS
        while not await cache.fetch(wanted(1)):
            pass
        assert not isinstance(cache.reader(*wanted(1)), str)
        await cache.close()


async def test_a_schema_that_does_not_compile_is_told_by_its_name() -> None:
    told: list[InternalEvent] = []
    async with FakeRegistry() as registry:
        registry.add(1, "no schema")
        cache = SchemaCache(client(registry), told.append)
        while not await cache.fetch(wanted(1)):
            pass
        assert cache.reader(*wanted(1)) == UNUSABLE
        assert "is no Avro schema" in cache.why(*wanted(1))
        await cache.close()
    [event] = told
    assert isinstance(event, SchemaRejected)
    assert event.schema == "1"


async def test_a_registry_that_is_away_is_asked_again_after_ever_longer_pauses_and_said_to_be_back() -> None:
    clock, told = Clock(), list[InternalEvent]()
    registry = FakeRegistry()
    registry.add(1, TEXT)
    cache = SchemaCache(client(registry), told.append, clock)
    pauses: list[float] = []
    for _ in range(7):
        before = len(told)
        while len(told) == before:
            assert not await cache.fetch(wanted(1))
        event = told[-1]
        assert isinstance(event, SchemaRegistryLost)
        pauses.append(event.retry_in_seconds)
        clock.seconds += event.retry_in_seconds - 0.001
        assert not await cache.fetch(wanted(1))
        assert len(told) == before + 1, "asked before its time"
        clock.seconds += 0.002
    assert pauses == sorted(pauses)
    assert pauses[-1] == pauses[-2]
    assert cache.problem == "schema registry at 127.0.0.1: the connection fails"
    async with registry:
        while not await cache.fetch(wanted(1)):
            pass
    await cache.close()
    assert cache.problem is None
    assert isinstance(told[-1], SchemaRegistryRecovered)


async def test_a_registry_that_comes_back_without_a_schema_is_not_believed_at_once() -> None:
    clock, told = Clock(), list[InternalEvent]()
    registry = FakeRegistry()
    cache = SchemaCache(client(registry), told.append, clock)
    while cache.problem is None:
        assert not await cache.fetch(wanted(1))
    async with registry:
        for _ in range(3):
            clock.seconds += RETRY_SECONDS[-1]
            before = len(registry.asked)
            while len(registry.asked) == before or cache.problem is None:
                assert not await cache.fetch(wanted(1))
            assert "it was away, and does not know schema 1 yet" in (cache.problem or "")
            clock.seconds -= RETRY_SECONDS[-1] / 2
        registry.add(1, TEXT)
        clock.seconds += RETRY_SECONDS[-1]
        while not await cache.fetch(wanted(1)):
            pass
        assert not isinstance(cache.reader(*wanted(1)), str)
        assert cache.problem is None
        clock.seconds += DOUBT_SECONDS
        while not await cache.fetch(wanted(2)):
            pass
        assert cache.reader(*wanted(2)) == UNKNOWN
    await cache.close()


@pytest.mark.slow
async def test_what_is_remembered_is_bounded_but_never_less_than_one_poll_needs() -> None:
    async with FakeRegistry() as registry:
        cache = SchemaCache(client(registry), lambda _: None)
        many = wanted(*range(1, MAX_SCHEMAS + 51))
        while not await cache.fetch(many):
            pass
        assert {cache.reader(each) for each in many} == {UNKNOWN}
        while not await cache.fetch(wanted(5_000)):
            pass
        assert len(cache) == MAX_SCHEMAS
        await cache.close()


async def test_leaving_does_not_wait_for_a_registry_that_does_not_answer() -> None:
    held = asyncio.Event()
    server = await asyncio.start_server(lambda *_: held.wait(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    cache = SchemaCache(RegistryClient(RegistrySpec(f"http://127.0.0.1:{port}")), lambda _: None)
    assert not await cache.fetch(wanted(1))
    async with asyncio.timeout(5):
        await cache.close()
    held.set()
    server.close()


async def test_certificates_of_an_unknown_authority_are_refused(tmp_path: Path) -> None:
    import ssl  # noqa: PLC0415

    import trustme  # noqa: PLC0415

    authority, stranger = trustme.CA(), trustme.CA()
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = json.dumps({"schema": TEXT}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        await writer.drain()
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
    url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    for name, trusted in (("good", authority), ("bad", stranger)):
        trusted.cert_pem.write_to_path(str(tmp_path / name))
    good, bad = (RegistryClient(RegistrySpec(url, ca_file=str(tmp_path / name))) for name in ("good", "bad"))
    assert (await good.schema(1)).text == TEXT
    with pytest.raises(SchemaUnavailable, match="its certificate is not trusted"):
        await bad.schema(1)
    await good.close()
    await bad.close()
    server.close()
    await server.wait_closed()
