"""Decoders of topics and of recorded lines, by the `topics` section, and the schemas that they need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Literal

from yarl import URL

from streamwatch.assembly import specs
from streamwatch.core.ports import Decoder
from streamwatch.core.records.events import Side
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.daemon.merged_records import Topic
from streamwatch.edge.decoders.envelopes import KINDS as ENVELOPES
from streamwatch.edge.decoders.envelopes import EnvelopeKind
from streamwatch.edge.decoders.fields import fixed_text
from streamwatch.edge.decoders.formats import KINDS, DecoderSpec, FormatMisused, FormatOptions, decoder_spec
from streamwatch.edge.decoders.formats.schema_decoder import KeyDecoder, SchemaDecoder
from streamwatch.edge.decoders.mapping import (
    ClassOfLargest,
    ClassOfScore,
    InValue,
    KeyOf,
    KindRule,
    Paths,
    ScoreArray,
    SidedMapping,
    TimestampUnit,
    TopicMapping,
    notation,
    parse_paths,
    parts_of,
    paths_of,
)
from streamwatch.edge.decoders.schemas.cache import SchemaCache, TopicSchemas, WantsSchemas
from streamwatch.edge.decoders.schemas.schema import Readers, RegistrySpec, SchemaRef, Version
from streamwatch.edge.decoders.texts import TextRule
from streamwatch.edge.keys import id_keys
from streamwatch.history.recordings.lines import CsvColumns, RecordedTopic
from streamwatch.settings import Settings, SettingsError
from streamwatch.settings.field_forms import (
    LargestSection,
    PredictedScoreSection,
    ScoreArraySection,
    ScoreSection,
    WrittenPaths,
    paths_written,
)
from streamwatch.settings.topics import FormatSection, MappingSection, TopicSection, TopicsSection
from streamwatch.telemetry import InternalEvent

if TYPE_CHECKING:
    from streamwatch.edge.decoders.schemas.client import RegistryClient


def sides(section: TopicsSection) -> dict[str, Side]:
    """Return the side of each topic by name, in the order of the settings."""
    labels = {topic.name for topic in section.labels}
    found: dict[str, Side] = {
        topic.name: "both" if topic.name in labels else "prediction" for topic in section.predictions
    }
    for topic in section.labels:
        found.setdefault(topic.name, "label")
    return found


def topics_by_name(section: TopicsSection) -> dict[str, TopicSection]:
    """Return the section of each topic by name; of a topic on both sides, that of labels.

    Namespace, formats, envelope and `decode` are the same on both.
    """
    return {topic.name: topic for topic in (*section.predictions, *section.labels)}


def shared_models(section: TopicsSection) -> dict[str, list[str]]:
    """Return the namespaces of each model that mappings name as a constant in several namespaces."""
    found: dict[str, set[str]] = {}
    for topic in section.predictions:
        for mapping in topic.all_mappings:
            if (model := fixed_text(paths_written(mapping.model))) is not None:
                found.setdefault(model, set()).add(topic.namespace)
    return {model: sorted(spaces) for model, spaces in sorted(found.items()) if len(spaces) > 1}


def schema_formats(section: TopicsSection) -> dict[str, str]:
    """Describe the formats of topics whose values or keys need schemas, by name of the topic."""
    named = {
        name: topic.format.type
        if topic.key_format.type in WITHOUT_SCHEMA
        else f"{topic.format.type} with keys of {topic.key_format.type}"
        for name, topic in topics_by_name(section).items()
    }
    return {name: given for name, given in named.items() if given not in WITHOUT_SCHEMA}


WITHOUT_SCHEMA: Final = frozenset({"json", "text"})
"""Formats that need no schema."""


def mappings_of(section: TopicsSection) -> dict[str, tuple[SidedMapping, ...]]:
    """Return the mappings of each topic by name, those of predictions before those of labels."""
    found: dict[str, tuple[SidedMapping, ...]] = {}
    both: tuple[tuple[Literal["prediction", "label"], Sequence[TopicSection]], ...] = (
        ("prediction", section.predictions),
        ("label", section.labels),
    )
    for side, topics in both:
        for topic in topics:
            own = (topic_mapping(each, topic.envelope) for each in topic.all_mappings)
            found[topic.name] = (
                *found.get(topic.name, ()),
                *(SidedMapping(side, mapping) for mapping in own),
            )
    return found


def envelope_of(name: str | None) -> EnvelopeKind | None:
    """Return an envelope by its name; None without one.

    Raises
    ------
    SettingsError
        If there is no such envelope.
    """
    if name is not None and name not in ENVELOPES:
        raise SettingsError(f"topics: envelope: expected one of {', '.join(ENVELOPES)}, got {name!r}")
    return None if name is None else ENVELOPES[name]


def texts_of(topic: TopicSection) -> tuple[TextRule, ...]:
    """Return the rules for texts to be decoded inside the values of a topic (`decode`)."""
    return tuple(TextRule(path, written) for path, written in topic.decode.items())


def topic_mapping(section: MappingSection, envelope: str | None = None) -> TopicMapping:
    """Build a mapping of a topic; unset fields have the defaults of the envelope."""
    kind, known = section.kind, envelope_of(envelope)
    defaults = {} if known is None else dict(known.defaults)
    mapping = TopicMapping(
        id=paths_written(section.id),
        model=paths_written(section.model),
        prediction=_predicted(section.prediction),
        label=_scored(section.label)
        if isinstance(section.label, ScoreSection)
        else paths_written(section.label),
        timestamp=section.timestamp,
        timestamp_unit=section.timestamp_unit,
        scores=_scores(section.scores),
        fold=section.fold,
        label_probability=section.label_probability,
        label_requested=section.label_requested,
        min_label_probability=section.min_label_probability or 1.0,
        segments=dict(section.segments),
        classes=dict(section.classes),
        kind=KindRule(kind.field, kind.prediction, kind.label) if kind else None,
        when=dict(section.when),
        optional=section.optional,
    )
    given = section.model_fields_set
    keys = next((each for each in (mapping.model, mapping.id) if isinstance(each, KeyOf)), None)
    if keys is not None:
        defaults |= {"prediction": keys.contents, "label": keys.contents, "scores": None}
    not_given: dict[str, Any] = {field: path for field, path in defaults.items() if field not in given}
    return replace(mapping, **not_given)


def _scored(section: ScoreSection) -> ClassOfScore:
    return ClassOfScore(section.score, section.threshold, section.above, section.below)


def _predicted(
    written: WrittenPaths | PredictedScoreSection | LargestSection,
) -> Paths | ClassOfScore | ClassOfLargest:
    if isinstance(written, LargestSection):
        return ClassOfLargest(written.largest, written.classes)
    if isinstance(written, PredictedScoreSection):
        return replace(_scored(written), probability=written.probability)
    return paths_written(written)


def _scores(written: str | ScoreArraySection | None) -> str | ScoreArray | None:
    return ScoreArray(written.array, written.classes) if isinstance(written, ScoreArraySection) else written


def build_topics(
    settings: Settings, readers: Readers | None = None, *, ids_as_text: bool = False
) -> dict[str, Topic]:
    """Build side and decoder of each topic by name.

    Parameters
    ----------
    settings
        Settings of the daemon.
    readers
        Readers of the registry's schemas; None without a registry.
    ids_as_text
        Whether events have the ids of records, to be shown, instead of keys of them within their namespace.

    Raises
    ------
    SettingsError
        If a constant or an alias in a mapping is not a valid name, a format cannot be used, or the
        dead-letter topic is one that is read.
    """
    if (dead := settings.kafka.dead_letter_topic) in sides(settings.topics):
        raise SettingsError(f"kafka.dead_letter_topic: expected a topic that is not read, got {dead!r}")
    mappings, sections = mappings_of(settings.topics), topics_by_name(settings.topics)
    folds = specs.folds_scheme(settings)
    topics: dict[str, Topic] = {}
    vocabulary = Vocabulary()
    for name, side in sides(settings.topics).items():
        try:
            digest = settings.outcomes.topic is None  # published outcomes contain ids
            section = sections[name]
            keys = None if ids_as_text else id_keys(section.namespace, digest=digest)
            envelope, texts = envelope_of(section.envelope), texts_of(section)
            spec = decoder_spec(name, side, mappings[name], envelope, keys, vocabulary, folds, texts)
            decoder = build_decoder(spec, section.format, readers)
            topics[name] = Topic(side, with_keys(decoder, name, section.key_format, readers))
        except ValueError as error:
            raise SettingsError(f"topics: mapping of {name}: {error}") from None
    return topics


def with_keys(values: Decoder, topic: str, section: FormatSection, readers: Readers | None) -> Decoder:
    """Wrap the decoder of a topic's values in one of its keys, if the format of the keys needs schemas.

    Raises
    ------
    SettingsError
        If the format cannot be used.
    """
    if section.type in WITHOUT_SCHEMA:
        return values
    try:
        keys = build_decoder(DecoderSpec(topic, "label", TopicMapping()), section, readers)
    except SettingsError as error:
        raise SettingsError(f"{error} (key_format)") from None
    assert isinstance(keys, SchemaDecoder)  # noqa: S101 - every format with schemas
    return KeyDecoder(keys, values)


def build_decoder(spec: DecoderSpec, section: FormatSection, readers: Readers | None = None) -> Decoder:
    """Build the decoder of a topic by its format.

    Raises
    ------
    SettingsError
        If there is no such format, or it cannot be used.
    ValueError
        If the mapping cannot be used.
    """
    kind = KINDS.get(section.type)
    if kind is None:
        expected = ", ".join(KINDS)
        raise SettingsError(
            f"topics: format of {spec.topic}: expected one of {expected}, got {section.type!r}"
        )
    try:
        options = FormatOptions(readers, _fixed(section), section.read_schema(), section.message or "")
        return kind.build(spec, options)
    except (FormatMisused, UnicodeDecodeError) as error:
        raise SettingsError(f"topics: format {section.type} of {spec.topic}: {error}") from None


def _fixed(section: FormatSection) -> SchemaRef | None:
    """Return the registry's schema of every record; None if records name theirs, or it is in a file."""
    if section.subject is not None:
        return Version(section.subject, section.version)
    return section.schema_id


FIELDS = ("id", "model", "prediction", "label", "timestamp", "scores")
"""Fields that `--columns` may name."""


def recorded_topics(
    settings: Settings,
    *,
    model: str | None = None,
    columns: Mapping[str, str] | None = None,
    unit: TimestampUnit | None = None,
) -> dict[str, RecordedTopic]:
    """Build side, mapping and decoder of each topic.

    Parameters
    ----------
    settings
        Settings with the mappings.
    model
        Name of the model of all predictions, instead of the mapped one; labels then apply to every model.
    columns
        Name of the column that has a field, by the field's name; instead of the mapped path.
    unit
        Unit of timestamps, instead of the mapped one.

    Raises
    ------
    SettingsError
        If `columns` has a field that is not in `FIELDS`, or no decoder can be built from a mapping.
    """
    paths: dict[str, Any] = {name: f"value.{column}" for name, column in (columns or {}).items()}
    if unknown := paths.keys() - set(FIELDS):
        raise SettingsError(
            f"--columns: expected fields of {', '.join(FIELDS)}, got {', '.join(sorted(unknown))}"
        )
    mappings, sections = mappings_of(settings.topics), topics_by_name(settings.topics)
    folds = specs.folds_scheme(settings)
    topics: dict[str, RecordedTopic] = {}
    for name, side in sides(settings.topics).items():
        changes: dict[str, Any] = dict(paths)
        if model is not None:
            changes["model"] = None if side == "label" else f"={model}"
        if unit is not None:
            changes["timestamp_unit"] = unit
        if "*" in paths.get("prediction", "") and "model" not in changes:  # a column for each model
            changes["model"] = KeyOf(paths["prediction"]) if side != "label" else None
        own = [SidedMapping(each.side, replace(each.mapping, **changes)) for each in mappings[name]]
        try:
            section = sections[name]
            keys = id_keys(section.namespace, digest=False)
            envelope, texts = envelope_of(section.envelope), texts_of(section)
            # Recorded lines are JSON, whatever the topic's format, except for text.
            spec = decoder_spec(name, side, own, envelope, keys, folds=folds, texts=texts)
            kind = "text" if section.format.type == "text" else "json"
            decoder = KINDS[kind].build(spec, FormatOptions())
        except ValueError as error:
            raise SettingsError(f"topics: mapping of {name}: {error}") from None
        topics[name] = RecordedTopic(spec, decoder)
    return topics


def csv_columns(topics: Mapping[str, RecordedTopic]) -> CsvColumns:
    """Collect the names of the columns that the mappings read, by purpose."""
    mappings = [each for topic in topics.values() for each in topic.mappings]
    return CsvColumns(
        ids=_names(*(each.mapping.id for each in mappings)),
        classes=_names(*(paths_of(each.mapping, each.side) for each in mappings)),
        others=_names(*(each.mapping.model for each in mappings)),
        scores=_names(*(paths_of(each.mapping, "scores") for each in mappings)),
        times=_names(*(each.mapping.timestamp for each in mappings)),
    )


def paths_text(topics: Mapping[str, RecordedTopic]) -> str:
    """List the locations of each topic's fields, a topic per line, for an error."""
    return "\n".join(
        f"looked for in {name}: " + ", ".join(_looked_for(each))
        for name, topic in topics.items()
        for each in topic.mappings
    )


def _looked_for(sided: SidedMapping) -> list[str]:
    slots = ("id", "model", sided.side) if sided.side == "prediction" else ("id", sided.side)
    return [f"{slot} at {notation(paths_of(sided.mapping, slot))}" for slot in slots]


def _names(*fields: Paths | None) -> tuple[str, ...]:
    """Column names of paths in the value; none if one of the paths is elsewhere."""
    singles = [part for paths in fields if paths is not None for part in parts_of(parse_paths(paths))]
    return tuple(
        dict.fromkeys(".".join(each.path) for each in singles if isinstance(each, InValue) and each.path)
    )


def build_schema_cache(settings: Settings, emit: Callable[[InternalEvent], None]) -> SchemaCache | None:
    """Build the cache of the registry's schemas; None if no registry is set.

    Raises
    ------
    SettingsError
        If the URL or a file cannot be used.
    """
    client = registry_client(settings)
    return None if client is None else SchemaCache(client, emit)


def registry_client(settings: Settings) -> RegistryClient | None:
    """Build the client of the registry, reading secrets from their files; None if no registry is set.

    Raises
    ------
    SettingsError
        If the URL or a file cannot be used.
    """
    section = settings.schema_registry
    if section.url is None:
        return None
    from streamwatch.edge.decoders.schemas.client import RegistryClient  # noqa: PLC0415 - loads the HTTP client
    from streamwatch.edge.outgoing import refused  # noqa: PLC0415 - likewise

    host = URL(section.url).host
    if host is None or refused(host):
        raise SettingsError("schema_registry.url: expected a host that is no link-local address (not shown)")
    spec = RegistrySpec(
        url=section.url,
        username=section.username,
        password=section.read_password(),
        token=section.read_token(),
        ca_file=specs.checked_authorities(section.ca_file, "schema_registry.ca_file"),
        timeout_seconds=section.timeout / 1_000,
    )
    return RegistryClient(spec)


def topic_schemas(cache: SchemaCache | None, topics: Mapping[str, Topic]) -> TopicSchemas | None:
    """Connect the decoders whose formats need schemas to the cache; None if no registry is set."""
    if cache is None:
        return None
    decoders = {name: topic.decoder for name, topic in topics.items()}
    return TopicSchemas(cache, {n: each for n, each in decoders.items() if isinstance(each, WantsSchemas)})
