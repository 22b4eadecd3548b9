"""Schemas of a whole poll: of the topics that have some, and all of them before it is decoded."""

from __future__ import annotations

import json

from streamwatch.core.records.events import Partition, Prediction
from streamwatch.edge.decoders.formats import KINDS, DecoderSpec, FormatOptions
from streamwatch.edge.decoders.formats.schema_decoder import SchemaDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.decoders.schemas.cache import RECORDS_PER_TURN, SchemaCache, TopicSchemas
from streamwatch.edge.decoders.schemas.client import RegistryClient
from streamwatch.edge.decoders.schemas.schema import RegistrySpec
from tests.edge.decoders.fetched import fetched
from tests.edge.decoders.records import FakeRecord
from tests.edge.decoders.schemas.avro_bytes import EVENT, event, framed
from tests.edge.decoders.schemas.fake_registry import FakeRegistry


async def test_all_schemas_of_a_poll_are_had_before_it_counts_as_ready() -> None:
    async with FakeRegistry() as registry:
        for number in (1, 2):
            registry.add(number, json.dumps(EVENT))
        cache = SchemaCache(RegistryClient(RegistrySpec(registry.url)), lambda _: None)
        decoder = KINDS["avro"].build(
            DecoderSpec("predictions", "prediction", TopicMapping()), FormatOptions(cache)
        )
        assert isinstance(decoder, SchemaDecoder)
        schemas = TopicSchemas(cache, {"predictions": decoder})
        many = [FakeRecord(framed(1, event()))] * RECORDS_PER_TURN + [FakeRecord(framed(2, event()))]
        records = {Partition("predictions", 0): fetched(many), Partition("labels", 0): fetched(many)}
        assert not await schemas.missing(await schemas.needed({}))
        needed = await schemas.needed(records)
        assert needed.keys() == {Partition("predictions", 0)}
        while await schemas.missing(needed):
            pass
        assert sorted(registry.asked) == ["schemas/ids/1", "schemas/ids/2"]
        decoded = decoder.decode_batch(records[Partition("predictions", 0)]).events()
        assert [type(each) for each in decoded] == [Prediction] * len(many)
        assert {family.name: family.samples[0][1] for family in schemas.families()} == {
            "schema_registry_up": 1.0,
            "schemas_cached": 2.0,
        }
        await schemas.close()
