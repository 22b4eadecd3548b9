"""Who may read, and how the way there is protected."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import ssl
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

from streamwatch.edge.web.answers import Handler, json_answer
from streamwatch.edge.web.connections import Connections, ListenError
from streamwatch.edge.web.documents import Error

# Names under which a server may be addressed.
#
# A web page anywhere can point a name of its own at 127.0.0.1 and have a browser on this machine read what
# listens there (DNS rebinding). The browser says in `Host` which name it believes to speak to.


def is_loopback(host: str) -> bool:
    """Tell whether a name or an address is this machine's own."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def host_admitted(header: str, listening_on: str, allowed: Collection[str]) -> bool:
    """Tell whether a `Host` header names this server.

    On a loopback listener: addresses and names of this machine, and those allowed. Elsewhere: those allowed,
    or any if none is given. A request without `Host` comes from no browser.
    """
    name = _name(header)
    if not name:
        return True
    if is_loopback(listening_on):
        return is_loopback(name) or name in allowed
    return not allowed or name in allowed


def _name(header: str) -> str:
    """The host without port, brackets, case and final dot."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].removesuffix(".")


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
    """Of equal length whatever the text, so that a comparison reveals nothing of the token's."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


# Which requests are answered: one per slot, under this server's names, with the token if there is one.


HEALTH = frozenset({"/healthz", "/readyz"})
"""Answered in every slot, under every name, to everybody."""


class Admission:
    """Middlewares that stand before every route.

    Parameters
    ----------
    connections
        Where requests come from.
    access
        Who may read, and under which names.
    listening_on
        The address.
    """

    def __init__(self, connections: Connections, access: Access, listening_on: str) -> None:
        self._connections = connections
        self._access = access
        self._host = listening_on
        self._public = set(HEALTH)

    def make_public(self, route: str) -> None:
        """Ask for no token on a route."""
        self._public.add(route)

    @web.middleware
    async def take_slot(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer in a slot of its own; health also in the reserved ones."""
        connection = self._connections.of(request.protocol)
        if connection is None:
            raise ConnectionAbortedError("cut off before it was heard")
        if self._connections.full and request.path not in HEALTH:
            self._connections.refused("too_many_requests")
            answer = json_answer(503, Error("too many requests are being answered", 503))
            answer.headers["Retry-After"] = "1"
            answer.force_close()
            return answer
        connection.begin()
        try:
            return await handler(request)
        finally:
            connection.end()

    @web.middleware
    async def check(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse other names of this server, and who has no token where one is asked for."""
        named = host_admitted(request.headers.get("Host", ""), self._host, self._access.hosts)
        if not named and request.path not in HEALTH:
            self._connections.refused("foreign_host")
            raise web.HTTPMisdirectedRequest(reason="this server has another name; see http.allowed_hosts")
        resource = request.match_info.route.resource
        public = resource is not None and resource.canonical in self._public
        if not public and not self._access.admits(request.headers.get("Authorization", "")):
            raise web.HTTPUnauthorized(
                reason="a bearer token is needed", headers={"WWW-Authenticate": 'Bearer realm="streamwatch"'}
            )
        return await handler(request)
