"""The shape of what predictions say before their labels come."""

from __future__ import annotations

from streamwatch.edge.web.routes.openapi.parts import Schema, object_of


def early_hint_schemas() -> Schema:
    """Name it and its parts."""
    share = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
    shares = {"type": "object", "additionalProperties": share}
    hint = object_of(
        {
            "class": {"type": ["string", "null"], "description": "null: the score of the predicted class"},
            "more": {"type": "boolean", "description": "More of it than before, or a higher score"},
            "timestamp_seconds": {"type": "number", "description": "Record time of the hint"},
        }
    )
    stretch = object_of(
        {
            "start_timestamp_seconds": {"type": "number"},
            "end_timestamp_seconds": {"type": "number"},
            "predictions": {"type": "integer", "minimum": 0, "description": "With scores"},
            "labelled": {"type": "integer", "minimum": 0, "description": "Those whose label has come"},
            "expected_accuracy": {**share, "description": "By scores, and labels of earlier predictions"},
            "accuracy": {**share, "description": "By labels; null before 30 of them"},
        }
    )
    return {
        "EarlyHints": {
            **object_of(
                {
                    "predictions": {"type": "integer", "minimum": 0},
                    "reach": {"type": "integer", "minimum": 4096, "description": "Predictions looked back"},
                    "hints": {"type": "integer", "minimum": 0},
                    "hint": {
                        "oneOf": [hint, {"type": "null"}],
                        "description": "For `reach` predictions",
                    },
                    "evidence": {"type": "number", "minimum": 0, "description": "0 none, 1 a hint"},
                    "shares_before": {**shares, "description": "Of predicted classes, `reach` ago"},
                    "shares_now": shares,
                    "score_before": {**share, "description": "Mean of the predicted class"},
                    "score_now": share,
                    "expected_accuracy": {**share, "description": "Of the latest predictions, by scores"},
                    "expected_accuracy_error": {
                        **share,
                        "description": "Mean absolute error, over stretches half labelled",
                    },
                    "unchanged_accuracy_error": {
                        **share,
                        "description": "The same of expecting the accuracy of earlier labels",
                    },
                    "stretches": {"type": "array", "items": stretch},
                }
            ),
            "description": "Predictions compared with earlier ones before their labels come; only where one "
            "model is asked for, and monitors.early_hints is set",
        },
    }
