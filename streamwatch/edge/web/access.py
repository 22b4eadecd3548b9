"""Who may read, and how the way there is protected."""

from __future__ import annotations

import hashlib
import hmac
import ssl
from dataclasses import dataclass, field
from pathlib import Path

from streamwatch.edge.web.hosts import is_loopback
from streamwatch.edge.web.listening import ListenError

_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class Access:
    """By default everybody who reaches the address may read, in the clear.

    Parameters
    ----------
    token
        What `Authorization: Bearer …` must say; None asks for nothing.
    certificate_file, key_file
        PEM files of the server's certificate (with its chain) and key; None speaks plain HTTP.
    hosts
        Names under which it may be addressed, beside those of a loopback address.
    """

    token: str | None = field(default=None, repr=False)
    certificate_file: Path | None = None
    key_file: Path | None = None
    hosts: frozenset[str] = frozenset()

    @property
    def scheme(self) -> str:
        """`http` or `https`."""
        return "http" if self.certificate_file is None else "https"

    def admits(self, authorization: str) -> bool:
        """Tell whether an `Authorization` header opens the door; a near miss takes as long as any other."""
        if self.token is None:
            return True
        if not authorization.lower().startswith(_BEARER):
            return False
        given = authorization[len(_BEARER) :].strip()
        return hmac.compare_digest(_digest(given), _digest(self.token))

    def ssl_context(self) -> ssl.SSLContext | None:
        """TLS context of the listener; None for plain HTTP.

        Raises
        ------
        ListenError
            When certificate and key cannot be read or do not belong together.
        """
        if self.certificate_file is None:
            return None
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self.certificate_file, self.key_file)
        except (OSError, ssl.SSLError) as error:
            reason = error.reason if isinstance(error, ssl.SSLError) else error.strerror
            raise ListenError(
                f"cannot serve HTTPS with certificate {self.certificate_file} and key {self.key_file}: "
                f"{reason or error}; change http.tls"
            ) from error
        return context

    def weaknesses(self, host: str) -> list[str]:
        """List the weaknesses of listening on this address; empty on this machine's own."""
        if is_loopback(host):
            return []
        if self.token is None:
            return ["no token is required: anyone who can connect can read everything (http.token_file)"]
        if self.certificate_file is None:
            return ["the token crosses the network in the clear (http.tls)"]
        return []


def _digest(text: str) -> bytes:
    """Of equal length whatever the text, so that a comparison tells nothing of the token's."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
