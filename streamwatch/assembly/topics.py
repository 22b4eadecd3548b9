"""Properties and decoders of topics, built from the `topics` section."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal

from streamwatch.assembly import specs
from streamwatch.core.ports import Decoder
from streamwatch.core.records.events import Side
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.daemon.merged_records import Topic
from streamwatch.edge.decoders.envelopes import KINDS as ENVELOPES
from streamwatch.edge.decoders.envelopes import EnvelopeKind
from streamwatch.edge.decoders.field_locations import fixed_text
from streamwatch.edge.decoders.formats import KINDS, DecoderSpec, FormatMisused, FormatOptions, decoder_spec
from streamwatch.edge.decoders.formats.schema_decoder import KeyDecoder, SchemaDecoder
from streamwatch.edge.decoders.mapping import (
    ClassOfLargest,
    ClassOfScore,
    KeyOf,
    KindRule,
    Paths,
    ScoreArray,
    SidedMapping,
    TopicMapping,
)
from streamwatch.edge.decoders.schemas.schema import Readers, SchemaRef, Version
from streamwatch.edge.decoders.texts import TextRule
from streamwatch.edge.keys import id_keys
from streamwatch.settings import Settings, SettingsError
from streamwatch.settings.topics import (
    FormatSection,
    LargestSection,
    MappingSection,
    PredictedScoreSection,
    ScoreArraySection,
    ScoreSection,
    TopicSection,
    TopicsSection,
    WrittenPaths,
    paths_written,
)


def sides(section: TopicsSection) -> dict[str, Side]:
    """Return the side of each topic by name, in the order of the settings."""
    labels = {topic.name for topic in section.labels}
    found: dict[str, Side] = {
        topic.name: "both" if topic.name in labels else "prediction" for topic in section.predictions
    }
    for topic in section.labels:
        found.setdefault(topic.name, "label")
    return found


def namespaces_by_topic(section: TopicsSection) -> dict[str, str]:
    """Return the namespace of the ids of each topic by name."""
    return {topic.name: topic.namespace for topic in (*section.predictions, *section.labels)}


def shared_models(section: TopicsSection) -> dict[str, list[str]]:
    """Return the namespaces of each model that mappings name as a constant in several namespaces."""
    found: dict[str, set[str]] = {}
    for topic in section.predictions:
        for mapping in topic.all_mappings:
            if (model := fixed_text(paths_written(mapping.model))) is not None:
                found.setdefault(model, set()).add(topic.namespace)
    return {model: sorted(spaces) for model, spaces in sorted(found.items()) if len(spaces) > 1}


def formats_by_topic(section: TopicsSection) -> dict[str, FormatSection]:
    """Return the format of the values of each topic by name."""
    return {topic.name: topic.format for topic in (*section.predictions, *section.labels)}


def key_formats_by_topic(section: TopicsSection) -> dict[str, FormatSection]:
    """Return the format of the keys of each topic by name."""
    return {topic.name: topic.key_format for topic in (*section.predictions, *section.labels)}


def schema_formats(section: TopicsSection) -> dict[str, str]:
    """Describe the formats of topics whose values or keys need schemas, by name of the topic."""
    keys = key_formats_by_topic(section)
    named = {
        name: values.type
        if keys[name].type in WITHOUT_SCHEMA
        else f"{values.type} with keys of {keys[name].type}"
        for name, values in formats_by_topic(section).items()
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


def envelopes_of(section: TopicsSection) -> dict[str, EnvelopeKind | None]:
    """Return the envelope of each topic by name; None without one.

    Raises
    ------
    SettingsError
        If there is no such envelope.
    """
    return {topic.name: _envelope(topic.envelope) for topic in (*section.predictions, *section.labels)}


def _envelope(name: str | None) -> EnvelopeKind | None:
    if name is not None and name not in ENVELOPES:
        raise SettingsError(f"topics: envelope: expected one of {', '.join(ENVELOPES)}, got {name!r}")
    return None if name is None else ENVELOPES[name]


def texts_of(section: TopicsSection) -> dict[str, tuple[TextRule, ...]]:
    """Return the rules for texts to be decoded inside the values of each topic by name (`decode`)."""
    return {
        topic.name: tuple(TextRule(path, written) for path, written in topic.decode.items())
        for topic in (*section.predictions, *section.labels)
    }


def topic_mapping(section: MappingSection, envelope: str | None = None) -> TopicMapping:
    """Build a mapping of a topic; unset fields have the defaults of the envelope."""
    kind, known = section.kind, _envelope(envelope)
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
    mappings, formats = mappings_of(settings.topics), formats_by_topic(settings.topics)
    key_formats = key_formats_by_topic(settings.topics)
    envelopes, texts = envelopes_of(settings.topics), texts_of(settings.topics)
    namespaces = namespaces_by_topic(settings.topics)
    folds = specs.folds_scheme(settings)
    topics: dict[str, Topic] = {}
    vocabulary = Vocabulary()
    for name, side in sides(settings.topics).items():
        try:
            digest = settings.outcomes.topic is None  # published outcomes contain ids
            keys = None if ids_as_text else id_keys(namespaces[name], digest=digest)
            spec = decoder_spec(
                name, side, mappings[name], envelopes[name], keys, vocabulary, folds, texts[name]
            )
            decoder = build_decoder(spec, formats[name], readers)
            topics[name] = Topic(side, with_keys(decoder, name, key_formats[name], readers))
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
