"""Predictions that a model revises before their label comes (`join.conflicts: last`)."""

from __future__ import annotations

from streamwatch.core.events import Prediction
from streamwatch.core.join.entry import JoinEntry, own_time
from streamwatch.core.join.models import ModelActivity


def revise(record: JoinEntry, event: Prediction, activity: ModelActivity) -> None:
    """Put a later prediction in the place of a pending one of its id and model, of another class.

    Its class, scores, segments and own time count, and the label that was known when it came. The record time
    stays that of the first, and with it the deadline: a model that predicts again and again would otherwise
    never have a prediction expire. The topic stays, too, as a prediction is counted on one topic only.
    """
    record.predicted_class = event.predicted_class
    record.timestamp_ms = own_time(event)
    record.scores = event.scores
    record.segments = event.segments
    record.label_at_prediction = activity.last_label
    activity.predicted(event)
