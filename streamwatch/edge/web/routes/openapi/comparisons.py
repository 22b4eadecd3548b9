"""Shapes of what is answered about compared models."""

from __future__ import annotations

from streamwatch.edge.web.routes.comparisons import RULE as COMPARISON_RULE
from streamwatch.edge.web.routes.openapi.parts import (
    FORGETTING,
    NUMBER,
    POINTS,
    PUBLISHED,
    Schema,
    lead,
    object_of,
    ref,
)


def comparison_schemas() -> Schema:
    """Champions beside challengers, now and over time."""
    return {
        "Comparison": object_of(
            {
                "champion": {"type": "string"},
                "challenger": {"type": "string"},
                "pairs": {**NUMBER, "description": "Ids on which both met the same label"},
                "last_pair_timestamp_seconds": {"type": "number"},
                "verdict": {"enum": ["better", "worse", "open"], "description": COMPARISON_RULE},
                "evidence": {
                    "type": "object",
                    "additionalProperties": {"type": "number", "minimum": 0},
                    "description": "For better and for worse: 0 none, 1 a verdict, then 0 again",
                },
                "measures": {
                    "type": "object",
                    "additionalProperties": ref("Tree"),
                    "description": "By forgetting: q, mcnemar, mcnemar_calibrated, errors, pairs that one "
                    "model alone got right. All of them describe; the verdict decides",
                },
            },
            verdict_since_timestamp_seconds={"type": "number", "description": "Event time since which"},
            verdict_since_pair={"type": "integer", "minimum": 1, "description": "Pair since which"},
            lead=lead("Mean utility of the challenger less the champion's, since the verdict last changed"),
            lead_lower=lead(
                "The mean lead is at least this at any look, if losses do not depend on earlier ones"
            ),
            lead_upper=lead(
                "The mean lead is at most this at any look, if losses do not depend on earlier ones"
            ),
            lead_dispersion=NUMBER,
        ),
        "Comparisons": object_of(
            {
                "published_timestamp_seconds": PUBLISHED,
                "forgetting": FORGETTING,
                "rule": {"type": "string"},
                "comparisons": {
                    "type": "array",
                    "items": ref("Comparison"),
                    "description": "By champion, the challenger that leads most first",
                },
            }
        ),
        "ComparisonHistory": object_of(
            {
                "champion": {"type": "string"},
                "forgetting": FORGETTING,
                "timestamps": {"type": "array", "items": {"type": "number"}},
                "challengers": {
                    "type": "object",
                    "additionalProperties": object_of({"q": POINTS, "lead": POINTS}),
                },
            }
        ),
    }
