"""Schemas are fetched once, waited for as long as it takes, and never asked for without end."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import threading
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from streamwatch.edge.decoders.schemas.avro import AvroReader
from streamwatch.edge.decoders.schemas.cache import (
    BELIEVED_SECONDS,
    DOUBT_SECONDS,
    FORGOTTEN_SECONDS,
    MAX_SCHEMAS,
    RETRY_SECONDS,
    UNAVAILABLE,
    UNKNOWN,
    UNUSABLE,
    SchemaCache,
    TopicSchemas,
)
from streamwatch.edge.decoders.schemas.client import MAX_BYTES, RegistryClient
from streamwatch.edge.decoders.schemas.schema import (
    RegistrySpec,
    Schema,
    SchemaRef,
    SchemaRequest,
    SchemaUnavailable,
    SchemaUnknown,
    SchemaUnusable,
    SchemaWithheldError,
    ValueReader,
    Version,
)
from streamwatch.telemetry import (
    InternalEvent,
    SchemaAwaited,
    SchemaRegistryLost,
    SchemaRegistryRecovered,
    SchemaRejected,
    SchemaWithheld,
    Telemetry,
)
from tests.edge.decoders.schemas.fake_registry import FakeRegistry

BOMB = gzip.compress(bytes(100_000_000), 1)
TEXT = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "string"}]})


REFERENCE = {"name": "a", "subject": "b", "version": 1}
MANY = [{**REFERENCE, "name": f"n{i}"} for i in range(201)]


def wanted(*refs: SchemaRef) -> Collection[SchemaRequest]:
    return [SchemaRequest(ref, AvroReader) for ref in refs]


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
        ({"status": 408}, "answers 408"),
        ({"status": 429}, "answers 429"),
        ({"status": 500}, "answers 500"),
        ({"status": 503}, "answers 503"),
    ],
)
async def test_a_registry_that_lets_nobody_in_or_is_broken_is_waited_for(
    state: dict[str, Any], message: str
) -> None:
    async with FakeRegistry(**state) as registry:
        asked = client(registry)
        with pytest.raises(SchemaUnavailable, match=message):
            await asked.schema(1)
        await asked.close()


DEEP = b'{"schema": "a", "x": ' + b"[" * 100_000


@pytest.mark.parametrize(
    ("state", "message"),
    [
        ({"status": 400}, "the registry answers 400"),
        ({"status": 404, "body": b"<html>"}, "the registry answers 404"),
        ({"status": 404, "body": b'{"error_code": 404}'}, "the registry answers 404"),
        ({"status": 404, "body": b'{"error_code": ' + b"[" * 100_000}, "the registry answers 404"),
        ({"status": 302}, "the registry answers 302"),
        ({"body": b"<html>"}, "answers something that is no schema"),
        ({"body": b'{"schema": 7}'}, "answers something that is no schema"),
        ({"body": DEEP}, "answers something that is no schema"),
        ({"body": b"\xff" * (MAX_BYTES + 1)}, "answers with more than"),
        ({"body": BOMB, "encoding": "gzip"}, "answers something that is no schema"),
        (
            {"body": b'{"schema": "a", "references": [{"name": "a", "subject": "b", "version": 1e999}]}'},
            "answers something that is no schema",
        ),
        (
            {
                "body": json.dumps(
                    {"schema": "a", "references": [{**REFERENCE, "subject": "s" * 2_000}]}
                ).encode()
            },
            "refers to a subject of 2000 characters",
        ),
        (
            {"body": json.dumps({"schema": "a", "references": MANY}).encode()},
            "refers to more than 200 schemas",
        ),
    ],
)
async def test_any_other_answer_makes_one_schema_unusable_and_the_next_is_read(
    state: dict[str, Any], message: str
) -> None:
    reported: list[InternalEvent] = []
    async with FakeRegistry() as registry:
        registry.add(2, TEXT)
        cache = SchemaCache(client(registry), reported.append)
        for name, value in state.items():
            setattr(registry, name, value)
        while not await cache.fetch(wanted(1)):
            pass
        registry.status, registry.body = None, None
        while not await cache.fetch(wanted(2)):
            pass
        assert cache.reader(*wanted(1)) == UNUSABLE
        assert not isinstance(cache.reader(*wanted(2)), str)
        assert cache.problem is None
        await cache.close()
    [event] = reported
    assert isinstance(event, SchemaRejected)
    assert message in event.error


async def test_what_a_registry_did_not_give_is_asked_for_again_after_a_minute() -> None:
    clock = Clock()
    async with FakeRegistry(status=404, body=b"<html>") as registry:
        registry.add(1, TEXT)
        cache = SchemaCache(client(registry), lambda _: None, clock)
        while not await cache.fetch(wanted(1)):
            pass
        registry.status, registry.body = None, None
        clock.seconds += BELIEVED_SECONDS
        while not await cache.fetch(wanted(1)):
            pass
        assert not isinstance(cache.reader(*wanted(1)), str)
        await cache.close()


async def test_references_are_fetched_side_by_side_under_one_deadline() -> None:
    """Fifty that refer to nothing took fifty answers' time, each within a deadline of its own."""
    async with FakeRegistry() as registry:
        many = tuple((f"r{i}", f"r{i}", 1) for i in range(50))
        registry.add(1, TEXT, references=many)
        for number, (name, *_) in enumerate(many, 2):
            registry.add(number, TEXT)
            registry.subjects[name, 1] = number
        asked = client(registry)
        assert len((await asked.schema(1)).references) == 50
        assert registry.most_at_once > 4
        await asked.close()
        slow = client(registry, timeout_seconds=0.5)
        registry.hold = asyncio.Event()
        with pytest.raises(SchemaUnavailable, match=r"no answer within 0\.5 s"):
            await slow.schema(1)
        registry.hold.set()
        await slow.close()


async def test_a_schema_with_endless_references_is_unusable() -> None:
    async with FakeRegistry() as registry:
        text = json.dumps({"type": "enum", "name": "E", "symbols": ["a"], "doc": "x" * 1_000_000})
        registry.add(1, text, references=tuple((f"r{i}", f"r{i}", 1) for i in range(4)))
        for i in range(4):
            registry.subjects[f"r{i}", 1] = registry.add(2 + i, text)
        asked = client(registry)
        with pytest.raises(SchemaUnusable, match="has more than 4194304 bytes with what it refers to"):
            await asked.schema(1)
        await asked.close()


class Throwing:
    """A registry and a compiler of which one raises what no schema should."""

    def __init__(self, fault: Exception, *, of_registry: bool = False) -> None:
        self.host = "r"
        self.fault = fault
        self.of_registry = of_registry

    async def schema(self, ref: SchemaRef) -> Schema:
        if self.of_registry and ref == 1:
            raise self.fault
        return Schema("AVRO", TEXT)

    def compile(self, _: Schema) -> ValueReader:
        raise self.fault

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("of_registry", [True, False])
@pytest.mark.parametrize(
    "fault",
    [
        RecursionError("deep"),
        OverflowError("large"),
        MemoryError(),
        TypeError("odd"),
        KeyError("x"),
        OSError(28, "no room"),
        StopIteration("odd"),
    ],
    ids=repr,
)
async def test_whatever_happens_to_one_schema_others_are_read(fault: Exception, *, of_registry: bool) -> None:
    """A RecursionError ended the daemon, at once and at every start."""
    reported: list[InternalEvent] = []
    registry = Throwing(fault, of_registry=of_registry)
    cache = SchemaCache(registry, reported.append)
    first = SchemaRequest(1, AvroReader if of_registry else registry.compile)
    while not await cache.fetch([first, *wanted(2)]):
        pass
    assert cache.reader(first) == UNUSABLE
    assert not isinstance(cache.reader(*wanted(2)), str)
    [event] = reported
    assert isinstance(event, SchemaRejected)
    assert type(fault).__name__ in event.error
    await cache.close()


async def test_what_may_be_the_machine_s_fault_is_tried_again_after_a_minute() -> None:
    clock, registry = Clock(), Throwing(OSError(28, "no space left on device"))
    cache = SchemaCache(registry, lambda _: None, clock)
    request = SchemaRequest(1, registry.compile)
    while not await cache.fetch([request]):
        pass
    assert not cache.is_missing(request)
    clock.seconds += BELIEVED_SECONDS
    assert cache.is_missing(request)
    await cache.close()


async def test_a_schema_that_takes_long_is_named_within_two_seconds_and_in_one_line() -> None:
    clock, reported = Clock(), list[InternalEvent]()
    async with FakeRegistry(hold=asyncio.Event()) as registry:
        registry.add(7, TEXT)
        cache = SchemaCache(client(registry), reported.append, clock)
        assert not await cache.fetch(wanted(7))
        assert cache.waiting is None
        for _ in range(20):
            clock.seconds += 0.1
            assert not await cache.fetch(wanted(7), wait=False)
        assert cache.waiting == "schema 7 of the registry at 127.0.0.1 is being fetched or compiled"
        assert cache.problem is None
        assert reported == [SchemaAwaited("7", "127.0.0.1")]
        assert registry.hold is not None
        registry.hold.set()
        while not await cache.fetch(wanted(7)):
            pass
        assert cache.waiting is None
        await cache.close()


async def test_a_registry_that_is_away_is_no_reason_to_wait_once_no_record_needs_it() -> None:
    clock = Clock()
    async with FakeRegistry(status=503) as registry:
        cache = SchemaCache(client(registry), lambda _: None, clock)
        while cache.problem is None:  # a call waits for a quarter of a second
            assert not await cache.fetch(wanted(7))
        assert cache.waiting is not None
        assert "answers 503" in cache.waiting
        clock.seconds += FORGOTTEN_SECONDS + 1.0
        assert cache.waiting is None
        assert cache.problem is not None
        await cache.close()


async def test_a_registry_that_stays_away_writes_a_few_lines_a_minute_whatever_it_answers() -> None:
    out, now = io.StringIO(), [0.0]
    telemetry = Telemetry(stream=out, clock=lambda: now[0])
    for n in range(1_000):
        telemetry.emit(SchemaRegistryLost(f"answers {n}", "r", 1.0))
        telemetry.emit(SchemaRejected(str(n), f"is odd in way {n}", "r"))
        telemetry.emit(SchemaAwaited(str(n), "r"))
    assert len(out.getvalue().splitlines()) == 15


async def test_texts_that_are_remembered_are_bounded_and_those_at_hand_are_kept() -> None:
    wide = json.dumps({"type": "record", "name": "R", "fields": [], "doc": "x" * 1_500_000})
    async with FakeRegistry() as registry:
        for number in range(1, 8):
            registry.add(number, wide)
        reported: list[InternalEvent] = []
        cache = SchemaCache(client(registry), reported.append)
        for number in range(1, 8):
            while not await cache.fetch(wanted(number)):
                pass
        assert [cache.reader(each) == UNAVAILABLE for each in wanted(*range(1, 8))] == [True, True] + [
            False
        ] * 5
        while not await cache.fetch(wanted(*range(1, 8))):
            pass
        unusable = [each for each in wanted(*range(1, 8)) if cache.reader(each) == UNUSABLE]
        assert len(unusable) == 2
        rejected = [event for event in reported if isinstance(event, SchemaRejected)]
        assert {event.schema for event in rejected} == {str(each.ref) for each in unusable}
        assert all("are needed together have more than" in event.error for event in rejected)
        await cache.close()


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


async def test_where_no_thread_can_be_started_a_schema_is_compiled_a_minute_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    clock = Clock()
    async with FakeRegistry() as registry:
        registry.add(1, TEXT)
        cache = SchemaCache(client(registry), lambda _: None, clock)
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", refuse)
            while not await cache.fetch(wanted(1)):
                pass
        assert cache.reader(*wanted(1)) == UNUSABLE
        clock.seconds += BELIEVED_SECONDS
        while not await cache.fetch(wanted(1)):
            pass
        assert not isinstance(cache.reader(*wanted(1)), str)
        await cache.close()


async def test_a_schema_that_does_not_compile_is_reported_by_its_name() -> None:
    reported: list[InternalEvent] = []
    async with FakeRegistry() as registry:
        registry.add(1, "no schema")
        cache = SchemaCache(client(registry), reported.append)
        while not await cache.fetch(wanted(1)):
            pass
        assert cache.reader(*wanted(1)) == UNUSABLE
        await cache.close()
    [event] = reported
    assert isinstance(event, SchemaRejected)
    assert event.schema == "1"
    assert "is no Avro schema" in event.error


async def test_a_registry_that_is_away_is_asked_again_after_ever_longer_pauses_and_reported_to_be_back() -> (
    None
):
    clock, reported = Clock(), list[InternalEvent]()
    registry = FakeRegistry()
    registry.add(1, TEXT)
    cache = SchemaCache(client(registry), reported.append, clock)
    pauses: list[float] = []
    for _ in range(7):
        before = len(reported)
        while len(reported) == before:
            assert not await cache.fetch(wanted(1))
        event = reported[-1]
        assert isinstance(event, SchemaRegistryLost)
        pauses.append(event.retry_in_seconds)
        clock.seconds += event.retry_in_seconds - 0.001
        assert not await cache.fetch(wanted(1))
        assert len(reported) == before + 1, "asked before its time"
        clock.seconds += 0.002
    assert pauses == sorted(pauses)
    assert pauses[-1] == pauses[-2]
    assert cache.problem == "schema registry at 127.0.0.1: the connection fails"
    async with registry:
        while not await cache.fetch(wanted(1)):
            pass
    await cache.close()
    assert cache.problem is None
    assert isinstance(reported[-1], SchemaRegistryRecovered)


async def test_a_registry_that_comes_back_without_a_schema_is_not_believed_at_once() -> None:
    clock, reported = Clock(), list[InternalEvent]()
    registry = FakeRegistry()
    cache = SchemaCache(client(registry), reported.append, clock)
    while cache.problem is None:
        assert not await cache.fetch(wanted(1))
    async with registry:
        for _ in range(3):
            clock.seconds += RETRY_SECONDS[-1]
            before = len(registry.asked)
            while len(registry.asked) == before or cache.problem is None:
                assert not await cache.fetch(wanted(1))
            assert "it was away, and now of schema 1: 127.0.0.1 does not know it" in (cache.problem or "")
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


async def test_one_schema_that_the_registry_never_returns_is_named_and_holds_up_no_other() -> None:
    clock, reported = Clock(), list[InternalEvent]()
    broken, known = wanted(2)[0], wanted(1)[0]
    async with FakeRegistry(broken={2}) as registry:
        for number in (1, 2, *range(10, 20)):
            registry.add(number, TEXT)
        cache = SchemaCache(client(registry), reported.append, clock)
        schemas = TopicSchemas(cache, {})
        while not await cache.fetch([known]):
            pass
        for number in range(10, 20):  # others are asked for from time to time, and one is not there at all
            await cache.fetch([broken, known, *wanted(number, 99)])
            clock.seconds += RETRY_SECONDS[-1] / 2
        assert await cache.fetch([known, *wanted(*range(10, 20), 99)])
        assert cache.reader(*wanted(99)) == UNKNOWN
        assert not await cache.fetch([broken])
        assert cache.problem is None
        assert cache.waiting == (
            "schema 2 of the registry at 127.0.0.1: answers 500, while other schemas are returned"
        )
        assert dict(_samples(schemas))["schema_registry_up"] == 0
        assert [each for each in reported if isinstance(each, SchemaWithheld)] == [
            SchemaWithheld("2", "answers 500", "127.0.0.1")
        ]
        lost = [each for each in reported if isinstance(each, SchemaRegistryLost) and "500" in each.error]
        assert len(lost) <= 2
        assert registry.asked.count("schemas/ids/2") < 15
        registry.broken.clear()
        clock.seconds += RETRY_SECONDS[-1]
        while not await cache.fetch([broken]):
            pass
        assert cache.waiting is None
        assert dict(_samples(schemas))["schema_registry_up"] == 1
        await cache.close()


class Balanced:
    """A registry behind a balancer: it has a schema 1, and errors that take turns for 2."""

    host = "127.0.0.1"

    def __init__(self) -> None:
        self.asked = 0

    async def schema(self, ref: SchemaRef) -> Schema:
        if ref == 1:
            return Schema("AVRO", TEXT)
        if ref == 2:
            self.asked += 1
            raise SchemaWithheldError(f"answers {500 + self.asked % 2}")
        raise SchemaUnknown

    async def close(self) -> None: ...


async def test_a_schema_for_which_the_registry_has_one_error_after_another_is_withheld() -> None:
    clock, reported, registry = Clock(), list[InternalEvent](), Balanced()
    cache = SchemaCache(registry, reported.append, clock)
    while not await cache.fetch(wanted(1)):
        pass
    for _ in range(20):
        await cache.fetch(wanted(2, 99))
        clock.seconds += RETRY_SECONDS[-1]
    assert registry.asked > 10
    assert cache.problem is None
    assert cache.reader(*wanted(99)) == UNKNOWN
    assert sum(isinstance(each, SchemaWithheld) for each in reported) == 1
    await cache.close()


async def test_a_registry_that_breaks_down_is_doubted_although_it_withheld_a_schema_before() -> None:
    clock = Clock()
    async with FakeRegistry(broken={2}) as registry:
        registry.add(1, TEXT)
        cache = SchemaCache(client(registry), lambda _: None, clock)
        while not await cache.fetch(wanted(1)):
            pass
        for _ in range(5):
            assert not await cache.fetch(wanted(2))
            clock.seconds += RETRY_SECONDS[-1] + DOUBT_SECONDS
        registry.status = 503
        while cache.problem is None:
            assert not await cache.fetch(wanted(2, 3))
        registry.status = None
        clock.seconds += RETRY_SECONDS[-1]
        for _ in range(20):
            assert not await cache.fetch(wanted(3)), "a registry that was away a moment ago is believed"
        await cache.close()


def _samples(schemas: TopicSchemas) -> list[tuple[str, float]]:
    return [(family.name, family.samples[0][1]) for family in schemas.families()]


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


async def test_a_schema_that_is_being_compiled_does_not_keep_the_process_from_ending() -> None:
    """The interpreter waits at its end for all threads but daemons, protoc may take half a minute."""
    begun, ends = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    class Known:
        host = "registry"

        async def schema(self, ref: SchemaRef) -> Schema:
            return Schema("AVRO", str(ref), ())

        async def close(self) -> None: ...

    def compiled(_: Schema) -> ValueReader:
        threads.append(threading.current_thread())
        begun.set()
        ends.wait(60)
        raise SchemaUnusable("late")

    cache = SchemaCache(Known(), lambda _: None)
    assert not await cache.fetch([SchemaRequest(1, compiled)])
    assert begun.wait(60)
    await cache.close()
    assert [thread.daemon for thread in threads] == [True]
    ends.set()
    threads[0].join(60)
