"""Samples with schemas as JSON text: formats told by the registry, and what cannot be read is said."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from streamwatch.assembly.inspection import sampling_settings
from streamwatch.assembly.schema_sample import PlainSamples, plain_samples
from streamwatch.lab.lines import LineRecord
from tests.edge.decoders.schemas.avro_bytes import EVENT, event, framed
from tests.edge.decoders.schemas.fake_registry import FakeRegistry


def record(value: bytes | None, headers: Sequence[tuple[str, bytes]] = ()) -> LineRecord:
    return LineRecord(1, value, "t", headers=headers)


async def read(records: Sequence[LineRecord], registry: FakeRegistry | None) -> PlainSamples:
    if registry is None:
        return await plain_samples({"t": records}, sampling_settings(None, "127.0.0.1:1", None, []))
    await registry.start()
    try:
        return await plain_samples({"t": records}, sampling_settings(None, "127.0.0.1:1", registry.url, []))
    finally:
        await registry.stop()


async def test_avro_in_front_of_values_and_in_headers_becomes_json() -> None:
    registry = FakeRegistry()
    registry.add(7, json.dumps(EVENT))
    named = [("__value_schema_id", framed(7, b""))]
    found = await read([record(framed(7, event("a"))), record(event("b"), named), record(None)], registry)
    assert (found.formats, found.problems) == ({"t": "avro"}, [])
    values = [None if each.value is None else json.loads(each.value)["id"] for each in found.records["t"]]
    assert values == ["a", "b", None]


async def test_json_schema_needs_no_registry() -> None:
    found = await read([record(framed(3, b'{"id": 1}'))], None)
    assert (found.formats, found.problems) == ({"t": "json_schema"}, [])
    assert [each.value for each in found.records["t"]] == [b'{"id": 1}']


async def test_plain_values_are_left_as_they_are_and_nobody_is_asked() -> None:
    registry = FakeRegistry()
    records = [record(b'{"id": 1}')]
    found = await read(records, registry)
    assert (found.records, found.formats, registry.asked) == ({"t": records}, {}, [])


@pytest.mark.parametrize(
    ("known", "problem"),
    [(None, "say where these are, --schema-registry URL"), (8, "schema 7: 127.0.0.1 does not know it")],
)
async def test_schemas_that_cannot_be_had_are_named(known: int | None, problem: str) -> None:
    registry = None if known is None else FakeRegistry()
    if registry is not None:
        registry.add(8, json.dumps(EVENT))
    found = await read([record(framed(7, event()))], registry)
    assert found.formats == {}
    assert len(found.problems) == 1
    assert problem in found.problems[0]


async def test_a_registry_that_is_away_is_named() -> None:
    settings = sampling_settings(None, "127.0.0.1:1", "http://127.0.0.1:1", [])
    found = await plain_samples({"t": [record(framed(7, event()))]}, settings)
    assert found.problems == ["topic t: schema registry at 127.0.0.1: the connection fails"]
