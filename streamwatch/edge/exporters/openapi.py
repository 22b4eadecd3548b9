"""What the HTTP server answers, as an OpenAPI 3.1 document at `/api/v1/openapi.json`.

Longer than 250 lines because a description of every route stands in one place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from streamwatch import __version__
from streamwatch.core.series import Family, Report
from streamwatch.edge.exporters.alarms import DEFAULT_LIMIT
from streamwatch.edge.exporters.json_text import JSON, encode
from streamwatch.edge.exporters.verdict import RULE

Schema: TypeAlias = "dict[str, Any]"


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
        "paths": _paths(),
        "components": {
            "schemas": _schemas(),
            "parameters": {
                "model": {
                    "name": "model",
                    "in": "path",
                    "required": True,
                    "schema": {"type": "string"},
                    "example": "fraud-v3",
                }
            },
            "responses": _errors(),
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Asked for only where `http.token` or `http.token_file` is set.",
                }
            },
        },
    }


def _paths() -> Schema:
    model = [{"$ref": "#/components/parameters/model"}]
    return {
        "/api/v1/models": _get("Every number of every model", "Models", tag="models"),
        "/api/v1/models/{model}": _get(
            "Every number of one model", "Model", tag="models", parameters=model, errors=("NotFound",)
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
        "/api/v1/overview": _get("One short row for every model, and the latest alarms", "Overview"),
        "/api/v1/stream": {
            "get": {
                "summary": "The overview, kept up to date by server-sent events",
                "description": (
                    "First an event `overview` (schema Overview), then after every report an event `report` "
                    "(schema Changes); the id is the report's time in milliseconds. A comment every 15 s "
                    "keeps the connection alive. Who reconnects is given the whole picture again."
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
        "/api/v1/health": _get("How the daemon itself is", "Health", tag="daemon"),
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
                "responses": {"200": _json("Alive", _ref("Alive"))},
            }
        },
        "/readyz": {
            "get": {
                "summary": "Whether state is open and partitions are assigned",
                "tags": ["daemon"],
                "security": [],
                "responses": {
                    "200": _json("Ready", _ref("Ready")),
                    "503": _json("Not ready, and why", _ref("Ready")),
                },
            }
        },
        "/": _file("The status page", "text/html"),
        "/page/{file}": _file(
            "A part of the status page",
            "*/*",
            [{"name": "file", "in": "path", "required": True, "schema": {"type": "string"}}],
        ),
    }


def _schemas() -> Schema:
    published = {
        "type": ["number", "null"],
        "description": "Seconds since 1970; null before the first report",
    }
    number = {"oneOf": [{"type": "number"}, {"enum": ["+Inf", "-Inf"]}]}
    tree = {
        "type": "object",
        "description": "Metric (without the prefix) → value, nested by label values in the labels' order",
        "additionalProperties": {"oneOf": [*number["oneOf"], {"$ref": "#/components/schemas/Tree"}]},
    }
    points = {"type": "array", "items": {"type": ["number", "null"]}}
    document = {
        "metrics": _ref("Tree"),
        "details": {
            "type": "object",
            "properties": {
                "classes": {"type": "array", "items": {"type": "string"}},
                "first_seen_timestamp_seconds": {"type": "number"},
            },
        },
    }
    alarms = {"type": "array", "items": _ref("Alarm")}
    rows = {"type": "object", "additionalProperties": _ref("Row")}
    forgetting = {"type": ["string", "null"], "description": "The forgetting under which the numbers are"}
    return {
        "Tree": tree,
        "Models": _object(
            {
                "published_timestamp_seconds": published,
                "models": {"type": "object", "additionalProperties": _object(document)},
                "stream": _ref("Tree"),
            }
        ),
        "Model": _object({"published_timestamp_seconds": published, "model": {"type": "string"}, **document}),
        "Series": {
            "type": "object",
            "additionalProperties": {"oneOf": [points, _ref("Series")]},
            "description": "One value for each timestamp, null where undefined, nested as in Tree",
        },
        "History": _object(
            {
                "model": {"type": "string"},
                "forgetting": forgetting,
                "timestamps": {"type": "array", "items": {"type": "number"}},
                "series": _ref("Series"),
            }
        ),
        "Row": _object(
            {
                "verdict": {
                    "enum": ["yes", "not shown", "no"],
                    "description": f"Better than guessing what came last? {RULE}",
                }
            },
            outcomes=number,
            accuracy=_ratio("Share of outcomes the model got right"),
            lower=_ratio("Hoeffding bound: the true accuracy is at least this"),
            upper=_ratio("Hoeffding bound: the true accuracy is at most this"),
            effective_outcomes=number,
            persistent=_ratio("Accuracy of guessing what came last"),
            majority=_ratio("Accuracy of always guessing the most frequent class"),
            kappa_plus=number,
            alarms=number,
            last_alarm_timestamp_seconds=number,
            delay_median_seconds={"type": "number", "minimum": 0},
            delay_p90_seconds={"type": "number", "minimum": 0},
            pending=number,
        ),
        "Overview": _object(
            {
                "published_timestamp_seconds": published,
                "forgetting": forgetting,
                "rule": {"type": "string"},
                "models": rows,
                "alarms": alarms,
            }
        ),
        "Changes": _object(
            {
                "published_timestamp_seconds": {"type": "number"},
                "forgetting": forgetting,
                "models": {**rows, "description": "Rows that changed, whole"},
                "gone": {"type": "array", "items": {"type": "string"}},
                "alarms": {**alarms, "description": "Raised since the event before, newest first"},
            }
        ),
        "Alarm": _object(
            {
                "model": {"type": "string"},
                "detector": {"type": "string"},
                "ordinal": {"type": "integer", "minimum": 1},
                "outcome": {"type": "integer", "minimum": 1},
                "timestamp_seconds": {"type": "number", "description": "Event time of that outcome"},
            },
            statistic={"type": "number"},
            threshold={"type": "number"},
            before={"type": "number", "description": "Mean loss before the change"},
            after={"type": "number", "description": "Mean loss after it"},
            effective_outcomes={"type": "number"},
        ),
        "Alarms": _object({"published_timestamp_seconds": published, "alarms": alarms}),
        "Health": _object(
            {
                "ready": {"type": "boolean"},
                "reasons": {"type": "array", "items": {"type": "string"}},
                "published_timestamp_seconds": published,
                "stream": _ref("Tree"),
            }
        ),
        "Alive": _object({"status": {"const": "alive"}}),
        "Ready": _object(
            {"ready": {"type": "boolean"}, "reasons": {"type": "array", "items": {"type": "string"}}}
        ),
        "Error": _object({"error": {"type": "string"}, "status": {"type": "integer"}}),
    }


def _errors() -> Schema:
    said = {
        "BadRequest": "A query parameter is none",
        "NotFound": "No such model",
        "TooMany": "Too many are served already; Retry-After says when to come back",
        "Unauthorized": "A bearer token is needed",
    }
    return {name: _json(text, _ref("Error")) for name, text in said.items()}


_STATUS = {"BadRequest": "400", "Unauthorized": "401", "NotFound": "404", "TooMany": "503"}


def _get(
    summary: str,
    schema: str,
    *,
    tag: str = "overview",
    parameters: Sequence[Schema] = (),
    errors: Sequence[str] = (),
) -> Schema:
    answers = {"200": _json(summary, _ref(schema)), **_refs("Unauthorized", *errors, "TooMany")}
    operation: Schema = {"summary": summary, "tags": [tag], "responses": answers}
    return {"get": operation | ({"parameters": list(parameters)} if parameters else {})}


def _file(summary: str, media_type: str, parameters: Sequence[Schema] = ()) -> Schema:
    answer = {"description": summary, "content": {media_type: {"schema": {"type": "string"}}}}
    operation: Schema = {"summary": summary, "tags": ["page"], "security": [], "responses": {"200": answer}}
    return {"get": operation | ({"parameters": list(parameters)} if parameters else {})}


def _refs(*names: str) -> Schema:
    return {_STATUS[name]: {"$ref": f"#/components/responses/{name}"} for name in names}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(description: str, schema: Schema) -> Schema:
    return {"description": description, "content": {"application/json": {"schema": schema}}}


def _query(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}


def _object(required: Schema, **optional: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def _ratio(description: str) -> Schema:
    return {"type": "number", "minimum": 0, "maximum": 1, "description": description}
