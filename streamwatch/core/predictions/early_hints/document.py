"""JSON document of a model's early hints for the API."""

from __future__ import annotations

import math

from streamwatch.core.predictions.early_hints.expected_accuracy import Stretch
from streamwatch.core.predictions.early_hints.spec import EarlyHintsSpec
from streamwatch.core.predictions.early_hints.view import EarlyView


def document(view: EarlyView, spec: EarlyHintsSpec) -> dict[str, object]:
    """Build the JSON values of a model; undefined values are null."""
    hint = None
    if view.hint is not None:
        hint = {
            "class": view.hint.predicted_class,
            "more": view.hint.more,
            "timestamp_seconds": view.hint.record_ms / 1000.0,
        }
    return {
        "predictions": view.predictions,
        "reach": spec.reach,
        "hints": view.hints,
        "hint": hint,
        "evidence": view.evidence,
        "shares_before": view.before,
        "shares_now": view.now,
        "score_before": _number(view.score_before),
        "score_now": _number(view.score_now),
        "expected_accuracy": _number(view.expected_accuracy),
        "expected_accuracy_error": _number(view.expectation_errors.expected),
        "unchanged_accuracy_error": _number(view.expectation_errors.unchanged),
        "stretches": [_stretch(each) for each in view.stretches],
    }


def _stretch(each: Stretch) -> dict[str, object]:
    return {
        "start_timestamp_seconds": each.start_ms / 1000.0,
        "end_timestamp_seconds": each.end_ms / 1000.0,
        "predictions": each.predictions,
        "labelled": each.labelled,
        "expected_accuracy": _number(each.expected),
        "accuracy": _number(each.accuracy),
    }


def _number(value: float) -> float | None:
    return None if math.isnan(value) else value
