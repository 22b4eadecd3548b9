"""Hostile schemas and registries: mutated answers over HTTP, and records with every schema that compiles.

python -m tests.attack.schemas --schemas 100000
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import random
import resource
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError

from streamwatch.edge.decoders.formats.json_schema import compile_json
from streamwatch.edge.decoders.schemas import avro
from streamwatch.edge.decoders.schemas import protobuf as protobuf_values
from streamwatch.edge.decoders.schemas.cache import SchemaCache
from streamwatch.edge.decoders.schemas.client import RegistryClient
from streamwatch.edge.decoders.schemas.protobuf import MAIN, compile_protobuf
from streamwatch.edge.decoders.schemas.schema import (
    Compile,
    RegistrySpec,
    Schema,
    SchemaRequest,
    SchemaUnusable,
    Undecodable,
)
from streamwatch.edge.decoders.transcoding.avro import compile_avro_transcoder
from streamwatch.edge.decoders.transcoding.protobuf import compile_protobuf_transcoder
from streamwatch.telemetry import InternalEvent
from tests.attack.hostile_schemas import avro_schema, descriptor_set, json_schema, proto_text
from tests.edge.decoders.schemas.fake_registry import FakeRegistry
from tests.edge.decoders.transcoding.compared import check

SLOW_SECONDS = 3.0
"""Processor time that no schema and no record of it may take."""
MEMORY_BYTES = 500_000_000
"""Resident memory that all of it may add."""
AT_ONCE = 40
RECORDS = 6
PROTOC_SHARE = 250
"""Of Protocol Buffers schemas one in so many is text that protoc compiles; others are descriptors."""
MOST_TEXT = {
    avro.AvroReader: (avro.MAX_FREE_TEXT, avro.TEXT_PER_BYTE),
    protobuf_values.ProtobufReader: (protobuf_values.MAX_FREE_TEXT, protobuf_values.TEXT_PER_BYTE),
}


@dataclass
class Tally:
    """What was tried."""

    schemas: int = 0
    readable: Counter[str] = field(default_factory=Counter[str])
    """Schemas with a reader, by format."""
    records: int = 0
    decoded: int = 0
    transcoded: int = 0
    """Records that compiled code read."""
    most_text: float = 0.0
    """Bytes of JSON for a byte of a record, beyond what is free."""
    slowest_seconds: float = 0.0
    extra_bytes: int = 0
    faults: list[str] = field(default_factory=list)


def compile_descriptors(schema: Schema) -> protobuf_values.ProtobufReader:
    """Make a reader of descriptors as protoc would never give them."""
    files = descriptor_pb2.FileDescriptorSet()
    try:
        files.ParseFromString(base64.b64decode(schema.text))
    except (ValueError, DecodeError) as error:
        raise SchemaUnusable(str(error)) from None
    return protobuf_values.ProtobufReader(files, MAIN, None)


def hostile(chance: random.Random) -> tuple[str, str, Compile]:
    """Name of a format, a mutated schema of it, and what compiles it."""
    match chance.randrange(10):
        case 0 | 1 | 2:
            text = base64.b64encode(descriptor_set(chance)).decode()
            if chance.randrange(PROTOC_SHARE // 3) == 0:
                return "PROTOBUF", proto_text(chance), compile_protobuf
            return "PROTOBUF", text, compile_descriptors
        case 3:
            return "JSON", json_schema(chance), compile_json
        case _:
            return "AVRO", avro_schema(chance), avro.AvroReader


def answer(chance: random.Random, kind: str, text: str) -> tuple[int, bytes]:
    """An answer of a registry: mostly whole, with a schema, with references of all kinds."""
    body: dict[str, Any] = {"schema": text, "schemaType": kind}
    if chance.random() < 0.05:
        body["references"] = [
            chance.choice(
                (
                    {"name": "a" * chance.choice((1, 300)), "subject": f"s{n}", "version": 1},
                    {"name": f"a/{n}", "subject": "..", "version": chance.choice((-1, 0, 10**18))},
                    {"name": n, "subject": None, "version": "x"},
                )
            )
            for n in range(chance.choice((1, 2, 5)))
        ]
    written = bytearray(json.dumps(body).encode())
    status = 200 if chance.random() < 0.97 else chance.choice((201, 204, 302, 400, 404, 418, 422))
    if chance.random() < 0.03:
        for _ in range(chance.randrange(1, 4)):
            at = chance.randrange(len(written))
            written[at : at + chance.choice((0, 1, 9))] = chance.randbytes(chance.choice((0, 1, 3)))
    if chance.random() < 0.001:
        written = bytearray(chance.choice((b"[" * 200_000, b'{"schema":' * 50_000, b'{"schema": 1e999999}')))
    return status, bytes(written)


class Hostile(FakeRegistry):
    """Gives mutated answers by number, and now and then another one for what they refer to."""

    answers: dict[int, tuple[int, bytes]]

    def _known(self, path: str) -> Any:
        from aiohttp import web  # noqa: PLC0415

        number = path.rpartition("/")[2]
        status, body = self.answers.get(
            int(number) if path.startswith("schemas") else -1, (200, b'{"schema": "\\"int\\""}')
        )
        return web.Response(status=status, body=body)


async def attack(schemas: int, seed: int) -> Tally:
    """Fetch, compile and use so many mutated schemas; what breaks a promise is among the faults."""
    chance, tally = random.Random(seed), Tally()
    told: list[InternalEvent] = []
    registry = Hostile()
    registry.answers = {}
    compile_avro_transcoder()
    compile_protobuf_transcoder()
    begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    async with registry:
        cache = SchemaCache(RegistryClient(RegistrySpec(registry.url)), told.append)
        for first in range(1, schemas + 1, AT_ONCE):
            registry.answers.clear()
            registry.asked.clear()
            told.clear()
            requests: list[tuple[str, SchemaRequest]] = []
            for number in range(first, min(first + AT_ONCE, schemas + 1)):
                kind, text, compile_ = hostile(chance)
                registry.answers[number] = answer(chance, kind, text)
                requests.append((kind, SchemaRequest(number, _timed(compile_, tally, text))))
            while not await cache.fetch([request for _, request in requests]):
                if cache.problem is not None:
                    tally.faults.append(f"the registry counts as lost: {cache.problem}")
            for kind, request in requests:
                tally.schemas += 1
                reader = cache.reader(request)
                if not isinstance(reader, str):
                    tally.readable[kind] += 1
                    _use(chance, reader, tally, kind)
        await cache.close()
    tally.extra_bytes = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - begun) * 1024
    if tally.extra_bytes > MEMORY_BYTES:
        tally.faults.append(f"{tally.extra_bytes} bytes more are resident")
    return tally


def _timed(compile_: Compile, tally: Tally, text: str) -> Compile:
    """Compile as before, and note the processor time it takes; protoc's own does not count."""

    def timed(schema: Schema) -> Any:
        began = time.thread_time()
        try:
            return compile_(schema)
        finally:
            _note(time.thread_time() - began, tally, text)

    return timed


def _use(chance: random.Random, reader: Any, tally: Tally, kind: str) -> None:
    free, per_byte = MOST_TEXT.get(type(reader), (0, 1))
    values = [_record(chance) for _ in range(RECORDS)]
    _transcode(chance, reader, tally, kind, values)
    for value in values:
        tally.records += 1
        began = time.thread_time()
        try:
            text = reader.to_json(value, 0, None)
        except Undecodable:
            pass
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            tally.faults.append(f"{kind}: {error!r} on {value[:50].hex()}")
        else:
            tally.decoded += 1
            tally.most_text = max(tally.most_text, (len(text) - free) / max(1, len(value)))
            if len(text) > free + per_byte * len(value):
                tally.faults.append(f"{kind}: {len(value)} bytes become {len(text)}")
        _note(time.thread_time() - began, tally, kind)


def _transcode(chance: random.Random, reader: Any, tally: Tally, kind: str, values: list[bytes]) -> None:
    """Have compiled code read the same, as a whole or in parts: it says what the reader says, or nothing."""
    paths: list[tuple[str | None, ...]] = [()] if kind == "AVRO" and chance.random() < 0.5 else []
    if not paths:
        names = [f"f{n}" for n in range(4)] + ["a", "", None]
        paths = [
            tuple(chance.choices(names, k=chance.choice((1, 1, 2)))) for _ in range(chance.choice((1, 3)))
        ]
    began = time.thread_time()
    try:
        tally.transcoded += check(reader, paths, values)
    except AssertionError as error:
        tally.faults.append(f"{kind}: {error}"[:500])
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        tally.faults.append(f"{kind}: {error!r} of {paths}")
    _note(time.thread_time() - began, tally, f"{kind} {paths}")


def _record(chance: random.Random) -> bytes:
    """Bytes that many schemas describe: small numbers, and few."""
    few = (0, 0, 0, 0, 2, 2, 4, 1, 10, 18, 255, chance.randrange(256))
    return bytes(chance.choices(few, k=chance.choice((0, 1, 2, 4, 8, 30, 300))))


def _note(seconds: float, tally: Tally, what: str) -> None:
    tally.slowest_seconds = max(tally.slowest_seconds, seconds)
    if seconds > SLOW_SECONDS:
        tally.faults.append(f"{seconds:.1f} s: {what[:200]}")


def told(tally: Tally) -> str:
    """What was tried, in a line."""
    readable = ", ".join(f"{count:,} {kind}" for kind, count in sorted(tally.readable.items()))
    return (
        f"{tally.schemas:,} mutated schemas ({readable} with a reader), {tally.records:,} records,"
        f" {tally.decoded:,} decoded, {tally.transcoded:,} in compiled code: slowest"
        f" {tally.slowest_seconds:.2f} s,"
        f" {tally.extra_bytes / 1e6:.0f} MB more, {len(tally.faults)} faults"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--schemas", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    began = time.monotonic()
    tally = asyncio.run(attack(asked.schemas, asked.seed))
    print(told(tally), f"({time.monotonic() - began:.0f} s)")  # noqa: T201
    for fault in tally.faults[:20]:
        print(fault)  # noqa: T201
    sys.exit(bool(tally.faults))


if __name__ == "__main__":
    main()
