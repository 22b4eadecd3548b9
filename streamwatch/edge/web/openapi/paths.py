"""What is asked for at each path, and what comes back: with success, and without."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamwatch import __version__
from streamwatch.core.metrics.series import Family, Report
from streamwatch.edge.web.documents import Index, Route
from streamwatch.edge.web.json_text import JSON, encode
from streamwatch.edge.web.openapi.schemas import Schema, ref
from streamwatch.edge.web.routes.json_api import DEFAULT_LIMIT
from streamwatch.edge.web.routes.listing import PAGE, SORTS

_NAME: Schema = {"type": "string", "minLength": 1, "maxLength": 128}
_SWITCH: Schema = {"type": "string", "enum": ["0", "1"], "default": "0"}
_STATUS = {"BadRequest": "400", "Unauthorized": "401", "NotFound": "404", "TooMany": "503"}


def paths() -> Schema:
    """Every route of the server."""
    model = [{"$ref": "#/components/parameters/model"}]
    return {
        "/api/v1/models": _get("Every number of every model", "Models", tag="models"),
        "/api/v1/worse": _get(
            "Models that are worse than no change or the majority, of which few are expected to be false",
            "Worse",
            tag="models",
            parameters=[
                _query(
                    "share",
                    {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.05},
                    "Largest expected share of pairs listed falsely",
                ),
            ],
            errors=("BadRequest",),
        ),
        "/api/v1/models/{model}": _get(
            "Every number of one model; `.` and `..` are asked for as `%252E` and `%252E%252E`",
            "Model",
            tag="models",
            parameters=model,
            errors=("NotFound",),
        ),
        "/api/v1/models/{model}/history": _get(
            "The recent past of one model, as kept in memory: at most 600 points",
            "History",
            tag="models",
            parameters=[
                *model,
                _query(
                    "since",
                    {"type": "number", "minimum": 0},
                    "Only points after this time (seconds since 1970)",
                ),
            ],
            errors=("NotFound", "BadRequest"),
        ),
        "/api/v1/models/{model}/past": _get(
            "The past of one model as the state keeps it, coarser as it ages (`monitors.history_days`)",
            "Past",
            tag="models",
            parameters=model,
            errors=("NotFound",),
        ),
        "/api/v1/overview": _get("One short row for every model, and the latest alarms", "Overview"),
        "/api/v1/list": _get(
            "Rows of the overview as the status page shows them: found, sorted, in pages or groups",
            "Listing",
            parameters=[
                _query(
                    "sort", {"type": "string", "enum": list(SORTS), "default": "attention"}, "Order of rows"
                ),
                _query(
                    "order",
                    {"type": "string", "enum": ["ascending", "descending"], "default": "ascending"},
                    "Its direction; models without the value come last in both",
                ),
                _query(
                    "filter",
                    _NAME,
                    "Only models whose name or labels (team=payments) contain this, whatever the case",
                ),
                _query("prefix", _NAME, "Only models of this group"),
                _query("model", _NAME, "Only this model"),
                _query("label", _NAME, "Only models with this label: team=payments"),
                _query(
                    "group", _SWITCH, "1: groups of models by the beginning of their names, instead of rows"
                ),
                _query("first", {"type": "integer", "minimum": 0, "default": 0}, "Place of the first row"),
                _query(
                    "rows",
                    {"type": "integer", "minimum": 1, "maximum": 999, "default": PAGE},
                    "At most so many",
                ),
                _query("details", _SWITCH, "1: whole rows, not rounded"),
                _query("lines", _SWITCH, "1: with accuracy and both baselines over the last hours"),
            ],
            errors=("BadRequest",),
        ),
        "/api/v1/comparisons": _get(
            "Every comparison of two models on the same ids", "Comparisons", tag="models"
        ),
        "/api/v1/comparisons/{champion}/{challenger}/verdict": _get(
            "One comparison, for who decides whether the challenger takes the champion's place",
            "ComparisonVerdict",
            tag="models",
            parameters=[
                {
                    "name": name,
                    "in": "path",
                    "required": True,
                    "schema": {"type": "string"},
                    "example": example,
                }
                for name, example in (("champion", "fraud-v3"), ("challenger", "fraud-v4"))
            ],
            errors=("NotFound",),
        ),
        "/api/v1/comparisons/{champion}/history": _get(
            "The recent past of a champion's comparisons, as kept in memory: at most 600 points",
            "ComparisonHistory",
            tag="models",
            parameters=[
                {
                    "name": "champion",
                    "in": "path",
                    "required": True,
                    "schema": {"type": "string"},
                    "example": "fraud-v3",
                },
                _query(
                    "since",
                    {"type": "number", "minimum": 0},
                    "Only points after this time (seconds since 1970)",
                ),
            ],
            errors=("NotFound", "BadRequest"),
        ),
        "/api/v1/stream": {
            "get": {
                "summary": "News of every report, as server-sent events",
                "description": (
                    "An event `report` (schema News) at once and after every report: its time, the number of "
                    "models, and the alarms raised since the event before. The id is the report's time in "
                    "milliseconds. A comment every 15 s keeps the connection alive."
                ),
                "tags": ["overview"],
                "responses": {
                    "200": {
                        "description": "Events until either side leaves",
                        "content": {"text/event-stream": {"schema": {"type": "string"}}},
                    },
                    **_refs("Unauthorized", "TooMany"),
                },
            }
        },
        "/api/v1/alarms": _get(
            "Recent alarms of all models, newest first (at most the latest 1,000 are remembered)",
            "Alarms",
            tag="alarms",
            parameters=[
                _query(
                    "limit",
                    {"type": "integer", "minimum": 1, "maximum": 9_999, "default": DEFAULT_LIMIT},
                    "At most so many",
                ),
                _query("model", {"type": "string", "minLength": 1, "maxLength": 128}, "Only this model's"),
            ],
            errors=("BadRequest",),
        ),
        "/api/v1/folds": _get(
            "Models that predict in folds, compared over them at the last report",
            "Folds",
            tag="models",
            parameters=[
                _query(
                    "forgetting",
                    {"type": "string", "minLength": 1, "maxLength": 64},
                    "Accuracies under this forgetting; the first that fades, else the first, without it",
                )
            ],
            errors=("BadRequest",),
        ),
        "/api/v1/catalogue": _get("What is computed, by which formula and from whom", "Listed", tag="models"),
        "/api/v1/health": _get("How the daemon itself is", "Health", tag="daemon"),
        "/api": _get("This list: every route with one line on it", "Index", tag="daemon"),
        "/api/v1/openapi.json": {
            "get": {
                "summary": "This document",
                "tags": ["daemon"],
                "responses": {
                    "200": {
                        "description": "OpenAPI 3.1",
                        "content": {"application/json": {"schema": {"type": "object"}}},
                    },
                    **_refs("Unauthorized"),
                },
            }
        },
        "/metrics": {
            "get": {
                "summary": "Everything for Prometheus: text 0.0.4 or OpenMetrics 1.0, as the scraper asks",
                "tags": ["daemon"],
                "responses": {
                    "200": {
                        "description": "Exposition",
                        "content": {
                            "text/plain": {"schema": {"type": "string"}},
                            "application/openmetrics-text": {"schema": {"type": "string"}},
                        },
                    },
                    **_refs("Unauthorized"),
                },
            }
        },
        "/healthz": {
            "get": {
                "summary": "Whether the daemon lives: its event loop turns",
                "tags": ["daemon"],
                "security": [],
                "responses": {"200": _json("Alive", ref("Alive"))},
            }
        },
        "/readyz": {
            "get": {
                "summary": "Whether state is open and partitions are assigned",
                "tags": ["daemon"],
                "security": [],
                "responses": {
                    "200": _json("Ready", ref("Ready")),
                    "503": _json("Not ready, and why", ref("Ready")),
                },
            }
        },
        "/": _file("The status page", "text/html"),
        "/docs": _file("This description as a page", "text/html"),
        "/page/{file}": _file(
            "A part of the status page",
            "*/*",
            [{"name": "file", "in": "path", "required": True, "schema": {"type": "string"}}],
        ),
    }


def errors() -> Schema:
    """Answers that several routes share."""
    descriptions = {
        "BadRequest": "A query parameter has a value that is not allowed",
        "NotFound": "No such model",
        "TooMany": "Too many are served already; Retry-After says when to come back",
        "Unauthorized": "A bearer token is needed",
    }
    return {name: _json(text, ref("Error")) for name, text in descriptions.items()}


def _get(
    summary: str,
    schema: str,
    *,
    tag: str = "overview",
    parameters: Sequence[Schema] = (),
    errors: Sequence[str] = (),
) -> Schema:
    answers = {"200": _json(summary, ref(schema)), **_refs("Unauthorized", *errors, "TooMany")}
    operation: Schema = {"summary": summary, "tags": [tag], "responses": answers}
    return {"get": operation | ({"parameters": list(parameters)} if parameters else {})}


def _file(summary: str, media_type: str, parameters: Sequence[Schema] = ()) -> Schema:
    answer = {"description": summary, "content": {media_type: {"schema": {"type": "string"}}}}
    operation: Schema = {"summary": summary, "tags": ["page"], "security": [], "responses": {"200": answer}}
    return {"get": operation | ({"parameters": list(parameters)} if parameters else {})}


def _refs(*names: str) -> Schema:
    return {_STATUS[name]: {"$ref": f"#/components/responses/{name}"} for name in names}


def _json(description: str, schema: Schema) -> Schema:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _query(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}


# `/api`: every route with one line on it, and where the whole description is.
#
# `GET /api`::
#
# {"title": "streamwatch", "version": "0.1.0", "openapi": "/api/v1/openapi.json", "docs": "/docs", "routes":
# [{"path": "/api/v1/models", "summary": "Every number of every model"}]}


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
            Index(
                "streamwatch",
                __version__,
                "/api/v1/openapi.json",
                "/docs",
                [Route(path, item["get"]["summary"]) for path, item in paths().items()],
            )
        )
