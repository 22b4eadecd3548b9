"""The series a model's estimators become, and what is left out of them first."""

from __future__ import annotations

from collections.abc import Sequence

from streamwatch.core.entries import Bound, Measure, Metric

_DECAY = "decay is per outcome, not per second"
_PER_FORGETTING = ("forgetting", "model")
_PER_DETECTOR = ("detector", "model")


def metrics_of(
    measures: Sequence[Measure],
    bounds: Sequence[Bound],
    baselines: Sequence[Measure],
    per_class: Sequence[Measure],
) -> tuple[Metric, ...]:
    """Every series of a model, in the order they are reported."""
    return (
        Metric("outcomes_total", "counter", "Predictions evaluated: their label is known", ("model",)),
        Metric("errors_total", "counter", "Outcomes whose prediction was wrong", ("model",)),
        *(Metric(m.name, "gauge", f"{m.help} ({m.formula}; {_DECAY})", _PER_FORGETTING) for m in measures),
        Metric(
            "effective_outcomes",
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
            "drift_weighted_effective_outcomes",
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
    "macro_f1_ratio",
    "harmonic_mean_recall_ratio",
    "geometric_mean_recall_ratio",
    "arithmetic_mean_recall_ratio",
    "kappa_standard_error",
    "temporal_dependence",
    "loss_autocorrelation",
    "label_delay_seconds",
    "effective_outcomes_autocorrelated",
    "kappa_zscore",
    "baseline_accuracy_ratio",
    "accuracy_bound_ratio",
)
"""What is left out, in this order, when a report would exceed `max_series`; the rest always stays."""
