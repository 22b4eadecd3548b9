"""Schemas of late labels: accuracy, delays and errors by the time of the prediction."""

from __future__ import annotations

from typing import Final

from streamwatch.edge.web.routes.openapi.parts import Schema, object_of, ratio, ref

_TIME: Final[Schema] = {"type": "number"}
_TIMES: Final[Schema] = {"type": "array", "items": _TIME}
_RATIOS: Final[Schema] = {"type": "array", "items": ratio("Share of the labels that come within the horizon")}
_COUNTS: Final[Schema] = {"type": "array", "items": {"type": "integer", "minimum": 0}}


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
