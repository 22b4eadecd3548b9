"""The shapes of what the server answers, by the names under which the document knows them."""

from __future__ import annotations

from streamwatch.edge.web.routes.comparisons import RULE as COMPARISON_RULE
from streamwatch.edge.web.routes.openapi.early_hints import early_hint_schemas
from streamwatch.edge.web.routes.openapi.late import (
    label_delays_schema,
    late_schemas,
    prediction_clock_schema,
)
from streamwatch.edge.web.routes.openapi.parts import NUMBER, Schema, lead, object_of, ratio, ref
from streamwatch.edge.web.routes.openapi.probabilities import probability_schemas
from streamwatch.edge.web.routes.openapi.revisions import revisions_schema
from streamwatch.edge.web.routes.openapi.rows import CAVEATS, row_schemas


def schemas() -> Schema:
    """Every one of them."""
    published = {
        "type": ["number", "null"],
        "description": "Seconds since 1970; null before the first report",
    }
    tree = {
        "type": "object",
        "description": "Metric (without the prefix) → value, nested by label values in the labels' order",
        "additionalProperties": {"oneOf": [*NUMBER["oneOf"], {"$ref": "#/components/schemas/Tree"}]},
    }
    names = {"type": "array", "items": {"type": "string"}}
    points = {"type": "array", "items": {"type": ["number", "null"]}}
    ratios = {"type": "object", "additionalProperties": ratio("Accuracy")}
    accuracies = {
        "type": "object",
        "additionalProperties": ratios,
        "description": "Accuracy by forgetting and fold, of a model that predicts in folds",
    }
    document = {
        "metrics": ref("Tree"),
        "details": {
            "type": "object",
            "properties": {
                "classes": {"type": "array", "items": {"type": "string"}},
                "first_seen_timestamp_seconds": {"type": "number"},
                "classes_disjoint": object_of({"predicted_class": names, "true": names}),
                "scores_as_classes": object_of({"predicted_class": names}),
                "nothing_joins": object_of({"predictions": {"type": "integer"}}),
                "open_incidents": {"type": "array", "items": ref("Incident")},
                "confusion": ref("Confusion"),
                "probabilities": ref("Probabilities"),
                "folds": accuracies,
                "segments": {"type": "object", "additionalProperties": ref("Segment")},
                "late_labels": ref("LateLabels"),
                "early_hints": ref("EarlyHints"),
                "label_delays": ref("LabelDelays"),
                "revisions": ref("Revisions"),
                "prediction_clock": prediction_clock_schema(),
                **CAVEATS,
            },
        },
    }
    alarms = {"type": "array", "items": ref("Alarm")}
    rows = {"type": "object", "additionalProperties": ref("Row")}
    forgetting = {"type": ["string", "null"], "description": "The forgetting under which the numbers are"}
    return {
        **row_schemas(),
        **late_schemas(),
        **probability_schemas(),
        **early_hint_schemas(),
        "LabelDelays": label_delays_schema(),
        "Revisions": revisions_schema(),
        "Tree": tree,
        "Models": object_of(
            {
                "published_timestamp_seconds": published,
                "models": {"type": "object", "additionalProperties": object_of(document)},
                "stream": ref("Tree"),
            }
        ),
        "Model": object_of(
            {"published_timestamp_seconds": published, "model": {"type": "string"}, **document}
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
        "Series": {
            "type": "object",
            "additionalProperties": {"oneOf": [points, ref("Series")]},
            "description": "One value for each timestamp, null where undefined, nested as in Tree",
        },
        "History": object_of(
            {
                "model": {"type": "string"},
                "forgetting": forgetting,
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
                "persistent": {**points, "description": "No change; null for models in several folds"},
            }
        ),
        "Overview": object_of(
            {
                "published_timestamp_seconds": published,
                "forgetting": forgetting,
                "rule": {"type": "string"},
                "models": rows,
                "alarms": alarms,
            }
        ),
        "Changes": object_of(
            {
                "published_timestamp_seconds": {"type": "number"},
                "forgetting": forgetting,
                "models": {**rows, "description": "Rows that changed, whole"},
                "gone": {"type": "array", "items": {"type": "string"}},
                "alarms": {**alarms, "description": "Raised since the event before, newest first"},
            }
        ),
        "Folds": object_of(
            {
                "published_timestamp_seconds": published,
                "forgetting": forgetting,
                "mechanisms": names,
                "accuracies": {**accuracies, "description": "Accuracy by model and fold"},
                "models": {"type": "object", "additionalProperties": ref("FoldSpread")},
                "pairs": {"type": "array", "items": ref("FoldPair")},
                "ranks": {"oneOf": [ref("FoldRanks"), {"type": "null"}]},
                "left_out": {"type": "integer", "minimum": 0, "description": "Models not compared"},
            }
        ),
        "FoldSpread": object_of(
            {"folds": {"type": "integer", "minimum": 0}},
            mean=ratio("Mean accuracy over the folds"),
            deviation={"type": "number", "minimum": 0, "description": "Standard deviation, of n - 1"},
        ),
        "FoldPair": object_of(
            {
                "first": {"type": "string"},
                "second": {"type": "string"},
                "folds": {"type": "integer", "minimum": 2, "description": "Folds that both have"},
                "difference": lead("Mean accuracy of the first less that of the second"),
                "sign": object_of(
                    {"wins": {"type": "integer"}, "losses": {"type": "integer"}}, p=ratio("Two-sided, exact")
                ),
                "wilcoxon": object_of(
                    {"positive": {"type": "number"}, "negative": {"type": "number"}},
                    p=ratio("Two-sided, exact, ties included"),
                ),
            }
        ),
        "FoldRanks": object_of(
            {
                "folds": {"type": "integer", "minimum": 2, "description": "Folds that all models have"},
                "mean_ranks": {"type": "object", "additionalProperties": {"type": "number", "minimum": 1}},
                "alpha": ratio("Level of the critical difference"),
                "critical_difference": {"type": "number", "minimum": 0, "description": "Nemenyi's"},
                "diagram": {"type": "string", "description": "SVG of the ranks"},
            },
            statistic={"type": "number", "description": "Friedman's, corrected for ties"},
            p=ratio("Of Friedman's test"),
        ),
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
            lead_lower=lead("The mean lead is at least this, however often one looks"),
            lead_upper=lead("The mean lead is at most this, however often one looks"),
            lead_dispersion=NUMBER,
        ),
        "Comparisons": object_of(
            {
                "published_timestamp_seconds": published,
                "forgetting": forgetting,
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
                "forgetting": forgetting,
                "timestamps": {"type": "array", "items": {"type": "number"}},
                "challengers": {
                    "type": "object",
                    "additionalProperties": object_of({"q": points, "lead": points}),
                },
            }
        ),
        "Alarms": object_of({"published_timestamp_seconds": published, "alarms": alarms}),
        "Health": object_of(
            {
                "ready": {"type": "boolean"},
                "reasons": {"type": "array", "items": {"type": "string"}},
                "published_timestamp_seconds": published,
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
