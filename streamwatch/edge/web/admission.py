"""Which requests are answered: one per place, under this server's names, with the token if there is one."""

from __future__ import annotations

from aiohttp import web

from streamwatch.edge.web.access import Access
from streamwatch.edge.web.answers import Handler, json_answer
from streamwatch.edge.web.connections import Connections
from streamwatch.edge.web.hosts import host_admitted

HEALTH = frozenset({"/healthz", "/readyz"})
"""Answered on every place, under every name, to everybody."""


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
    async def take_place(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer on a place of its own; health also on the reserved ones."""
        connection = self._connections.of(request.protocol)
        if connection is None:
            raise ConnectionAbortedError("cut off before it was heard")
        if self._connections.full and request.path not in HEALTH:
            self._connections.refused("too_many_requests")
            answer = json_answer(503, {"error": "too many requests are being answered", "status": 503})
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
