"""What each topic carries, and who decodes it."""

from __future__ import annotations

from streamwatch.assembly import specs, topic_properties
from streamwatch.assembly.mappings import envelopes_of, mappings_of
from streamwatch.core.ports import Decoder
from streamwatch.core.vocabulary import Vocabulary
from streamwatch.daemon.processing.topic import Topic
from streamwatch.edge.decoders.formats import KINDS, DecoderSpec, FormatMisused, FormatOptions, decoder_spec
from streamwatch.edge.decoders.formats.keys import KeyDecoder
from streamwatch.edge.decoders.formats.schema_decoder import SchemaDecoder
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.decoders.schemas.schema import Readers, SchemaRef, Version
from streamwatch.edge.keys import id_keys
from streamwatch.settings import Settings, SettingsError
from streamwatch.settings.formats import FormatSection


def build_topics(settings: Settings, readers: Readers | None = None) -> dict[str, Topic]:
    """Side and decoder of each topic.

    Parameters
    ----------
    settings
        Whatever the operator chose.
    readers
        Readers of the registry's schemas; None without a registry.

    Raises
    ------
    SettingsError
        A constant or an alias in a mapping is no valid name, a format cannot be used, or dead letters go to
        a topic that is read.
    """
    if (dead := settings.kafka.dead_letter_topic) in topic_properties.sides(settings.topics):
        raise SettingsError(f"kafka.dead_letter_topic: expected a topic that is not read, got {dead!r}")
    mappings, formats = mappings_of(settings.topics), topic_properties.formats(settings.topics)
    key_formats = topic_properties.key_formats(settings.topics)
    envelopes = envelopes_of(settings.topics)
    namespaces, digest = topic_properties.namespaces(settings.topics), specs.keys_are_digests(settings)
    folds = specs.folds_scheme(settings)
    topics: dict[str, Topic] = {}
    vocabulary = Vocabulary()
    for name, side in topic_properties.sides(settings.topics).items():
        try:
            keys = id_keys(namespaces[name], digest=digest)
            spec = decoder_spec(name, side, mappings[name], envelopes[name], keys, vocabulary, folds)
            decoder = build_decoder(spec, formats[name], readers)
            topics[name] = Topic(side, with_keys(decoder, name, key_formats[name], readers))
        except ValueError as error:
            raise SettingsError(f"topics: mapping of {name}: {error}") from None
    return topics


def with_keys(values: Decoder, topic: str, section: FormatSection, readers: Readers | None) -> Decoder:
    """Decoder of a topic whose keys have a format; the one of its values where keys are text.

    Raises
    ------
    SettingsError
        The format cannot be used.
    """
    if section.type == "json":
        return values
    try:
        keys = build_decoder(DecoderSpec(topic, "label", TopicMapping()), section, readers)
    except SettingsError as error:
        raise SettingsError(f"{error} (key_format)") from None
    assert isinstance(keys, SchemaDecoder)  # noqa: S101 - every format but JSON
    return KeyDecoder(keys, values)


def build_decoder(spec: DecoderSpec, section: FormatSection, readers: Readers | None = None) -> Decoder:
    """Decoder of one topic by its format.

    Raises
    ------
    SettingsError
        There is no such format, or it cannot be used.
    ValueError
        The mapping cannot be used.
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
    """The registry's schema of every record; None where each names its own, or a file has it."""
    if section.subject is not None:
        return Version(section.subject, section.version)
    return section.schema_id
