"""The shapes of what the server answers, by the names under which the document knows them."""

from __future__ import annotations

from typing import Any, TypeAlias

from streamwatch.edge.web.routes.comparisons import RULE as COMPARISON_RULE
from streamwatch.edge.web.routes.overview import RULE

Schema: TypeAlias = "dict[str, Any]"


def schemas() -> Schema:
    """Every one of them."""
    published = {
        "type": ["number", "null"],
        "description": "Seconds since 1970; null before the first report",
    }
    number = {"oneOf": [{"type": "number"}, {"enum": ["+Inf", "-Inf"]}]}
    tree = {
        "type": "object",
        "description": "Metric (without the prefix) → value, nested by label values in the labels' order",
        "additionalProperties": {"oneOf": [*number["oneOf"], {"$ref": "#/components/schemas/Tree"}]},
    }
    names = {"type": "array", "items": {"type": "string"}}
    points = {"type": "array", "items": {"type": ["number", "null"]}}
    ratios = {"type": "object", "additionalProperties": _ratio("Accuracy")}
    accuracies = {
        "type": "object",
        "additionalProperties": ratios,
        "description": "Accuracy by forgetting and fold, of a model that predicts in folds",
    }
    caveats = {
        "first_horizon_ends_timestamp_seconds": {
            "type": "number",
            "description": "When the first prediction is one join.horizon old; absent once it is. Until then "
            "only quick labels are in, and slower ones may say otherwise of the model",
        },
        "labels_assumed_as": {
            "type": "string",
            "description": "Class that predictions without a label count as (join.on_expiry); else absent",
        },
    }
    document = {
        "metrics": ref("Tree"),
        "details": {
            "type": "object",
            "properties": {
                "classes": {"type": "array", "items": {"type": "string"}},
                "first_seen_timestamp_seconds": {"type": "number"},
                "classes_disjoint": _object({"predicted_class": names, "true": names}),
                "scores_as_classes": _object({"predicted_class": names}),
                "nothing_joins": _object({"predictions": {"type": "integer"}}),
                "confusion": ref("Confusion"),
                "folds": accuracies,
                **caveats,
            },
        },
    }
    alarms = {"type": "array", "items": ref("Alarm")}
    rows = {"type": "object", "additionalProperties": ref("Row")}
    forgetting = {"type": ["string", "null"], "description": "The forgetting under which the numbers are"}
    return {
        "Tree": tree,
        "Models": _object(
            {
                "published_timestamp_seconds": published,
                "models": {"type": "object", "additionalProperties": _object(document)},
                "stream": ref("Tree"),
            }
        ),
        "Model": _object({"published_timestamp_seconds": published, "model": {"type": "string"}, **document}),
        "Confusion": {
            **_object(
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
        "Series": {
            "type": "object",
            "additionalProperties": {"oneOf": [points, ref("Series")]},
            "description": "One value for each timestamp, null where undefined, nested as in Tree",
        },
        "History": _object(
            {
                "model": {"type": "string"},
                "forgetting": forgetting,
                "timestamps": {"type": "array", "items": {"type": "number"}},
                "series": ref("Series"),
            }
        ),
        "Row": _object(
            {
                "verdict": {
                    "enum": ["better", "worse", "open"],
                    "description": f"Better than no change? {RULE}",
                }
            },
            verdict_since_timestamp_seconds={"type": "number", "description": "Event time since which"},
            verdict_since_outcome={"type": "integer", "minimum": 1, "description": "Outcome since which"},
            lead=_lead("Mean utility of the model less that of no change, since the verdict last changed"),
            lead_lower=_lead("The mean lead is at least this, however often one looks"),
            lead_upper=_lead("The mean lead is at most this, however often one looks"),
            outcomes=number,
            accuracy=_ratio("Share of outcomes the model got right"),
            lower=_ratio("Hoeffding bound: the true accuracy is at least this"),
            upper=_ratio("Hoeffding bound: the true accuracy is at most this"),
            effective_sample_size=number,
            persistent=_ratio("Accuracy of no change: predicting the previous label"),
            majority=_ratio("Accuracy of always guessing the most frequent class"),
            kappa_plus=number,
            alarms=number,
            last_alarm_timestamp_seconds=number,
            delay_median_seconds={"type": "number", "minimum": 0},
            delay_p90_seconds={"type": "number", "minimum": 0},
            pending=number,
            joined=_ratio("Share of predictions that have met their label so far"),
            warning={
                "type": "string",
                "description": "What is silently wrong: classes or ids that never agree",
            },
            **caveats,
        ),
        "Overview": _object(
            {
                "published_timestamp_seconds": published,
                "forgetting": forgetting,
                "rule": {"type": "string"},
                "models": rows,
                "alarms": alarms,
            }
        ),
        "CommitBatch": _object(
            {
                "published_timestamp_seconds": {"type": "number"},
                "forgetting": forgetting,
                "models": {**rows, "description": "Rows that changed, whole"},
                "gone": {"type": "array", "items": {"type": "string"}},
                "alarms": {**alarms, "description": "Raised since the event before, newest first"},
            }
        ),
        "Folds": _object(
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
        "FoldSpread": _object(
            {"folds": {"type": "integer", "minimum": 0}},
            mean=_ratio("Mean accuracy over the folds"),
            deviation={"type": "number", "minimum": 0, "description": "Standard deviation, of n - 1"},
        ),
        "FoldPair": _object(
            {
                "first": {"type": "string"},
                "second": {"type": "string"},
                "folds": {"type": "integer", "minimum": 2, "description": "Folds that both have"},
                "difference": _lead("Mean accuracy of the first less that of the second"),
                "sign": _object(
                    {"wins": {"type": "integer"}, "losses": {"type": "integer"}}, p=_ratio("Two-sided, exact")
                ),
                "wilcoxon": _object(
                    {"positive": {"type": "number"}, "negative": {"type": "number"}},
                    p=_ratio("Two-sided, exact, ties included"),
                ),
            }
        ),
        "FoldRanks": _object(
            {
                "folds": {"type": "integer", "minimum": 2, "description": "Folds that all models have"},
                "mean_ranks": {"type": "object", "additionalProperties": {"type": "number", "minimum": 1}},
                "alpha": _ratio("Level of the critical difference"),
                "critical_difference": {"type": "number", "minimum": 0, "description": "Nemenyi's"},
                "diagram": {"type": "string", "description": "SVG of the ranks"},
            },
            statistic={"type": "number", "description": "Friedman's, corrected for ties"},
            p=_ratio("Of Friedman's test"),
        ),
        "Judgement": _object(
            {
                "opponent": {"type": "string"},
                "verdict": {"enum": ["better", "worse", "open"]},
                "since_outcome": {"type": "integer", "minimum": 1},
                "since_timestamp_seconds": {"type": "number", "description": "Event time of that outcome"},
            }
        ),
        "Alarm": _object(
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
        ),
        "Comparison": _object(
            {
                "champion": {"type": "string"},
                "challenger": {"type": "string"},
                "pairs": {**number, "description": "Ids on which both met the same label"},
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
            lead=_lead("Mean utility of the challenger less the champion's, since the verdict last changed"),
            lead_lower=_lead("The mean lead is at least this, however often one looks"),
            lead_upper=_lead("The mean lead is at most this, however often one looks"),
            lead_dispersion=number,
        ),
        "Comparisons": _object(
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
        "ComparisonHistory": _object(
            {
                "champion": {"type": "string"},
                "forgetting": forgetting,
                "timestamps": {"type": "array", "items": {"type": "number"}},
                "challengers": {
                    "type": "object",
                    "additionalProperties": _object({"q": points, "lead": points}),
                },
            }
        ),
        "Alarms": _object({"published_timestamp_seconds": published, "alarms": alarms}),
        "Health": _object(
            {
                "ready": {"type": "boolean"},
                "reasons": {"type": "array", "items": {"type": "string"}},
                "published_timestamp_seconds": published,
                "stream": ref("Tree"),
            }
        ),
        "Alive": _object({"status": {"const": "alive"}}),
        "Ready": _object(
            {"ready": {"type": "boolean"}, "reasons": {"type": "array", "items": {"type": "string"}}}
        ),
        "Error": _object({"error": {"type": "string"}, "status": {"type": "integer"}}),
    }


def ref(name: str) -> Schema:
    """The schema of this name, wherever one is expected."""
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: Schema, **optional: Schema) -> Schema:
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def _lead(description: str) -> Schema:
    return {"type": "number", "minimum": -1, "maximum": 1, "description": description}


def _ratio(description: str) -> Schema:
    return {"type": "number", "minimum": 0, "maximum": 1, "description": description}
