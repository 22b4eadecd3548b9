"""Samples with schemas as JSON text: formats given by the registry, and what cannot be read is reported."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from streamwatch.assembly.inspection import PlainSamples, inspect, plain_samples, sampling_settings
from streamwatch.history.recordings.lines import LineRecord
from streamwatch.settings.loading import parse
from tests.edge.decoders.schemas.avro_bytes import EVENT, event, framed, text
from tests.edge.decoders.schemas.fake_registry import FakeRegistry
from tests.inspection.story import story


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


def keyed(key: bytes | None, value: bytes, headers: Sequence[tuple[str, bytes]] = ()) -> LineRecord:
    return LineRecord(1, value, "t", headers=headers, key=key)


async def test_keys_with_schemas_become_what_they_say_beside_values_with_and_without() -> None:
    registry = FakeRegistry()
    registry.add(7, json.dumps(EVENT))
    registry.add(8, '"string"')
    registry.add(9, json.dumps({"type": "record", "name": "K", "fields": [{"name": "tx", "type": "string"}]}))
    plain = await read([keyed(framed(8, text("a")), b'{"label": "x"}'), keyed(None, b"{}")], registry)
    assert (plain.key_formats, plain.formats, plain.notes) == ({"t": "avro"}, {}, [])
    assert [each.key for each in plain.records["t"]] == [b"a", None]
    both = await read([keyed(framed(9, text("b")), framed(7, event("b")))], registry)
    assert (both.key_formats, both.formats) == ({"t": "avro"}, {"t": "avro"})
    [record] = both.records["t"]
    assert record.key is not None
    assert record.value is not None
    assert (json.loads(record.key), json.loads(record.value)["id"]) == ({"tx": "b"}, "b")


async def test_keys_whose_schema_nobody_knows_are_a_note_and_no_problem() -> None:
    registry = FakeRegistry()
    registry.add(7, json.dumps(EVENT))
    number = (42).to_bytes(8, "big")  # as Kafka's LongSerializer writes it: it begins like a schema's name
    found = await read([keyed(number, framed(7, event()))], registry)
    assert (found.formats, found.key_formats, found.problems) == ({"t": "avro"}, {}, [])
    assert found.notes == ["keys of topic t cannot be read: schema 0: 127.0.0.1 does not know it"]


async def test_settings_guessed_of_ids_in_such_keys_name_the_format_of_keys() -> None:
    registry = FakeRegistry()
    registry.add(8, '"string"')
    registry.add(9, json.dumps({"type": "record", "name": "K", "fields": [{"name": "tx", "type": "string"}]}))
    predictions, labels = list[LineRecord](), list[LineRecord]()
    for item in story(1):
        scored = json.dumps({"prediction": item.predicted, "model": "m"}).encode()
        truth = json.dumps({"label": item.true}).encode()
        predictions.append(LineRecord(1, scored, "p", key=framed(9, text(item.uuid)), timestamp=item.made_ms))
        labels.append(LineRecord(1, truth, "l", key=framed(8, text(item.uuid)), timestamp=item.labelled_ms))
    await registry.start()
    try:
        settings = sampling_settings(None, "127.0.0.1:1", registry.url, [])
        plain = await plain_samples({"p": predictions, "l": labels}, settings)
    finally:
        await registry.stop()
    found = inspect(plain.records, None, "", plain.formats, plain.key_formats)
    assert found.problems == []
    assert found.sample is not None
    assert found.sample.joined == len(predictions)
    assert found.text is not None
    topics = parse(found.text)["topics"]
    assert topics["predictions"][0]["key_format"] == "avro"
    assert topics["predictions"][0]["mapping"]["id"] == "key.tx"
    assert topics["labels"][0]["key_format"] == "avro"
    assert topics["labels"][0]["mapping"]["id"] == "key"
