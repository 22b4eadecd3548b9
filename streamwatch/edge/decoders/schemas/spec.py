"""Address and credentials of a schema registry."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RegistrySpec:
    """A registry that speaks Confluent's protocol, and who asks it."""

    url: str
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    token: str | None = field(default=None, repr=False)
    """Sent as bearer token, in place of a name and password."""
    ca_file: str | None = None
    """Certificates to trust, PEM; the system's if absent."""
    timeout_seconds: float = 10.0
    """Of one request."""
