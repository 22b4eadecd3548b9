"""Shapes of what the server answers, by the names under which the document knows them."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

from streamwatch.core.alerting.notification import SEVERITIES
from streamwatch.edge.web.routes.comparisons import RULE as COMPARISON_RULE
from streamwatch.edge.web.routes.overview import RULE, TROUBLES

# Pieces that schemas are made of.


Schema: TypeAlias = "dict[str, Any]"
NUMBER: Final[Schema] = {"oneOf": [{"type": "number"}, {"enum": ["+Inf", "-Inf"]}]}


def ref(name: str) -> Schema:
    """The schema of this name, wherever one is expected."""
    return {"$ref": f"#/components/schemas/{name}"}


def object_of(required: Schema, **optional: Schema) -> Schema:
    """Schema of an object with these properties and no others."""
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def lead(description: str) -> Schema:
    """Schema of a mean difference of utilities, in [-1, 1]."""
    return {"type": "number", "minimum": -1, "maximum": 1, "description": description}


def ratio(description: str) -> Schema:
    """Schema of a share, in [0, 1]."""
    return {"type": "number", "minimum": 0, "maximum": 1, "description": description}


PUBLISHED: Final[Schema] = {
    "type": ["number", "null"],
    "description": "Seconds since 1970; null before the first report",
}
FORGETTING: Final[Schema] = {
    "type": ["string", "null"],
    "description": "The forgetting under which the numbers are",
}
NAMES: Final[Schema] = {"type": "array", "items": {"type": "string"}}
POINTS: Final[Schema] = {"type": "array", "items": {"type": ["number", "null"]}}
ALARMS: Final[Schema] = {"type": "array", "items": ref("Alarm")}
FOLD_ACCURACIES: Final[Schema] = {
    "type": "object",
    "additionalProperties": {"type": "object", "additionalProperties": ratio("Accuracy")},
    "description": "Accuracy by forgetting and fold, of a model that predicts in folds",
}


# Shape of an alarm.


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


# Shapes of what is answered about compared models.


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


# The shape of what predictions say before their labels come.


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


# Shapes of what is answered about models in folds.


def fold_schemas() -> Schema:
    """Accuracy over folds, and tests over them."""
    return {
        "Folds": object_of(
            {
                "published_timestamp_seconds": PUBLISHED,
                "forgetting": FORGETTING,
                "mechanisms": NAMES,
                "accuracies": {**FOLD_ACCURACIES, "description": "Accuracy by model and fold"},
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
    }


# Shapes of the past of models.


def history_schemas() -> Schema:
    """Series over time, and counts of past outcomes."""
    return {
        "Series": {
            "type": "object",
            "additionalProperties": {"oneOf": [POINTS, ref("Series")]},
            "description": "One value for each timestamp, null where undefined, nested as in Tree",
        },
        "History": object_of(
            {
                "model": {"type": "string"},
                "forgetting": FORGETTING,
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
                "persistent": {**POINTS, "description": "No change; null for models in several folds"},
            }
        ),
    }


# Schemas of late labels: accuracy, delays and errors by the time of the prediction.


_TIME: Final[Schema] = {"type": "number"}
_TIMES: Final[Schema] = {"type": "array", "items": _TIME}
_RATIOS: Final[Schema] = {"type": "array", "items": ratio("Share of the labels that come within the horizon")}
_COUNTS: Final[Schema] = {"type": "array", "items": {"type": "integer", "minimum": 0}}


_AMOUNT: Final[Schema] = {"type": "number", "minimum": 0}
_WHOLE: Final[Schema] = {"type": "integer", "minimum": 0}
_FLAG: Final[Schema] = {"type": "boolean"}


def sampled_labels_schema() -> Schema:
    """Schema of accuracy and leads from sampled labels, and of what came of the labels asked for."""
    effective: Schema = {**_AMOUNT, "description": "(Σ 1/π)²/Σ 1/π², π the label_probability"}
    dispersion: Schema = {"type": "number", "minimum": 1}
    lead: Schema = {"type": "number", "minimum": -1, "maximum": 1}
    of_accuracy = object_of(
        {"effective_labels": effective, "value": ratio("Of all predictions")},
        lower=ratio("Valid however often one looks; from 200 effective labels on"),
        upper=ratio("Likewise"),
        dispersion=dispersion,
    )
    of_lead = object_of(
        {
            "verdict": {
                "enum": ["better", "worse", "open"],
                "description": "Side of 0 on which the interval of the lead lies",
            },
            "effective_labels": effective,
        },
        value={**lead, "description": "Mean lead of all predictions"},
        lower=lead,
        upper=lead,
        dispersion=dispersion,
    )
    settled = object_of(
        {
            "predictions": _WHOLE,
            "age_seconds": {**_AMOUNT, "description": "Age from which predictions have all their labels"},
            "labels_asked": {**_AMOUNT, "description": "As told, or the sum of label_probability"},
            "labels_arrived": _WHOLE,
            "labels_missing": {**_AMOUNT, "description": "labels_asked - labels_arrived, at least 0"},
            "asked_is_told": {**_FLAG, "description": "All predictions say whether theirs was asked for"},
        }
    )
    return {
        **object_of(
            {
                "predictions": {**_WHOLE, "description": "With a label_probability"},
                "predictions_without_probability": {**_WHOLE, "description": "In no estimate"},
                "share_without_probability": ratio("Of all predictions since the first with one"),
                "share_expected": ratio("Mean label_probability"),
                "labels": {**_WHOLE, "description": "Without those that were not asked for"},
                "labels_unasked": {**_WHOLE, "description": "Labels though label_requested is false"},
                "settled": {**settled, "description": "Predictions whose labels should all be there"},
                "labels_missing": {
                    **_FLAG,
                    "description": "Whether more are missing than chance explains, and more than 5 %",
                },
                "probabilities_differ": {
                    **_FLAG,
                    "description": "Whether labels come, or are asked for, more or less often than these say",
                },
                "leads": {"type": "object", "additionalProperties": of_lead},
            },
            accuracy=of_accuracy,
            arrived_ratio={**_AMOUNT, "description": "labels_arrived / labels_asked"},
            since_timestamp_seconds={"type": "number", "description": "Of predictions estimated"},
            until_timestamp_seconds={"type": "number"},
            estimated_predictions=_WHOLE,
        ),
        "description": "Labels that are asked for with a known probability (mapping.label_probability)",
    }


def label_delays_schema() -> Schema:
    """Schema of the share of predictions labelled by age."""
    shares: Schema = {"type": "array", "items": ratio("Share of predictions labelled by an age")}
    return {
        **object_of(
            {
                "age_seconds": {**_TIMES, "description": "As far as predictions have lived"},
                "labelled": shares,
                "labelled_hits": {
                    **shares,
                    "description": "By a label that makes a hit; with errors the whole",
                },
                "labelled_errors": shares,
                "classes": {
                    "type": "object",
                    "additionalProperties": shares,
                    "description": "By predicted class, at the same ages",
                },
            }
        ),
        "description": "Kaplan-Meier: predictions that still wait count as censored; only where one model is "
        "asked for, and monitors.label_delays is set",
    }


def prediction_clock_schema() -> Schema:
    """Schema of detectors that see outcomes in the order of their predictions."""
    count: Schema = {"type": "integer", "minimum": 0}
    return object_of(
        {
            "detectors": {"type": "array", "items": {"type": "string"}},
            "waiting": {**count, "description": "Outcomes held back until earlier predictions are settled"},
            "evaluated": {**count, "description": "Outcomes that the detectors have seen"},
            "late": {**count, "description": "Of these, seen after those of newer predictions"},
            "overflowed": {
                **count,
                "description": "Of these, seen before their time, as monitors.max_unsettled were held back",
            },
        },
        settled_until_timestamp_seconds={
            **_TIME,
            "description": "The newest prediction that the detectors have seen",
        },
    )


def cohorts_schema() -> Schema:
    """Schema of verdicts by cohorts of prediction time."""
    count: Schema = {"type": "integer", "minimum": 0}
    lead: Schema = {"type": "number", "minimum": -1, "maximum": 1}
    share = ratio("Share of the settled outcomes of one kind that are labelled by the age")
    opponent = object_of(
        {
            "changes": {**count, "description": "Changes of the verdict"},
            "retracted": {**count, "description": "Early verdicts that settled predictions did not confirm"},
        },
        verdict={"type": "string", "enum": ["better", "worse", "open"]},
        status={
            "type": "string",
            "enum": ["early", "confirmed"],
            "description": "Of a verdict that is held: early until its predictions are a horizon old",
        },
        since_timestamp_seconds={**_TIME, "description": "Prediction time since which the verdict holds"},
        evidence=object_of({"better": ratio("1 is a verdict"), "worse": ratio("1 is a verdict")}),
        lead={"type": "number", "description": "Mean lead over the judged cohorts since the verdict changed"},
        lower={**lead, "description": "Its bounds, valid at all times; none before 20 cohorts"},
        upper=lead,
        dispersion={"type": "number", "minimum": 1},
    )
    return object_of(
        {
            "provisional": {
                "type": "boolean",
                "description": "Too few cohorts are judged: there is only the verdict in the order of labels",
            },
            "judged": count,
            "waiting": {**count, "description": "Cohorts whose predictions are younger than their age"},
            "age_changes": count,
            "opponents": {"type": "object", "additionalProperties": opponent},
        },
        age_seconds={**_TIME, "description": "Age at which the newest cohort will be judged"},
        age_rule={
            "type": "string",
            "enum": ["settled", "complete", "horizon"],
            "description": "settled: labels that come by the age are weighted by settled shares; complete: "
            "99 % of all predictions are labelled by it; horizon: all labels are waited for",
        },
        share_labelled=object_of({"lowest": share, "highest": share}),
        as_good_as_immediate={
            "type": "boolean",
            "description": "99 % of every kind of labels come within a minute",
        },
    )


def late_schemas() -> Schema:
    """Schemas by name."""
    accuracy = object_of(
        {
            "accuracy": ratio("Share of hits"),
            "lower": ratio("Lower limit of Wilson's interval of 95 %"),
            "upper": ratio("Upper limit"),
            "effective_sample_size": {"type": "number", "minimum": 0},
        }
    )
    by_prediction_time = object_of(
        {
            "width_seconds": {"type": "number", "description": "Of a stretch of prediction time"},
            "start_timestamp_seconds": _TIMES,
            "outcomes": _COUNTS,
            "errors": _COUNTS,
        }
    )
    return {
        "LateLabels": object_of(
            {
                "horizon_seconds": {"type": "number", "description": "join.horizon"},
                "as_of_timestamp_seconds": {"type": "number", "description": "Time of the newest outcome"},
                "by_prediction_time": {
                    **by_prediction_time,
                    "description": "Outcomes so far and errors among them by the time of the prediction",
                },
            },
            settled={
                **accuracy,
                "description": "Of predictions 1 to 1.5 horizons old: they have their labels",
            },
            delay_corrected={
                **accuracy,
                "description": "Of predictions of the last half horizon, corrected for labels to come",
            },
            delay_corrected_undefined={
                "enum": ["too_few_settled", "hits_too_late", "errors_too_late", "too_few_recent"],
                "description": "Why there is no delay_corrected: fewer than 30 predictions are settled; "
                "fewer than a fifth of the labels of hits, or of errors, come within half a horizon (read "
                "settled instead); fewer than 30 recent outcomes. Absent with join.on_expiry: {assume: …}",
            },
            naive=ratio("Of the same predictions, as labelled so far"),
            bias={"type": "number", "minimum": -1, "maximum": 1, "description": "naive - delay_corrected"},
            share_labelled={
                **object_of(
                    {"age_seconds": {"type": "array", "items": _TIME}, "errors": _RATIOS, "hits": _RATIOS}
                ),
                "description": "Share of the labels of errors, and of hits, that have come at an age",
            },
            change={
                **ref("ErrorChange"),
                "description": "Latest among predictions; absent without one",
            },
        ),
        "ErrorChange": object_of(
            {
                "since_timestamp_seconds": {
                    "type": "number",
                    "description": "Time of the predictions since which the error differs",
                },
                "earliest_timestamp_seconds": {"type": "number", "description": "Interval of 95 % for it"},
                "latest_timestamp_seconds": _TIME,
                "before": ratio("Error of the predictions before it"),
                "after": ratio("Error of the predictions since"),
            }
        ),
    }


# Schemas of a model's row in the overview, and of its open incidents.


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
    "evaluation_since_timestamp_seconds": {
        "type": "number",
        "description": "Record time at which settings changed that decide how outcomes of the model are made "
        "(mapping, topics, utility); absent if they never have",
    },
    "evaluation_changed": {
        "type": "string",
        "description": "These settings, separated by commas; or state reset, if its estimates were begun "
        "anew on purpose",
    },
    "evaluation_outcomes_before": {
        "type": "integer",
        "minimum": 0,
        "description": "Outcomes that were evaluated before, under the old settings",
    },
    "evaluation_began_anew": {
        "type": "boolean",
        "description": "Whether estimates began anew then; otherwise these outcomes are in them",
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
            verdict_since_timestamp_seconds={
                "type": "number",
                "description": "Event time since which; prediction time where verdict_opponent is there",
            },
            verdict_opponent={
                "enum": ["persistent_at_prediction", "majority"],
                "description": "Of a verdict by cohorts of prediction time: opponent that the lead is over",
            },
            verdict_status={
                "enum": ["early", "confirmed"],
                "description": "Of a verdict by cohorts: whether predictions with all labels confirm it",
            },
            verdict_age_seconds={
                "type": "number",
                "minimum": 0,
                "description": "Age at which predictions are judged, of a verdict by cohorts",
            },
            verdict_provisional={
                **NUMBER,
                "description": "1 while no cohort is judged yet: the verdict is in the order of labels",
            },
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
            labels_sampled_ratio=ratio(
                "Mean probability with which labels are asked for; there only where predictions carry one. "
                "Accuracy, its bounds, verdict and lead are then from labels weighted by 1 / probability"
            ),
            labels_sampled_arrived_ratio=ratio(
                "Share of the labels asked for that came; there only where labels are missing"
            ),
            labels_sampled_without_ratio=ratio(
                "Share of predictions without a probability, which are in no estimate; absent without any"
            ),
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


# Shapes of what is answered about models.


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
                "cohorts": cohorts_schema(),
                "early_hints": ref("EarlyHints"),
                "label_delays": ref("LabelDelays"),
                "sampled_labels": sampled_labels_schema(),
                "revisions": ref("Revisions"),
                "recovery": ref("Recovery"),
                "prediction_clock": prediction_clock_schema(),
                "estimators_since_timestamp_seconds": {
                    "type": "object",
                    "description": "Record time at which estimators began anew after a change of settings, "
                    "by name; of those that are as old as the model, none",
                    "additionalProperties": {"type": "number"},
                },
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


# The shape of what is said of the class scores of a model.


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


# The shape of a model's recovery after drifts.


def recovery_schema() -> Schema:
    """Schema of the drift under way and the last that ended."""
    under_way = object_of(
        {
            "since_outcome": {"type": "integer", "minimum": 1, "description": "The drift's first outcome"},
            "alarm_timestamp_seconds": {"type": "number", "description": "Event time of its alarm"},
            "error_before_ratio": ratio("Faded error before the drift"),
            "error_now_ratio": ratio("Faded error now"),
        }
    )
    last = object_of(
        {
            "depth": ratio("Highest faded error less that before"),
            "outcomes": {
                "type": ["number", "null"],
                "minimum": 0,
                "description": "Until the error was back; 0 if it never left its bound, null if it did not "
                "come back",
            },
        }
    )
    return {
        **object_of(
            {"forgetting": {"type": "string", "description": "Fading factor whose error is followed"}},
            under_way=under_way,
            last=last,
        ),
        "description": "Recovery after drifts; only where one model is asked for, and not of models that "
        "predict in folds",
    }


# The shape of first and last predictions compared with their labels.


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


# The shapes of what the server answers, by the names under which the document knows them.


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
