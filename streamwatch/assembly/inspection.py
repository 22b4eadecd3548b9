"""`streamwatch inspect`: guesses settings from samples of topics, and tries them on the samples."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pydantic import ValidationError

from streamwatch.assembly.topics import recorded_topics, registry_client
from streamwatch.core.join.caveats import CAUSE
from streamwatch.core.ports import Record
from streamwatch.core.records.events import Partition
from streamwatch.edge.decoders.formats import KINDS, DecoderSpec, FormatMisused, FormatOptions
from streamwatch.edge.decoders.formats.schema_decoder import SchemaDecoder, key_as_value, with_key
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.decoders.schemas.cache import SchemaCache, TopicSchemas
from streamwatch.edge.decoders.schemas.client import RegistryClient
from streamwatch.edge.decoders.schemas.schema import (
    SchemaRef,
    SchemaUnavailable,
    SchemaUnknown,
    SchemaUnusable,
    in_header,
    named_in,
)
from streamwatch.history.recordings.lines import BadLine, CsvColumns, LineRecord
from streamwatch.history.recordings.recording import Recording
from streamwatch.history.samples import counted
from streamwatch.inspection import yaml_text
from streamwatch.inspection.guessed import Guess
from streamwatch.inspection.guessing import guess
from streamwatch.inspection.joined import JoinedSample, joined_sample
from streamwatch.settings import Settings, SettingsError, load
from streamwatch.settings.loading import parse
from streamwatch.settings.sections import KafkaSection

NOWHERE = {"bootstrap_servers": "localhost:9092"}


@dataclass(frozen=True, slots=True)
class Inspection:
    """A guessed mapping, and the result of trying it on the sample."""

    guess: Guess
    sample: JoinedSample | None
    """Join of the sample's predictions and labels; None if one of the sides was not found."""
    text: str | None
    """Settings in YAML; None if one of the sides was not found."""

    @property
    def problems(self) -> Sequence[str]:
        """Reasons why the guessed settings cannot be used unchanged."""
        found = list(self.guess.problems)
        if self.sample is not None and not self.sample.joined:
            found.append("no prediction of the sample met a label")
        return found


def inspect(
    samples: Mapping[str, Sequence[Record]],
    sections: Mapping[str, Any] | None = None,
    where: str = "",
    formats: Mapping[str, str] = MappingProxyType({}),
    key_formats: Mapping[str, str] = MappingProxyType({}),
) -> Inspection:
    """Guess a mapping for these samples and try it on them.

    Parameters
    ----------
    samples
        Records by topic, their values as JSON text.
    sections
        Sections `kafka` and `schema_registry` of the settings; None: `kafka` with a made-up address.
    where
        Source of the samples, for the first line of the settings.
    formats
        Format of the values by topic, except for JSON.
    key_formats
        Format of the keys by topic, except for text.

    Raises
    ------
    SettingsError
        If the guessed settings do not load, which is a bug.
    """
    head = dict(sections or {"kafka": NOWHERE})
    found = guess(samples)
    topics = (
        replace(t, format=formats.get(t.topic, t.format), key_format=key_formats.get(t.topic))
        for t in found.topics
    )
    guessed = replace(found, topics=tuple(topics))
    sides = {topic.side for topic in guessed.topics}
    if not ("both" in sides or {"prediction", "label"} <= sides):
        return Inspection(guessed, None, None)
    settings = _loaded(parse(yaml_text.text(guessed, head, JoinedSample(), ())))
    joined = joined_sample(recorded_topics(settings), samples)
    heading = [
        f"Guessed by `streamwatch inspect`{f' from {where}' if where else ''}: read it before you believe it."
    ]
    heading.append(
        f"Of {joined.predictions:,} predictions in the sample {joined.rate:.1%} met their label; of "
        f"{joined.labels:,} labels {joined.labels_met:,} met a prediction."
    )
    heading += [f"Note: {note}." for note in guessed.notes]
    heading += [f"Note: model {each.model} {each.summary}; {CAUSE}." for each in joined.repeats.many()]
    if not sections:
        heading.append("kafka.bootstrap_servers is made up: write your own.")
    text = yaml_text.text(guessed, head, joined, heading)
    _loaded(parse(text))
    return Inspection(guessed, joined, text)


def _loaded(document: Mapping[str, Any]) -> Settings:
    """Load guessed settings. They contain no secrets: made-up ones take their place.

    Raises
    ------
    SettingsError
        If they do not load, which is a bug.
    """
    document = deepcopy(dict(document))
    security = document.get("kafka", {}).get("security", {})
    for section in (security, document.get("schema_registry", {})):
        if "username" in section and "password_file" not in section:
            section["password"] = "given elsewhere"  # noqa: S105
    if "oauth" in security and "client_secret_file" not in security["oauth"]:
        security["oauth"]["client_secret"] = "given elsewhere"  # noqa: S105
    try:
        return Settings(**document)
    except ValidationError as error:
        raise SettingsError(f"the guessed settings do not load: {error.errors()[0]['msg']}") from error


def sampling_settings(
    config: Path | None, servers: str | None, registry: str | None, overrides: Sequence[str]
) -> Settings:
    """Load the settings with which topics are sampled.

    Parameters
    ----------
    config
        Settings file; None without one.
    servers, registry
        Bootstrap servers and URL of the registry, instead of those of the file; None: those of the file.
    overrides
        Further settings as `section.key=value`.

    Raises
    ------
    SettingsError
        If a setting is faulty; names every such key.
    """
    more = [f"kafka.bootstrap_servers={servers}"] if servers else []
    more += [f"schema_registry.url={registry}"] if registry else []
    nowhere = {"topics": {"predictions": "unused-predictions", "labels": "unused-labels"}}
    return load(config, [*overrides, *more], otherwise=nowhere)


_SECRETS: Final[dict[str, Any]] = {"security": {"password": True, "oauth": {"client_secret": True}}}


def kafka_written(section: KafkaSection) -> dict[str, Any]:
    """Return section `kafka` as written in a settings file: keys that differ from defaults, no secrets."""
    dumped = section.model_dump(mode="json", exclude_defaults=True, exclude=_SECRETS)
    return dumped | {"bootstrap_servers": ",".join(section.bootstrap_servers)}


def sections_written(settings: Settings, *, registry: bool) -> dict[str, Any]:
    """Return the sections `kafka` and, with `registry`, `schema_registry`, as written in a settings file."""
    sections: dict[str, Any] = {"kafka": kafka_written(settings.kafka)}
    if registry and settings.schema_registry.url is not None:
        sections["schema_registry"] = settings.schema_registry.model_dump(
            mode="json", exclude_defaults=True, exclude={"password"}
        )
    return sections


def read_files(files: Sequence[str], most: int) -> tuple[dict[str, list[LineRecord]], list[str]]:
    """Read the last `most` records of each topic from files, with a note for each file with unusable lines.

    The topic is that of kcat's lines; for other files it is the file's name without suffix, or `stdin`.

    Raises
    ------
    RecordingError
        If a file cannot be read.
    """
    found: dict[str, deque[LineRecord]] = {}
    notes: list[str] = []
    anything = CsvColumns(ids=(), classes=())
    for file in files:
        named = "stdin" if file == "-" else Path(file.removesuffix(".gz")).stem
        unusable: list[BadLine] = []
        with Recording(file, columns=anything) as recording:
            for line in recording.records():
                if isinstance(line, BadLine):
                    unusable.append(line)
                    continue
                line.topic = line.topic or named
                found.setdefault(line.topic, deque(maxlen=most)).append(line)
        if unusable:
            first = f"the first is line {unusable[0].number}: {unusable[0].reason}"
            notes.append(f"{file}: {counted(len(unusable), 'line')} could not be read; {first}")
    return {topic: list(records) for topic, records in found.items()}, notes


FORMATS: Final[Mapping[str, str]] = {"AVRO": "avro", "PROTOBUF": "protobuf", "JSON": "json_schema"}
"""Formats by their names in schema registries."""
USUAL: Final = 0.5
"""Share of a topic's records above which they count as naming schemas, or as JSON."""
REGISTRY_SECONDS: Final = 20.0
"""Longest wait for the schemas of a topic."""
NO_REGISTRY: Final = "its records name schemas: say where these are, --schema-registry URL"


@dataclass(slots=True)
class PlainSamples:
    """Samples whose values and keys are converted to JSON text."""

    records: dict[str, Sequence[Record]] = field(default_factory=dict[str, "Sequence[Record]"])
    """Converted records by topic."""
    formats: dict[str, str] = field(default_factory=dict[str, str])
    """Format of the original values by topic, except for JSON."""
    problems: list[str] = field(default_factory=list[str])
    """Reasons why values of topics could not be converted."""
    key_formats: dict[str, str] = field(default_factory=dict[str, str])
    """Format of the original keys by topic, except for text."""
    notes: list[str] = field(default_factory=list[str])
    """Reasons why keys of topics could not be converted; most mappings do not read keys."""


async def plain_samples(samples: Mapping[str, Sequence[Record]], settings: Settings) -> PlainSamples:
    """Convert the values and keys that name their schemas to JSON text, with the registry of the settings.

    Raises
    ------
    SettingsError
        If the registry's URL or a file of its section cannot be used.
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
    """Count the schemas that records name, by topic, where more than half of the records name one."""
    refs = {topic: _refs(records) for topic, records in samples.items()}
    return {topic: of_topic for topic, of_topic in refs.items() if of_topic}


def _refs(records: Sequence[Record]) -> Counter[SchemaRef]:
    """Count the schemas that records name; empty if at most half of them name one."""
    filled = [record for record in records if record.value is not None]
    found = Counter(named[0] for record in filled if (named := _named(record)) is not None)
    return found if found.total() > USUAL * len(filled) else Counter()


def _named(record: Record) -> tuple[SchemaRef, int] | None:
    header = in_header(record.headers)
    return named_in((record.value or b"") if header is None else header)


async def _format(records: Sequence[Record], refs: Counter[SchemaRef], client: RegistryClient | None) -> str:
    """Name the format of values that name schemas: `json_schema` for JSON, else as the registry says."""
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
    """Build a decoder of a format, and load the schemas that these records name."""
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
