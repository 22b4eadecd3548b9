"""Schemas of a model's row in the overview, and of its open incidents."""

from __future__ import annotations

from typing import Final

from streamwatch.core.alerting.notification import SEVERITIES
from streamwatch.edge.web.routes.openapi.parts import NUMBER, Schema, lead, object_of, ratio
from streamwatch.edge.web.routes.overview import RULE
from streamwatch.edge.web.routes.trouble import TROUBLES

CAVEATS: Final[Schema] = {
    "first_horizon_ends_timestamp_seconds": {
        "type": "number",
        "description": "When the first prediction is one join.horizon old; absent once it is. Until then "
        "only quick labels are in, and slower ones may say otherwise of the model",
    },
    "first_horizon_predictions": {
        "type": "integer",
        "minimum": 0,
        "description": "Predictions taken in so far; absent when the first is one join.horizon old",
    },
    "first_horizon_labelled": {
        "type": "integer",
        "minimum": 0,
        "description": "Those of them that have been matched with a label",
    },
    "first_horizon_only_label": {
        "type": "string",
        "description": "The class that all of these labels are of; absent if they are of several",
    },
    "labels_assumed_as": {
        "type": "string",
        "description": "Class that predictions without a label count as (join.on_expiry); else absent",
    },
}


def row_schemas() -> Schema:
    """Schemas by name."""
    return {
        "Row": object_of(
            {
                "verdict": {
                    "enum": ["better", "worse", "open"],
                    "description": f"Better than no change? {RULE}",
                },
                "trouble": {
                    "enum": list(TROUBLES),
                    "description": "The first that holds: the verdict is worse, an incident is open, there "
                    "is a warning, the verdict is open, or it is better",
                },
            },
            verdict_since_timestamp_seconds={"type": "number", "description": "Event time since which"},
            verdict_since_outcome={"type": "integer", "minimum": 1, "description": "Outcome since which"},
            lead=lead("Mean utility of the model less that of no change, since the verdict last changed"),
            lead_lower=lead(
                "The mean lead is at least this at any look, if losses do not depend on earlier ones"
            ),
            lead_upper=lead(
                "The mean lead is at most this at any look, if losses do not depend on earlier ones"
            ),
            outcomes=NUMBER,
            accuracy=ratio("Share of outcomes the model got right"),
            lower=ratio("Hoeffding bound: the true accuracy is at least this"),
            upper=ratio("Hoeffding bound: the true accuracy is at most this"),
            effective_sample_size=NUMBER,
            persistent=ratio("Accuracy of no change: predicting the previous label"),
            majority=ratio("Accuracy of always guessing the most frequent class"),
            kappa_plus=NUMBER,
            alarms=NUMBER,
            last_alarm_timestamp_seconds=NUMBER,
            delay_median_seconds={"type": "number", "minimum": 0},
            delay_p90_seconds={"type": "number", "minimum": 0},
            pending=NUMBER,
            joined=ratio("Share of predictions that have been matched with a label so far"),
            warning={
                "type": "string",
                "description": "What is silently wrong: classes or ids that never agree, labels that stopped",
            },
            waiting={"type": "string", "description": "Why a model that predicts has no outcome yet"},
            invalid={**NUMBER, "description": "Records of the model that were invalid; absent without any"},
            incidents={"type": "integer", "minimum": 1, "description": "Open incidents; absent without any"},
            incident_severity={"enum": list(SEVERITIES), "description": "Of the latest"},
            incident_since_timestamp_seconds={"type": "number", "description": "Event time of its beginning"},
            verdict_before={
                "enum": ["better", "worse", "open"],
                "description": "Before the last change, if that is among the recent alarms",
            },
            verdict_changed_timestamp_seconds={
                "type": "number",
                "description": "Event time of the outcome at which the verdict changed",
            },
            **CAVEATS,
        ),
        "Incident": object_of(
            {
                "incident": {"type": "string", "description": "Id, as in notifications"},
                "severity": {"enum": list(SEVERITIES)},
                "started_timestamp_seconds": {"type": "number", "description": "Event time"},
                "alarms": {
                    "type": "array",
                    "items": object_of(
                        {
                            "detector": {"type": "string"},
                            "severity": {"enum": list(SEVERITIES)},
                            "started_timestamp_seconds": {"type": "number"},
                        },
                        before={"type": "number", "description": "Mean loss before; absent of a verdict"},
                        after={"type": "number", "description": "Mean loss after"},
                    ),
                    "description": "Its alarms that are open",
                },
            }
        ),
    }
