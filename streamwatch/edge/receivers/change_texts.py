"""Sentences on a change of the error: in classes, in segments, in the order of predictions."""

from __future__ import annotations

from streamwatch.core.estimators.notifying.class_shift import ClassShift
from streamwatch.core.estimators.registers.segments.change import SegmentChange
from streamwatch.core.events import Alarm
from streamwatch.edge.receivers.times import iso, iso_minutes, share


def looks_like(shift: ClassShift) -> str:
    """Line on whether it looks like a change of the classes or of the model, and what that rests on."""
    share_of = (
        f"{shift.share.name} went from {share(shift.share.before)} to {share(shift.share.after)} of labels"
    )
    recall_of = "recalls changed"
    if (recall := shift.recall) is not None:
        recall_of = f"recall of {recall.name} went from {share(recall.before)} to {share(recall.after)}"
    parts = (
        f"of {points(shift.change)} the error changed by, {points(shift.by_classes)} come from the shares of "
        f"the classes and {points(shift.by_model)} from recalls (± {points(shift.uncertainty, sign='')})"
    )
    if shift.looks_like == "classes":
        return f"It looks like the classes, not the model: {share_of}; {parts}."
    if shift.looks_like == "model":
        return f"It looks like the model, not the classes: {recall_of}; {parts}."
    if shift.past_differs:
        parts = "the error before the change differs from that of the whole past"
    return f"Whether the classes or the model changed is unclear: {parts}."


def sits_in(change: SegmentChange) -> str:
    """Sentence on the value of a segment in which most of the extra errors sit."""
    return (
        f"{share(change.share)} of the extra errors are in {change.segment} {change.value}, which has "
        f"{share(change.traffic)} of the outcomes: its error went from {share(change.before)} over its "
        f"past to {share(change.now)} recently."
    )


def points(value: float, sign: str = "+") -> str:
    """A difference of shares in percentage points."""
    return f"{100 * value:{sign}.1f} points".replace("-", "−")


def in_prediction_time(alarm: Alarm) -> str:
    """Say on which prediction an alarm fell that was found in the order of predictions; empty of others."""
    if alarm.predicted_ms is None:
        return ""
    return (
        f" It was found in the order of predictions, at the one made at {iso(alarm.predicted_ms)}, once all "
        "labels up to it were in."
    )


def among_predictions(alarm: Alarm) -> str:
    """Say since when predictions err otherwise, as labels came later; empty where that was not found."""
    change = alarm.predictions
    if change is None:
        return ""
    verb = "err more" if change.after > change.before else "err less"
    return (
        f" Predictions made since about {iso_minutes(change.since_ms)} {verb}: {share(change.before)} → "
        f"{share(change.after)} (between {iso_minutes(change.earliest_ms)} and "
        f"{iso_minutes(change.latest_ms)}); their labels came later."
    )
