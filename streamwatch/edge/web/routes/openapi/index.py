"""`/api`: every route with one line on it, and where the whole description is.

`GET /api`::

    {"title": "streamwatch", "version": "0.1.0", "openapi": "/api/v1/openapi.json", "docs": "/docs",
     "routes": [{"path": "/api/v1/models", "summary": "Every number of every model"}]}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamwatch import __version__
from streamwatch.core.series import Family, Report
from streamwatch.edge.web.json_text import JSON, encode
from streamwatch.edge.web.routes.openapi.paths import paths


class ApiIndexExporter:
    """`/api`: what there is to ask."""

    routes: Sequence[str] = ("/api",)
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
        """The same list always."""
        del report, live, media_type, asked
        return encode(
            {
                "title": "streamwatch",
                "version": __version__,
                "openapi": "/api/v1/openapi.json",
                "docs": "/docs",
                "routes": [
                    {"path": path, "summary": item["get"]["summary"]} for path, item in paths().items()
                ],
            }
        )
