"""Shape of an alarm."""

from __future__ import annotations

from streamwatch.edge.web.routes.openapi.parts import (
    Schema,
    object_of,
    ref,
)


def alarm_schemas() -> Schema:
    """An alarm, and the verdict of one that is a change of verdict."""
    return {
        "Judgement": object_of(
            {
                "opponent": {"type": "string"},
                "verdict": {"enum": ["better", "worse", "open"]},
                "since_outcome": {"type": "integer", "minimum": 1},
                "since_timestamp_seconds": {"type": "number", "description": "Event time of that outcome"},
                "quick_labels_only": {
                    "type": "boolean",
                    "description": "Whether the model had been watched for less than join.horizon: slower "
                    "labels were missing",
                },
            }
        ),
        "Alarm": object_of(
            {
                "model": {"type": "string"},
                "detector": {"type": "string"},
                "ordinal": {"type": "integer", "minimum": 1},
                "outcome": {"type": "integer", "minimum": 1},
                "timestamp_seconds": {"type": "number", "description": "Event time of that outcome"},
            },
            statistic={"type": "number"},
            threshold={"type": "number"},
            judgement={**ref("Judgement"), "description": "Of a change of verdict; absent of a detector"},
            before={"type": "number", "description": "Mean loss before the change; absent of a verdict"},
            after={"type": "number", "description": "Mean loss after it"},
            effective_sample_size={"type": "number"},
            predictions={**ref("ErrorChange"), "description": "Since when predictions err otherwise"},
            predicted_timestamp_seconds={
                "type": "number",
                "description": "Of a detector in prediction time: the prediction at which it alarmed",
            },
        ),
    }
