"""What the server asks of the parts it is given."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Protocol

from streamwatch.core.metrics.series import Family, Report


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


class Exporter(Protocol):
    """One face of a report."""

    @property
    def routes(self) -> Sequence[str]:
        """Paths it answers, with aiohttp's `{variables}`."""
        ...

    @property
    def query(self) -> Mapping[str, str]:
        """Query parameters it understands, each with the pattern of its whole value."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Response headers beside, or instead of, those every answer carries."""
        ...

    @property
    def public(self) -> bool:
        """Tell whether it is served without a token; nothing with a number in it is."""
        ...

    def media_type(self, accept: str, asked: Mapping[str, str]) -> str:
        """Content type for a request's `Accept` header and what it asks for."""
        ...

    def render(
        self, report: Report | None, live: Sequence[Family], media_type: str, asked: Mapping[str, str]
    ) -> bytes | bytearray | None:
        """Body of the answer to the path's variables and the query; None where nothing has that name.

        Runs in a thread, one call at a time.
        """
        ...


class Observer(Protocol):
    """Wants to see every report that is published, or the latest of those that came while it was busy."""

    def observe(self, report: Report) -> None:
        """Take note; in the rendering thread."""
        ...


class Stream(Protocol):
    """Stream of events for clients that keep listening."""

    @property
    def route(self) -> str:
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
