"""What every answer has in common: headers, errors as JSON, compression where it is accepted."""

from __future__ import annotations

import gzip
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import msgspec
from aiohttp import web

GZIP_FROM_BYTES = 1_000
HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
JSON = "application/json"
_PASSED_ON = ("Allow", "Retry-After", "WWW-Authenticate")

Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]


def json_answer(status: int, document: object) -> web.Response:
    """A small document."""
    return web.Response(status=status, body=msgspec.json.encode(document), headers={"Content-Type": JSON})


@web.middleware
async def errors_as_json(request: web.Request, handler: Handler) -> web.StreamResponse:
    """An error says what is wrong in the same form everywhere."""
    try:
        return await handler(request)
    except web.HTTPException as error:
        answer = json_answer(error.status, {"error": error.reason, "status": error.status})
        for name in _PASSED_ON:
            if name in error.headers:
                answer.headers[name] = error.headers[name]
        return answer


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Nothing is cached, sniffed or framed."""
    del request
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)


def zipped(body: bytes, accept_encoding: str) -> bytes | None:
    """The body compressed, or None where that is not accepted or not worth it."""
    if len(body) < GZIP_FROM_BYTES or not _accepts_gzip(accept_encoding):
        return None
    return gzip.compress(body, compresslevel=1, mtime=0)


def _accepts_gzip(accept_encoding: str) -> bool:
    for accepted in accept_encoding.lower().split(","):
        coding, _, weight = accepted.replace(" ", "").partition(";")
        if coding == "gzip":
            return weight.removeprefix("q=").strip("0.") != "" or not weight
    return False


def asked_of(query: Mapping[str, str], request: web.Request) -> dict[str, str]:
    """Values of the parameters a route understands; raises 400 for one that does not match its pattern."""
    asked: dict[str, str] = {}
    for name, pattern in query.items():
        value = request.query.get(name)
        if value is None:
            continue
        if not re.fullmatch(pattern, value, re.DOTALL):
            raise web.HTTPBadRequest(reason=f"{name} must match {pattern}")
        asked[name] = value
    return asked
