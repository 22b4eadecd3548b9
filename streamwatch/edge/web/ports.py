"""What the server asks of the parts it is given."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from streamwatch.core.metrics.series import Family, Report
from streamwatch.edge.web.json_text import JSON


class Health(Protocol):
    """Health of the daemon, as the server asks for it on the event loop at every request."""

    def unready(self) -> Sequence[str]:
        """Reasons why the daemon is not ready, in words; empty when state is open and all are assigned."""
        ...

    @property
    def role(self) -> str | None:
        """Part of this process as one of several replicas; None where it is alone."""
        ...

    def families(self) -> Sequence[Family]:
        """Facts that are true right now and wait for no commit (build_info, kafka_up, caught_up …)."""
        ...


@dataclass(frozen=True, slots=True)
class Query:
    """A query parameter, which may be left out."""

    name: str
    pattern: str
    """Pattern that its whole value must match; any other is answered with 400."""
    schema: Mapping[str, Any]
    """Schema of its value, as OpenAPI has it."""
    about: str
    """Description, without a full stop."""


NAME: Mapping[str, Any] = {"type": "string", "minLength": 1, "maxLength": 128}
"""Schema of a name in a query."""


@dataclass(frozen=True, slots=True)
class Route:
    """A path and what is answered to GET: the server serves it, and the OpenAPI document describes it."""

    path: str
    """Path, with aiohttp's `{variables}`."""
    about: str
    """What is answered, in one line without a full stop."""
    sends: str = ""
    """Name of the type of the document (`documents.SENT`); empty for any other answer."""
    tag: str = "overview"
    query: tuple[Query, ...] = ()
    media_types: tuple[str, ...] = (JSON,)
    """Media types of the answer; the first unless the exporter chooses (`ChoosesMediaType`)."""
    public: bool = False
    """Whether it is served without a token; nothing with a number in it is."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Response headers beside, or instead of, those every answer carries."""
    details: str = ""
    """Description in more than a line."""
    also: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further statuses with the same document, each with its description."""


class Exporter(Protocol):
    """One face of a report."""

    @property
    def routes(self) -> Sequence[Route]:
        """Paths it answers."""
        ...

    def render(
        self, report: Report | None, live: Sequence[Family], media_type: str, asked: Mapping[str, str]
    ) -> bytes | bytearray | None:
        """Body of the answer to the path's variables and the query; None where nothing has that name.

        Runs in a thread, one call at a time.
        """
        ...


@runtime_checkable
class ChoosesMediaType(Protocol):
    """An exporter whose answers have several media types."""

    def media_type(self, accept: str, asked: Mapping[str, str]) -> str:
        """Content type for a request's `Accept` header and what it asks for."""
        ...


class Observer(Protocol):
    """Wants to see every report that is published, or the latest of those that came while it was busy."""

    def observe(self, report: Report) -> None:
        """Take note; in the rendering thread."""
        ...


class Stream(Protocol):
    """Stream of events for clients that keep listening."""

    @property
    def route(self) -> Route:
        """Path it answers."""
        ...

    def events(self, report: Report | None, *, whole: bool) -> tuple[bytes, bytes]:
        """Server-sent events for newcomers (empty unless `whole`) and for everybody who listened before.

        The second are what changed since the last call. Runs in the rendering thread.
        """
        ...


# Names of models as segments of a path.
#
# Clients take `.` and `..` out of a path however they are written, `%2E` included, before they send it. A
# model of that name is asked for as `%252E` or `%252E%252E`, which arrives as `%2E`.


_WRITTEN: Mapping[str, str] = {"%2E": ".", "%2E%2E": ".."}


def named(segment: str, models: Callable[[], Container[str]]) -> str:
    """The model a decoded segment names; one of `models` whose name is the segment itself comes first."""
    written = _WRITTEN.get(segment.upper())
    return segment if written is None or segment in models() else written
