"""Rules about silence: models whose labels or predictions have stopped, or seem to, by a misread time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from streamwatch.admin.doctor.facts import MODEL, Facts, Finding, Rule, Weight
from streamwatch.inspection.guessing import duration_text
from streamwatch.inspection.times import are_misread

LEAST_SECONDS: Final = 3_600.0
"""Least silence that is reported, as by the shipped alerts (`LabelsStopped`, `PredictionsStopped`)."""
TIMES: Final = 2.0
"""Least silence of labels, as a multiple of the time in which 99 % of a model's labels arrive."""
FEW: Final = 100
"""Least number of labels from which that time is taken."""


def slow_delay(facts: Facts, model: str) -> float | None:
    """Upper bound of the time in which 99 % of a model's labels arrive, in seconds.

    None with fewer than `FEW` labels; infinite if it is beyond the last bound of the histogram.
    """
    buckets = facts.now.by("label_delay_seconds_bucket", "le", model=model)
    below = sorted((float(bound), count) for bound, count in buckets.items())
    if not below or below[-1][1] < FEW:
        return None
    return next(bound for bound, count in below if count >= 0.99 * below[-1][1])


# A model still predicts, but its labels have stopped. Nothing is found while their usual delay is unknown, as
# with few labels, or beyond the longest bound of the histogram.


def _labels_stopped(facts: Facts) -> Iterator[Finding]:
    for model in facts.models:
        label = facts.now.value("last_label_timestamp_seconds", model=model)
        prediction = facts.now.value("last_prediction_timestamp_seconds", model=model)
        slow = slow_delay(facts, model)
        if label is None or prediction is None or slow is None or not math.isfinite(slow):
            continue
        silent = prediction - label
        if silent <= max(LEAST_SECONDS, TIMES * slow) or not _caught_up(facts):
            continue
        waiting = facts.now.value("pending_predictions", model=model) or 0.0
        took, since = duration_text(round(1_000 * slow)), duration_text(round(1_000 * silent))
        yield Finding(
            Weight.NOTHING_TRUE,
            f"{MODEL}{model}",
            f"has had no label for {since} and goes on predicting ({waiting:,.0f} predictions wait); 99 % of "
            f"its labels used to come within {took}",
            "what writes labels has stopped, or writes them to another topic; every estimate stands still",
            "start what writes labels; streamwatch inspect shows what arrives on the label topics",
        )


LABELS_STOPPED = Rule("labels_stopped", _labels_stopped)


# A model has stopped predicting, in record time.


def _predictions_stopped(facts: Facts) -> Iterator[Finding]:
    clock = facts.now.value("clock_timestamp_seconds")
    if clock is None or not _caught_up(facts):
        return
    for model, last in facts.now.by("last_prediction_timestamp_seconds", "model").items():
        if clock - last > LEAST_SECONDS and not are_misread([round(1_000 * last)]):
            yield Finding(
                Weight.WORTH_KNOWING,
                f"{MODEL}{model}",
                f"has not predicted for {duration_text(round(1_000 * (clock - last)))}",
                "it is no longer asked, runs at times only, or writes to a topic that is not read",
                "if it should predict, look at what calls it; its estimates are of the time before",
            )


PREDICTIONS_STOPPED = Rule("predictions_stopped", _predictions_stopped)


# Timestamps in seconds are read as milliseconds, so that a model predicts in January 1970.


def _times_misread(facts: Facts) -> Iterator[Finding]:
    for model, last in facts.now.by("last_prediction_timestamp_seconds", "model").items():
        if are_misread([round(1_000 * last)]):
            yield Finding(
                Weight.NOTHING_TRUE,
                f"{MODEL}{model}",
                f"predicts in {datetime.fromtimestamp(last, UTC):%B %Y}, by the timestamps of its records",
                "they are seconds, and are read as milliseconds: delays and deadlines are a thousandth of "
                "what they are",
                "mapping: timestamp_unit: s (or the unit that is written), on both sides",
            )


TIMES_MISREAD = Rule("times_misread", _times_misread)


def _caught_up(facts: Facts) -> bool:
    """Return whether the daemon has caught up: before that, missing records may simply be unread."""
    return facts.now.value("caught_up") == 1.0
