"""The join as series, and the sums that must always hold."""

from __future__ import annotations

from collections.abc import Mapping

from streamwatch.core.join import Join
from streamwatch.core.series import Family
from streamwatch.core.watermark import Timeline

_COUNTERS = {
    "predictions_accepted": "Predictions taken in: no duplicates, no conflicts, none over a limit.",
    "predictions_resolved": "Predictions that met their label and were evaluated.",
    "predictions_duplicate": "Predictions repeated with the same class; ignored.",
    "predictions_conflict": "Predictions repeated with another class; the first one counts.",
    "predictions_expired": "Predictions without a label within the horizon.",
    "predictions_evicted": "Oldest predictions given up because max_pending was reached.",
    "predictions_withdrawn": "Pending predictions withdrawn by a record with a null value.",
    "outcomes_assumed": "Expired predictions evaluated as the class that on_expiry assumes.",
    "outcomes_released_early": "Outcomes that left the order buffer before their window because it was full.",
    "labels_early": "Labels that came before the prediction and were held.",
    "labels_negative_delay": "Outcomes whose label is older than their prediction; the delay is 0.",
    "labels_retained_evicted": "Labels that had met a prediction, given up for further models because "
    "max_labels was reached.",
    "tombstones_evicted": "Oldest tombstones given up because max_tombstones was reached; their duplicates "
    "would go unnoticed.",
    "models_retired": "Models that were idle for twice the horizon and gave up their place.",
}
_LABEL_COUNTERS = {
    "accepted": "Valid labels.",
    "joined": "Labels that met a prediction.",
    "orphaned": "Labels that met no prediction in the time they were held.",
    "duplicate": "Labels repeated with the same class; ignored.",
    "corrected": "Labels that contradict an earlier one; estimators cannot un-see an outcome.",
    "late": "Labels that came after their prediction had expired; never evaluated.",
    "evicted": "Oldest labels given up unmet because max_labels was reached.",
    "before_start": "Labels that met nobody, whose prediction may be older than the start; not orphans.",
}
_UNUSABLE = {"evicted": "evicted_prediction", "over_limit": "over_limit", "withdrawn": "withdrawn"}
_GAUGES = {
    "labels_held": "Labels with a model that wait for their prediction.",
    "labels_unmet": "Labels without a model that have met no prediction yet.",
    "labels_retained": "Labels without a model kept for the predictions of further models, met or not.",
    "tombstones": "Settled predictions remembered, to tell duplicates, corrections and late labels.",
    "order_buffer_outcomes": "Resolved outcomes held back to be evaluated in the order of their predictions.",
    "join_identities_violated": "Sums of the join's counters that do not hold; anything but 0 is a defect.",
}


def _labelled(name: str, text: str, label: str, counts: Mapping[str, int]) -> Family:
    return Family(
        f"{name}_total", "counter", text, (label,), [((value,), count) for value, count in counts.items()]
    )


def counter_families(join: Join, records_over_limit: Mapping[str, int]) -> list[Family]:
    """The join's counters; `records_over_limit` are those counted by the estimators."""
    counters = join.counters
    named, bare = counters.with_model, counters.without_model
    families = [
        Family(f"{name}_total", "counter", text, (), [((), getattr(counters, name))])
        for name, text in _COUNTERS.items()
    ]
    families += [
        Family(
            f"labels_{name}_total", "counter", text, (), [((), getattr(named, name) + getattr(bare, name))]
        )
        for name, text in _LABEL_COUNTERS.items()
    ]
    unusable = {
        reason: getattr(named, attribute) + getattr(bare, attribute)
        for reason, attribute in _UNUSABLE.items()
    }
    over_limit = {
        **records_over_limit,
        "models": records_over_limit.get("models", 0) + counters.models_over_limit,
    }
    families += [
        _labelled(
            "labels_unusable",
            "Labels of predictions that were withdrawn, evicted or over a limit; never evaluated.",
            "reason",
            unusable,
        ),
        _labelled(
            "null_records",
            "Records with a null value: they withdraw on prediction topics and are ignored on label topics.",
            "topic",
            counters.null_records,
        ),
        _labelled(
            "records_invalid",
            "Records that could not be decoded or broke a rule; dropped.",
            "reason",
            counters.records_invalid,
        ),
        _labelled(
            "records_over_limit",
            "Predictions of models beyond max_models (not evaluated), and outcomes with a class beyond "
            "max_classes (evaluated as __other__).",
            "limit",
            over_limit,
        ),
    ]
    return families


def gauge_families(join: Join, timeline: Timeline) -> list[Family]:
    """What the join holds now, and its record times."""
    values = {
        "labels_held": join.labels.early,
        "labels_unmet": join.labels.unmet,
        "labels_retained": join.labels.retained,
        "tombstones": len(join.predictions.graveyard),
        "order_buffer_outcomes": len(join.predictions.buffer),
        "join_identities_violated": len(identities(join)),
    }
    families = [Family(name, "gauge", _GAUGES[name], (), [((), value)]) for name, value in values.items()]
    watermarks = (("label", timeline.label_ms), ("prediction", timeline.prediction_ms))
    oldest_ms = join.predictions.oldest_ms
    families += [
        Family(
            "pending_predictions",
            "gauge",
            "Predictions that wait for their label.",
            ("model",),
            [((name,), activity.pending) for name, activity in join.predictions.registry.models.items()],
        ),
        Family(
            "oldest_pending_timestamp_seconds",
            "gauge",
            "Record time of the prediction that has waited longest for its label.",
            (),
            [] if oldest_ms is None else [((), oldest_ms / 1000)],
        ),
        Family(
            "watermark_timestamp_seconds",
            "gauge",
            "Record time up to which a side of the join has been read. Predictions expire by that of "
            "the labels, waiting labels by that of the predictions.",
            ("side",),
            [((side,), ms / 1000) for side, ms in watermarks if ms >= 0],
        ),
        Family(
            "timestamps_clamped_total",
            "counter",
            "Record timestamps too far in the future or too far behind their partition, and clamped.",
            (),
            [((), timeline.clamped)],
        ),
    ]
    return families


def identities(join: Join) -> list[str]:
    """Every sum that does not hold, in words; empty when all is accounted for."""
    counters, labels = join.counters, join.labels
    pending = sum(activity.pending for activity in join.predictions.registry.models.values())
    held = len(join.predictions.buffer) - join.predictions.buffer.assumed
    sums = [
        (
            "predictions accepted = pending + resolved + expired + evicted + withdrawn + held for order",
            counters.predictions_accepted,
            pending
            + counters.predictions_resolved
            + counters.predictions_expired
            + counters.predictions_evicted
            + counters.predictions_withdrawn
            + held,
        ),
        ("pending = sum over models", join.predictions.pending, pending),
        (
            "held for order = sum over models",
            len(join.predictions.buffer),
            sum(activity.held for activity in join.predictions.registry.models.values()),
        ),
        (
            "labels with a model = joined + orphaned + … + held",
            counters.with_model.accepted,
            counters.with_model.settled() + labels.early,
        ),
        (
            "labels without a model = joined + orphaned + … + held",
            counters.without_model.accepted,
            counters.without_model.settled() + labels.unmet,
        ),
    ]
    return [f"{rule}: {left} ≠ {right}" for rule, left, right in sums if left != right]
