"""Predictions that a model revises before their label comes (`join.conflicts: last` and `both`)."""

from __future__ import annotations

from streamwatch.core.events import Prediction
from streamwatch.core.join.entry import JoinEntry, own_time
from streamwatch.core.join.models import ModelActivity


def revise(record: JoinEntry, event: Prediction, activity: ModelActivity, *, keep_first: bool) -> None:
    """Put a later prediction in the place of a pending one of its id and model, of another class.

    Its class, scores, segments and own time count, and the label that was known when it came. The record time
    stays that of the first, and with it the deadline: a model that predicts again and again would otherwise
    never have a prediction expire. The topic stays, too, as a prediction is counted on one topic only. With
    `keep_first` the first one counts, and only the class of the later one is kept, beside it.
    """
    activity.predicted(event)
    if keep_first:
        record.last_class = event.predicted_class
        return
    record.predicted_class = event.predicted_class
    record.last_class = None  # of settings that kept the first
    record.timestamp_ms = own_time(event)
    record.scores = event.scores
    record.segments = event.segments
    record.label_at_prediction = activity.last_label
