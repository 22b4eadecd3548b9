"""What the HTTP server answers, as an OpenAPI 3.1 document at `/api/v1/openapi.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamwatch import __version__
from streamwatch.core.metrics.series import Family, Report
from streamwatch.edge.web.json_text import JSON, encode
from streamwatch.edge.web.openapi.paths import errors, paths
from streamwatch.edge.web.openapi.schemas import Schema, schemas


class OpenApiExporter:
    """`/api/v1/openapi.json`."""

    routes: Sequence[str] = ("/api/v1/openapi.json",)
    query: Mapping[str, str] = {}
    headers: Mapping[str, str] = {}
    public = False

    def media_type(self, accept: str, asked: Mapping[str, str]) -> str:
        """JSON, whatever is asked for."""
        del accept, asked
        return JSON

    def render(
        self, report: Report | None, live: Sequence[Family], media_type: str, asked: Mapping[str, str]
    ) -> bytes:
        """The same document always."""
        del report, live, media_type, asked
        return encode(document())


def document() -> Schema:
    """Everything the server answers."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "streamwatch",
            "version": __version__,
            "description": (
                "What is known of the models on the watched stream. Everything is as of the last durable "
                "commit, except how the daemon itself is. Undefined values are absent; infinities are the "
                "strings `+Inf` and `-Inf`. In a path, write a `/` in a model's name as `%2F`."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "security": [{"bearer": []}],
        "paths": paths(),
        "components": {
            "schemas": schemas(),
            "parameters": {
                "model": {
                    "name": "model",
                    "in": "path",
                    "required": True,
                    "schema": {"type": "string"},
                    "example": "fraud-v3",
                }
            },
            "responses": errors(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Asked for only where `http.token` or `http.token_file` is set.",
                }
            },
        },
    }
