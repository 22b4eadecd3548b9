"""Definition of a type of receiver: its name, the settings that only it has, and the format of its requests.

Neither this file nor those of the types import an HTTP client, because reading settings needs the KINDs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias

from streamwatch.core.alerting.notification import Notification, Severity

# Contents of requests.


@dataclass(frozen=True, slots=True)
class HttpRequestBody:
    """JSON body of a request, and its headers beyond the usual ones."""

    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


class Format(Protocol):
    """Maker of request bodies for one type of receiver."""

    def request_body(self, notification: Notification, now_ms: int) -> HttpRequestBody:
        """Make the request for a notification, as of `now_ms`."""
        ...


Reminder: TypeAlias = Callable[[Sequence[Notification], int], HttpRequestBody]
"""(open incidents, current time in ms) → one request that repeats all of them."""


@dataclass(frozen=True, slots=True)
class EndpointSpec:
    """URL of one receiver, and which notifications it gets."""

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
    """Type of the value: a secret, a list of secrets, a mapping of texts, or a duration in ms. Secrets are
    required, and may be given as files under `<name>_file` or `<name>_files`."""
    about: str
    """Description in the reference of settings."""
    default: object = None
    """Default of a duration."""
    parse: Callable[[Any], Any] = lambda value: value
    """Converts a secret or the texts for `configure`; raises ValueError for invalid ones."""
    advice: str = ""
    """How to make a secret, shown where none is set."""


@dataclass(frozen=True, slots=True)
class ReceiverOptions:
    """Settings of one receiver beyond its endpoint, secrets read and parsed."""

    external_url: str = ""
    """URL at which people reach the status page; empty without one."""
    own: Mapping[str, Any] = field(default_factory=dict[str, Any], repr=False)
    """Parsed values of the type's own keys, by name."""


class Configured(NamedTuple):
    """Endpoint of a receiver, and the format of its requests."""

    spec: EndpointSpec
    form: Format
    reminder: Reminder | None = None
    """Makes the request that repeats open incidents, every `spec.repeat_interval_seconds`; None: never."""


class ReceiverKind(NamedTuple):
    """A type of receiver."""

    name: str
    """Value of `type` in the settings."""
    keys: tuple[OwnKey, ...]
    """Keys of the section that only this type has."""
    configure: Callable[[EndpointSpec, ReceiverOptions], Configured]
    default_url: str = ""
    """URL where the section names none; empty where it must name one."""
    groups: bool = False
    """Whether the receiver groups notifications itself, so that each is sent at once, not in a digest."""
    reads_digests: bool = True
    """Whether the receiver can be sent the digest of worse models, which is about no incident.

    One that cannot keeps open what it is sent until it is sent its end, which is in no digest either.
    """
