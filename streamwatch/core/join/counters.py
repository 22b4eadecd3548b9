"""Counters of the join since its state began."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamwatch.core.join.results import COUNTED_AS


@dataclass(slots=True)
class LabelCounters:
    """Counters of labels of one form, with a model or without.

    Each label accepted is counted in exactly one of the others, or is still held.
    """

    accepted: int = 0
    joined: int = 0
    orphaned: int = 0
    duplicate: int = 0
    corrected: int = 0
    late: int = 0
    withdrawn: int = 0
    evicted_prediction: int = 0
    over_limit: int = 0
    evicted: int = 0
    before_start: int = 0

    def count(self, result: int) -> None:
        """Count a label by its result, one of `COUNTED_AS`."""
        name = COUNTED_AS[result]
        setattr(self, name, getattr(self, name) + 1)

    def settled(self) -> int:
        """Number of labels accepted that are no longer held."""
        return (
            self.joined
            + self.orphaned
            + self.duplicate
            + self.corrected
            + self.late
            + self.withdrawn
            + self.evicted_prediction
            + self.over_limit
            + self.evicted
            + self.before_start
        )


@dataclass(slots=True)
class PredictionCounters:
    """Counters of the predictions of one topic."""

    accepted: int = 0
    joined: int = 0
    """Those that met their label."""


@dataclass(slots=True)
class JoinCounters:
    """Counters of the join since its state began; they never decrease and are part of the state."""

    predictions_accepted: int = 0
    predictions_resolved: int = 0
    predictions_duplicate: int = 0
    predictions_conflict: int = 0
    predictions_expired: int = 0
    predictions_evicted: int = 0
    predictions_withdrawn: int = 0
    outcomes_assumed: int = 0
    outcomes_released_early: int = 0
    labels_early: int = 0
    labels_negative_delay: int = 0
    labels_retained_evicted: int = 0
    dedup_entries_evicted: int = 0
    models_retired: int = 0
    models_over_limit: int = 0
    predictions_wrong_fold: int = 0
    pairs_made: int = 0
    pairs_labels_differ: int = 0
    pairs_expired: int = 0
    predictions_segments_over_limit: int = 0
    with_model: LabelCounters = field(default_factory=LabelCounters)
    without_model: LabelCounters = field(default_factory=LabelCounters)
    null_records: dict[str, int] = field(default_factory=dict[str, int])
    records_invalid: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    """By topic and reason."""
    model_records_invalid: dict[str, int] = field(default_factory=dict[str, int])
    """By model, as far as it can be read and there is room for it."""
    topic_predictions: dict[str, PredictionCounters] = field(default_factory=dict[str, PredictionCounters])
    """By topic; of those whose topic nobody says there are none."""
    topic_labels: dict[str, LabelCounters] = field(default_factory=dict[str, LabelCounters])
    """Labels of both forms, likewise."""

    def of_predictions(self, topic: str) -> PredictionCounters:
        """Return the counters of a topic's predictions, which the caller may increase."""
        if not topic:
            return PredictionCounters()
        found = self.topic_predictions.get(topic)
        if found is None:
            found = self.topic_predictions[topic] = PredictionCounters()
        return found

    def of_labels(self, topic: str) -> LabelCounters:
        """Return the counters of a topic's labels, which the caller may increase."""
        if not topic:
            return LabelCounters()
        found = self.topic_labels.get(topic)
        if found is None:
            found = self.topic_labels[topic] = LabelCounters()
        return found
