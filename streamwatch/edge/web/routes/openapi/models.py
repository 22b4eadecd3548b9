"""Shapes of what is answered about models."""

from __future__ import annotations

from streamwatch.edge.web.routes.openapi.late import prediction_clock_schema
from streamwatch.edge.web.routes.openapi.parts import (
    FOLD_ACCURACIES,
    NAMES,
    NUMBER,
    PUBLISHED,
    Schema,
    object_of,
    ratio,
    ref,
)
from streamwatch.edge.web.routes.openapi.rows import CAVEATS


def model_schemas() -> Schema:
    """Models, and what of one is no series."""
    tree = {
        "type": "object",
        "description": "Metric (without the prefix) → value, nested by label values in the labels' order",
        "additionalProperties": {"oneOf": [*NUMBER["oneOf"], {"$ref": "#/components/schemas/Tree"}]},
    }
    document = {
        "metrics": ref("Tree"),
        "details": {
            "type": "object",
            "properties": {
                "classes": {"type": "array", "items": {"type": "string"}},
                "first_seen_timestamp_seconds": {"type": "number"},
                "classes_disjoint": object_of({"predicted_class": NAMES, "true": NAMES}),
                "scores_as_classes": object_of({"predicted_class": NAMES}),
                "nothing_joins": object_of({"predictions": {"type": "integer"}}),
                "open_incidents": {"type": "array", "items": ref("Incident")},
                "confusion": ref("Confusion"),
                "probabilities": ref("Probabilities"),
                "folds": FOLD_ACCURACIES,
                "segments": {"type": "object", "additionalProperties": ref("Segment")},
                "late_labels": ref("LateLabels"),
                "early_hints": ref("EarlyHints"),
                "label_delays": ref("LabelDelays"),
                "revisions": ref("Revisions"),
                "recovery": ref("Recovery"),
                "prediction_clock": prediction_clock_schema(),
                **CAVEATS,
            },
        },
    }
    return {
        "Tree": tree,
        "Models": object_of(
            {
                "published_timestamp_seconds": PUBLISHED,
                "models": {"type": "object", "additionalProperties": object_of(document)},
                "stream": ref("Tree"),
            }
        ),
        "Model": object_of(
            {"published_timestamp_seconds": PUBLISHED, "model": {"type": "string"}, **document}
        ),
        "Confusion": {
            **object_of(
                {
                    "forgetting": {"type": "string"},
                    "classes": {"type": "array", "items": {"type": "string"}},
                    "counts": {
                        "type": "array",
                        "items": {"type": "array", "items": {"type": "number", "minimum": 0}},
                    },
                }
            ),
            "description": "Faded counts of outcomes, a row per true class, a number per predicted class; "
            "only where one model is asked for, and only where shadow classifiers run",
        },
        "Segment": {
            **object_of(
                {
                    "outcomes": {"type": "integer", "minimum": 1},
                    "values": {"type": "array", "items": ref("SegmentValue")},
                    "values_left_out": {"type": "integer", "minimum": 0},
                }
            ),
            "description": "Values of one segment, the busiest first; only where one model is asked for",
        },
        "SegmentValue": {
            **object_of(
                {"value": {"type": "string"}, "outcomes": {"type": "integer", "minimum": 0}},
                traffic_ratio=ratio("Of the segment's outcomes, faded"),
                error_before_ratio=ratio("Over its whole past"),
                error_now_ratio=ratio("Of late: fading factor 0.99"),
                extra_errors_ratio=ratio("Its share of the model's extra errors"),
            ),
            "additionalProperties": {"type": "number", "description": "A measure under its name"},
        },
    }
