"""The shapes of what the server answers, by the names under which the document knows them."""

from __future__ import annotations

from streamwatch.edge.web.routes.openapi.alarms import alarm_schemas
from streamwatch.edge.web.routes.openapi.comparisons import comparison_schemas
from streamwatch.edge.web.routes.openapi.early_hints import early_hint_schemas
from streamwatch.edge.web.routes.openapi.folds import fold_schemas
from streamwatch.edge.web.routes.openapi.histories import history_schemas
from streamwatch.edge.web.routes.openapi.late import label_delays_schema, late_schemas
from streamwatch.edge.web.routes.openapi.models import model_schemas
from streamwatch.edge.web.routes.openapi.parts import (
    ALARMS,
    FORGETTING,
    PUBLISHED,
    Schema,
    object_of,
    ref,
)
from streamwatch.edge.web.routes.openapi.probabilities import probability_schemas
from streamwatch.edge.web.routes.openapi.recovery import recovery_schema
from streamwatch.edge.web.routes.openapi.revisions import revisions_schema
from streamwatch.edge.web.routes.openapi.rows import row_schemas


def schemas() -> Schema:
    """Every one of them."""
    rows = {"type": "object", "additionalProperties": ref("Row")}
    return {
        **row_schemas(),
        **late_schemas(),
        **probability_schemas(),
        **early_hint_schemas(),
        "LabelDelays": label_delays_schema(),
        "Revisions": revisions_schema(),
        "Recovery": recovery_schema(),
        **model_schemas(),
        **history_schemas(),
        "Overview": object_of(
            {
                "published_timestamp_seconds": PUBLISHED,
                "forgetting": FORGETTING,
                "rule": {"type": "string"},
                "models": rows,
                "alarms": ALARMS,
            }
        ),
        "Changes": object_of(
            {
                "published_timestamp_seconds": {"type": "number"},
                "forgetting": FORGETTING,
                "models": {**rows, "description": "Rows that changed, whole"},
                "gone": {"type": "array", "items": {"type": "string"}},
                "alarms": {**ALARMS, "description": "Raised since the event before, newest first"},
            }
        ),
        **fold_schemas(),
        **alarm_schemas(),
        **comparison_schemas(),
        "Alarms": object_of({"published_timestamp_seconds": PUBLISHED, "alarms": ALARMS}),
        "Health": object_of(
            {
                "ready": {"type": "boolean"},
                "reasons": {"type": "array", "items": {"type": "string"}},
                "published_timestamp_seconds": PUBLISHED,
                "stream": ref("Tree"),
            }
        ),
        "Index": object_of(
            {
                **{name: {"type": "string"} for name in ("title", "version", "openapi", "docs")},
                "routes": {
                    "type": "array",
                    "items": object_of({"path": {"type": "string"}, "summary": {"type": "string"}}),
                },
            }
        ),
        "Alive": object_of({"status": {"const": "alive"}}),
        "Ready": object_of(
            {"ready": {"type": "boolean"}, "reasons": {"type": "array", "items": {"type": "string"}}}
        ),
        "Error": object_of({"error": {"type": "string"}, "status": {"type": "integer"}}),
    }
