"""Samples of topics whose values or keys have schemas, as JSON text: for `streamwatch inspect`."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from streamwatch.assembly.schemas import registry_client
from streamwatch.core.events import Partition
from streamwatch.core.ports import Record
from streamwatch.edge.decoders.formats import KINDS, DecoderSpec, FormatMisused, FormatOptions
from streamwatch.edge.decoders.formats.keys import key_as_value, with_key
from streamwatch.edge.decoders.formats.schema_decoder import SchemaDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.decoders.schemas.cache import SchemaCache
from streamwatch.edge.decoders.schemas.client import RegistryClient
from streamwatch.edge.decoders.schemas.schema import (
    SchemaRef,
    SchemaUnavailable,
    SchemaUnknown,
    SchemaUnusable,
)
from streamwatch.edge.decoders.schemas.topics import TopicSchemas
from streamwatch.edge.decoders.schemas.wire import in_header, named_in
from streamwatch.settings import Settings

FORMATS: Final[Mapping[str, str]] = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json_schema"}
"""Formats by what registries call them."""
USUAL: Final = 0.5
"""Share of a topic's records that must name a schema."""
REGISTRY_SECONDS: Final = 20.0
NO_REGISTRY: Final = "its records name schemas: say where these are, --schema-registry URL"


@dataclass(slots=True)
class PlainSamples:
    """Samples with keys and values of JSON text, formats where they were none, what could not be read.

    Of keys that could not be read it is a note: most mappings look at none, and such keys are left out.
    """

    records: dict[str, Sequence[Record]] = field(default_factory=dict[str, "Sequence[Record]"])
    formats: dict[str, str] = field(default_factory=dict[str, str])
    problems: list[str] = field(default_factory=list[str])
    key_formats: dict[str, str] = field(default_factory=dict[str, str])
    notes: list[str] = field(default_factory=list[str])


async def plain_samples(samples: Mapping[str, Sequence[Record]], settings: Settings) -> PlainSamples:
    """Read the values and keys of topics that name their schemas, with the registry of the settings.

    Raises
    ------
    SettingsError
        The registry's URL or a file of its section cannot be used.
    """
    plain = PlainSamples(dict(samples))
    keys = {topic: [key_as_value(record) for record in records] for topic, records in samples.items()}
    named, named_keys = _naming(samples), _naming(keys)
    if not named and not named_keys:
        return plain
    client = registry_client(settings)
    cache = None if client is None else SchemaCache(client, lambda _event: None)
    try:
        for topic, of_topic in named.items():
            try:
                name = await _format(samples[topic], of_topic, client)
                decoder = await _ready(topic, name, samples[topic], cache)
                plain.records[topic] = [decoder.as_json(record) for record in samples[topic]]
            except (SchemaUnknown, SchemaUnusable, SchemaUnavailable, FormatMisused) as error:
                plain.problems.append(f"topic {topic}: {error}")
            else:
                plain.formats[topic] = name
        for topic, of_topic in named_keys.items():
            try:
                name = await _format(keys[topic], of_topic, client)
                decoder = await _ready(topic, name, keys[topic], cache)
            except (SchemaUnknown, SchemaUnusable, SchemaUnavailable, FormatMisused) as error:
                plain.notes.append(f"keys of topic {topic} cannot be read: {error}")
            else:
                plain.records[topic] = [with_key(decoder, record) for record in plain.records[topic]]
                plain.key_formats[topic] = name
    finally:
        if cache is not None:
            await cache.close()
    return plain


def _naming(samples: Mapping[str, Sequence[Record]]) -> dict[str, Counter[SchemaRef]]:
    """Schemas that records name, by topic; those of whose records most name none are left out."""
    refs = {topic: _refs(records) for topic, records in samples.items()}
    return {topic: of_topic for topic, of_topic in refs.items() if of_topic}


def _refs(records: Sequence[Record]) -> Counter[SchemaRef]:
    """Schemas that records name, if most do."""
    filled = [record for record in records if record.value is not None]
    found = Counter(named[0] for record in filled if (named := _named(record)) is not None)
    return found if found.total() > USUAL * len(filled) else Counter()


def _named(record: Record) -> tuple[SchemaRef, int] | None:
    header = in_header(record.headers)
    return named_in((record.value or b"") if header is None else header)


async def _format(records: Sequence[Record], refs: Counter[SchemaRef], client: RegistryClient | None) -> str:
    """Name the format of a topic's values: JSON shows itself, of others the registry knows."""
    if _are_json(records):
        return "json_schema"
    if client is None:
        raise FormatMisused(NO_REGISTRY)
    ref = refs.most_common(1)[0][0]
    try:
        schema = await client.schema(ref)
    except SchemaUnknown:
        raise SchemaUnknown(f"schema {ref}: {client.host} does not know it") from None
    except SchemaUnavailable as error:
        raise SchemaUnavailable(f"schema registry at {client.host}: {error}") from None
    if schema.type not in FORMATS:
        raise SchemaUnusable(f"schema {ref} is of the type {schema.type}, expected {', '.join(FORMATS)}")
    return FORMATS[schema.type]


def _are_json(records: Sequence[Record]) -> bool:
    starts = Counter[bool]()
    for record in records:
        if record.value is not None and (named := _named(record)) is not None:
            at = named[1] if in_header(record.headers) is None else 0
            starts[record.value[at : at + 1] in {b"{", b"["} and record.value[-1:] in {b"}", b"]"}] += 1
    return starts[True] > USUAL * starts.total()


async def _ready(
    topic: str, name: str, records: Sequence[Record], cache: SchemaCache | None
) -> SchemaDecoder:
    """Give a decoder of a format, with the schemas at hand that these records name."""
    decoder = KINDS[name].build(DecoderSpec(topic, "prediction", TopicMapping()), FormatOptions(cache))
    assert isinstance(decoder, SchemaDecoder)  # noqa: S101 - every format but JSON
    if cache is not None:
        schemas = TopicSchemas(cache, {topic: decoder})
        deadline = time.monotonic() + REGISTRY_SECONDS
        needed = await schemas.needed({Partition(topic, 0): records})
        while await schemas.missing(needed):
            if schemas.problem is not None or time.monotonic() >= deadline:
                raise SchemaUnavailable(schemas.waiting or "schema registry: no answer in time")
    return decoder
