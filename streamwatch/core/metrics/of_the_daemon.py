"""Series of the daemon: its sources, the join, the order, its state and its process."""

from __future__ import annotations

from typing import Final

from streamwatch.core.metrics.metric import counter, durations, gauge

# Series of the daemon: Kafka, schemas, dead letters, internal events.


DAEMON: Final = (
    gauge("build_info", "Version of the running program, as a label. The value is always 1.", "version"),
    gauge("kafka_up", "1 while the brokers answer, else 0."),
    gauge("ready", "1 while the daemon is ready, else 0; /readyz gives the reasons."),
    gauge("caught_up", "1 while the brokers answer and every partition has been read to its end, else 0."),
    gauge(
        "results_stale",
        "1 if the latest batch of the Spark job is older than ten times spark.interval and than five "
        "minutes, else 0. Only exported with source: results.",
    ),
    gauge("state_durable", "1 if the state survives a restart, else 0."),
    gauge("state_disk_low", "1 while reading is paused because the disk is nearly full, else 0."),
    gauge(
        "consumer_lag_records",
        "Records of a partition that are not evaluated yet: its high watermark minus the position behind the "
        "last evaluated record. Records that wait for time.settle are among them.",
        "partition",
        "topic",
    ),
    gauge(
        "consumer_lag_seconds",
        "Age of the last evaluated record of a partition while others wait to be evaluated, else 0. No "
        "sample before the first record.",
        "partition",
        "topic",
    ),
    durations("poll_duration_seconds", "Time that a poll of the source took, waiting for records included."),
    durations(
        "evaluation_duration_seconds",
        "Time that records and events of a turn took to be evaluated on the event loop.",
    ),
    counter(
        "kafka_data_loss_total",
        "Times that records in Kafka were found deleted, replaced or unreadable, by cause.",
        "cause",
    ),
    counter(
        "kafka_records_lost_total", "Records lost in Kafka, by cause, if their number is known.", "cause"
    ),
    counter(
        "kafka_position_unverified_total",
        "Times that the log could not be verified, because the remembered record is no longer in it.",
    ),
    gauge(
        "schema_registry_up",
        "0 while records wait for the schema registry, else 1. Only exported if a registry is set.",
    ),
    gauge("schemas_cached", "Cached schemas, including names that the registry did not know."),
    gauge(
        "dead_letter_topic_missing",
        "1 if kafka.dead_letter_topic did not exist when topics were last listed, else 0. Only exported "
        "if one is set.",
    ),
    counter(
        "dead_letters_written_total",
        "Invalid records written to kafka.dead_letter_topic since the start, stubs included.",
    ),
    counter(
        "dead_letter_stubs_total",
        "Dead letters written without key, value and headers of the record since the start, by reason: it was"
        " read without them, or brokers refused it with them.",
        "reason",
    ),
    counter(
        "dead_letters_dropped_total",
        "Invalid records that could not be written to kafka.dead_letter_topic since the start, by reason.",
        "reason",
    ),
    gauge(
        "publishing_up",
        "1 while outcomes and events can be written to outcomes.topic and events.topic, else 0. Exported if"
        " one is set, as are all publishing_ series.",
    ),
    counter("publishing_outcomes_total", "Outcomes written to outcomes.topic since the start."),
    counter("publishing_events_total", "Events written to events.topic since the start."),
    counter("publishing_transactions_total", "Transactions committed since the start."),
    counter("publishing_failures_total", "Transactions that failed since the start, and are written again."),
    gauge(
        "publishing_waiting_records",
        "Outcomes and events in the state that are not in their topics yet, and invalid records of replicas.",
    ),
    gauge("publishing_waiting_bytes", "Bytes of the records that publishing_waiting_records counts."),
    counter(
        "publishing_delayed_commits_total",
        "Commits since the start that waited, and reading with them, because too many bytes waited.",
    ),
    gauge(
        "standby_info",
        "1, with the name that the replicas of one deployment share (ledger.transactional_id).",
        "deployment",
    ),
    gauge(
        "standby_role",
        "1 for the part that this replica has (catching_up, standby, taking_over, holder or diverged), 0 for "
        "the others. Exported if standby.enabled is set, as are all standby_ series.",
        "role",
    ),
    counter(
        "standby_takeovers_total",
        "Times since the start that this replica became the holder after another one.",
    ),
    counter(
        "standby_notifications_in_doubt_total",
        "Notifications since the start that were owed when this replica became the holder: the holder before "
        "may have delivered them, and they are delivered (again) under the same id.",
    ),
    gauge(
        "standby_diverged",
        "1 if this replica's outcomes or alarms are not those of the holder, and it will not take over, "
        "else 0.",
    ),
    counter("backups_total", "Backups of the state made since the start. Exported if state.backups is set."),
    counter(
        "backups_failed_total", "Backups since the start that failed, or whose state.backups.command failed."
    ),
    gauge(
        "last_backup_timestamp_seconds",
        "Time at which the newest backup in state.backups.directory was begun.",
    ),
    gauge("last_backup_seconds", "Time that copying the state took in the last backup."),
    gauge(
        "series_dropped",
        "Series left out of this response to stay within monitors.max_series, by part of a model's "
        "series: rare classes go first, then rare values of segments, further forgettings, and others. "
        "The API has all.",
        "part",
    ),
    counter(
        "internal_events_total",
        "Internal events by name. Each is also a line in the log; frequent ones are sampled.",
        "event",
    ),
)


# Series of the join: records, predictions, labels, and what is known of them before labels come.


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
    counter("models_retired_total", "Models removed after no prediction for twice join.horizon."),
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
    gauge(
        "sampled_accuracy_ratio",
        "Accuracy of all predictions with a label_probability, from the labels of some of them, each "
        "weighted by 1 / label_probability.",
        "model",
    ),
    gauge(
        "sampled_accuracy_lower_ratio",
        "Lower bound of sampled_accuracy_ratio, from 200 × dispersion effective labels on; "
        "valid however often one looks.",
        "model",
    ),
    gauge(
        "sampled_accuracy_upper_ratio",
        "Upper bound of sampled_accuracy_ratio, from 200 × dispersion effective labels on; "
        "valid however often one looks.",
        "model",
    ),
    gauge(
        "sampled_effective_labels",
        "Effective number of labels behind sampled_accuracy_ratio: (Σ 1/π)²/Σ 1/π², π the label_probability.",
        "model",
    ),
    gauge(
        "sampled_lead",
        "Mean lead of all predictions with a label_probability over an opponent, from the labels of some of "
        "them.",
        "model",
        "opponent",
    ),
    gauge(
        "sampled_lead_lower",
        "Lower bound of sampled_lead, from 200 × dispersion effective labels on; "
        "valid however often one looks.",
        "model",
        "opponent",
    ),
    gauge(
        "sampled_lead_upper",
        "Upper bound of sampled_lead, from 200 × dispersion effective labels on; "
        "valid however often one looks.",
        "model",
        "opponent",
    ),
    counter("sampled_predictions_total", "Predictions with a label_probability.", "model"),
    counter(
        "sampled_predictions_without_probability_total",
        "Predictions without a label_probability of models that have others with one; they are in no sampled "
        "estimate.",
        "model",
    ),
    counter(
        "sampled_labels_expected_total",
        "Labels to be expected by the probabilities of the predictions: the sum of label_probability.",
        "model",
    ),
    counter(
        "sampled_labels_total",
        "Labels of predictions with a label_probability, without those that were not asked for.",
        "model",
    ),
    counter(
        "sampled_labels_unasked_total",
        "Labels of predictions whose label_requested is false; they are in no sampled estimate.",
        "model",
    ),
    gauge(
        "sampled_labels_arrived_ratio",
        "Share of the labels asked for that came, of predictions whose labels should all be there: by "
        "label_requested where predictions have it, else by the sum of label_probability.",
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
        "Predictions, labels and dedup entries by storage tier (memory, disk).",
        "tier",
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


# Series of the one order and its clock.


MERGE: Final = (
    gauge("clock_timestamp_seconds", "Time of the latest evaluated record. It never goes back."),
    gauge(
        "watermark_timestamp_seconds",
        "Latest record time among the evaluated records of a partition.",
        "partition",
        "topic",
    ),
    counter("records_evaluated_total", "Evaluated records by topic, whatever their result.", "topic"),
    counter(
        "events_evaluated_total",
        "Events in the evaluated records, valid or not; more than records if a record holds several.",
        "topic",
    ),
    counter(
        "records_skipped_total",
        "Evaluated records from which no mapping of the topic makes an event (`when`, or an envelope).",
        "topic",
    ),
    counter(
        "predictions_tied_total",
        "Predictions for which several classes had the largest score; the first of them was taken.",
        "topic",
    ),
    counter(
        "records_out_of_order_total",
        "Records that arrived after a later one had been evaluated; evaluated at the time of the clock. "
        "Those that cannot be decoded have no time of their own and are not counted.",
        "topic",
    ),
    counter(
        "records_lateness_seconds_total", "Sum of the times by which out-of-order records were late.", "topic"
    ),
    counter(
        "timestamps_corrected_total",
        "Implausible record timestamps that were replaced by the latest time of their partition, by reason.",
        "reason",
    ),
    counter(
        "partitions_left_behind_total",
        "Times that a partition was no longer waited for, after time.max_hold_back.",
    ),
    gauge("merge_held_records", "Records that wait until no earlier record can arrive."),
    gauge(
        "merge_hold_seconds",
        "Time for which the next record has waited for a partition to be read or found at its end.",
        "partition",
        "topic",
    ),
    gauge(
        "host_clock_behind",
        "1 while most records have times beyond the host's clock, which is ignored meanwhile (for "
        "a Spark job, the driver's clock), else 0.",
    ),
)


# Series of the process, under the names every client library gives.


PROCESS: Final = (
    counter("process_cpu_seconds_total", "CPU time used by the process."),
    gauge("process_resident_memory_bytes", "Resident memory of the process."),
    gauge("process_start_time_seconds", "Start time of the process, in seconds since the epoch."),
    gauge("process_open_fds", "Open file descriptors of the process."),
    gauge(
        "python_info",
        "Python implementation and version, as labels. The value is always 1.",
        "implementation",
        "version",
    ),
)
"""Exported without the prefix, as every client library exports them."""


# Series of a distributed run, from the daemon that shows its results.


RESULTS: Final = (
    gauge("results_batch", "Number of the latest batch of the Spark job that was read."),
    gauge("results_batch_timestamp_seconds", "Time at which the job wrote that batch."),
    gauge("results_batch_end_timestamp_seconds", "Record time up to which that batch extends."),
    gauge(
        "results_waiting_records",
        "Records of the job's topics beyond that batch when its end was chosen, including records "
        "younger than time.settle.",
        "topic",
    ),
)


# Series of the state and its commits.


STATE: Final = (
    counter(
        "commits_total",
        "Commits over the life of the state; since the start if the state is in memory.",
    ),
    durations("commit_duration_seconds", "Time that a commit took, until it was durable, since the start."),
    gauge("last_commit_seconds", "Duration of the last commit, until it was durable."),
    gauge("uncommitted_events", "Events that are evaluated but not committed yet."),
    gauge("state_bytes", "Size of the state on disk by column family, without the write-ahead log.", "part"),
    gauge("state_buffered_bytes", "Bytes that are written but not yet sorted into files."),
)
