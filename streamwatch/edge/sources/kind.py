"""What a source exports: its section of the settings, and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, TypeVar

from streamwatch.core.ports import Source
from streamwatch.telemetry import InternalEvent

Spec = TypeVar("Spec")


class SourceKind(NamedTuple, Generic[Spec]):
    """A source of records."""

    name: str
    """Section of the settings that is about it."""
    build: Callable[[Spec, Sequence[str], Callable[[InternalEvent], None], Callable[[], str]], Source]
    """From its specification, the topics, the function that takes internal events, and the one that gives the
    metadata of committed offsets."""
