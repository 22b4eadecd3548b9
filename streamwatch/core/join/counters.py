"""Counters of the join since its state began."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from streamwatch.core.records.events import Name

# States of the join's entries. An entry belongs to one (id, model); it waits, or is a dedup entry.
#
# All entries of one id form a chain, oldest first, so that a label without a model finds all models that
# predicted its id with one look-up.


PENDING: Final = 0
"""A prediction without its label."""
EARLY: Final = 1
"""A label with a model, received before its prediction."""
UNMATCHED: Final = 2
"""A label without a model that has met no prediction yet."""
RETAINED: Final = 3
"""A label that has met a prediction and waits for those of further models, or of further folds."""
RESOLVED: Final = 4
"""First of the states of dedup entries."""
EXPIRED: Final = 5
WITHDRAWN: Final = 6
EVICTED: Final = 7
OVER_LIMIT: Final = 8

EVICTIONS: Final = 2
"""Most entries evicted for each entry added, while there are more than a lowered limit allows."""


def deadline(record_ms: int, horizon_ms: int) -> int:
    """Return the second of record time, rounded up, at which what waits for `horizon_ms` expires."""
    return -(-(record_ms + horizon_ms) // 1000)


# Results of labels that meet an entry, and the counters they are counted in.


JOINED: Final = -3
CORRECTED: Final = -2
DUPLICATE: Final = -1
ORPHAN: Final = 99
"""Result of a label that has met no entry; larger than every other result."""

RESULT_BY_STATE: Final = (
    JOINED,
    DUPLICATE,
    DUPLICATE,
    DUPLICATE,
    DUPLICATE,
    EXPIRED,
    WITHDRAWN,
    EVICTED,
    OVER_LIMIT,
)
"""Result of a label by the state of the entry it meets, `PENDING` … `OVER_LIMIT`.

A `DUPLICATE` with another class is `CORRECTED`. For a label that meets several entries the smallest result
counts.
"""

COUNTED_AS: Final[Mapping[int, str]] = {
    JOINED: "joined",
    CORRECTED: "corrected",
    DUPLICATE: "duplicate",
    EXPIRED: "late",
    WITHDRAWN: "withdrawn",
    EVICTED: "evicted_prediction",
    OVER_LIMIT: "over_limit",
}
"""Field of `LabelCounters` by result."""


@dataclass(slots=True)
class LabelCounters:
    """Counters of labels of one form, with a model or without.

    Each label counted in `accepted` is counted in exactly one other counter, or is still held.
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

    def settled(self) -> int:
        """Number of labels accepted that are no longer held."""
        return sum(getattr(self, each.name) for each in fields(self)) - self.accepted


@dataclass(slots=True)
class PredictionCounters:
    """Counters of the predictions of one topic."""

    accepted: int = 0
    joined: int = 0
    """Predictions that met their label."""


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
    null_records: dict[Name, int] = field(default_factory=dict[str, int])
    records_invalid: dict[Name, dict[Name, int]] = field(default_factory=dict[str, dict[str, int]])
    """By topic and reason."""
    model_records_invalid: dict[Name, int] = field(default_factory=dict[str, int])
    """By model, where the record names one and there is room for it."""
    topic_predictions: dict[Name, PredictionCounters] = field(default_factory=dict[str, PredictionCounters])
    """By topic; predictions whose topic is unknown are not counted."""
    topic_labels: dict[Name, LabelCounters] = field(default_factory=dict[str, LabelCounters])
    """By topic, labels with and without a model together; labels whose topic is unknown are not counted."""
