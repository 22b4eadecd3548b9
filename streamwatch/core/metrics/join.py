"""Series of the join: records, predictions, labels, and what of them is told before labels come."""

from __future__ import annotations

from typing import Final

from streamwatch.core.metrics.metric import counter, gauge

JOIN: Final = (
    counter(
        "predictions_accepted_total", "Predictions taken in: no duplicates, no conflicts, none over a limit."
    ),
    counter("predictions_resolved_total", "Predictions that met their label and were evaluated."),
    counter("predictions_duplicate_total", "Predictions repeated with the same class; ignored."),
    counter(
        "predictions_conflict_total",
        "Predictions repeated with another class; join.conflicts says which one counts.",
    ),
    counter("predictions_expired_total", "Predictions without a label within the horizon."),
    counter("predictions_evicted_total", "Oldest predictions evicted because join.max_pending was reached."),
    counter("predictions_withdrawn_total", "Pending predictions withdrawn by a record with a null value."),
    counter(
        "predictions_wrong_fold_total",
        "Predictions by a fold that does not test their id (settings: folds); not evaluated.",
    ),
    counter(
        "outcomes_assumed_total", "Expired predictions evaluated as the class that join.on_expiry assumes."
    ),
    counter(
        "outcomes_released_early_total",
        "Outcomes that left the full order buffer before their window was over.",
    ),
    counter("labels_early_total", "Labels that came before their prediction and waited for it."),
    counter(
        "labels_negative_delay_total", "Outcomes whose label is older than their prediction; the delay is 0."
    ),
    counter(
        "labels_retained_evicted_total",
        "Labels that had met a prediction, evicted because join.max_labels was reached.",
    ),
    counter(
        "dedup_entries_evicted_total",
        "Oldest dedup entries evicted because join.max_dedup_entries was reached; duplicates go unseen.",
    ),
    counter("models_retired_total", "Models that were idle for twice the horizon and gave up their place."),
    counter("pairs_made_total", "Outcomes of two compared models on one id with the same label."),
    counter(
        "pairs_labels_differ_total", "Ids on which two compared models were told different labels; no pair."
    ),
    counter(
        "pairs_expired_total",
        "Partners of resolved predictions, known before, that were not resolved within join.dedup_horizon.",
    ),
    counter("labels_accepted_total", "Valid labels."),
    counter("labels_joined_total", "Labels that met a prediction."),
    counter("labels_orphaned_total", "Labels that met no prediction in the time they waited."),
    counter("labels_duplicate_total", "Labels repeated with the same class; ignored."),
    counter(
        "labels_corrected_total",
        "Labels that contradict an earlier one; estimators cannot un-see an outcome.",
    ),
    counter("labels_late_total", "Labels that came after their prediction had expired; never evaluated."),
    counter("labels_evicted_total", "Oldest unmatched labels evicted because join.max_labels was reached."),
    counter(
        "labels_before_start_total",
        "Unmatched labels whose prediction may predate kafka.start_from; not counted as orphaned.",
    ),
    counter(
        "labels_unusable_total",
        "Labels of predictions that were withdrawn, evicted or over a limit; never evaluated.",
        "reason",
    ),
    counter(
        "null_records_total",
        "Records with a null value: they withdraw on prediction topics and are ignored on label topics.",
        "topic",
    ),
    counter(
        "records_invalid_total",
        "Records that could not be decoded or broke a rule; dropped.",
        "reason",
        "topic",
    ),
    counter(
        "model_records_invalid_total",
        "Invalid records whose model can be read, for max_models models; also in records_invalid_total.",
        "model",
    ),
    counter(
        "topic_predictions_total",
        "Predictions accepted, by their topic; of the first 255 topics, as all of these metrics.",
        "topic",
    ),
    counter(
        "topic_predictions_joined_total", "Predictions that met their label, by their own topic.", "topic"
    ),
    counter("topic_labels_total", "Labels accepted, with a model or without, by their topic.", "topic"),
    counter(
        "topic_label_results_total",
        "Labels by topic and by what became of them: joined, duplicate, corrected, late, orphaned and so on. "
        "Those that still wait have none.",
        "result",
        "topic",
    ),
    counter(
        "records_over_limit_total",
        "Predictions of models beyond max_models and pairs beyond max_comparisons (not evaluated), "
        "outcomes with a class beyond max_classes, and predictions with values of segments beyond 262,144 "
        "that wait (both evaluated as __other__).",
        "limit",
    ),
    gauge(
        "predictions_labelled_ratio",
        "Share of a model's predictions that are labelled in the end, as far as ages reach by now "
        "(Kaplan-Meier: those still waiting count as censored).",
        "model",
    ),
    gauge("labels_waiting", "Labels with a model that wait for their prediction."),
    gauge("labels_unmatched", "Labels without a model that have met no prediction yet."),
    gauge(
        "labels_retained", "Labels without a model kept for the predictions of further models, met or not."
    ),
    gauge(
        "dedup_entries", "Settled predictions remembered, to tell duplicates, corrections and late labels."
    ),
    gauge(
        "order_buffer_outcomes",
        "Resolved outcomes that wait to be evaluated in the order of their predictions.",
    ),
    gauge(
        "join_identities_violated",
        "Sums of the join's counters that do not hold; anything but 0 is a defect.",
    ),
    gauge(
        "join_entries",
        "Predictions, labels and dedup entries by where they lie (memory, disk), where joined in columns.",
        "place",
    ),
    gauge("pending_predictions", "Predictions that wait for their label.", "model"),
    gauge(
        "last_prediction_timestamp_seconds",
        "Latest event time of an accepted prediction, none believed beyond its record's time.",
        "model",
    ),
    counter(
        "model_predictions_total",
        "Predictions of a model taken in, since it was first seen or came back.",
        "model",
    ),
    counter("model_predictions_joined_total", "Predictions of a model that met their label.", "model"),
    gauge(
        "classes_disjoint",
        "1 for a model whose predicted and true classes have nothing in common after 100 outcomes.",
        "model",
    ),
    gauge(
        "scores_as_classes",
        "1 for a model whose predicted classes are numbers of a scale, which a threshold has to divide.",
        "model",
    ),
    gauge(
        "nothing_joins",
        "1 for a model of which no prediction has met a label early_horizon after the first one.",
        "model",
    ),
    gauge(
        "early_hint",
        "1 while predictions of a model differ from earlier ones, whatever their labels will say; else 0.",
        "model",
    ),
    counter("early_hints_total", "Hints that the predictions of a model have changed.", "model"),
    gauge(
        "early_hint_evidence",
        "Evidence that predictions differ from earlier ones: 0 none, 1 an early hint.",
        "model",
    ),
    gauge(
        "expected_accuracy_ratio",
        "Accuracy to expect of the latest predictions by their scores, as far as labelled scores were right.",
        "model",
    ),
    gauge(
        "expected_accuracy_error_ratio",
        "Mean absolute error of the accuracy expected by scores, against what labels said later.",
        "model",
    ),
    gauge(
        "unchanged_accuracy_error_ratio",
        "Mean absolute error of expecting the accuracy of earlier labels, to hold beside the former.",
        "model",
    ),
    gauge(
        "oldest_pending_timestamp_seconds",
        "Record time of the prediction that has waited longest for its label.",
    ),
)
