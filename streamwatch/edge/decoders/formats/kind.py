"""Kind of a format: its name, its own settings, and how a topic's decoder is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from streamwatch.core.events import Side
from streamwatch.core.ports import Decoder
from streamwatch.core.records import Vocabulary
from streamwatch.edge.decoders.envelopes import EnvelopeKind
from streamwatch.edge.decoders.mapping import (
    InValue,
    SidedMapping,
    TopicMapping,
    all_paths,
    parse_paths,
    parts_of,
)
from streamwatch.edge.decoders.schemas.schema import Readers, SchemaRef
from streamwatch.edge.decoders.texts import TextRule
from streamwatch.edge.decoders.transcoding.wanted import EVERYTHING, Wanted, wanted_of
from streamwatch.edge.decoders.trees import ReadValue, TreeDecoder, needs_trees, sided
from streamwatch.edge.keys import IdKeys
from streamwatch.folds import Scheme


@dataclass(frozen=True, slots=True)
class DecoderSpec:
    """Topic whose records are decoded, whatever their format."""

    topic: str
    side: Side
    mapping: TopicMapping
    keys: IdKeys | None = None
    """How valid ids are changed before they are compared and stored; None leaves them as they are."""
    vocabulary: Vocabulary | None = None
    """Numbers of the names in batches; one for all topics of a sequence."""
    folds: Scheme | None = None
    """Scheme that decides which fold tests which id; without it, predictions with a fold are invalid."""
    mappings: tuple[SidedMapping, ...] = ()
    """Mappings of a topic that has several; `mapping` is then not used."""
    envelope: EnvelopeKind | None = None
    """Envelope of the values."""
    texts: tuple[TextRule, ...] = ()
    """Texts in values that hold more."""

    @property
    def as_trees(self) -> bool:
        """Tell whether values have to be read as a whole."""
        several = bool(self.mappings) or self.envelope is not None or bool(self.texts)
        return several or needs_trees(self.mapping)

    @property
    def wanted(self) -> Wanted:
        """Parts of a value that mappings read; all of it in an envelope or in texts."""
        whole = self.envelope is not None or bool(self.texts)
        return EVERYTHING if whole else wanted_of(self.mapping, self.mappings)

    @property
    def any_value(self) -> bool:
        """Tell whether a value may be a text or a number, as a mapping reads the value itself."""
        mappings = [each.mapping for each in self.mappings] or [self.mapping]
        paths = [*(path for each in mappings for path in all_paths(each))]
        itself = any(InValue(()) in parts_of(parse_paths(path)) for path in paths)
        return itself or any(rule.path == "value" for rule in self.texts)


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
    """Describe a topic by its mappings, by a single one if it has the same effect."""
    first = mappings[0].mapping
    is_one = len(mappings) == 1 or (
        len(mappings) == len({each.side for each in mappings})
        and first.kind is not None
        and all(each.mapping == first for each in mappings)
    )
    several = () if is_one else tuple(mappings)
    return DecoderSpec(topic, side, first, keys, vocabulary, folds, several, envelope, texts)


def tree_decoder(spec: DecoderSpec, read: ReadValue) -> TreeDecoder:
    """Decode a topic's values as trees, of whatever format.

    Raises
    ------
    ValueError
        The mapping cannot be used.
    """
    mappings = spec.mappings or sided(spec.side, spec.mapping)
    return TreeDecoder(spec.topic, mappings, read, spec.envelope, spec.keys, spec.folds, spec.texts)


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """Settings of a topic's format, files read; each format takes those that are its own."""

    readers: Readers | None = None
    """Readers of the registry's schemas; None without a registry."""
    fixed: SchemaRef | None = None
    """The schema of every record; None where each names its own."""
    schema_text: str | None = None
    """The schema of every record itself."""
    message: str = ""
    """Full name of the message that records hold, where they do not name it; empty for the first."""


class FormatMisused(ValueError):  # noqa: N818
    """Settings of a format that cannot be used, or a package that it needs and that is missing."""


class FormatKind(NamedTuple):
    """A format of record values."""

    name: str
    """Value of `format` in the settings."""
    settings: tuple[str, ...]
    """Keys of the section that it takes beside its name."""
    build: Callable[[DecoderSpec, FormatOptions], Decoder]
    """Raises ValueError where the mapping cannot be used, FormatMisused where the format cannot."""
    warm_up: Callable[[], None] | None = None
    """Compiles what is the format's own, or loads what was compiled before; None where there is nothing."""
