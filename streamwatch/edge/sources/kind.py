"""What a source exports: its section of the settings, and how it is built."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from streamwatch.core.ports import Source
from streamwatch.telemetry import InternalEvent

Spec = TypeVar("Spec")
Spec_contra = TypeVar("Spec_contra", contravariant=True)


class Build(Protocol, Generic[Spec_contra]):
    """Builds a source."""

    def __call__(
        self,
        spec: Spec_contra,
        topics: Sequence[str],
        emit: Callable[[InternalEvent], None],
        offset_metadata: Callable[[], str],
        topics_since_ms: Callable[[], Mapping[str, int]] = ...,
        /,
    ) -> Source:
        """From its specification, topics, where internal events go, and the metadata of committed offsets.

        `topics_since_ms` gives the time from which topics are read that a state got later than the others.
        """
        ...


class SourceKind(NamedTuple, Generic[Spec]):
    """A source of records."""

    name: str
    """Section of the settings that is about it."""
    build: Build[Spec]
    refusals: tuple[type[Exception], ...] = ()
    """Errors with which reading may end and that no restart will cure; each has what to change in its
    message."""
