"""Client of a schema registry, with bounded time and size, without redirects or proxies.

`GET /schemas/ids/{id}`, `/schemas/guids/{guid}`, `/subjects/{subject}/versions/{version}` (Confluent Schema
Registry, API reference). A schema is unknown only where the registry says so by its own error codes (40401 to
40403). The registry is unavailable where the connection fails, access is denied, or it reports overload or an
internal error. Any other answer, such as a proxy's page or one that is too large, makes only the requested
schema unusable.
"""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Collection, Mapping
from typing import Any, Final
from urllib.parse import quote
from uuid import UUID

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver
from yarl import URL

from streamwatch import __version__
from streamwatch.edge.decoders.schemas.schema import (
    RegistrySpec,
    Schema,
    SchemaRef,
    SchemaUnavailable,
    SchemaUnknown,
    SchemaUnusable,
    SchemaWithheldError,
    Version,
)
from streamwatch.edge.outgoing import AddressRefusedError, GuardedResolver, SystemResolver, refused

MAX_BYTES: Final = 2 * 2**20
"""Bytes of an answer at most."""
MAX_REFERENCES: Final = 200
"""Schemas that one schema may refer to, directly or through others."""
MAX_TEXT_BYTES: Final = 4 * 2**20
"""Bytes at most of a schema and all that it refers to."""
MAX_SUBJECT: Final = 1_000
_NOT_FOUND: Final = frozenset({40401, 40402, 40403})
_DENIED: Final = frozenset({401, 403})
_BUSY: Final = frozenset({408, 429})
_CONNECT_SECONDS: Final = 5.0


class Reference(msgspec.Struct, frozen=True):
    """A schema's reference to another."""

    name: str
    subject: str
    version: int


class Answer(msgspec.Struct, frozen=True, rename={"type": "schemaType"}):
    """A registry's answer with a schema."""

    schema: str
    type: str | None = None
    references: list[Reference] | None = None


class _Fault(msgspec.Struct, frozen=True):
    error_code: int = 0


_ANSWER: Final = msgspec.json.Decoder(Answer)
_FAULT: Final = msgspec.json.Decoder(_Fault)


class RegistryClient:
    """Fetches schemas, with all schemas that they refer to.

    Parameters
    ----------
    spec
        Address and credentials.
    resolver
        Resolves host names; the system's by default. Addresses that it returns are checked.
    """

    def __init__(self, spec: RegistrySpec, resolver: AbstractResolver | None = None) -> None:
        self._spec = spec
        self._base = spec.url.rstrip("/")
        self._host = URL(spec.url).host or ""
        self._resolver = resolver
        self._session: aiohttp.ClientSession | None = None

    @property
    def host(self) -> str:
        """Host of the registry."""
        return self._host

    async def schema(self, ref: SchemaRef) -> Schema:
        """Fetch a schema.

        Raises
        ------
        SchemaUnknown
            The registry has none of this name.
        SchemaUnusable
            The answer is none of a registry or too large, or the schema refers to more than
            `MAX_REFERENCES` others or has more than `MAX_TEXT_BYTES` with them.
        SchemaUnavailable
            The registry cannot be reached, or, `SchemaWithheldError`, it answers that it denies access,
            is overloaded or has an internal error.
        """
        try:
            async with asyncio.timeout(self._spec.timeout_seconds):
                answer = await self._ask(_path(ref))
                references = await self._references(answer)
        except TimeoutError:
            raise SchemaUnavailable(f"no answer within {self._spec.timeout_seconds:g} s") from None
        return Schema(answer.type or "AVRO", answer.schema, tuple(references.items()))

    async def _references(self, answer: Answer) -> Mapping[str, str]:
        """Fetch all schemas that an answer refers to; return texts by name, those first that others need."""
        found: dict[str, Answer] = {}
        size, layer = len(answer.schema), [answer]
        while True:
            named = [each for of in layer for each in of.references or () if each.name not in found]
            fresh = {each.name: each for each in reversed(named)}
            if not fresh:
                return _in_order(answer, found)
            if len(found) + len(fresh) > MAX_REFERENCES:
                raise SchemaUnusable(f"refers to more than {MAX_REFERENCES} schemas")
            layer = await self._ask_all(fresh.values())
            found.update(zip(fresh, layer, strict=True))
            size += sum(len(each.schema) for each in layer)
            if size > MAX_TEXT_BYTES:
                raise SchemaUnusable(f"has more than {MAX_TEXT_BYTES} bytes with what it refers to")

    async def _ask_all(self, references: Collection[Reference]) -> list[Answer]:
        try:
            async with asyncio.TaskGroup() as group:
                asked = [
                    group.create_task(self._ask(_path(Version(each.subject, each.version))))
                    for each in references
                ]
        except ExceptionGroup as faults:
            unavailable = [each for each in faults.exceptions if isinstance(each, SchemaUnavailable)]
            raise (unavailable or faults.exceptions)[0] from None
        return [task.result() for task in asked]

    async def close(self) -> None:
        """Close the connections."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def _ask(self, path: str) -> Answer:
        if refused(self._host):
            raise SchemaUnavailable("link-local address, which is never spoken to")
        session = self._opened()
        try:
            url = URL(self._base + path, encoded=True)
            async with session.get(url, allow_redirects=False) as answer:
                body = await _limited(answer)
                return _understood(answer.status, body)
        except SchemaUnavailable:
            raise
        except TimeoutError:
            raise SchemaUnavailable(f"no connection within {_CONNECT_SECONDS:g} s") from None
        except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, ssl.SSLError, OSError) as error:
            raise SchemaUnavailable(_problem(error)) from None
        except aiohttp.ClientError:
            raise SchemaUnusable("what the registry answers is no HTTP") from None

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            spec = self._spec
            trusted = ssl.create_default_context(cafile=spec.ca_file) if spec.ca_file else True
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    resolver=GuardedResolver(self._resolver or SystemResolver()), ssl=trusted, limit=8
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(sock_connect=_CONNECT_SECONDS),
                headers={
                    "User-Agent": f"streamwatch/{__version__}",
                    "Accept": "application/vnd.schemaregistry.v1+json, application/json",
                    "Accept-Encoding": "identity",
                    **_credentials(spec),
                },
                auto_decompress=False,  # the limit of size counts bytes as they arrive
                trust_env=False,
            )
        return self._session


def _credentials(spec: RegistrySpec) -> Mapping[str, str]:
    if spec.token is not None:
        return {"Authorization": f"Bearer {spec.token}"}
    if spec.username is not None:
        pair = f"{spec.username}:{spec.password or ''}".encode()
        return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
    return {}


def _in_order(answer: Answer, found: Mapping[str, Answer]) -> dict[str, str]:
    """Sort texts, by name, so that those come first that others refer to; a cycle is broken anywhere."""
    ordered: dict[str, str] = {}
    opened: set[str] = set()

    def visit(each: Answer) -> None:
        for reference in each.references or ():
            if reference.name not in opened:
                opened.add(reference.name)
                visit(found[reference.name])
                ordered[reference.name] = found[reference.name].schema

    visit(answer)
    return ordered


def _path(ref: SchemaRef) -> str:
    match ref:
        case Version(subject, number):
            if len(subject) > MAX_SUBJECT:
                raise SchemaUnusable(f"refers to a subject of {len(subject)} characters")
            version = "latest" if number is None else str(number)
            return f"/subjects/{quote(subject, safe='')}/versions/{version}"
        case UUID():
            return f"/schemas/guids/{ref}"
        case int():
            return f"/schemas/ids/{ref}"


async def _limited(answer: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for chunk in answer.content.iter_chunked(65_536):
        body += chunk
        if len(body) > MAX_BYTES:
            raise SchemaUnusable(f"the registry answers with more than {MAX_BYTES} bytes")
    return bytes(body)


def _understood(status: int, body: bytes) -> Answer:
    """Parse an answer; raises SchemaUnknown, SchemaUnusable or SchemaUnavailable."""
    if status == 200:
        try:
            return _ANSWER.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise SchemaUnusable("the registry answers something that is no schema") from None
    if status == 404 and _error_code(body) in _NOT_FOUND:
        raise SchemaUnknown
    if status in _DENIED:
        raise SchemaWithheldError(f"answers {status}: it does not let this user in")
    if status in _BUSY or status >= 500:
        raise SchemaWithheldError(f"answers {status}")
    raise SchemaUnusable(f"the registry answers {status}")


def _error_code(body: bytes) -> int:
    try:
        return _FAULT.decode(body).error_code
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return 0


def _problem(error: BaseException) -> str:
    """Describe a failed request, without credentials or path."""
    seen: Any = error
    while seen is not None:
        if isinstance(seen, AddressRefusedError):
            return "link-local address, which is never spoken to"
        seen = seen.__cause__ or seen.__context__
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name cannot be resolved"
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return "its certificate is not trusted, or it does not speak TLS"
    return "the connection fails"
