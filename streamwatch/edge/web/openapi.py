"""OpenAPI 3.1 document of the HTTP server, generated from its routes and the types that they send.

`GET /api/v1/openapi.json` is the document, `GET /api` the list of routes with one line on each::

    {"title": "streamwatch", "version": "0.1.0", "openapi": "/api/v1/openapi.json", "docs": "/docs",
     "routes": [{"path": "/api/v1/models", "summary": "Every number of every model"}]}
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from streamwatch import __version__
from streamwatch.edge.web.access import HEALTH
from streamwatch.edge.web.documents import SENT, Index
from streamwatch.edge.web.documents import Route as RouteDocument
from streamwatch.edge.web.ports import Asked, Route, encode

Schema: TypeAlias = "dict[str, Any]"
_NUMBER: Final[Schema] = {"anyOf": [{"type": "number"}, {"enum": ["+Inf", "-Inf"]}]}
_RECURSIVE: Final[Schema] = {
    "Tree": {
        "description": "Metric (without the prefix) → value, nested by label values in the labels' order",
        "type": "object",
        "additionalProperties": {"anyOf": [*_NUMBER["anyOf"], {"$ref": "#/components/schemas/Tree"}]},
    },
    "Series": {
        "description": "One value for each timestamp, null where undefined, nested as in Tree",
        "type": "object",
        "additionalProperties": {
            "anyOf": [
                {"type": "array", "items": {"type": ["number", "null"]}},
                {"$ref": "#/components/schemas/Series"},
            ]
        },
    },
}
_OPEN: Final[Schema] = {
    "Details": True,
    "SegmentValue": {"type": "number", "description": "A measure under its name"},
}
"""Name of an object's type → schema of its further properties, for objects that may have some."""


def ref(name: str) -> Schema:
    """Make the reference to a schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def schemas() -> Schema:
    """Return the schemas of all documents that are sent, and of their parts, by name."""
    _, found = msgspec.json.schema_components(SENT, ref_template="#/components/schemas/{name}")
    for name, schema in found.items():
        del schema["title"]
        if (of_class := schema.get("description")) is not None:
            schema["description"] = " ".join(of_class.split())
        schema["additionalProperties"] = _OPEN.get(name, False)
    return {**found, **_RECURSIVE}


_VARIABLES: Final[Mapping[str, str]] = {
    "model": "fraud-v3",
    "champion": "fraud-v3",
    "challenger": "fraud-v4",
    "file": "main.js",
}
"""Variable of a path → an example."""
_ERRORS: Final[Mapping[str, tuple[str, str]]] = {
    "BadRequest": ("400", "A query parameter has a value that is not allowed"),
    "Unauthorized": ("401", "A bearer token is needed"),
    "NotFound": ("404", "Nothing has this name"),
    "Misdirected": ("421", "The request names a host that is not admitted (http.allowed_hosts)"),
    "TooMany": ("503", "Too many are served already; Retry-After says when to come back"),
}
"""Name of an error that several routes share → (status, description)."""


def path_of(route: Route) -> str:
    """Return a route's path for OpenAPI, without the patterns of its variables."""
    return re.sub(r"\{(\w+):[^}]*\}", r"{\1}", route.path)


def operation_of(route: Route) -> Schema:
    """Describe GET on a route."""
    schema = {"type": "string"}
    if route.sends:
        schema = ref(route.sends)
    elif "json" in route.media_types[0]:
        schema = {"type": "object"}
    variables = re.findall(r"\{(\w+)", route.path)
    parameters: list[Schema] = [{"$ref": f"#/components/parameters/{name}"} for name in variables]
    parameters += [
        {
            "name": query.name,
            "in": "query",
            "required": False,
            "schema": query.schema,
            "description": query.about,
        }
        for query in route.query
    ]
    errors = {
        "BadRequest": bool(route.query),
        "Unauthorized": not route.public,
        "NotFound": bool(variables),
        "Misdirected": route.path not in HEALTH,
        "TooMany": route.path not in HEALTH,
    }
    content = {media_type.partition(";")[0]: {"schema": schema} for media_type in route.media_types}
    return {
        "summary": route.about,
        **({"description": route.details} if route.details else {}),
        "tags": [route.tag],
        **({"security": []} if route.public else {}),
        **({"parameters": parameters} if parameters else {}),
        "responses": {
            "200": {"description": route.about, "content": content},
            **{status: {"description": also, "content": content} for status, also in route.also.items()},
            **{
                _ERRORS[name][0]: {"$ref": f"#/components/responses/{name}"}
                for name, possible in errors.items()
                if possible
            },
        },
    }


def document(routes: Sequence[Route]) -> Schema:
    """Build the document of all routes."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "streamwatch",
            "version": __version__,
            "description": (
                "Estimates of the models on the watched stream. Everything is as of the last durable "
                "commit, except how the daemon itself is. Undefined values are absent; infinities are the "
                "strings `+Inf` and `-Inf`. In a path, write a `/` in a model's name as `%2F`."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"bearer": []}],
        "paths": {path_of(route): {"get": operation_of(route)} for route in routes},
        "components": {
            "schemas": schemas(),
            "parameters": {
                name: {
                    "name": name,
                    "in": "path",
                    "required": True,
                    "schema": {"type": "string"},
                    "example": example,
                }
                for name, example in _VARIABLES.items()
            },
            "responses": {
                name: {
                    "description": description,
                    "content": {"application/json": {"schema": ref("Error")}},
                }
                for name, (_, description) in _ERRORS.items()
            },
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Asked for only where `http.token` or `http.token_file` is set.",
                }
            },
        },
    }


class OpenApiExporter:
    """Exporter of `/api/v1/openapi.json`.

    Parameters
    ----------
    described
        Every route of the server.
    """

    routes: Sequence[Route] = (Route("/api/v1/openapi.json", "This document", tag="daemon"),)

    def __init__(self, described: Sequence[Route]) -> None:
        self._described = described

    def render(self, asked: Asked) -> bytes:  # noqa: ARG002 - it never changes
        """Render the document, which never changes."""
        return encode(document(self._described))


class ApiIndexExporter:
    """Exporter of `/api`, the list of routes.

    Parameters
    ----------
    described
        Every route of the server.
    """

    routes: Sequence[Route] = (
        Route("/api", "This list: every route with one line on it", "Index", "daemon"),
    )

    def __init__(self, described: Sequence[Route]) -> None:
        self._described = described

    def render(self, asked: Asked) -> bytes:  # noqa: ARG002 - it never changes
        """Render the list, which never changes."""
        routes = [RouteDocument(path_of(route), route.about) for route in self._described]
        return encode(Index("streamwatch", __version__, "/api/v1/openapi.json", "/docs", routes))
