"""The shape of a model's recovery after drifts."""

from __future__ import annotations

from streamwatch.edge.web.routes.openapi.parts import Schema, object_of, ratio


def recovery_schema() -> Schema:
    """Schema of the drift under way and the last that ended."""
    under_way = object_of(
        {
            "since_outcome": {"type": "integer", "minimum": 1, "description": "The drift's first outcome"},
            "alarm_timestamp_seconds": {"type": "number", "description": "Event time of its alarm"},
            "error_before_ratio": ratio("Faded error before the drift"),
            "error_now_ratio": ratio("Faded error now"),
        }
    )
    last = object_of(
        {
            "depth": ratio("Highest faded error less that before"),
            "outcomes": {
                "type": ["number", "null"],
                "minimum": 0,
                "description": "Until the error was back; 0 if it never left its bound, null if it did not "
                "come back",
            },
        }
    )
    return {
        **object_of(
            {"forgetting": {"type": "string", "description": "Fading factor whose error is followed"}},
            under_way=under_way,
            last=last,
        ),
        "description": "Recovery after drifts; only where one model is asked for, and not of models that "
        "predict in folds",
    }
