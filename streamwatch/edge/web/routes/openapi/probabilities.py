"""The shape of what is said of the class scores of a model."""

from __future__ import annotations

from streamwatch.edge.web.routes.openapi.parts import Schema, object_of


def probability_schemas() -> Schema:
    """Name it and its parts."""
    number = {"type": ["number", "null"]}
    numbers = {"type": "array", "items": number}
    share = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
    bins = object_of(
        {
            "from": {"type": "number"},
            "to": {"type": "number", "description": "Itself outside, but for the last bin"},
            "outcomes": {"type": "number", "minimum": 0, "description": "Faded weight"},
            "mean_score": {**share, "description": "Of the predicted class; null for an empty bin"},
            "hit_share": {**share, "description": "How often the predicted class was right"},
        }
    )
    curve = object_of({"precision": numbers, "recall": numbers})
    return {
        "Probabilities": {
            **object_of(
                {
                    "scored_outcomes": {"type": "integer", "minimum": 0},
                    "alpha": {"type": "number", "description": "Fading factor of bins and curves"},
                    "calibration_error": {**share, "description": "Expected calibration error"},
                    "reliability": {"type": "array", "items": bins},
                    "auc": {**share, "description": "Mean area under the ROC curve of classes that have one"},
                    "auc_outcomes": {"type": "integer", "minimum": 0, "description": "Outcomes it is over"},
                    "auc_by_class": {"type": "object", "additionalProperties": share},
                    "thresholds": {"type": "array", "items": {"type": "number"}},
                    "curves": {
                        "type": "object",
                        "additionalProperties": curve,
                        "description": "By class: had it been predicted from each threshold on",
                    },
                }
            ),
            "description": "Of class scores; only where one model is asked for that sends them",
        },
    }
