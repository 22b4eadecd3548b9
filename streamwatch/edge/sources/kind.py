"""Definition of a kind of source: its section of the settings, and the function that builds it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from streamwatch.core.ports import Source
from streamwatch.telemetry import InternalEvent


class Build(Protocol):
    """Function that builds a source."""

    def __call__(
        self,
        spec: Any,
        topics: Sequence[str],
        emit: Callable[[InternalEvent], None],
        offset_metadata: Callable[[], str],
        topics_since_ms: Callable[[], Mapping[str, int]] = ...,
        /,
    ) -> Source:
        """Build a source of topics.

        `spec` is the kind's own. `emit` receives internal events. `offset_metadata` returns the text that is
        committed with offsets. `topics_since_ms` returns, for topics that were added to an existing state,
        the time (ms) from which each is read.
        """
        ...


class SourceKind(NamedTuple):
    """A kind of source."""

    name: str
    """Name of its section in the settings."""
    build: Build
    refusals: tuple[type[Exception], ...] = ()
    """Errors that end reading and that a restart does not cure; their messages say what to change."""
