"""The one table of metrics: name, type, labels and help of every series there is.

Those of models are derived from the catalogue of estimators (`metrics_of`), all others stand in the sections
at the end. Whoever has numbers makes them into series with `family`, which takes everything but the samples
from the table. Longer than other files, because there is one table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from streamwatch.core.series import Family, Histogram

_DECAY = "decay is per outcome, not per second"
_PER_FORGETTING = ("forgetting", "model")
_PER_DETECTOR = ("detector", "model")
_PER_OPPONENT = ("model", "opponent")


@dataclass(frozen=True, slots=True)
class Metric:
    """A family of series as every sink names it: without prefix, label names in alphabetical order."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...]


class Line(Protocol):
    """A line of the catalogue, as far as a series is named by it."""

    @property
    def name(self) -> str:
        """Name of the metric, or value of its `bound` or `baseline` label."""
        ...

    @property
    def help(self) -> str:
        """Description in a few words."""
        ...

    @property
    def formula(self) -> str:
        """Formula by which it is computed."""
        ...


def metrics_of(
    measures: Sequence[Line],
    bounds: Sequence[Line],
    baselines: Sequence[Line],
    per_class: Sequence[Line],
) -> tuple[Metric, ...]:
    """Every series of a model, in the order they are reported."""
    return (
        Metric("outcomes_total", "counter", "Predictions evaluated: their label is known", ("model",)),
        Metric("errors_total", "counter", "Outcomes whose prediction was wrong", ("model",)),
        *(Metric(m.name, "gauge", f"{m.help} ({m.formula}; {_DECAY})", _PER_FORGETTING) for m in measures),
        Metric(
            "effective_sample_size",
            "gauge",
            f"Outcomes the estimates under this forgetting are worth, (Σw)²/Σw² ({_DECAY})",
            _PER_FORGETTING,
        ),
        Metric(
            "accuracy_bound_ratio",
            "gauge",
            "Limit of the true accuracy at monitors.confidence_delta, for independent losses; "
            f"lower unless named upper: {', '.join(b.name for b in bounds)} ({_DECAY})",
            ("bound", *_PER_FORGETTING),
        ),
        Metric(
            "baseline_accuracy_ratio",
            "gauge",
            f"Accuracy of a classifier without features: {', '.join(b.name for b in baselines)} ({_DECAY})",
            ("baseline", *_PER_FORGETTING),
        ),
        Metric(
            "adwin_window_outcomes",
            "gauge",
            "Outcomes in ADWIN's window: it shrinks when the loss changes",
            _PER_FORGETTING,
        ),
        Metric(
            "drift_weighted_accuracy_ratio",
            "gauge",
            f"Accuracy in which outcomes right after a drift weigh more ({_DECAY})",
            ("model",),
        ),
        Metric(
            "drift_weighted_effective_sample_size",
            "gauge",
            "Outcomes the drift-weighted accuracy is worth, (Σw)²/Σw²",
            ("model",),
        ),
        Metric(
            "detector_statistic", "gauge", "What a drift detector compares with its threshold", _PER_DETECTOR
        ),
        Metric(
            "detector_threshold", "gauge", "The statistic above which a drift detector alarms", _PER_DETECTOR
        ),
        Metric(
            "detector_warning",
            "gauge",
            "1 while the statistic is above the warning level but no alarm, for detectors that have one",
            _PER_DETECTOR,
        ),
        Metric("alarms_total", "counter", "Drifts a detector declared", _PER_DETECTOR),
        Metric(
            "last_alarm_timestamp_seconds",
            "gauge",
            "Event time of the outcome that raised the latest alarm",
            _PER_DETECTOR,
        ),
        Metric(
            "accuracy_misleads",
            "gauge",
            "1 for a model judged by accuracy whose largest class is at least 90 % of labels and whose kappa "
            "is 3 standard errors above 0: to lose in accuracy says little of its use (others: no sample)",
            ("model",),
        ),
        Metric(
            "verdict",
            "gauge",
            "1 if the model is better than the opponent, -1 if worse, 0 if open, however often one looks; "
            "false within monitors.verdict_outcomes with probability monitors.confidence_delta",
            _PER_OPPONENT,
        ),
        Metric(
            "verdict_since_timestamp_seconds",
            "gauge",
            "Event time from which the verdict holds; of an open one, when it opened",
            _PER_OPPONENT,
        ),
        Metric(
            "verdict_since_outcome",
            "gauge",
            "The model's outcome from which the verdict holds",
            _PER_OPPONENT,
        ),
        Metric(
            "verdict_evidence",
            "gauge",
            "Evidence that the model is better or worse than the opponent: 0 none, 1 a verdict, then 0 again",
            (*_PER_OPPONENT, "side"),
        ),
        Metric(
            "lead",
            "gauge",
            "Mean utility of the model less that of the opponent, -1 to 1, since the verdict last changed",
            _PER_OPPONENT,
        ),
        Metric(
            "lead_lower",
            "gauge",
            "Lower limit of the mean lead at monitors.confidence_delta, looked at as often as one likes",
            _PER_OPPONENT,
        ),
        Metric(
            "lead_upper",
            "gauge",
            "Upper limit of the mean lead at monitors.confidence_delta, looked at as often as one likes",
            _PER_OPPONENT,
        ),
        Metric(
            "lead_dispersion",
            "gauge",
            "Variance of the lead's sums beside that of independent outcomes: divides the evidence",
            _PER_OPPONENT,
        ),
        Metric(
            "folds_evaluated",
            "gauge",
            "Folds of a model with outcomes, where it predicts in folds",
            ("model",),
        ),
        Metric(
            "fold_accuracy_deviation",
            "gauge",
            f"Standard deviation of accuracy over a model's folds; their mean is accuracy_ratio ({_DECAY})",
            _PER_FORGETTING,
        ),
        Metric(
            "fold_accuracy_ratio",
            "gauge",
            f"Share of outcomes one fold of the model got right ({_DECAY})",
            ("fold", *_PER_FORGETTING),
        ),
        Metric("fold_outcomes_total", "counter", "Outcomes of one fold of the model", ("fold", "model")),
        Metric(
            "label_delay_seconds",
            "histogram",
            "Time from a prediction to its label (assumed labels left out)",
            ("model",),
        ),
        Metric(
            "last_label_timestamp_seconds",
            "gauge",
            "Latest event time of a label that met its prediction (assumed labels left out)",
            ("model",),
        ),
        *(
            Metric(m.name, "gauge", f"{m.help} ({m.formula}; {_DECAY})", ("class", *_PER_FORGETTING))
            for m in per_class
        ),
        Metric(
            "series_dropped",
            "gauge",
            "Series left out of this report to stay within monitors.max_series, per-class series first",
            (),
        ),
    )


LABEL_DELAY_BOUNDS: tuple[float, ...] = (
    1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0,
    86_400.0, 172_800.0, 345_600.0, 604_800.0, 1_209_600.0, 2_419_200.0,
)  # fmt: skip
"""Upper bounds of the label delay's buckets: a second to four weeks."""

DISPENSABLE: tuple[str, ...] = (
    "class_predicted_ratio",
    "class_truth_ratio",
    "precision_ratio",
    "recall_ratio",
    "fold_outcomes_total",
    "fold_accuracy_ratio",
    "macro_f1_ratio",
    "harmonic_mean_recall_ratio",
    "geometric_mean_recall_ratio",
    "arithmetic_mean_recall_ratio",
    "kappa_standard_error",
    "verdict_since_outcome",
    "lead_dispersion",
    "verdict_evidence",
    "temporal_dependence",
    "kappa_majority_prequential",
    "loss_autocorrelation",
    "label_delay_seconds",
    "effective_sample_size_autocorrelated",
    "kappa_zscore",
    "baseline_accuracy_ratio",
    "accuracy_bound_ratio",
)
"""What a report does not even hold, in this order, when it would exceed `max_series`."""

NEEDED: tuple[str, ...] = (
    "comparison_lead_dispersion",
    "comparison_verdict_since_pair",
    "comparison_verdict_evidence",
    "unchanged_accuracy_error_ratio",
    "expected_accuracy_error_ratio",
    "early_hint_evidence",
    "early_hints_total",
    "expected_accuracy_ratio",
    "comparison_effective_sample_size",
    "comparison_mcnemar_calibrated",
    "comparison_mcnemar",
    "comparison_challenger_right_alone",
    "comparison_champion_right_alone",
    "comparison_challenger_error_ratio",
    "comparison_champion_error_ratio",
    "comparison_last_pair_timestamp_seconds",
    "comparison_lead_upper",
    "comparison_lead_lower",
    "comparison_q",
    "comparison_pairs_total",
    "comparison_verdict_since_timestamp_seconds",
    "comparison_lead",
    "comparison_verdict",
    "lead_upper",
    "lead_lower",
    "lead",
    "detector_threshold",
    "detector_statistic",
    "detector_warning",
    "drift_weighted_effective_sample_size",
    "folds_evaluated",
    "fold_accuracy_deviation",
    "adwin_window_outcomes",
    "mcc",
    "kappa",
    "kappa_majority",
    "drift_weighted_accuracy_ratio",
    "effective_sample_size",
    "kappa_plus",
    "kappa_persistent",
    "errors_total",
    "model_records_invalid_total",
    "model_predictions_joined_total",
    "model_predictions_total",
    "pending_predictions",
    "last_alarm_timestamp_seconds",
    "last_label_timestamp_seconds",
    "verdict_since_timestamp_seconds",
    "verdict",
    "alarms_total",
    "alarms_open",
    "accuracy_misleads",
    "nothing_joins",
    "early_hint",
    "classes_disjoint",
    "scores_as_classes",
    "accuracy_ratio",
    "last_prediction_timestamp_seconds",
    "outcomes_total",
)


def ranks_of(names: Sequence[str]) -> Mapping[str, int]:
    """Rank families by the order in which they are left out: the first has the highest rank."""
    return {name: rank for rank, name in enumerate(reversed(names), start=1)}


def _gauge(name: str, text: str, *labels: str) -> Metric:
    return Metric(name, "gauge", text, labels)


def _counter(name: str, text: str, *labels: str) -> Metric:
    return Metric(name, "counter", text, labels)


ALARMS: Final = (
    _gauge("alarms_open", "Announced alarms of a model that have not been resolved.", "model", "severity"),
    _counter(
        "alarms_suppressed_total",
        "Alarms counted and not announced: too few outcomes, in the cooldown, or one already open.",
        "reason",
    ),
    _counter("alarms_digested_total", "Alarms found in a backlog, too old to be sent one by one."),
    _counter("notifications_sent_total", "Notifications a receiver has taken.", "receiver"),
    _counter(
        "notifications_failed_total",
        "Attempts to deliver or to repeat that failed, by receiver and reason.",
        "reason",
        "receiver",
    ),
    _gauge("notifications_pending", "Notifications waiting for a receiver.", "receiver"),
    _counter(
        "notifications_dropped_total",
        "Notifications given up, by receiver and reason; each is an error in the log.",
        "reason",
        "receiver",
    ),
)
JOIN: Final = (
    _counter(
        "predictions_accepted_total", "Predictions taken in: no duplicates, no conflicts, none over a limit."
    ),
    _counter("predictions_resolved_total", "Predictions that met their label and were evaluated."),
    _counter("predictions_duplicate_total", "Predictions repeated with the same class; ignored."),
    _counter("predictions_conflict_total", "Predictions repeated with another class; the first one counts."),
    _counter("predictions_expired_total", "Predictions without a label within the horizon."),
    _counter("predictions_evicted_total", "Oldest predictions evicted because join.max_pending was reached."),
    _counter("predictions_withdrawn_total", "Pending predictions withdrawn by a record with a null value."),
    _counter(
        "predictions_wrong_fold_total",
        "Predictions by a fold that does not test their id (settings: folds); not evaluated.",
    ),
    _counter(
        "outcomes_assumed_total", "Expired predictions evaluated as the class that join.on_expiry assumes."
    ),
    _counter(
        "outcomes_released_early_total",
        "Outcomes that left the full order buffer before their window was over.",
    ),
    _counter("labels_early_total", "Labels that came before their prediction and waited for it."),
    _counter(
        "labels_negative_delay_total", "Outcomes whose label is older than their prediction; the delay is 0."
    ),
    _counter(
        "labels_retained_evicted_total",
        "Labels that had met a prediction, evicted because join.max_labels was reached.",
    ),
    _counter(
        "dedup_entries_evicted_total",
        "Oldest dedup entries evicted because join.max_dedup_entries was reached; duplicates go unseen.",
    ),
    _counter("models_retired_total", "Models that were idle for twice the horizon and gave up their place."),
    _counter("pairs_made_total", "Outcomes of two compared models on one id with the same label."),
    _counter(
        "pairs_labels_differ_total", "Ids on which two compared models were told different labels; no pair."
    ),
    _counter(
        "pairs_expired_total",
        "Partners of resolved predictions, known before, that were not resolved within join.dedup_horizon.",
    ),
    _counter("labels_accepted_total", "Valid labels."),
    _counter("labels_joined_total", "Labels that met a prediction."),
    _counter("labels_orphaned_total", "Labels that met no prediction in the time they waited."),
    _counter("labels_duplicate_total", "Labels repeated with the same class; ignored."),
    _counter(
        "labels_corrected_total",
        "Labels that contradict an earlier one; estimators cannot un-see an outcome.",
    ),
    _counter("labels_late_total", "Labels that came after their prediction had expired; never evaluated."),
    _counter("labels_evicted_total", "Oldest unmatched labels evicted because join.max_labels was reached."),
    _counter(
        "labels_before_start_total",
        "Unmatched labels whose prediction may predate kafka.start_from; not counted as orphaned.",
    ),
    _counter(
        "labels_unusable_total",
        "Labels of predictions that were withdrawn, evicted or over a limit; never evaluated.",
        "reason",
    ),
    _counter(
        "null_records_total",
        "Records with a null value: they withdraw on prediction topics and are ignored on label topics.",
        "topic",
    ),
    _counter(
        "records_invalid_total",
        "Records that could not be decoded or broke a rule; dropped.",
        "reason",
        "topic",
    ),
    _counter(
        "model_records_invalid_total",
        "Invalid records whose model can be read, for max_models models; also in records_invalid_total.",
        "model",
    ),
    _counter(
        "records_over_limit_total",
        "Predictions of models beyond max_models and pairs beyond max_comparisons (not evaluated), "
        "outcomes with a class beyond max_classes, and predictions with values of segments beyond 262,144 "
        "that wait (both evaluated as __other__).",
        "limit",
    ),
    _gauge(
        "predictions_labelled_ratio",
        "Share of a model's predictions that are labelled in the end, as far as ages reach by now "
        "(Kaplan-Meier: those still waiting count as censored).",
        "model",
    ),
    _gauge("labels_waiting", "Labels with a model that wait for their prediction."),
    _gauge("labels_unmatched", "Labels without a model that have met no prediction yet."),
    _gauge(
        "labels_retained", "Labels without a model kept for the predictions of further models, met or not."
    ),
    _gauge(
        "dedup_entries", "Settled predictions remembered, to tell duplicates, corrections and late labels."
    ),
    _gauge(
        "order_buffer_outcomes",
        "Resolved outcomes that wait to be evaluated in the order of their predictions.",
    ),
    _gauge(
        "join_identities_violated",
        "Sums of the join's counters that do not hold; anything but 0 is a defect.",
    ),
    _gauge(
        "join_entries",
        "Predictions, labels and dedup entries by where they lie (memory, disk), where joined in columns.",
        "place",
    ),
    _gauge("pending_predictions", "Predictions that wait for their label.", "model"),
    _gauge(
        "last_prediction_timestamp_seconds",
        "Latest event time of an accepted prediction, none believed beyond its record's time.",
        "model",
    ),
    _counter(
        "model_predictions_total",
        "Predictions of a model taken in, since it was first seen or came back.",
        "model",
    ),
    _counter("model_predictions_joined_total", "Predictions of a model that met their label.", "model"),
    _gauge(
        "classes_disjoint",
        "1 for a model whose predicted and true classes have nothing in common after 100 outcomes.",
        "model",
    ),
    _gauge(
        "scores_as_classes",
        "1 for a model whose predicted classes are numbers of a scale, which a threshold has to divide.",
        "model",
    ),
    _gauge(
        "nothing_joins",
        "1 for a model of which no prediction has met a label early_horizon after the first one.",
        "model",
    ),
    _gauge(
        "early_hint",
        "1 while predictions of a model differ from earlier ones, whatever their labels will say; else 0.",
        "model",
    ),
    _counter("early_hints_total", "Hints that the predictions of a model have changed.", "model"),
    _gauge(
        "early_hint_evidence",
        "Evidence that predictions differ from earlier ones: 0 none, 1 an early hint.",
        "model",
    ),
    _gauge(
        "expected_accuracy_ratio",
        "Accuracy to expect of the latest predictions by their scores, as far as labelled scores were right.",
        "model",
    ),
    _gauge(
        "expected_accuracy_error_ratio",
        "Mean absolute error of the accuracy expected by scores, against what labels said later.",
        "model",
    ),
    _gauge(
        "unchanged_accuracy_error_ratio",
        "Mean absolute error of expecting the accuracy of earlier labels, to hold beside the former.",
        "model",
    ),
    _gauge(
        "oldest_pending_timestamp_seconds",
        "Record time of the prediction that has waited longest for its label.",
    ),
)
_COMPARED = ("challenger", "champion")
COMPARISONS: Final = (
    _counter("comparison_pairs_total", "Ids on which two models were compared.", *_COMPARED),
    _gauge("comparison_last_pair_timestamp_seconds", "Event time of the last pair.", *_COMPARED),
    *(
        _gauge(name, f"{text} ({formula}; {_DECAY}).", *_COMPARED, "forgetting")
        for name, text, formula in (
            (
                "comparison_q",
                "Log of the champion's losses over the challenger's on the same ids",
                "ln(S_A/S_B)",
            ),
            (
                "comparison_mcnemar",
                "McNemar's statistic, signed as comparison_q; descriptive: in time it passes any fixed level",
                "sign(n01-n10)(n01-n10)²/(n01+n10)",
            ),
            (
                "comparison_mcnemar_calibrated",
                "McNemar's statistic with the variance that fading leaves: χ²(1) at one time; descriptive",
                "sign(D)D²/V",
            ),
            (
                "comparison_champion_error_ratio",
                "Error of the champion on the ids of the comparison",
                "S_A/Σw",
            ),
            (
                "comparison_challenger_error_ratio",
                "Error of the challenger on the ids of the comparison",
                "S_B/Σw",
            ),
            ("comparison_champion_right_alone", "Pairs that the champion alone got right", "n10"),
            ("comparison_challenger_right_alone", "Pairs that the challenger alone got right", "n01"),
            (
                "comparison_effective_sample_size",
                "Pairs that the estimates under this forgetting are worth",
                "(Σw)²/Σw²",
            ),
        )
    ),
    _gauge(
        "comparison_verdict",
        "1 if the challenger is better than the champion, -1 if worse, 0 if open, however often one looks; "
        "false within monitors.verdict_outcomes pairs with probability monitors.confidence_delta.",
        *_COMPARED,
    ),
    _gauge(
        "comparison_verdict_since_timestamp_seconds",
        "Event time from which the verdict holds; of an open one, when it opened.",
        *_COMPARED,
    ),
    _gauge("comparison_verdict_since_pair", "Number of the pair from which the verdict holds.", *_COMPARED),
    _gauge(
        "comparison_verdict_evidence",
        "Evidence that the challenger is better or worse: 0 none, 1 a verdict, then 0 again.",
        *_COMPARED,
        "side",
    ),
    _gauge(
        "comparison_lead",
        "Mean utility of the challenger less that of the champion, -1 to 1, since the verdict last changed.",
        *_COMPARED,
    ),
    _gauge(
        "comparison_lead_lower",
        "Lower limit of the mean lead at monitors.confidence_delta, looked at as often as one likes.",
        *_COMPARED,
    ),
    _gauge(
        "comparison_lead_upper",
        "Upper limit of the mean lead at monitors.confidence_delta, looked at as often as one likes.",
        *_COMPARED,
    ),
    _gauge(
        "comparison_lead_dispersion",
        "Variance of the lead's sums beside that of independent pairs: divides the evidence.",
        *_COMPARED,
    ),
)
MERGE: Final = (
    _gauge("clock_timestamp_seconds", "Time of the record evaluated last; it never goes back."),
    _gauge(
        "watermark_timestamp_seconds",
        "Newest record time of a partition among what was evaluated.",
        "partition",
        "topic",
    ),
    _counter("records_evaluated_total", "Records evaluated, by topic, whatever became of them.", "topic"),
    _counter(
        "events_evaluated_total",
        "Events that these records hold: as many, or more where a record holds several; valid or not.",
        "topic",
    ),
    _counter(
        "records_skipped_total",
        "Records among them of which no mapping of the topic makes an event (`when`, or an envelope).",
        "topic",
    ),
    _counter(
        "predictions_tied_total",
        "Predictions whose class was one of several with the largest score: the first of these was taken.",
        "topic",
    ),
    _counter(
        "records_out_of_order_total",
        "Records that came after a later one; evaluated at the clock's time.",
        "topic",
    ),
    _counter(
        "records_lateness_seconds_total", "Sum of the times by which records out of order came late.", "topic"
    ),
    _counter(
        "timestamps_corrected_total",
        "Record timestamps not believed and replaced by the newest time of their partition.",
        "reason",
    ),
    _counter(
        "partitions_left_behind_total",
        "Times a partition was no longer waited for, after time.max_hold_back.",
    ),
    _gauge("merge_held_records", "Records read that wait until no earlier record can come."),
    _gauge(
        "merge_hold_seconds",
        "Time the next record has waited for a partition to be read or found at its end.",
        "partition",
        "topic",
    ),
    _gauge(
        "host_clock_behind",
        "1 while most records carry times beyond the host's clock: it is not asked then.",
    ),
)
STATE: Final = (
    _counter(
        "commits_total",
        "Commits made durable over the life of the state; since the start if it is in memory.",
    ),
    _gauge("last_commit_seconds", "Time from the beginning of the last durable commit to its end on disk."),
    _gauge("uncommitted_events", "Events evaluated in memory whose commit is yet to come."),
    _gauge("state_bytes", "Bytes of state on disk by column family, without the write-ahead log.", "part"),
    _gauge("state_buffered_bytes", "Bytes written and not yet sorted into files."),
    _gauge("state_entries", "Ids with join entries on disk, as RocksDB estimates it."),
    _gauge("state_cache_entries", "Ids whose join entries are in memory."),
)
DAEMON: Final = (
    _gauge("build_info", "Always 1; the label is the version that runs.", "version"),
    _gauge("kafka_up", "1 while the brokers answer."),
    _gauge("ready", "1 when state is open and partitions are assigned."),
    _gauge("caught_up", "1 when every partition has been read to its end."),
    _gauge("state_durable", "1 when state survives a restart."),
    _gauge("state_disk_low", "1 while reading waits for room on the disk."),
    _gauge(
        "consumer_lag_records",
        "Records of a partition not read yet: its high watermark minus the position.",
        "partition",
        "topic",
    ),
    _counter("kafka_data_loss_total", "Times the log was found changed under the reader, by cause.", "cause"),
    _counter(
        "kafka_records_lost_total", "Records lost thereby, by cause, where their number is known.", "cause"
    ),
    _counter(
        "kafka_position_unverified_total",
        "Times the log could not be recognised, since the record remembered is no longer in it.",
    ),
    _gauge("schema_registry_up", "1 unless records wait for a schema registry; only where one is set."),
    _gauge("schemas_cached", "Schemas at hand, and names that the registry did not know."),
    _counter(
        "dead_letters_written_total",
        "Invalid records written to kafka.dead_letter_topic since the start.",
    ),
    _counter(
        "dead_letters_dropped_total",
        "Invalid records that kafka.dead_letter_topic did not take, since the start.",
        "reason",
    ),
    _counter(
        "internal_events_total",
        "Internal events by name; each is also a line in the log (frequent ones sampled).",
        "event",
    ),
)
PROCESS: Final = (
    _counter("process_cpu_seconds_total", "CPU time this process has used."),
    _gauge("process_resident_memory_bytes", "Resident memory of this process."),
    _gauge("process_start_time_seconds", "Start of this process, in seconds since the epoch."),
    _gauge("process_open_fds", "File descriptors this process holds open."),
    _gauge("python_info", "Always 1; the labels are the interpreter.", "implementation", "version"),
)
"""Exported without the prefix, as every client library exports them."""
SECTIONS: Final = (ALARMS, JOIN, COMPARISONS, MERGE, STATE, DAEMON, PROCESS)
_BY_NAME: Final = {metric.name: metric for section in SECTIONS for metric in section}


def family(name: str, samples: Sequence[tuple[tuple[str, ...], float | Histogram]]) -> Family:
    """Make samples the series of a metric of the table; raises KeyError for any other."""
    metric = _BY_NAME[name]
    return Family(metric.name, metric.kind, metric.help, metric.labels, samples)


def single(name: str, value: float | None) -> Family:
    """Make a value the one series of a metric without labels; None is undefined and gives no sample."""
    return family(name, [] if value is None else [((), value)])
