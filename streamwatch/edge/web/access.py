"""Access to the server: token, TLS, and the names under which it may be addressed."""

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

# Names under which the server may be addressed.
#
# Any web page can resolve its own host name to 127.0.0.1, and so make a browser on this machine read from
# local servers (DNS rebinding). The browser's `Host` header has that name.


def is_loopback(host: str) -> bool:
    """Tell whether a name or an address is that of the loopback interface."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def host_admitted(header: str, listening_on: str, allowed: Collection[str]) -> bool:
    """Tell whether a request with a `Host` header is admitted.

    A loopback listener admits loopback names and those allowed. Others admit those allowed, or any if none
    are given. A request without `Host` is admitted, as it comes from no browser.
    """
    name = _name(header)
    if not name:
        return True
    if is_loopback(listening_on):
        return is_loopback(name) or name in allowed
    return not allowed or name in allowed


def _name(header: str) -> str:
    """Return a header's host in lower case, without port, brackets and final dot."""
    text = header.strip().lower()
    if text.startswith("["):
        return text[1:].partition("]")[0]
    return text.partition(":")[0].removesuffix(".")


_BEARER = "bearer "


@dataclass(frozen=True, slots=True)
class Access:
    """Settings of access; by default everybody who reaches the address may read, without TLS.

    Parameters
    ----------
    token
        Token that `Authorization: Bearer …` must have; None: none is needed.
    certificate_file, key_file
        PEM files of the server's certificate (with its chain) and key; None: plain HTTP.
    hosts
        Names under which the server may be addressed: besides loopback names if it listens on the loopback
        interface; otherwise only these, or any name if there are none.
    """

    token: str | None = field(default=None, repr=False)
    certificate_file: Path | None = None
    key_file: Path | None = None
    hosts: frozenset[str] = frozenset()

    @property
    def scheme(self) -> str:
        """Scheme of the server's URL: `http` or `https`."""
        return "http" if self.certificate_file is None else "https"

    def admits(self, authorization: str) -> bool:
        """Tell whether an `Authorization` header has the token, in time that does not depend on the text."""
        if self.token is None:
            return True
        if not authorization.lower().startswith(_BEARER):
            return False
        given = authorization[len(_BEARER) :].strip()
        return hmac.compare_digest(_digest(given), _digest(self.token))

    def ssl_context(self) -> ssl.SSLContext | None:
        """Make the TLS context of the listener; None for plain HTTP.

        Raises
        ------
        ListenError
            Certificate or key cannot be read, or they do not fit each other.
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
        """List the weaknesses of listening on an address; empty for a loopback address."""
        if is_loopback(host):
            return []
        if self.token is None:
            return ["no token is required: anyone who can connect can read everything (http.token_file)"]
        if self.certificate_file is None:
            return ["the token crosses the network in the clear (http.tls)"]
        return []


def _digest(text: str) -> bytes:
    """Hash a text, so that the time of a comparison does not depend on its length."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()


# Admission of requests: one for each slot, with an admitted `Host`, and with the token if there is one.


HEALTH = frozenset({"/healthz", "/readyz"})
"""Routes that are answered in reserved slots too, for any `Host`, without a token."""


class Admission:
    """Middlewares before every route.

    Parameters
    ----------
    connections
        All connections of the server.
    access
        Token and admitted names.
    listening_on
        Host of the listener.
    """

    def __init__(self, connections: Connections, access: Access, listening_on: str) -> None:
        self._connections = connections
        self._access = access
        self._host = listening_on
        self._public = set(HEALTH)

    def make_public(self, route: str) -> None:
        """Exempt a route from the token."""
        self._public.add(route)

    @web.middleware
    async def take_slot(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request in a slot of its own, else 503; health may use reserved slots.

        Raises ConnectionAbortedError if the connection was cut off meanwhile.
        """
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
        """Refuse a request whose `Host` is not admitted, or that lacks the token."""
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
