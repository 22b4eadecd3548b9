"""Series of the join: records, predictions, labels, and what of them is told before labels come."""

from __future__ import annotations

from typing import Final

from streamwatch.core.metrics.metric import counter, gauge

JOIN: Final = (
    counter(
        "predictions_accepted_total", "Accepted predictions: valid, not repeated, and within the limits."
    ),
    counter("predictions_resolved_total", "Predictions that were matched with a label and evaluated."),
    counter("predictions_duplicate_total", "Repeated predictions with the same class; ignored."),
    counter(
        "predictions_conflict_total",
        "Repeated predictions with another class; join.conflicts decides which one counts.",
    ),
    counter("predictions_expired_total", "Predictions that got no label within join.horizon."),
    counter(
        "predictions_evicted_total",
        "Predictions evicted, the oldest first, because join.max_pending was reached.",
    ),
    counter(
        "predictions_withdrawn_total",
        "Pending predictions that were withdrawn by a record with a null value.",
    ),
    counter(
        "predictions_wrong_fold_total",
        "Predictions by a fold that does not test their id (folds.scheme); not evaluated.",
    ),
    counter(
        "outcomes_assumed_total",
        "Expired predictions that were evaluated as the class that join.on_expiry assumes.",
    ),
    counter(
        "outcomes_released_early_total",
        "Outcomes that were released before the end of join.reorder_window because "
        "join.max_reordered was reached.",
    ),
    counter("labels_early_total", "Labels that arrived before their prediction and waited for it."),
    counter(
        "labels_negative_delay_total",
        "Outcomes whose label is older than their prediction; their delay counts as 0.",
    ),
    counter(
        "labels_retained_evicted_total",
        "Labels that had matched a prediction and were evicted because join.max_labels was reached.",
    ),
    counter(
        "dedup_entries_evicted_total",
        "Dedup entries evicted, the oldest first, because join.max_dedup_entries was reached; "
        "their duplicates are no longer recognised.",
    ),
    counter(
        "models_retired_total", "Models that gave up their place after no prediction for twice join.horizon."
    ),
    counter("pairs_made_total", "Pairs of outcomes of two compared models on one id with the same label."),
    counter(
        "pairs_labels_differ_total",
        "Ids on which two compared models got different labels; these form no pair.",
    ),
    counter(
        "pairs_expired_total",
        "Partners of resolved predictions that were known but not resolved within join.dedup_horizon.",
    ),
    counter("labels_accepted_total", "Valid labels."),
    counter("labels_joined_total", "Labels that matched a prediction."),
    counter("labels_orphaned_total", "Labels that matched no prediction in the time they waited."),
    counter("labels_duplicate_total", "Repeated labels with the same class; ignored."),
    counter(
        "labels_corrected_total",
        "Labels that contradict an earlier label of the same prediction; not evaluated again.",
    ),
    counter("labels_late_total", "Labels that arrived after their prediction had expired; never evaluated."),
    counter(
        "labels_evicted_total",
        "Unmatched labels evicted, the oldest first, because join.max_labels was reached.",
    ),
    counter(
        "labels_before_start_total",
        "Unmatched labels whose prediction may predate kafka.start_from; not counted as orphaned.",
    ),
    counter(
        "labels_unusable_total",
        "Labels of predictions that were withdrawn, evicted or over a limit, by reason; never evaluated.",
        "reason",
    ),
    counter(
        "null_records_total",
        "Records with a null value. They withdraw predictions on prediction topics and are "
        "ignored on label topics.",
        "topic",
    ),
    counter(
        "records_invalid_total",
        "Records that could not be decoded or violate a rule, by topic and reason; dropped.",
        "reason",
        "topic",
    ),
    counter(
        "model_records_invalid_total",
        "Invalid records whose model could be read, for up to monitors.max_models models. They "
        "also count in records_invalid_total.",
        "model",
    ),
    counter(
        "topic_predictions_total",
        "Accepted predictions by topic. Metrics by topic cover the first 255 topics.",
        "topic",
    ),
    counter(
        "topic_predictions_joined_total",
        "Predictions that were matched with a label, by topic of the prediction.",
        "topic",
    ),
    counter("topic_labels_total", "Valid labels by topic.", "topic"),
    counter(
        "topic_label_results_total",
        "Labels by topic and result: joined, duplicate, corrected, late, orphaned and so on. "
        "Labels that still wait have no result yet.",
        "result",
        "topic",
    ),
    counter(
        "records_over_limit_total",
        "Records over a limit: predictions of models beyond max_models and pairs beyond "
        "max_comparisons (not evaluated); classes beyond max_classes and combinations of segment "
        "values beyond 262,144 waiting ones (evaluated as __other__).",
        "limit",
    ),
    gauge(
        "predictions_labelled_ratio",
        "Share of a model's predictions that get a label in the end, as far as their ages allow "
        "to estimate it (Kaplan-Meier; predictions that still wait are censored).",
        "model",
    ),
    gauge("labels_waiting", "Labels that name a model and wait for their prediction."),
    gauge("labels_unmatched", "Labels that name no model and have matched no prediction yet."),
    gauge(
        "labels_retained",
        "Labels that name no model and are kept for predictions of further models, matched or not.",
    ),
    gauge(
        "dedup_entries",
        "Settled predictions that are remembered to recognise duplicates, corrections and late labels.",
    ),
    gauge(
        "order_buffer_outcomes",
        "Resolved outcomes that wait to be evaluated in the order of their predictions.",
    ),
    gauge(
        "join_identities_violated",
        "Sums of the join's counters that do not add up. Any value other than 0 is a defect of streamwatch.",
    ),
    gauge(
        "join_entries",
        "Predictions, labels and dedup entries by place (memory, disk), if they are joined in columns.",
        "place",
    ),
    gauge("pending_predictions", "Predictions that wait for their label.", "model"),
    gauge(
        "last_prediction_timestamp_seconds",
        "Latest event time of an accepted prediction, capped at the time of its record.",
        "model",
    ),
    counter(
        "model_predictions_total",
        "Accepted predictions of a model since it was first seen or came back.",
        "model",
    ),
    counter(
        "model_predictions_joined_total", "Predictions of a model that were matched with a label.", "model"
    ),
    gauge(
        "classes_disjoint",
        "1 if the predicted and the true classes of a model have nothing in common after 100 outcomes.",
        "model",
    ),
    gauge(
        "scores_as_classes",
        "1 if the predicted classes of a model look like scores, which a threshold must turn into classes.",
        "model",
    ),
    gauge(
        "nothing_joins",
        "1 if no prediction of a model has matched a label by join.early_horizon after its first one.",
        "model",
    ),
    gauge(
        "early_hint",
        "1 while the predictions of a model differ from earlier ones, whatever their labels will be, else 0.",
        "model",
    ),
    counter("early_hints_total", "Hints that the predictions of a model have changed.", "model"),
    gauge(
        "early_hint_evidence",
        "Evidence that predictions differ from earlier ones, from 0 (none) to 1 (an early hint).",
        "model",
    ),
    gauge(
        "expected_accuracy_ratio",
        "Accuracy that the scores of the latest predictions suggest, calibrated by how often "
        "labelled scores were right.",
        "model",
    ),
    gauge(
        "expected_accuracy_error_ratio",
        "Mean absolute error of the expected accuracy, compared with what labels showed later.",
        "model",
    ),
    gauge(
        "unchanged_accuracy_error_ratio",
        "Mean absolute error of simply expecting the accuracy of earlier labels; compare it with "
        "expected_accuracy_error_ratio.",
        "model",
    ),
    gauge(
        "oldest_pending_timestamp_seconds",
        "Record time of the prediction that has waited longest for its label.",
    ),
)
