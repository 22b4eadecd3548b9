"""Shapes of the past of models."""

from __future__ import annotations

from streamwatch.edge.web.routes.openapi.parts import (
    FORGETTING,
    POINTS,
    Schema,
    object_of,
    ratio,
    ref,
)


def history_schemas() -> Schema:
    """Series over time, and counts of past outcomes."""
    return {
        "Series": {
            "type": "object",
            "additionalProperties": {"oneOf": [POINTS, ref("Series")]},
            "description": "One value for each timestamp, null where undefined, nested as in Tree",
        },
        "History": object_of(
            {
                "model": {"type": "string"},
                "forgetting": FORGETTING,
                "timestamps": {"type": "array", "items": {"type": "number"}},
                "series": ref("Series"),
            }
        ),
        "Past": object_of(
            {
                "model": {"type": "string"},
                "days": {"type": "integer", "minimum": 0},
                "starts": {"type": "array", "items": {"type": "integer"}, "description": "Event times"},
                "seconds": {"type": "array", "items": {"enum": [60, 600, 3600]}},
                "outcomes": {"type": "array", "items": {"type": "integer", "minimum": 1}},
                "hits": {"type": "array", "items": {"type": "integer", "minimum": 0}},
                "accuracy": {"type": "array", "items": ratio("Of the stretch alone")},
                "persistent": {**POINTS, "description": "No change; null for models in several folds"},
            }
        ),
    }
