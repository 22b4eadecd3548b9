"""Protocols of the parts that the server is given, descriptions of routes, and the JSON of their answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import msgspec
from prometheus_client.utils import floatToGoString

from streamwatch.core.metrics.series import Family, Report

# JSON of any numbers and names: infinities become strings, lone surrogates become escapes.


JSON = "application/json; charset=utf-8"


def encode(document: object) -> bytes:
    """Encode a document as UTF-8, whatever texts it has."""
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:  # a lone surrogate somewhere
        return msgspec.json.encode(_spelt_out(msgspec.to_builtins(document)))


def number(value: float) -> float | str:
    """Convert a number for JSON; infinities become `+Inf` and `-Inf`."""
    if isinstance(value, int):
        return value
    plain = float(value)  # the encoder does not know NumPy's floats
    return plain if math.isfinite(plain) else floatToGoString(plain)


def _spelt_out(value: object) -> object:
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, Mapping):
        return {_spelt_out(key): _spelt_out(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_spelt_out(item) for item in value]
    return value


class Health(Protocol):
    """Present state of the daemon; called at each request, on the event loop unless stated otherwise."""

    def unready(self) -> Sequence[str]:
        """Reasons in words why the daemon is not ready; empty once it is.

        Also called in the rendering thread.
        """
        ...

    @property
    def role(self) -> str | None:
        """Role of this process among several replicas; None without others."""
        ...

    def families(self) -> Sequence[Family]:
        """Metrics that are current without a commit (build_info, kafka_up, caught_up …)."""
        ...


@dataclass(frozen=True, slots=True)
class Query:
    """An optional query parameter."""

    name: str
    pattern: str
    """Regular expression that the whole value must match; other values are answered 400."""
    schema: Mapping[str, Any]
    """OpenAPI's schema of its value."""
    about: str
    """Description, without a full stop."""


NAME: Mapping[str, Any] = {"type": "string", "minLength": 1, "maxLength": 128}
"""OpenAPI's schema of a name in a query."""


@dataclass(frozen=True, slots=True)
class Route:
    """A path, and the answer to GET on it; the OpenAPI document is generated from routes."""

    path: str
    """Path, with aiohttp's `{variables}`."""
    about: str
    """Description in one line, without a full stop."""
    sends: str = ""
    """Name of the answer's type (`documents.SENT`); empty where it is no such document."""
    tag: str = "overview"
    query: tuple[Query, ...] = ()
    media_types: tuple[str, ...] = (JSON,)
    """Media types of the answer; the first unless the exporter chooses (`ChoosesMediaType`)."""
    public: bool = False
    """Whether it is served without a token, as only routes without results are."""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Response headers besides, or instead of, those of all answers."""
    details: str = ""
    """Longer description; may be empty."""
    also: Mapping[str, str] = field(default_factory=dict[str, str])
    """Further statuses with the same type of document → their descriptions."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for a route, and the numbers to answer it with."""

    report: Report | None
    """The last report; None before the first."""
    values: Mapping[str, str] = field(default_factory=dict[str, str])
    """The path's variables and the query's parameters, by name."""
    live: Sequence[Family] = ()
    """Metrics that are current without a report (`Health.families`)."""
    media_type: str = ""
    """Media type of the answer."""

    @property
    def families(self) -> Sequence[Family]:
        """Metrics of the report; none before the first."""
        return () if self.report is None else self.report.families

    @property
    def details(self) -> Mapping[str, Mapping[str, object]]:
        """Details of the report's models, by name; empty before the first report."""
        return {} if self.report is None else self.report.details

    @property
    def published(self) -> float | None:
        """Time of the report in seconds since the epoch; None before the first."""
        return None if self.report is None else self.report.published_ms / 1000


class Exporter(Protocol):
    """A part that answers some routes by rendering the last report."""

    @property
    def routes(self) -> Sequence[Route]:
        """Routes that it answers."""
        ...

    def render(self, asked: Asked) -> bytes | bytearray | None:
        """Render the body of an answer; None for 404.

        Runs in the rendering thread, one call at a time.
        """
        ...


@runtime_checkable
class ChoosesMediaType(Protocol):
    """An exporter whose answers have several media types."""

    def media_type(self, accept: str, asked: Mapping[str, str]) -> str:
        """Return the content type for an `Accept` header, and variables and parameters."""
        ...


class Observer(Protocol):
    """A part that is shown published reports; of those that came while it was busy, only the latest."""

    def observe(self, report: Report) -> None:
        """Process a report, in the rendering thread."""
        ...


# Names of models as segments of a path.
#
# Clients remove `.` and `..` from a path, also if written `%2E`, before they send it. A model of that name is
# requested as `%252E` or `%252E%252E`, which arrives as `%2E`.


_WRITTEN: Mapping[str, str] = {"%2E": ".", "%2E%2E": ".."}


def named(segment: str, models: Callable[[], Container[str]]) -> str:
    """Return the model that a decoded segment of a path names; `models` with that very name come first."""
    written = _WRITTEN.get(segment.upper())
    return segment if written is None or segment in models() else written
