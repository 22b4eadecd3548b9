"""The shape of first and last predictions compared with their labels."""

from __future__ import annotations

from streamwatch.edge.web.routes.openapi.parts import Schema, object_of, ratio


def revisions_schema() -> Schema:
    """Schema of a model's revisions."""
    count: Schema = {"type": "integer", "minimum": 0}
    difference: Schema = {"type": "number", "minimum": -1, "maximum": 1}
    seconds: Schema = {"type": "array", "items": {"type": "number", "minimum": 0}}
    ratios: Schema = {"type": "array", "items": ratio("Of the outcomes of a waiting time")}
    gain = object_of(
        {
            "value": {**difference, "description": "last_accuracy - first_accuracy"},
            "effective_sample_size": {"type": "number", "minimum": 0},
        },
        lower={**difference, "description": "Interval of 95 % as of one look (Agresti, Min 2005)"},
        upper=difference,
    )
    by_waiting_time = object_of(
        {
            "over_seconds": seconds,
            "up_to_seconds": seconds,
            "weight": {"type": "array", "items": {"type": "number", "minimum": 0}},
            "first_accuracy": ratios,
            "last_accuracy": ratios,
            "revised_ratio": ratios,
        }
    )
    return {
        **object_of(
            {
                "outcomes": {**count, "description": "Since the estimate began, as revised, gained and lost"},
                "revised": {**count, "description": "Whose last prediction is of another class"},
                "gained": {**count, "description": "Whose last prediction alone was right"},
                "lost": {**count, "description": "Whose first prediction alone was right"},
                "first_accuracy": ratio("Of first predictions, faded"),
                "last_accuracy": ratio("Of last predictions, over the same outcomes"),
                "revised_ratio": ratio("Share of outcomes revised, faded"),
                "gain": gain,
                "by_waiting_time": {
                    **by_waiting_time,
                    "description": "By the time from the first prediction to the label; those with weight",
                },
            }
        ),
        "description": "First and last predictions of an id against its label; only where one model is asked "
        "for, with join.conflicts: both",
    }
