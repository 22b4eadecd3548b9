"""Definition of an envelope: its name, the function that opens it, and default paths of fields in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from streamwatch.core.ports import Record
from streamwatch.edge.decoders.mapping import ClassOfLargest, Paths


class UnwrappedRecord(NamedTuple):
    """Contents of a record's envelope."""

    tree: Any
    """Parsed content that paths such as `value.a` lead into."""
    deleted: bool = False
    """Whether the record reports that `tree` was deleted: a pending prediction is then withdrawn."""


class Content(NamedTuple):
    """Content at the path `at` of a value, which the paths of mappings find at `of`."""

    at: tuple[str, ...]
    of: tuple[str, ...] = ()


class EnvelopeKind(NamedTuple):
    """An envelope of record values."""

    name: str
    """Value of `envelope` in the settings."""
    open: Callable[[Any, Record], UnwrappedRecord | str | None]
    """(parsed value, its record) → the content; the reason why the record is invalid (a key of
    `mapping.REASONS`); or None for a record to be skipped."""
    defaults: Mapping[str, Paths | ClassOfLargest | None]
    """Default paths by field of the mapping, instead of those of `TopicMapping`."""
    contents: tuple[Content, ...] = ()
    """Where the content may be, so that a wide value with a schema is converted as far as it is read; without
    any, whole values are."""
    reads: tuple[tuple[str, ...], ...] = ()
    """Paths of what `open` itself reads, where there are `contents`."""
