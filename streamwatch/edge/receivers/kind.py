"""What a type of receiver exports: its name, the settings that are its own, and the words of its requests.

Nothing here or in the files of receivers needs an HTTP client: settings are made of these KINDs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from streamwatch.core.alerting.notification import Notification, Severity

# Requests, without anything of the network.


@dataclass(frozen=True, slots=True)
class HttpRequestBody:
    """A JSON body, and headers of its own."""

    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


class Format(Protocol):
    """Format of one kind of receiver."""

    def request_body(self, notification: Notification, now_ms: int) -> HttpRequestBody:
        """A notification in its words."""
        ...


Reminder: TypeAlias = Callable[[Sequence[Notification], int], HttpRequestBody]
"""Open incidents and the time → one request that repeats them all."""


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    """Endpoint of one receiver, and the severities it gets."""

    name: str
    url: str = field(repr=False)
    timeout_seconds: float = 10.0
    severities: frozenset[Severity] | None = None
    """Severities it is notified of; None: all."""
    matchers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Labels that a model must have for its notifications to be sent here."""
    alarms: bool = True
    """Whether it is notified of alarms and hints."""
    retraining: bool = False
    """Whether it is notified of models to be retrained."""
    comparisons: bool = False
    """Whether it is notified of verdicts on challengers."""
    digest: bool = False
    """Whether it is sent digests of the models that are worse."""
    repeat_interval_seconds: float | None = None
    """Seconds between repetitions of open incidents; None: never."""
    ca_file: str | None = None
    """Certificates to trust, PEM; the system's if absent."""


# Settings of a type of receiver.


class OwnKey(NamedTuple):
    """A key of the settings that only one type of receiver has."""

    name: str
    holds: Literal["secret", "secrets", "texts", "duration"]
    """A secret, several, texts by name, or a duration in ms. Secrets are required, and may be given as files
    under `<name>_file` or `<name>_files`."""
    about: str
    """Description, as users read it."""
    default: object = None
    """Default of a duration."""
    parse: Callable[[Any], Any] = lambda value: value
    """Value of a secret or of the texts; raises ValueError for one that cannot be used."""
    advice: str = ""
    """How to make a secret, for whoever has none."""


@dataclass(frozen=True, slots=True)
class ReceiverOptions:
    """Settings of one receiver beyond its endpoint, secrets read and parsed."""

    external_url: str = ""
    """Where people reach the status page; empty without one."""
    own: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """Values of the type's own keys."""


class Configured(NamedTuple):
    """Address of a receiver, and the form in which it is written to."""

    spec: EndpointSpec
    form: Format
    reminder: Reminder | None = None
    """Repeats open incidents, every `spec.repeat_interval_seconds`."""


class ReceiverKind(NamedTuple):
    """A type of receiver."""

    name: str
    """Value of `type` in the settings."""
    keys: tuple[OwnKey, ...]
    """Keys of the section that only this type has."""
    configure: Callable[[EndpointSpec, ReceiverOptions], Configured]
    default_url: str = ""
    """Where the section names no URL; empty where it has to."""
    groups: bool = False
    """Whether the receiver groups notifications by itself, so that each is sent to it at once."""
    reads_digests: bool = True
    """Whether the receiver can be sent what is about no incident, to be read: a digest of worse models."""
