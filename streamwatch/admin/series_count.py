"""Number of series that the settings allow, and which of them a scrape shows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Final

from streamwatch.admin.kafka_check import CheckResult
from streamwatch.core.alerting.rules import INFO
from streamwatch.core.estimators import catalogue, registers
from streamwatch.core.estimators.registers.prediction_clock import PredictionClockSpec
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.metrics import ALARMS, COMPARISONS, JOIN, Metric, metrics_of
from streamwatch.core.metrics.series_budget import RESERVE
from streamwatch.core.metrics.table import is_needed, is_standard, main_forgetting
from streamwatch.core.predictions.sampled_labels.observe import OPPONENTS
from streamwatch.core.specs import (
    AdwinSpec,
    MonitorsSpec,
)

OF_NO_MODEL: Final = 2_000
"""Series allowed for topics, partitions, receivers and the process."""
_REASONS: Final = ("one", "two")


@dataclass(frozen=True, slots=True)
class ModelSeries:
    """Largest number of series of one model, by part."""

    needed: int
    """Series that rules and dashboards read."""
    other: int
    """Further series under the main forgetting or none."""
    forgetting: int
    """Series under other forgettings than the main one."""
    segment: int
    """Series of values of segments, and of folds."""
    of_class: int
    """Series of each class."""
    classes: int
    """Most classes."""

    @property
    def total(self) -> int:
        """All series of a model with `classes` classes."""
        fixed = self.needed + self.other + self.forgetting + self.segment
        return fixed + self.of_class * self.classes


def model_series(
    spec: MonitorsSpec, segments: int = 0, folds: int = 0, *, sampled: bool = False, every: bool = True
) -> ModelSeries:
    """Count the series of a model that has every series and as many classes as are allowed.

    Parameters
    ----------
    spec
        Estimators and limits.
    segments
        Number of segments that mappings name.
    folds
        Number of folds of every model; 0 if models do not predict in folds.
    sampled
        Whether predictions have label probabilities.
    every
        Whether to count all series of a report, else those of a scrape with `monitors.series: standard`.
    """
    main = main_forgetting([each.name for each in spec.forgetting]) or ""
    needed = other = forgetting = segment = of_class = 0

    def shown(name: str, labels: Mapping[str, str]) -> bool:
        return every or is_standard(name, labels, main)

    kept = sum(each.max_values + 1 for each in spec.registers if isinstance(each, SegmentsSpec))
    for metric in _metrics(spec, sampled=sampled):
        width = len(metric.bounds) + 3 if metric.kind == "histogram" else 1
        if "class" in metric.labels:
            of_class += width if spec.per_class and shown(metric.name, {}) else 0
            continue
        if "value" in metric.labels:
            segment += width * segments * kept if shown(metric.name, {}) else 0
            continue
        if "fold" in metric.labels:
            under = [each.name for each in spec.forgetting] if "forgetting" in metric.labels else [main]
            segment += width * folds * sum(shown(metric.name, {"forgetting": each}) for each in under)
            continue
        named = [label for label in metric.labels if label not in {"model", "segment"}]
        for values in product(*(_values(spec, metric, label) for label in named)):
            labels = dict(zip(named, values, strict=True))
            if not shown(metric.name, labels):
                continue
            if is_needed(metric.name, labels, main):
                needed += width
            elif labels.get("forgetting", main) == main:
                other += width
            else:
                forgetting += width
    return ModelSeries(needed, other, forgetting, segment, of_class, spec.max_classes)


def _metrics(spec: MonitorsSpec, *, sampled: bool) -> Iterable[Metric]:
    """Yield the metrics that every model has."""
    yield from metrics_of(catalogue.MEASURES, catalogue.BOUNDS, catalogue.BASELINES, catalogue.PER_CLASS)
    kept = {type(each) for each in spec.registers}
    yield from (metric for kind in registers.KINDS if kind.spec in kept for metric in kind.metrics)
    yield from (
        metric
        for metric in (*JOIN, *ALARMS)
        if "model" in metric.labels and (sampled or not metric.name.startswith("sampled_"))
    )


def _values(spec: MonitorsSpec, metric: Metric, label: str) -> Iterable[str]:
    """Return the values that a label has in the series of one model."""
    if metric.name == INFO:
        return ("",)  # one series of each model, with any labels
    if label == "forgetting":
        adwin_only = metric.name == "adwin_window_outcomes"
        return [each.name for each in spec.forgetting if isinstance(each, AdwinSpec) or not adwin_only]
    if label == "detector":
        clocks = [each for each in spec.registers if isinstance(each, PredictionClockSpec)]
        detectors = [*spec.detectors, *(detector for each in clocks for detector in each.detectors)]
        return [each.name for each in detectors]
    if label == "opponent" and metric.name.startswith(("sampled_", "cohort_")):
        return OPPONENTS  # only opponents whose answers are fixed at the prediction
    known: dict[str, Iterable[str]] = {
        "bound": [each.name for each in catalogue.BOUNDS],
        "baseline": [each.name for each in catalogue.BASELINES],
        "opponent": spec.opponents,
        "side": ("better", "worse"),
        "stage": ("begun", "recovered", "not_recovered"),
        "severity": ("critical", "warning"),
        "reason": _REASONS,
    }
    return known[label]


def least_series(spec: MonitorsSpec) -> int:
    """Return the least `max_series` with which all series that rules and dashboards read fit a scrape."""
    return OF_NO_MODEL + spec.max_models * model_series(spec).needed


def too_few_series(spec: MonitorsSpec) -> str | None:
    """Describe why `max_series` is too small for what rules and dashboards read; None if it is not."""
    least = least_series(spec)
    if spec.max_series >= least:
        return None
    return (
        f"monitors.max_series: expected at least {least:,} for {spec.max_models:,} models "
        f"(monitors.max_models) of {model_series(spec).needed} series that rules and dashboards read, got "
        f"{spec.max_series:,}: raise it, or lower monitors.max_models"
    )


def check_series(
    spec: MonitorsSpec, segments: int = 0, folds: int = 0, *, sampled: bool = False
) -> CheckResult:
    """Report how many series the limits allow in /metrics, and which are left out beyond `max_series`."""
    problem = too_few_series(spec)
    if problem is not None:
        return CheckResult(problem, good=False)
    each = model_series(spec, segments, folds, sampled=sampled, every=spec.all_series)
    compared = len(_comparison_values(spec)) * spec.max_comparisons if spec.comparisons else 0
    total = OF_NO_MODEL + compared + spec.max_models * each.total
    limit = f"monitors.max_series is {spec.max_series:,}"
    parts = (
        f"{each.needed} of each of {spec.max_models:,} models (monitors.max_models) stay: rules read them",
        f"{each.other + each.forgetting} more of each model, {each.forgetting} of them of more forgettings",
        *([f"{each.segment:,} of values of segments and folds of each model"] if each.segment else []),
        f"{each.of_class} of each of {each.classes:,} classes (monitors.max_classes, per_class)",
    )
    if total <= spec.max_series:
        return CheckResult(f"series: at most {total:,}; {limit}", good=True, details=parts, folded=True)
    return CheckResult(
        f"series: {total:,}, if every limit is reached at once; {limit}, what is beyond is left out of "
        "/metrics (never of the API)",
        good=True,
        details=(*parts, *_what_goes(spec, each, compared)),
        folded=True,
    )


def _comparison_values(spec: MonitorsSpec) -> list[str]:
    """Return the name of the metric of each series of a compared pair."""
    sizes = {"forgetting": len(spec.forgetting), "side": 2}
    return [
        metric.name
        for metric in COMPARISONS
        for _ in range(sizes.get(next((label for label in metric.labels if label in sizes), ""), 1))
    ]


def _what_goes(spec: MonitorsSpec, each: ModelSeries, compared: int) -> list[str]:
    """Describe which series a model keeps in a scrape if all models have all series."""
    room = int(spec.max_series * (1 - RESERVE)) - OF_NO_MODEL - compared
    left = max(0, room // spec.max_models - each.needed)
    text: list[str] = []
    for what, count, size in (
        ("further series", each.other, 1),
        ("series under further forgettings", each.forgetting, 1),
        ("series of values of segments and folds", each.segment, 1),
        ("classes", each.classes if each.of_class else 0, each.of_class),
    ):
        kept = min(count, left // size) if size else 0
        left -= kept * size
        if kept < count:
            text.append(f"then each model keeps {kept:,} of {count:,} {what}")
    beside = each.needed + each.other + each.forgetting + each.segment
    fitting = (spec.max_series - OF_NO_MODEL - compared) // (beside + 20 * each.of_class)
    return [*text, f"{fitting:,} models of 20 classes have all their series"]
