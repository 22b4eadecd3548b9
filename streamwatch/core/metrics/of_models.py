"""Series of every model, derived from the catalogue of estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from streamwatch.core.metrics.metric import DECAY, Metric, counter, durations, gauge

_PER_FORGETTING: Final = ("forgetting", "model")
_PER_DETECTOR: Final = ("detector", "model")
_PER_OPPONENT: Final = ("model", "opponent")


class Line(Protocol):
    """Entry of the catalogue of estimators: the attributes that name and describe its series."""

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
        counter("outcomes_total", "Evaluated predictions, whose label is known", "model"),
        counter("errors_total", "Outcomes whose prediction was wrong", "model"),
        *(gauge(m.name, f"{m.help} ({m.formula}; {DECAY})", *_PER_FORGETTING) for m in measures),
        gauge(
            "effective_sample_size",
            f"Effective number of outcomes of the estimates under this forgetting, (Σw)²/Σw² ({DECAY})",
            *_PER_FORGETTING,
        ),
        gauge(
            "accuracy_bound_ratio",
            "Bound of the true accuracy at monitors.confidence_delta, for independent losses; a lower "
            f"bound unless the name ends in upper: {', '.join(b.name for b in bounds)} ({DECAY})",
            "bound",
            *_PER_FORGETTING,
        ),
        gauge(
            "baseline_accuracy_ratio",
            f"Accuracy of a classifier without features: {', '.join(b.name for b in baselines)} ({DECAY})",
            "baseline",
            *_PER_FORGETTING,
        ),
        gauge(
            "adwin_window_outcomes",
            "Outcomes in ADWIN's window, which shrinks when the loss changes",
            *_PER_FORGETTING,
        ),
        gauge(
            "drift_weighted_accuracy_ratio",
            f"Accuracy in which outcomes right after a drift weigh more ({DECAY})",
            "model",
        ),
        gauge(
            "drift_weighted_effective_sample_size",
            "Effective number of outcomes of the drift-weighted accuracy, (Σw)²/Σw²",
            "model",
        ),
        gauge(
            "detector_statistic",
            "Statistic that a drift detector compares with its threshold",
            *_PER_DETECTOR,
        ),
        gauge(
            "detector_threshold",
            "Threshold of the statistic above which a drift detector alarms",
            *_PER_DETECTOR,
        ),
        gauge(
            "detector_warning",
            "1 while the statistic is above the warning level but below an alarm; only for detectors "
            "with warnings",
            *_PER_DETECTOR,
        ),
        counter("alarms_total", "Drifts that a detector has declared", *_PER_DETECTOR),
        gauge(
            "last_alarm_timestamp_seconds",
            "Event time of the outcome that raised the latest alarm",
            *_PER_DETECTOR,
        ),
        counter(
            "drifts_total",
            "Drifts of the model by stage: begun (an alarm at a rise of the error, or a verdict that "
            "became worse; those that follow before its end belong to it), recovered, not_recovered",
            "model",
            "stage",
        ),
        gauge("recovering", "1 from the alarm of a drift until its end, else 0", "model"),
        gauge(
            "recovery_depth",
            "Depth of the last drift that ended: highest faded error less that before it",
            "model",
        ),
        gauge(
            "recovery_outcomes",
            "Outcomes from the start of the last drift that ended until the faded error was back within its "
            "bound of that before; no sample if it did not come back",
            "model",
        ),
        Metric(
            "drift_depth",
            "histogram",
            "Depth (see recovery_depth) of every drift that ended",
            ("model",),
            DEPTH_BOUNDS,
        ),
        Metric(
            "drift_outcomes",
            "histogram",
            "Outcomes until recovery (see recovery_outcomes) from every drift that ended as recovered",
            ("model",),
            LENGTH_BOUNDS,
        ),
        gauge(
            "accuracy_misleads",
            "1 for a model judged by accuracy whose largest class has at least 90 % of the labels and "
            "whose kappa lies 3 standard errors above 0, so that accuracy is a poor measure of "
            "its use; no sample for other models",
            "model",
        ),
        gauge(
            "verdict",
            "1 if the model is better than the opponent, -1 if worse, 0 if open. False within "
            "monitors.verdict_outcomes outcomes with probability monitors.confidence_delta at most, per "
            "opponent, however often it is read, if losses do not depend on earlier ones",
            *_PER_OPPONENT,
        ),
        gauge(
            "verdict_since_timestamp_seconds",
            "Event time since which the verdict holds; of an open verdict, the time at which it became open",
            *_PER_OPPONENT,
        ),
        gauge(
            "verdict_since_outcome",
            "Number of the model's outcome since which the verdict holds",
            *_PER_OPPONENT,
        ),
        gauge(
            "verdict_evidence",
            "Evidence that the model is better or worse than the opponent, from 0 (none) to 1 (a "
            "verdict); 0 before 2,000 outcomes times lead_dispersion, and it restarts at 0 after a verdict",
            *_PER_OPPONENT,
            "side",
        ),
        gauge(
            "lead",
            "Mean utility of the model minus that of the opponent, from -1 to 1, since the verdict "
            "last changed",
            *_PER_OPPONENT,
        ),
        gauge(
            "lead_lower",
            "Lower bound of the mean lead at monitors.confidence_delta, however "
            "often it is read, if losses do not depend on earlier ones",
            *_PER_OPPONENT,
        ),
        gauge(
            "lead_upper",
            "Upper bound of the mean lead at monitors.confidence_delta, however "
            "often it is read, if losses do not depend on earlier ones",
            *_PER_OPPONENT,
        ),
        gauge(
            "lead_dispersion",
            "Variance of the lead's sums relative to that of independent outcomes; the evidence is "
            "divided by it",
            *_PER_OPPONENT,
        ),
        gauge(
            "folds_evaluated", "Folds of a model that have outcomes, if the model predicts in folds", "model"
        ),
        gauge(
            "fold_accuracy_deviation",
            "Standard deviation of the accuracy over a model's folds, whose mean is accuracy_ratio "
            f"({DECAY})",
            *_PER_FORGETTING,
        ),
        gauge(
            "fold_accuracy_ratio",
            f"Share of outcomes that one fold of the model got right ({DECAY})",
            "fold",
            *_PER_FORGETTING,
        ),
        counter("fold_outcomes_total", "Outcomes of one fold of the model", "fold", "model"),
        Metric(
            "label_delay_seconds",
            "histogram",
            "Time from a prediction to its label, without assumed labels",
            ("model",),
            LABEL_DELAY_BOUNDS,
        ),
        gauge(
            "last_label_timestamp_seconds",
            "Latest event time of a label that matched a prediction, without assumed labels",
            "model",
        ),
        *(gauge(m.name, f"{m.help} ({m.formula}; {DECAY})", "class", *_PER_FORGETTING) for m in per_class),
    )


LABEL_DELAY_BOUNDS: tuple[float, ...] = (
    1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3_600.0, 14_400.0, 43_200.0,
    86_400.0, 172_800.0, 345_600.0, 604_800.0, 1_209_600.0, 2_419_200.0,
)  # fmt: skip
"""Upper bounds of the label delay's buckets: a second to four weeks."""
DEPTH_BOUNDS: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Upper bounds of the buckets of a drift's depth, a difference of errors."""
LENGTH_BOUNDS: tuple[float, ...] = (0.0, 100.0, 300.0, 1_000.0, 3_000.0, 10_000.0, 30_000.0, 100_000.0)
"""Upper bounds of the buckets of outcomes until recovery; 0 for an error that never left its bound."""


# Series of pairs of models.


_COMPARED: Final = ("challenger", "champion")
COMPARISONS: Final = (
    counter("comparison_pairs_total", "Ids on which the two models were compared.", *_COMPARED),
    gauge("comparison_last_pair_timestamp_seconds", "Event time of the latest compared pair.", *_COMPARED),
    *(
        gauge(name, f"{text} ({formula}; {DECAY}).", *_COMPARED, "forgetting")
        for name, text, formula in (
            (
                "comparison_q",
                "Logarithm of the champion's losses divided by the challenger's, on the same ids",
                "ln(S_A/S_B)",
            ),
            (
                "comparison_mcnemar",
                "McNemar's statistic, signed like comparison_q; descriptive: it exceeds any level in time",
                "sign(n01-n10)(n01-n10)²/(n01+n10)",
            ),
            (
                "comparison_mcnemar_calibrated",
                "McNemar's statistic with the variance under fading, χ²(1) at one time; descriptive",
                "sign(D)D²/V",
            ),
            (
                "comparison_champion_error_ratio",
                "Error of the champion on the compared ids",
                "S_A/Σw",
            ),
            (
                "comparison_challenger_error_ratio",
                "Error of the challenger on the compared ids",
                "S_B/Σw",
            ),
            ("comparison_champion_right_alone", "Pairs that only the champion got right", "n10"),
            ("comparison_challenger_right_alone", "Pairs that only the challenger got right", "n01"),
            (
                "comparison_effective_sample_size",
                "Effective number of pairs under this forgetting",
                "(Σw)²/Σw²",
            ),
        )
    ),
    gauge(
        "comparison_verdict",
        "1 if the challenger is better than the champion, -1 if worse, 0 if open. "
        "False within monitors.verdict_outcomes pairs with probability monitors.confidence_delta at most, "
        "however often it is read, if losses do not depend on earlier ones.",
        *_COMPARED,
    ),
    gauge(
        "comparison_verdict_since_timestamp_seconds",
        "Event time since which the verdict holds; of an open verdict, the time at which it became open.",
        *_COMPARED,
    ),
    gauge("comparison_verdict_since_pair", "Number of the pair since which the verdict holds.", *_COMPARED),
    gauge(
        "comparison_verdict_evidence",
        "Evidence that the challenger is better or worse, from 0 (none) to 1 (a verdict); it "
        "restarts at 0 after a verdict.",
        *_COMPARED,
        "side",
    ),
    gauge(
        "comparison_lead",
        "Mean utility of the challenger minus that of the champion, from -1 to 1, since the "
        "verdict last changed.",
        *_COMPARED,
    ),
    gauge(
        "comparison_lead_lower",
        "Lower bound of the mean lead at monitors.confidence_delta, however "
        "often it is read, if losses do not depend on earlier ones.",
        *_COMPARED,
    ),
    gauge(
        "comparison_lead_upper",
        "Upper bound of the mean lead at monitors.confidence_delta, however "
        "often it is read, if losses do not depend on earlier ones.",
        *_COMPARED,
    ),
    gauge(
        "comparison_lead_dispersion",
        "Variance of the lead's sums relative to that of independent pairs; the evidence is divided by it.",
        *_COMPARED,
    ),
    gauge(
        "comparison_cohort_headline",
        "Verdict by cohorts of prediction time: 1 if the challenger is better, -1 if worse, 0 if open; only "
        "once enough cohorts are judged, and then it replaces comparison_verdict.",
        *_COMPARED,
    ),
    gauge(
        "comparison_cohort_verdict",
        "Verdict by cohorts from when evidence is kept: 1 if the challenger is better, -1 if worse, 0 if "
        "open; labels that are late in a biased way do not bias it while the distribution of delays stays "
        "the same.",
        *_COMPARED,
    ),
    gauge(
        "comparison_cohort_verdict_since_timestamp_seconds",
        "Prediction time since which the verdict by cohorts holds; of an open one, when it became open.",
        *_COMPARED,
    ),
    gauge(
        "comparison_cohort_verdict_earliest_timestamp_seconds",
        "First prediction time from which the verdict by cohorts may hold, with a confidence of 80 %; absent "
        "if it may be before all that was judged.",
        *_COMPARED,
    ),
    gauge(
        "comparison_cohort_verdict_latest_timestamp_seconds",
        "Last prediction time from which the verdict by cohorts may hold, with a confidence of 80 %.",
        *_COMPARED,
    ),
    gauge(
        "comparison_cohort_verdict_confirmed",
        "Whether the verdict by cohorts that is held has been confirmed by settled predictions (1), or is "
        "early (0).",
        *_COMPARED,
    ),
    counter(
        "comparison_cohort_verdict_retracted_total",
        "Early verdicts by cohorts that settled predictions did not confirm.",
        *_COMPARED,
    ),
    gauge(
        "comparison_cohort_verdict_evidence",
        "Evidence by cohorts that the challenger is better or worse, from 0 (none) to 1 (a verdict); it "
        "restarts at 0 after a verdict.",
        *_COMPARED,
        "side",
    ),
    gauge(
        "comparison_cohort_lead",
        "Mean utility of the challenger minus that of the champion, from -1 to 1, of predictions in judged "
        "cohorts since the verdict by cohorts last changed.",
        *_COMPARED,
    ),
    gauge(
        "comparison_cohort_lead_lower",
        "Lower bound of comparison_cohort_lead, valid at all times.",
        *_COMPARED,
    ),
    gauge(
        "comparison_cohort_lead_upper",
        "Upper bound of comparison_cohort_lead, valid at all times.",
        *_COMPARED,
    ),
    gauge(
        "comparison_cohort_lead_dispersion",
        "Variance of sums of this lead relative to independent predictions, at least 1.",
        *_COMPARED,
    ),
    gauge(
        "comparison_cohort_age_seconds",
        "Age at which the newest cohort of predictions of both models will be judged.",
        *_COMPARED,
    ),
)


# Series of alarms and their notifications.


ALARMS: Final = (
    gauge(
        "model_info",
        "Topics of a model's latest prediction and label, and the severity and the labels that models.rules "
        "give to it. The value is always 1.",
        "label_topic",
        "model",
        "severity",
        "topic",
    ),
    gauge("alarms_open", "Announced alarms of a model that are not resolved yet.", "model", "severity"),
    gauge(
        "alarms_unconfirmed",
        "Open alarms of a rise of the error that cohorts of predictions are still to confirm.",
        "model",
    ),
    counter(
        "alarms_contradicted_total",
        "Alarms of a rise of the error that ended because cohorts of predictions did not confirm it.",
    ),
    counter(
        "alarms_suppressed_total",
        "Alarms that were counted but not announced, by reason: too few outcomes, within the "
        "cooldown, one already open, or a verdict that alternates.",
        "reason",
    ),
    counter(
        "alarms_digested_total",
        "Alarms that were found while catching up and were too old to be sent one by one.",
    ),
    counter("notifications_sent_total", "Notifications that a receiver has accepted.", "receiver"),
    counter(
        "notifications_failed_total",
        "Failed attempts to deliver a notification, by receiver and reason.",
        "reason",
        "receiver",
    ),
    gauge(
        "notifications_waiting",
        "Notifications that wait for others to come, or for the next minute (alerts.group_wait and "
        "max_per_minute), by receiver.",
        "receiver",
    ),
    counter(
        "notifications_gathered_total",
        "Notifications that were sent to a receiver as part of a digest, because they were too many.",
        "receiver",
    ),
    durations(
        "notification_duration_seconds",
        "Time that an attempt to deliver a notification took, successful or not, by receiver.",
        "receiver",
    ),
    gauge("notifications_pending", "Notifications that wait to be delivered to a receiver.", "receiver"),
    counter(
        "notifications_dropped_total",
        "Notifications given up, by receiver and reason. They are logged as errors, frequent ones sampled.",
        "reason",
        "receiver",
    ),
)
