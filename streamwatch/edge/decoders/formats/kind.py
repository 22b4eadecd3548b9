"""What a format exports: its name, the settings that are its own, and how a topic's decoder is built."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from streamwatch.core.events import Side
from streamwatch.core.ports import Decoder
from streamwatch.core.vocabulary import Vocabulary
from streamwatch.edge.decoders.mapping import TopicMapping
from streamwatch.edge.keys import IdKeys
from streamwatch.folds import Scheme


@dataclass(frozen=True, slots=True)
class DecoderSpec:
    """Topic whose records are decoded, whatever their format."""

    topic: str
    side: Side
    mapping: TopicMapping
    keys: IdKeys | None = None
    """What valid ids are known as, if not as they are."""
    vocabulary: Vocabulary | None = None
    """Numbers the names in batches; one for all topics of a sequence."""
    folds: Scheme | None = None
    """Which fold tests which id; without it, predictions with a fold are invalid."""


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """Settings of a topic's format; each format takes those that are its own."""


class FormatKind(NamedTuple):
    """A format of record values."""

    name: str
    """Value of `format` in the settings."""
    settings: tuple[str, ...]
    """Keys of the section that only this format has."""
    build: Callable[[DecoderSpec, FormatOptions], Decoder]
    """Raises ValueError where the mapping cannot be used."""
