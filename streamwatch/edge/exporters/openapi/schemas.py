"""The shapes of what the server answers, by the names under which the document knows them."""

from __future__ import annotations

from typing import Any, TypeAlias

from streamwatch.edge.exporters.verdict import RULE

Schema: TypeAlias = "dict[str, Any]"


def schemas() -> Schema:
    """Every one of them."""
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
        "metrics": ref("Tree"),
        "details": {
            "type": "object",
            "properties": {
                "classes": {"type": "array", "items": {"type": "string"}},
                "first_seen_timestamp_seconds": {"type": "number"},
            },
        },
    }
    alarms = {"type": "array", "items": ref("Alarm")}
    rows = {"type": "object", "additionalProperties": ref("Row")}
    forgetting = {"type": ["string", "null"], "description": "The forgetting under which the numbers are"}
    return {
        "Tree": tree,
        "Models": _object(
            {
                "published_timestamp_seconds": published,
                "models": {"type": "object", "additionalProperties": _object(document)},
                "stream": ref("Tree"),
            }
        ),
        "Model": _object({"published_timestamp_seconds": published, "model": {"type": "string"}, **document}),
        "Series": {
            "type": "object",
            "additionalProperties": {"oneOf": [points, ref("Series")]},
            "description": "One value for each timestamp, null where undefined, nested as in Tree",
        },
        "History": _object(
            {
                "model": {"type": "string"},
                "forgetting": forgetting,
                "timestamps": {"type": "array", "items": {"type": "number"}},
                "series": ref("Series"),
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
                "stream": ref("Tree"),
            }
        ),
        "Alive": _object({"status": {"const": "alive"}}),
        "Ready": _object(
            {"ready": {"type": "boolean"}, "reasons": {"type": "array", "items": {"type": "string"}}}
        ),
        "Error": _object({"error": {"type": "string"}, "status": {"type": "integer"}}),
    }


def ref(name: str) -> Schema:
    """The schema of this name, wherever one is expected."""
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: Schema, **optional: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def _ratio(description: str) -> Schema:
    return {"type": "number", "minimum": 0, "maximum": 1, "description": description}
