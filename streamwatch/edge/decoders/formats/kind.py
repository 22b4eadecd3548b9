"""Definition of a format: its name, the settings that it has, and the function that builds a decoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from streamwatch.core.ports import Decoder
from streamwatch.core.records.events import Side
from streamwatch.core.records.vocabulary import Vocabulary
from streamwatch.edge.decoders.envelopes import EnvelopeKind
from streamwatch.edge.decoders.mapping import (
    FieldLocation,
    InArray,
    InValue,
    SidedMapping,
    TopicMapping,
    all_paths,
    parse_paths,
    parts_of,
)
from streamwatch.edge.decoders.schemas.schema import Readers, SchemaRef
from streamwatch.edge.decoders.texts import TextRule, steps_to
from streamwatch.edge.decoders.transcoding.wanted import EVERYTHING, Wanted, in_envelope, wanted_of
from streamwatch.edge.decoders.trees import ReadValue, TreeDecoder, needs_trees, sided
from streamwatch.edge.keys import IdKeys
from streamwatch.folds import Scheme


@dataclass(frozen=True, slots=True)
class DecoderSpec:
    """Description of a topic for its decoder, independent of the format."""

    topic: str
    side: Side
    mapping: TopicMapping
    keys: IdKeys | None = None
    """Function from valid ids to the keys that events carry; None: ids are kept."""
    vocabulary: Vocabulary | None = None
    """Numbers of names; shared by all topics whose batches are merged. None: a new one."""
    folds: Scheme | None = None
    """Scheme that decides which fold tests which id; without it, predictions with a fold are invalid."""
    mappings: tuple[SidedMapping, ...] = ()
    """Mappings of a topic that has several; `mapping` is then not used."""
    envelope: EnvelopeKind | None = None
    """Envelope of the values."""
    texts: tuple[TextRule, ...] = ()
    """Rules for texts inside values that are parsed."""

    @property
    def sided(self) -> Sequence[SidedMapping]:
        """Every mapping, with its side; one of both sides is there for each."""
        return self.mappings or sided(self.side, self.mapping)

    @property
    def as_trees(self) -> bool:
        """Tell whether whole values have to be parsed."""
        several = bool(self.mappings) or self.envelope is not None or bool(self.texts)
        return several or needs_trees(self.mapping)

    @property
    def wanted(self) -> Wanted:
        """Parts of a value that mappings and the envelope read; all with texts, and in some envelopes."""
        if self.texts or (self.envelope is not None and not self.envelope.contents):
            return EVERYTHING
        wanted = wanted_of(each.mapping for each in self.sided)
        return wanted if self.envelope is None else in_envelope(wanted, self.envelope)

    @property
    def any_value(self) -> bool:
        """Tell whether a mapping reads the value itself (`value`), which then may be a text or a number."""
        return InValue(()) in self._locations() or any(rule.path == "value" for rule in self.texts)

    @property
    def array_value(self) -> bool:
        """Tell whether a mapping, or an envelope, reads a value that is an array."""
        paths = [each.path or (None,) for each in self._locations() if isinstance(each, InArray)]
        paths += [steps_to(rule.path) for rule in self.texts if rule.path != "value"]
        return self.envelope is not None or any(not isinstance(path[0], str) for path in paths)

    def _locations(self) -> list[FieldLocation]:
        """List the locations of all paths of all mappings."""
        paths = [path for each in self.sided for path in all_paths(each.mapping)]
        return [part for path in paths for part in parts_of(parse_paths(path))]


def decoder_spec(  # noqa: PLR0913, PLR0917 - what a topic is described by
    topic: str,
    side: Side,
    mappings: Sequence[SidedMapping],
    envelope: EnvelopeKind | None = None,
    keys: IdKeys | None = None,
    vocabulary: Vocabulary | None = None,
    folds: Scheme | None = None,
    texts: tuple[TextRule, ...] = (),
) -> DecoderSpec:
    """Describe a topic by its mappings, merged to a single one where that has the same effect."""
    first = mappings[0].mapping
    is_one = len(mappings) == 1 or (
        len(mappings) == len({each.side for each in mappings})
        and first.kind is not None
        and all(each.mapping == first for each in mappings)
    )
    several = () if is_one else tuple(mappings)
    return DecoderSpec(topic, side, first, keys, vocabulary, folds, several, envelope, texts)


def tree_decoder(spec: DecoderSpec, read: ReadValue) -> TreeDecoder:
    """Make the decoder of a topic that parses whole values by `read`.

    Raises
    ------
    ValueError
        The mapping is invalid.
    """
    return TreeDecoder(spec.topic, spec.sided, read, spec.envelope, spec.keys, spec.folds, spec.texts)


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """Settings of a topic's format, with contents of files; each format uses those it knows."""

    readers: Readers | None = None
    """Readers of the registry's schemas; None without a registry."""
    fixed: SchemaRef | None = None
    """Name of the schema of every record; None where each record names its own."""
    schema_text: str | None = None
    """Text of the schema of every record; None without a file."""
    message: str = ""
    """Full name of the message in records that do not name it; empty: the first of the schema."""


class FormatMisused(ValueError):  # noqa: N818
    """Settings of a format that cannot be used, or a package that it needs and that is missing."""


class FormatKind(NamedTuple):
    """A format of record values."""

    name: str
    """Value of `format` in the settings."""
    settings: tuple[str, ...]
    """Keys of the section that this format has, besides its name."""
    build: Callable[[DecoderSpec, FormatOptions], Decoder]
    """Builds a topic's decoder; raises ValueError for the mapping, FormatMisused for the options."""
    warm_up: Callable[[], None] | None = None
    """Compiles the format's own functions, or loads them from the cache; None where it has none."""
