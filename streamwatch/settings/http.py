"""`http`: the daemon's own server, and who may read there."""

from __future__ import annotations

import string
from typing import Annotated

from pydantic import BeforeValidator, SecretStr, field_validator, model_validator

from streamwatch.settings.durations import Duration, Lasting
from streamwatch.settings.numbers import Bounded
from streamwatch.settings.sections import ReadableFile, Section, encrypted, split

LEAST_TOKEN = 16
Timeout = Annotated[Duration, Lasting("100ms", "1h")]


class TlsSection(Section):
    """The server's certificate. It is read at the start: restart after renewing it."""

    certificate_file: ReadableFile
    """Certificate, PEM, followed by those of the authorities between it and a trusted one."""
    key_file: ReadableFile
    """Its private key, PEM, without a password."""

    @model_validator(mode="after")
    def _open_key(self) -> TlsSection:
        if encrypted(self.key_file):
            raise ValueError(
                f"the private key in {self.key_file} is encrypted and nobody could type its password: "
                "give one without, such as `openssl pkey -in … -out …` writes"
            )
        return self


class HttpSection(Section):
    """The HTTP server: the status page at /, /metrics, /api/v1, /healthz and /readyz."""

    listen: str = "127.0.0.1:9877"
    """Address and port; 0.0.0.0:9877 for all interfaces, port 0 for any free one."""
    token_file: ReadableFile | None = None
    """File with a token that `Authorization: Bearer` must carry; only health and the empty page ask none."""
    token: SecretStr | None = None
    """The token itself: better in STREAMWATCH__HTTP__TOKEN, best in `token_file`."""
    tls: TlsSection | None = None
    """{certificate_file, key_file} for HTTPS; HTTP if absent."""
    allowed_hosts: Annotated[
        tuple[str, ...], BeforeValidator(split, json_schema_input_type=str | list[str])
    ] = ()
    """Names (without port) that `Host` may carry. Empty: a loopback address answers only to names of this
    machine, any other address to all. A proxy on this machine that passes its own name on needs it here."""
    max_connections: Annotated[int, Bounded(least=8, most=65_536)] = 256
    """Connections open at once, an eighth of them kept for health; over it the longest waiting one goes."""
    header_timeout: Timeout = 10_000
    """A request must have arrived, and a TLS handshake be done, within this."""
    send_timeout: Timeout = 30_000
    """A client must have taken an answer within this."""
    max_buffered_bytes: Annotated[int, Bounded(least=1_048_576)] = 67_108_864
    """Answers under way, all together; who reads too slowly is cut off when others need the room."""

    @field_validator("listen")
    @classmethod
    def _host_and_port(cls, listen: str) -> str:
        host, colon, port = listen.rpartition(":")
        if not colon or not host or not port.isdecimal() or int(port) > 65_535:
            raise ValueError(f"expected host:port such as 127.0.0.1:9877, got {listen!r}")
        return listen

    @model_validator(mode="after")
    def _token(self) -> HttpSection:
        if self.token is not None and self.token_file is not None:
            raise ValueError("give token or token_file, not both")
        token = self.read_token()
        if token is not None and (len(token) < LEAST_TOKEN or not set(token) <= _TOKEN_CHARACTERS):
            raise ValueError(
                f"expected a token of at least {LEAST_TOKEN} printable ASCII characters without spaces, "
                f"got {len(token)} characters; `openssl rand -hex 32` makes one"
            )
        return self

    def read_token(self) -> str | None:
        """The token, wherever it was given."""
        if self.token is not None:
            return self.token.get_secret_value()
        return self.token_file.read_text(encoding="utf-8").strip() if self.token_file else None

    @property
    def host(self) -> str:
        """The address without port and brackets."""
        return self.listen.rpartition(":")[0].strip("[]")

    @property
    def port(self) -> int:
        """The port."""
        return int(self.listen.rpartition(":")[2])


_TOKEN_CHARACTERS = frozenset(string.ascii_letters + string.digits + string.punctuation)
