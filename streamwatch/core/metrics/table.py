"""The one table of metrics: all that are not derived from the catalogue of estimators, by section."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final, TypeAlias

from streamwatch.core.metrics.of_models import ALARMS, COMPARISONS
from streamwatch.core.metrics.of_the_daemon import DAEMON, JOIN, MERGE, PROCESS, RESULTS, STATE
from streamwatch.core.metrics.series import ClassSamples, Columns, Family, Histogram

SECTIONS: Final = (ALARMS, JOIN, COMPARISONS, MERGE, STATE, DAEMON, PROCESS, RESULTS)
_BY_NAME: Final = {metric.name: metric for section in SECTIONS for metric in section}


def family(name: str, samples: Sequence[tuple[tuple[str, ...], float | Histogram]]) -> Family:
    """Build the family of a metric of the table from its samples; raises KeyError for an unknown name."""
    metric = _BY_NAME[name]
    return Family(metric.name, metric.kind, metric.help, metric.labels, samples, metric.bounds)


def with_labels(
    name: str, added: Sequence[str], samples: Sequence[tuple[Mapping[str, str], float]]
) -> Family:
    """Build the family of a metric with the labels `added` by settings; missing label values are empty."""
    metric = _BY_NAME[name]
    labels = tuple(sorted((*metric.labels, *added)))
    return Family(
        metric.name,
        metric.kind,
        metric.help,
        labels,
        [(tuple(values.get(label, "") for label in labels), value) for values, value in samples],
    )


def single(name: str, value: float | None) -> Family:
    """Build the family of a metric without labels from its value; None (undefined) gives no sample."""
    return family(name, [] if value is None else [((), value)])


# Series that the shipped rules and dashboards read: a limit of `/metrics` leaves them out last.
#
# `tests/deploy/test_needed_series.py` compares them with the queries in `deploy/`. Series per class and per
# value of a segment are not among them, although dashboards show them: their number depends on the stream.


Label: TypeAlias = Callable[[str, str], bool]
"""Function from a label's value and the main forgetting to whether series with this value are needed."""


def main_forgetting(names: Sequence[str]) -> str | None:
    """Name of the forgetting shown by default: the first fading one, else the first; None without any."""
    return next((name for name in names if name.startswith("fading:")), names[0] if names else None)


def _one_of(*values: str) -> Label:
    return lambda value, _: value in values


def _main(value: str, main: str) -> bool:
    return value == main


def _fading(value: str, main: str) -> bool:
    return value.startswith("fading:") or value == main


def _main_or_landmark(value: str, main: str) -> bool:
    return value in {"landmark", main}


JUDGED: Final = {"opponent": _one_of("persistent", "majority")}
MAIN: Final = {"forgetting": _main}

NEEDED: Final[Mapping[str, Mapping[str, Label]]] = {
    # Rules.
    "model_info": {},
    "outcomes_total": {},
    "kappa_plus": {"forgetting": _fading},
    "effective_sample_size": {},
    "accuracy_bound_ratio": {"bound": _one_of("hoeffding", "hoeffding_upper")},
    "baseline_accuracy_ratio": {"forgetting": _main_or_landmark},
    "verdict": JUDGED,
    "verdict_since_timestamp_seconds": JUDGED,
    "cohort_headline": {},
    "cohort_verdict": {},
    "cohort_verdict_since_timestamp_seconds": {},
    "accuracy_misleads": {},
    "alarms_open": {},
    "label_delay_seconds": {},
    "last_label_timestamp_seconds": {},
    "last_prediction_timestamp_seconds": {},
    "pending_predictions": {},
    "model_predictions_total": {},
    "model_predictions_joined_total": {},
    "classes_disjoint": {},
    "scores_as_classes": {},
    "nothing_joins": {},
    # Dashboards.
    "accuracy_ratio": {},
    "errors_total": {},
    "kappa": MAIN,
    "kappa_majority": MAIN,
    "kappa_persistent": MAIN,
    "mcc": MAIN,
    "loss_autocorrelation": MAIN,
    "effective_sample_size_autocorrelated": MAIN,
    "temporal_dependence": MAIN,
    "adwin_window_outcomes": {},
    "drift_weighted_accuracy_ratio": {},
    "drift_weighted_effective_sample_size": {},
    "detector_statistic": {},
    "detector_threshold": {},
    "alarms_total": {},
    "last_alarm_timestamp_seconds": {},
    "accuracy_delay_corrected_ratio": {},
    "accuracy_settled_ratio": {},
    "label_delay_bias": {},
    "log_loss": MAIN,
    "brier_score": MAIN,
    "auc_ratio": {},
    "calibration_error_ratio": {},
    "early_hint": {},
    "early_hint_evidence": {},
    "expected_accuracy_ratio": {},
    "expected_accuracy_error_ratio": {},
    "unchanged_accuracy_error_ratio": {},
    "predictions_labelled_ratio": {},
    "prediction_clock_waiting_outcomes": {},
    "prediction_clock_settled_until_timestamp_seconds": {},
    "prediction_clock_disordered_total": {},
}
"""Needed values of labels, by metric of models; of labels that are not listed, all values are needed."""


def is_needed(name: str, labels: Mapping[str, str], main: str) -> bool:
    """Tell whether rules or dashboards read this series of a model; `main` is the main forgetting."""
    return _is_listed(NEEDED, name, labels, main)


def _is_listed(
    table: Mapping[str, Mapping[str, Label]], name: str, labels: Mapping[str, str], main: str
) -> bool:
    """Tell whether a table like `NEEDED` has the metric, and wants the values of these labels."""
    wanted = table.get(name)
    return wanted is not None and all(
        wants(labels[label], main) for label, wants in wanted.items() if label in labels
    )


# Choice of the series that a scrape shows, before any limit: those that most people need, or all.
#
# `standard` shows what rules and dashboards read (`NEEDED`), and other series of common use: verdicts
# and leads over the two main opponents, drifts, segments, sampled labels, comparisons, and the share and
# recall of each class. It leaves out series that follow from these or serve research only: measures under
# other forgettings, other opponents, and histograms of past drifts. The API always has everything.


STANDARD: Final[Mapping[str, Mapping[str, Label]]] = {
    "lead": JUDGED,
    "lead_lower": JUDGED,
    "lead_upper": JUDGED,
    "verdict_evidence": JUDGED,
    "cohort_lead": {},
    "cohort_lead_lower": {},
    "cohort_lead_upper": {},
    "alarms_unconfirmed": {},
    "drifts_total": {},
    "recovering": {},
    "early_hints_total": {},
    "model_records_invalid_total": {},
    "scores_unusable_total": {},
    "scores_unnormalized_total": {},
    "folds_evaluated": {},
    "fold_accuracy_ratio": MAIN,
    "fold_accuracy_deviation": MAIN,
    "fold_outcomes_total": {},
    "first_prediction_accuracy_ratio": {},
    "last_prediction_accuracy_ratio": {},
    "revision_gain": {},
    "outcomes_revised_ratio": {},
    "recall_ratio": {},
    "class_truth_ratio": {},
}
"""Series of models that are shown besides the needed ones, by name: as `NEEDED`."""
_WHOLE: Final = ("segment_", "sampled_", "comparison_", "prediction_clock_")
"""Prefixes of metrics of which all series are shown, as they exist only where settings ask for them."""


def is_standard(name: str, labels: Mapping[str, str], main: str) -> bool:
    """Tell whether a series of a model is shown unless all are asked for; `main` is the main forgetting."""
    return (
        name.startswith(_WHOLE) or is_needed(name, labels, main) or _is_listed(STANDARD, name, labels, main)
    )


class StandardSeries:
    """Chooses the standard series of reports.

    Parameters
    ----------
    forgettings
        Names of the configured forgettings; the first fading one is the main one.
    """

    def __init__(self, forgettings: Sequence[str]) -> None:
        self._main = main_forgetting(forgettings) or ""

    def chosen(self, families: Sequence[Family]) -> list[Family]:
        """Return the families with their standard series; families without models are left as they are."""
        shown: list[Family] = []
        for family in families:
            if not {"model", "challenger"} & set(family.labels):
                shown.append(family)
            elif "class" in family.labels or isinstance(family.samples, ClassSamples):
                if is_standard(family.name, {}, self._main):
                    shown.append(family)
            elif isinstance(family.samples, Columns):
                shown.append(replace(family, samples=self._of_columns(family, family.samples)))
            else:
                wanted = self._wanted(family)
                samples = [sample for sample in family.samples if wanted(sample[0])]
                shown.append(replace(family, samples=samples))
        return shown

    def _wanted(self, family: Family) -> Callable[[tuple[str, ...]], bool]:
        """Return a function that tells, from label values, whether their series is shown."""
        at = [
            (position, label)
            for position, label in enumerate(family.labels)
            if label not in {"model", "challenger", "champion"}
        ]
        decided: dict[tuple[str, ...], bool] = {}

        def wanted(values: tuple[str, ...]) -> bool:
            others = tuple(values[position] for position, _ in at)
            found = decided.get(others)
            if found is None:
                labels = {label: values[position] for position, label in at}
                found = decided[others] = is_standard(family.name, labels, self._main)
            return found

        return wanted

    def _of_columns(self, family: Family, columns: Columns) -> Columns:
        """Choose among columns as wholes, since the series of one differ by the model only."""
        wanted, shown = self._wanted(family), Columns()
        for part in columns.parts:
            if isinstance(part, list):
                shown.extend([sample for sample in part if wanted(sample[0])])
            elif any(map(wanted, islice(part.keys, 1))):
                shown.add_part(part)
        return shown
