"""What `check` says of formats with schemas."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from streamwatch.admin.kafka_check import SAMPLE_RECORDS, CheckResult, check_schemas
from streamwatch.admin.kafka_check import first_records as sample
from streamwatch.assembly.checks import check_all
from streamwatch.core.ports import Poll
from streamwatch.core.records.events import Partition
from streamwatch.edge.decoders.formats import KINDS, DecoderSpec, FormatOptions
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.decoders.schemas.cache import SchemaCache, TopicSchemas
from streamwatch.edge.decoders.schemas.client import RegistryClient
from streamwatch.edge.decoders.schemas.schema import RegistrySpec
from streamwatch.settings import Settings
from tests.daemon.fake_daemon import FakeSource, L, P, label, poll, prediction, stands
from tests.edge.decoders.records import FakeRecord
from tests.edge.decoders.schemas.avro_bytes import EVENT, event, framed
from tests.edge.decoders.schemas.fake_registry import FakeRegistry
from tests.ports import free_ports


async def checked(registry: FakeRegistry, values: Sequence[bytes]) -> tuple[Sequence[CheckResult], list[Any]]:
    reported: list[Any] = []
    cache = SchemaCache(RegistryClient(RegistrySpec(registry.url)), reported.append)
    decoder: Any = KINDS["avro"].build(
        DecoderSpec("scored", "prediction", TopicMapping()), FormatOptions(cache)
    )
    schemas = TopicSchemas(cache, {"scored": decoder})
    try:
        records = [FakeRecord(value) for value in values]
        found = await check_schemas({"scored": "avro"}, {"scored": records}, {"scored": decoder}, schemas)
        return found, reported
    finally:
        await schemas.close()


async def test_a_sample_that_decodes_is_good_and_says_what_of_it_does_not() -> None:
    async with FakeRegistry() as registry:
        registry.add(1, json.dumps(EVENT))
        values = [framed(1, event()), framed(1, b""), framed(7, b"")]
        [found], _ = await checked(registry, values)
    assert found == CheckResult(
        "topic scored: avro, 1 of 3 records of a sample were decoded",
        good=True,
        details=(
            "1 × invalid_avro: is not what its Avro schema says",
            "1 × schema_unknown: names a schema that the registry does not have",
        ),
    )


async def test_a_sample_that_names_no_schema_says_what_to_write() -> None:
    async with FakeRegistry() as registry:
        [found], _ = await checked(registry, [event()])
    assert found == CheckResult(
        "topic scored: avro, 0 of 1 records of a sample were decoded",
        good=False,
        details=(
            "1 × schema_missing: names no schema, neither in its header nor before its contents",
            "where records name no schema, settings do: format: {type: avro, schema_file: event.avsc}",
        ),
    )


async def test_a_schema_that_does_not_compile_is_reported_with_its_number() -> None:
    async with FakeRegistry() as registry:
        registry.add(5, "strin")
        [found], [rejected] = await checked(registry, [framed(5, b"")])
    assert not found.good
    assert rejected.schema == "5"
    assert rejected.error.startswith("is no Avro schema")


async def test_a_registry_that_is_away_is_reported_and_an_empty_topic_is_fine() -> None:
    registry = FakeRegistry()
    assert (await checked(registry, [framed(1, b"")]))[0] == [
        CheckResult("schema registry at 127.0.0.1: the connection fails", good=False)
    ]
    assert (await checked(registry, []))[0] == [
        CheckResult("topic scored: avro, empty: nothing to decode", good=True)
    ]


async def test_a_sample_is_the_first_records_of_each_topic_and_ends_where_there_are_no_more() -> None:
    many = [prediction(i) for i in range(SAMPLE_RECORDS + 50)]
    source = FakeSource([poll(*many, label(0), caught_up=False), poll(label(1))])
    found = await sample(source, ["predictions", "labels"])
    assert [record.offset for record in found["predictions"]] == list(range(SAMPLE_RECORDS))
    assert [record.offset for record in found["labels"]] == [0, 1]
    assert source.stopped


@dataclass
class Hours:
    """A clock of which each look costs an hour."""

    seconds: float = 0.0
    looks: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        self.seconds += 3_600
        self.looks.append(self.seconds)
        return self.seconds


async def test_a_sample_does_not_wait_for_ever() -> None:
    never: Mapping[Partition, Any] = {p: stands(0, caught_up=False) for p in (P, L)}
    source = FakeSource([Poll({}, never)], idle=False)
    assert await sample(source, ["predictions", "labels"], Hours()) == {"predictions": [], "labels": []}
    assert source.stopped


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"topics": {"predictions": [{"name": "p", "format": "avro"}], "labels": ["l"]}},
            (
                "topics: format avro of p: schemas come from schema_registry.url, or from schema_file: "
                "neither is set"
            ),
        ),
        (
            {"schema_registry": {"url": "http://169.254.169.254/"}},
            "schema_registry.url: expected a host that is no link-local address (not shown)",
        ),
    ],
)
async def test_settings_that_contradict_each_other_are_reported_before_anybody_is_asked(
    given: dict[str, Any], message: str
) -> None:
    minimal = {
        "kafka": {"bootstrap_servers": f"127.0.0.1:{free_ports(1)[0]}"},
        "topics": {"predictions": ["p"], "labels": ["l"]},
    }
    assert await check_all(Settings(**{**minimal, **given})) == [CheckResult(message, good=False)]
