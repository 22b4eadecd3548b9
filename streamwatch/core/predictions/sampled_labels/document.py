"""JSON document of a model's sampled labels for the API."""

from __future__ import annotations

from math import isfinite
from typing import Any, Literal, TypeAlias

from streamwatch.core.predictions.sampled_labels.estimate import Interval, SampledEstimate, accuracy_of
from streamwatch.core.predictions.sampled_labels.state import OPPONENTS

Verdict: TypeAlias = Literal["better", "worse", "open"]


def document_of(record: Any, found: SampledEstimate) -> dict[str, object]:
    """Build the document of one model from its `SAMPLED` record; undefined values are absent."""
    seen, without = int(record["seen"]), int(record["without"])
    document: dict[str, object] = {
        "predictions": seen,
        "predictions_without_probability": without,
        "share_without_probability": without / (seen + without),
        "share_expected": float(record["expected"]) / seen,
        "labels": int(record["labels"]),
        "labels_unasked": int(record["unasked"]),
        "settled": {
            "predictions": found.settled,
            "age_seconds": found.age_ms / 1000.0,
            "labels_asked": found.asked,
            "labels_arrived": found.arrived,
            "labels_missing": max(0.0, found.asked - found.arrived),
            "asked_is_known": found.asked_is_known,
        },
        "labels_missing": found.missing,
        "probabilities_differ": found.too_many,
        "leads": {
            name: {"verdict": verdict_of(lead), **_numbers(lead)}
            for name, lead in zip(OPPONENTS, found.leads, strict=True)
        },
    }
    if isfinite(found.arrived_ratio):
        document["arrived_ratio"] = found.arrived_ratio
    if isfinite(found.loss.value):
        document["accuracy"] = _numbers(accuracy_of(found.loss))
        document["since_timestamp_seconds"] = found.since_ms / 1000.0
        document["until_timestamp_seconds"] = found.until_ms / 1000.0
        document["estimated_predictions"] = found.predictions
    return document


def verdict_of(lead: Interval) -> Verdict:
    """Return the side of 0 on which the interval of a lead lies: open if it includes 0 or is undefined."""
    if lead.lower > 0.0:
        return "better"
    return "worse" if lead.upper < 0.0 else "open"


def _numbers(found: Interval) -> dict[str, object]:
    numbers: dict[str, object] = {"effective_labels": found.labels}
    for name in ("value", "lower", "upper", "dispersion"):
        if isfinite(value := getattr(found, name)):
            numbers[name] = value
    return numbers
