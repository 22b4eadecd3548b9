"""Definition of a kind of source: its section of the settings, and the function that builds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

from streamwatch.core.ports import Source
from streamwatch.telemetry import InternalEvent

Spec = TypeVar("Spec")
Spec_contra = TypeVar("Spec_contra", contravariant=True)


class Build(Protocol, Generic[Spec_contra]):
    """Function that builds a source."""

    def __call__(
        self,
        spec: Spec_contra,
        topics: Sequence[str],
        emit: Callable[[InternalEvent], None],
        offset_metadata: Callable[[], str],
        topics_since_ms: Callable[[], Mapping[str, int]] = ...,
        /,
    ) -> Source:
        """Build a source of topics.

        `emit` receives internal events. `offset_metadata` returns the text committed with offsets.
        `topics_since_ms` returns, for topics that were added to an existing state, the time (ms) from which
        each is read.
        """
        ...


class SourceKind(NamedTuple, Generic[Spec]):
    """A kind of source."""

    name: str
    """Name of its section in the settings."""
    build: Build[Spec]
    refusals: tuple[type[Exception], ...] = ()
    """Errors that end reading and that a restart does not cure; their messages say what to change."""
