"""Series of every model, derived from the catalogue of estimators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from streamwatch.core.metrics.metric import DECAY, Metric

_PER_FORGETTING: Final = ("forgetting", "model")
_PER_DETECTOR: Final = ("detector", "model")
_PER_OPPONENT: Final = ("model", "opponent")


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
        *(Metric(m.name, "gauge", f"{m.help} ({m.formula}; {DECAY})", _PER_FORGETTING) for m in measures),
        Metric(
            "effective_sample_size",
            "gauge",
            f"Outcomes the estimates under this forgetting are worth, (Σw)²/Σw² ({DECAY})",
            _PER_FORGETTING,
        ),
        Metric(
            "accuracy_bound_ratio",
            "gauge",
            "Limit of the true accuracy at monitors.confidence_delta, for independent losses; "
            f"lower unless named upper: {', '.join(b.name for b in bounds)} ({DECAY})",
            ("bound", *_PER_FORGETTING),
        ),
        Metric(
            "baseline_accuracy_ratio",
            "gauge",
            f"Accuracy of a classifier without features: {', '.join(b.name for b in baselines)} ({DECAY})",
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
            f"Accuracy in which outcomes right after a drift weigh more ({DECAY})",
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
            f"Standard deviation of accuracy over a model's folds; their mean is accuracy_ratio ({DECAY})",
            _PER_FORGETTING,
        ),
        Metric(
            "fold_accuracy_ratio",
            "gauge",
            f"Share of outcomes one fold of the model got right ({DECAY})",
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
            Metric(m.name, "gauge", f"{m.help} ({m.formula}; {DECAY})", ("class", *_PER_FORGETTING))
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
