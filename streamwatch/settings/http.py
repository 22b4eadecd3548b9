"""`http`: the daemon's own server, and who may read there."""

from __future__ import annotations

import re
import string
from typing import Annotated, Final

from pydantic import BeforeValidator, SecretStr, field_validator, model_validator

from streamwatch.settings.sections import (
    ReadableFile,
    Section,
    TextFile,
    encrypted,
    is_ipv6,
    require_one_form,
    split,
)
from streamwatch.settings.values import Bounded, Duration, Lasting

LEAST_TOKEN = 16
Timeout = Annotated[Duration, Lasting("100ms", "1h")]


class TlsSection(Section):
    """Certificate of the server. It is read at the start: restart the daemon after renewing it."""

    certificate_file: ReadableFile
    """Certificate in PEM format, followed by any intermediate certificates."""
    key_file: ReadableFile
    """Private key of the certificate in PEM format, without a password."""

    @model_validator(mode="after")
    def _open_key(self) -> TlsSection:
        if encrypted(self.key_file):
            raise ValueError(
                f"the private key in {self.key_file} is encrypted, and nobody can enter its password at the "
                "start: give a key without a password, as `openssl pkey -in … -out …` writes it"
            )
        return self


class HttpSection(Section):
    """HTTP server: the status page at /, /metrics, /api/v1, /healthz and /readyz."""

    listen: str = "127.0.0.1:9877"
    """Address and port. Use 0.0.0.0:9877 for all interfaces, and port 0 for any free port."""
    token_file: TextFile | None = None
    """File that contains a bearer token. Every request must send it as `Authorization: Bearer`, except for
    health checks and the static files of the page."""
    token: SecretStr | None = None
    """Bearer token. Prefer `token_file`, or the environment variable STREAMWATCH__HTTP__TOKEN."""
    tls: TlsSection | None = None
    """Certificate for HTTPS: {certificate_file, key_file}. If not set, the server speaks HTTP."""
    allowed_hosts: Annotated[
        tuple[str, ...], BeforeValidator(split, json_schema_input_type=str | list[str])
    ] = ()
    """Host names (without port) that requests may name in `Host`. If empty, a loopback address accepts only
    names of this machine, and any other address accepts all. List the name here if a proxy on this machine
    passes on its own."""
    max_connections: Annotated[int, Bounded(least=8, most=65_536)] = 256
    """Maximum number of open connections, an eighth of them reserved for health checks. Beyond it, the
    connection that has waited longest is closed."""
    header_timeout: Timeout = 10_000
    """Maximum time for a request to arrive, and for a TLS handshake."""
    send_timeout: Timeout = 30_000
    """Maximum time for a client to receive a response."""
    max_buffered_bytes: Annotated[int, Bounded(least=1_048_576)] = 67_108_864
    """Size of all responses in progress from which on no further one is begun, and clients that read too
    slowly are disconnected."""

    @field_validator("listen")
    @classmethod
    def _host_and_port(cls, listen: str) -> str:
        host, colon, port = listen.rpartition(":")
        if not colon or not host or not port.isdecimal() or int(port) > 65_535:
            raise ValueError(f"expected host:port such as 127.0.0.1:9877, got {listen!r}")
        return listen

    @field_validator("allowed_hosts")
    @classmethod
    def _plain_names(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        for name in names:
            if not _HOST.fullmatch(name) and not is_ipv6(name):
                raise ValueError(
                    "expected a host name without scheme, port and final dot, such as "
                    f"streamwatch.example.com, got {name!r}"
                )
        return names

    @model_validator(mode="after")
    def _token(self) -> HttpSection:
        require_one_form(self, "token")
        token = self.read_token()
        if token is not None and (len(token) < LEAST_TOKEN or not set(token) <= _TOKEN_CHARACTERS):
            raise ValueError(
                f"expected a token of at least {LEAST_TOKEN} printable ASCII characters without spaces, "
                f"got {len(token)} characters; `openssl rand -hex 32` makes one"
            )
        return self

    def read_token(self) -> str | None:
        """Return the token, from its file if it is in one; None without a token."""
        if self.token is not None:
            return self.token.get_secret_value()
        return self.token_file.read_text(encoding="utf-8").strip() if self.token_file else None

    @property
    def host(self) -> str:
        """Address of `listen`, without port and without the brackets of IPv6."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """Port of `listen`; 0 for any free port."""
        return int(self.listen.rpartition(":")[2])


_HOST: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
"""Name of a host, or an IPv4 address, as a `Host` header may have it; other letters are in Punycode there."""


_TOKEN_CHARACTERS = frozenset(string.ascii_letters + string.digits + string.punctuation)
