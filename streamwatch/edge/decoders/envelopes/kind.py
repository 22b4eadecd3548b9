"""What an envelope exports: its name, how it is opened, and where fields lie in it unless settings say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from streamwatch.core.ports import Record
from streamwatch.edge.decoders.mapping import ClassOfLargest, Paths


@dataclass(frozen=True, slots=True)
class UnwrappedRecord:
    """A record out of its envelope."""

    tree: Any
    """What paths such as `value.a` are looked up in."""
    deleted: bool = False
    """The record says that what `tree` holds is no more: a pending prediction is withdrawn."""


class EnvelopeKind(NamedTuple):
    """An envelope of record values."""

    name: str
    """Value of `envelope` in the settings."""
    open: Callable[[Any, Record], UnwrappedRecord | str | None]
    """From what was read of a value, and its record: the content; the reason for which the record is invalid
    (one of `reasons.REASONS`); or None for a record that is none of those the envelope is about."""
    defaults: Mapping[str, Paths | ClassOfLargest | None]
    """Paths by field of the mapping, instead of its own defaults."""
