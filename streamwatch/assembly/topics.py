"""What each topic carries, and who decodes it."""

from __future__ import annotations

from streamwatch.assembly import specs
from streamwatch.core.ports import Decoder
from streamwatch.core.vocabulary import Vocabulary
from streamwatch.daemon.batch_processor import Topic
from streamwatch.edge.decoders.formats import KINDS, DecoderSpec, FormatOptions
from streamwatch.edge.keys import id_keys
from streamwatch.settings import Settings, SettingsError


def build_topics(settings: Settings) -> dict[str, Topic]:
    """Side and decoder of each topic.

    Raises
    ------
    SettingsError
        A constant or an alias in a mapping is no valid name, or dead letters go to a topic that is read.
    """
    if (letters := settings.kafka.dead_letter_topic) in specs.sides(settings.topics):
        raise SettingsError(f"kafka.dead_letter_topic: expected a topic that is not read, got {letters!r}")
    mappings, formats = specs.mappings(settings.topics), specs.formats(settings.topics)
    namespaces, digest = specs.namespaces(settings.topics), specs.keys_are_digests(settings)
    folds = specs.folds_scheme(settings)
    topics: dict[str, Topic] = {}
    vocabulary = Vocabulary()
    for name, side in specs.sides(settings.topics).items():
        try:
            keys = id_keys(namespaces[name], digest=digest)
            spec = DecoderSpec(name, side, mappings[name], keys, vocabulary, folds)
            topics[name] = Topic(side, build_decoder(spec, formats[name]))
        except ValueError as error:
            raise SettingsError(f"topics: mapping of {name}: {error}") from None
    return topics


def build_decoder(spec: DecoderSpec, name: str) -> Decoder:
    """Decoder of one topic by the name of its format.

    Raises
    ------
    SettingsError
        There is no such format.
    ValueError
        The mapping cannot be used.
    """
    kind = KINDS.get(name)
    if kind is None:
        expected = ", ".join(KINDS)
        raise SettingsError(f"topics: format of {spec.topic}: expected one of {expected}, got {name!r}")
    return kind.build(spec, FormatOptions())
