"""Metrics of the join, and the identities between its counters that must always hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from streamwatch.core.join.caveats import Mismatch
from streamwatch.core.join.counters import JoinCounters, LabelCounters
from streamwatch.core.join.layout import PLAIN_COUNTERS
from streamwatch.core.join.models import ModelActivity, joined_folds
from streamwatch.core.metrics import family, single
from streamwatch.core.metrics.series import Columns, Family, ModelKeys

# `Holdings`: what a join holds.


@dataclass(frozen=True, slots=True)
class Holdings:
    """Numbers of predictions, labels and outcomes that the join holds, and each model's activity by name."""

    models: Mapping[str, ModelActivity]
    pending: int
    early: int
    """Labels with a model, waiting."""
    unmatched: int
    """Labels without a model that have met no prediction."""
    retained: int
    """All labels without a model that are kept, and labels kept for further folds of their model."""
    dedup_entries: int
    held: int = 0
    """Outcomes in the order buffer."""
    held_assumed: int = 0
    """Number of these that were assumed at expiry."""
    oldest_ms: int | None = None
    """Record time of the pending prediction that would expire first."""
    tiers: Mapping[str, int] = field(default_factory=dict[str, int])
    """Number of entries by storage tier (`memory`, `disk`); empty if unknown."""


_COUNTERS = tuple(name for name in PLAIN_COUNTERS if not name.endswith("_over_limit"))
_LABEL_COUNTERS = (
    "accepted", "joined", "orphaned", "duplicate", "corrected", "late", "evicted", "before_start",
)  # fmt: skip
_RESULTS = tuple(sorted(each.name for each in fields(LabelCounters) if each.name != "accepted"))
_UNUSABLE = {"evicted": "evicted_prediction", "over_limit": "over_limit", "withdrawn": "withdrawn"}


class Joining(Protocol):
    """Join as its metrics need it."""

    @property
    def counters(self) -> JoinCounters:
        """Counters since the state began."""
        ...

    def holdings(self) -> Holdings:
        """Holdings as of now."""
        ...


def counter_families(join: Joining, records_over_limit: Mapping[str, int]) -> list[Family]:
    """The join's counters; `records_over_limit` are those counted by the estimators."""
    counters = join.counters
    named, bare = counters.with_model, counters.without_model
    unusable = {
        reason: getattr(named, attribute) + getattr(bare, attribute)
        for reason, attribute in _UNUSABLE.items()
    }
    over_limit = {
        **records_over_limit,
        "models": records_over_limit.get("models", 0) + counters.models_over_limit,
    }
    if counters.predictions_segments_over_limit:
        over_limit["segments"] = counters.predictions_segments_over_limit
    return [
        *(single(f"{name}_total", getattr(counters, name)) for name in _COUNTERS),
        *(
            single(f"labels_{name}_total", getattr(named, name) + getattr(bare, name))
            for name in _LABEL_COUNTERS
        ),
        _by_label("labels_unusable_total", unusable),
        _by_label("null_records_total", counters.null_records),
        family(
            "records_invalid_total",
            [
                ((reason, topic), count)
                for topic, reasons in sorted(counters.records_invalid.items())
                for reason, count in sorted(reasons.items())
            ],
        ),
        family(
            "model_records_invalid_total",
            [((model,), count) for model, count in sorted(counters.model_records_invalid.items())],
        ),
        _by_label("records_over_limit_total", over_limit),
        *_topic_families(counters),
    ]


def _topic_families(counters: JoinCounters) -> list[Family]:
    """Counters of predictions and labels by topic, with their results."""
    predictions, labels = sorted(counters.topic_predictions.items()), sorted(counters.topic_labels.items())
    return [
        family("topic_predictions_total", [((topic,), each.accepted) for topic, each in predictions]),
        family("topic_predictions_joined_total", [((topic,), each.joined) for topic, each in predictions]),
        family("topic_labels_total", [((topic,), each.accepted) for topic, each in labels]),
        family(
            "topic_label_results_total",
            [((result, topic), getattr(each, result)) for topic, each in labels for result in _RESULTS],
        ),
    ]


def _by_label(name: str, counts: Mapping[str, int]) -> Family:
    return family(name, [((value,), count) for value, count in sorted(counts.items())])


def gauge_families(join: Joining) -> list[Family]:
    """Gauges of the join."""
    holdings = join.holdings()
    values = {
        "labels_waiting": holdings.early,
        "labels_unmatched": holdings.unmatched,
        "labels_retained": holdings.retained,
        "dedup_entries": holdings.dedup_entries,
        "order_buffer_outcomes": holdings.held,
        "join_identities_violated": len(identities(join)),
    }
    models, keys = _models_of(holdings)
    latest_ms = np.array([activity.last_event_ms for activity in models], np.float64)
    oldest_ms = holdings.oldest_ms
    return [
        *(single(name, value) for name, value in values.items()),
        family("join_entries", [((tier,), count) for tier, count in holdings.tiers.items()]),
        _by_model("pending_predictions", keys, [activity.pending for activity in models]),
        _by_model(
            "last_prediction_timestamp_seconds", keys, np.where(latest_ms >= 0, latest_ms / 1000, np.nan)
        ),
        single("oldest_pending_timestamp_seconds", None if oldest_ms is None else oldest_ms / 1000),
    ]


def _models_of(holdings: Holdings) -> tuple[Collection[ModelActivity], ModelKeys]:
    """Return the activity of models, without their folds, and their label values, in the same order."""
    models = joined_folds(holdings.models)
    return models.values(), ModelKeys(tuple(models))


def _by_model(name: str, keys: ModelKeys, values: ArrayLike) -> Family:
    """Build a family with a sample for each model; NaN for none."""
    samples = Columns()
    samples.add(keys, np.asarray(values, np.float64))
    return family(name, samples)


def model_families(join: Joining, found: Sequence[Mismatch]) -> list[Family]:
    """Metrics of each model in the join, and of its mismatches (no sample for models without one)."""
    models, keys = _models_of(join.holdings())
    return [
        _by_model("model_predictions_total", keys, [activity.accepted for activity in models]),
        _by_model("model_predictions_joined_total", keys, [activity.joined for activity in models]),
        family("classes_disjoint", [((each.model,), 1) for each in found if each.disjoint is not None]),
        family("scores_as_classes", [((each.model,), 1) for each in found if each.scores is not None]),
        family("nothing_joins", [((each.model,), 1) for each in found if each.predictions is not None]),
    ]


def identities(join: Joining) -> list[str]:
    """Describe the sums of counters that do not hold; empty when every event is accounted for."""
    counters, holdings = join.counters, join.holdings()
    pending = sum(activity.pending for activity in holdings.models.values())
    sums = [
        (
            "predictions accepted = pending + resolved + expired + evicted + withdrawn + held for order",
            counters.predictions_accepted,
            pending
            + counters.predictions_resolved
            + counters.predictions_expired
            + counters.predictions_evicted
            + counters.predictions_withdrawn
            + holdings.held
            - holdings.held_assumed,
        ),
        ("pending = sum over models", holdings.pending, pending),
        (
            "held for order = sum over models",
            holdings.held,
            sum(activity.held for activity in holdings.models.values()),
        ),
        (
            "labels with a model = joined + orphaned + … + held",
            counters.with_model.accepted,
            counters.with_model.settled() + holdings.early,
        ),
        (
            "labels without a model = joined + orphaned + … + held",
            counters.without_model.accepted,
            counters.without_model.settled() + holdings.unmatched,
        ),
    ]
    return [f"{rule}: {left} ≠ {right}" for rule, left, right in sums if left != right]
