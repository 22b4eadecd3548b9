"""The series of models: names, labels, label delays, limits; nothing undefined is exported."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from streamwatch.core.estimators import catalogue
from streamwatch.core.estimators.catalogue import OF_REGISTERS, metrics
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.metrics import LABEL_DELAY_BOUNDS
from streamwatch.core.metrics.series import Histogram
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import FadingSpec, LandmarkSpec, MonitorsSpec
from tests.core.estimators.estimated import drifting, folded, value
from tests.layouts import EVERYTHING

PER_MECHANISM = (
    "accuracy_ratio", "kappa", "kappa_majority", "kappa_majority_prequential", "kappa_persistent",
    "kappa_plus", "mcc",
    "arithmetic_mean_recall_ratio", "geometric_mean_recall_ratio", "harmonic_mean_recall_ratio",
    "macro_f1_ratio", "kappa_standard_error", "kappa_zscore", "loss_autocorrelation",
    "effective_sample_size_autocorrelated", "temporal_dependence", "effective_sample_size",
)  # fmt: skip
PER_CLASS = ("recall_ratio", "precision_ratio", "class_truth_ratio", "class_predicted_ratio")
PER_OPPONENT = (
    "verdict",
    "verdict_since_timestamp_seconds",
    "verdict_since_outcome",
    "lead",
    "lead_lower",
    "lead_upper",
    "lead_dispersion",
)
RECOVERIES = ("recovering", "recovery_depth", "recovery_outcomes", "drift_depth", "drift_outcomes")
LABELS = {
    "outcomes_total": ("model",),
    "errors_total": ("model",),
    **dict.fromkeys(PER_MECHANISM, ("forgetting", "model")),
    "accuracy_bound_ratio": ("bound", "forgetting", "model"),
    "baseline_accuracy_ratio": ("baseline", "forgetting", "model"),
    "adwin_window_outcomes": ("forgetting", "model"),
    "drift_weighted_accuracy_ratio": ("model",),
    "drift_weighted_effective_sample_size": ("model",),
    "detector_statistic": ("detector", "model"),
    "detector_threshold": ("detector", "model"),
    "detector_warning": ("detector", "model"),
    "alarms_total": ("detector", "model"),
    "last_alarm_timestamp_seconds": ("detector", "model"),
    **dict.fromkeys(PER_OPPONENT, ("model", "opponent")),
    "verdict_evidence": ("model", "opponent", "side"),
    "drifts_total": ("model", "stage"),
    **dict.fromkeys(RECOVERIES, ("model",)),
    "accuracy_misleads": ("model",),
    "folds_evaluated": ("model",),
    "fold_accuracy_deviation": ("forgetting", "model"),
    "fold_accuracy_ratio": ("fold", "forgetting", "model"),
    "fold_outcomes_total": ("fold", "model"),
    "label_delay_seconds": ("model",),
    "last_label_timestamp_seconds": ("model",),
    **dict.fromkeys(PER_CLASS, ("class", "forgetting", "model")),
    **{metric.name: metric.labels for metric in OF_REGISTERS},
}
DEFAULT = MonitorsSpec()
STREAM = drifting(2, 600)


def series_of(monitors):
    return {f.name: dict(f.samples) for f in monitors.families()}


def exhausted(slices):
    """What a generator of slices returns, and how often it gave way."""
    turns = 0
    while True:
        try:
            next(slices)
        except StopIteration as end:
            return end.value, turns
        turns += 1


def test_every_family_has_its_name_and_labels_in_a_fixed_order():
    monitors, _ = folded(STREAM, DEFAULT)
    assert {f.name: f.labels for f in monitors.families()} == LABELS
    assert [f.name for f in monitors.families()] == [m.name for m in metrics()]
    assert [f.name for f in EstimatorSet(DEFAULT).families()] == [m.name for m in metrics()]


@pytest.mark.slow
def test_no_value_is_undefined_or_infinite_and_no_series_occurs_twice_at_any_prefix():
    monitors = EstimatorSet(DEFAULT)
    for outcome in STREAM[:80]:
        monitors.fold([outcome])
        for family in monitors.families():
            keys = [labels for labels, _ in family.samples]
            assert len(set(keys)) == len(keys)
            for labels, number in family.samples:
                assert len(labels) == len(family.labels)
                assert isinstance(number, Histogram) or math.isfinite(number), (family.name, labels)


def test_families_are_the_same_twice_and_slice_by_slice():
    monitors, _ = folded(
        [Outcome(f"m{i % 600}", "x", "x" if i % 3 else "y", i, i) for i in range(2_000)], DEFAULT
    )
    families, turns = exhausted(monitors.families_in_slices())
    assert turns >= 2
    assert families == monitors.families()
    assert len(dict(families[0].samples)) == 600


def test_models_of_many_classes_are_reported_few_at_a_time():
    classes = 1_000
    spec = replace(DEFAULT, max_classes=classes)
    names = [f"c{k}" for k in range(classes)]
    monitors, _ = folded([Outcome(f"m{m}", c, c, k, 0) for m in range(32) for k, c in enumerate(names)], spec)
    _, turns = exhausted(monitors.families_in_slices())
    least = 4 * len(spec.forgetting)
    assert turns >= least, "one mechanism of at most 10,000 cells is read before the event loop goes on"


def test_models_that_retire_between_slices_are_left_out():
    monitors, _ = folded([Outcome(f"m{i:03}", "x", "x", i, i) for i in range(600)], DEFAULT)
    slices = monitors.families_in_slices()
    next(slices)
    for i in range(500, 600):
        monitors.retire(f"m{i}")
    assert len(exhausted(slices)[0][0].samples) == 500


def test_series_are_the_same_whatever_order_models_appeared_in():
    # models do not interact, so the order in which they are fed must not show
    by_model = sorted(STREAM, key=lambda o: o.model, reverse=True)
    assert folded(by_model, DEFAULT)[0].families() == folded(STREAM, DEFAULT)[0].families()


def test_label_delays_are_counted_up_to_and_including_each_bound():
    delays_ms = [0, 1, 1000, 1001, 5000, 15_000, 60_000, 2_419_200_000, 2_419_200_001]
    monitors, _ = folded([Outcome("m", "x", "x", i, d) for i, d in enumerate(delays_ms)], DEFAULT)
    histogram = value(monitors, "label_delay_seconds", "m")
    assert histogram.counts == tuple(
        sum(d <= bound * 1000 for d in delays_ms) for bound in (*LABEL_DELAY_BOUNDS, math.inf)
    )
    assert histogram.total == pytest.approx(sum(delays_ms) / 1000)
    (family,) = [f for f in monitors.families() if f.name == "label_delay_seconds"]
    assert family.bounds == LABEL_DELAY_BOUNDS
    assert list(family.bounds) == sorted(family.bounds)


def test_the_last_label_is_the_latest_by_event_time_not_the_last_to_arrive():
    outcomes = [Outcome("m", "x", "x", at, 0) for at in (5_000, 9_000, 7_000)]
    monitors, _ = folded(outcomes, DEFAULT)
    assert value(monitors, "last_label_timestamp_seconds", "m") == 9.0


def test_an_assumed_label_is_evaluated_but_is_no_label_that_came():
    assumed = Outcome("m", "x", "y", 9_000, 1_209_600_000, assumed=True)
    monitors, _ = folded([assumed], DEFAULT)
    assert value(monitors, "errors_total", "m") == 1
    assert value(monitors, "last_label_timestamp_seconds", "m") is None
    assert value(monitors, "label_delay_seconds", "m").counts[-1] == 0
    monitors.fold([Outcome("m", "x", "x", 4_000, 10), assumed])
    assert value(monitors, "last_label_timestamp_seconds", "m") == 4.0
    assert value(monitors, "label_delay_seconds", "m").counts[-1] == 1


def test_per_class_series_come_under_one_forgetting_only():
    monitors, _ = folded(STREAM, DEFAULT)
    for name in PER_CLASS:
        series = series_of(monitors)[name]
        assert {forgetting for _, forgetting, _ in series} == {"fading:0.999"}, name
        assert {of for of, _, _ in series} == {"x", "y", "z"}, name


def test_shares_of_a_models_classes_add_up_to_one():
    series = series_of(folded(STREAM, DEFAULT)[0])
    for name in ("class_truth_ratio", "class_predicted_ratio"):
        shares = [v for (_, _, model), v in series[name].items() if model == "a"]
        assert sum(shares) == pytest.approx(1.0, abs=1e-12), name


def test_per_class_series_can_be_switched_off_and_follow_the_first_mechanism_if_theirs_is_not_kept():
    off, _ = folded(STREAM, MonitorsSpec(per_class=""))
    assert all(series_of(off)[name] == {} for name in PER_CLASS)
    mechanisms = (FadingSpec(0.99), LandmarkSpec(), *DEFAULT.forgetting[2:])
    other, _ = folded(STREAM, replace(DEFAULT, forgetting=mechanisms))
    assert {f for _, f, _ in series_of(other)["recall_ratio"]} == {"fading:0.99"}


def test_a_report_is_whole_whatever_the_limit():
    complete, _ = folded(STREAM, DEFAULT)
    tight, _ = folded(STREAM, MonitorsSpec(max_series=1))
    assert series_of(tight) == series_of(complete)


def test_a_model_of_many_classes_has_all_their_series():
    outcomes = [Outcome(f"m{m}", f"c{i % 50}", f"c{i % 50}", i, 0) for m in range(20) for i in range(100)]
    monitors, _ = folded(outcomes, MonitorsSpec(max_series=300))
    assert all(len(series_of(monitors)[name]) == 20 * 50 for name in PER_CLASS)


def test_bounds_follow_the_configured_confidence():
    narrow, _ = folded(STREAM, MonitorsSpec(confidence_delta=0.5))
    wide, _ = folded(STREAM, MonitorsSpec(confidence_delta=0.001))
    for bound, upper in (("hoeffding", False), ("hoeffding_upper", True), ("chernoff", False)):
        labels = (bound, "fading:0.999", "a")
        near, far = (value(m, "accuracy_bound_ratio", *labels) for m in (narrow, wide))
        assert (near < far) == upper, bound
    accuracy = value(narrow, "accuracy_ratio", "landmark", "a")
    half_width = math.sqrt(math.log(2 / 0.5) / (2 * value(narrow, "outcomes_total", "a")))
    least = value(narrow, "accuracy_bound_ratio", "hoeffding", "landmark", "a")
    assert least == pytest.approx(accuracy - half_width)


def test_several_weightings_are_distinguished_by_what_they_are_called():
    monitors, _ = folded(STREAM, EVERYTHING)
    (family,) = [f for f in monitors.families() if f.name == "drift_weighted_accuracy_ratio"]
    assert family.labels == ("drift_weighted", "model")
    assert {labels[0] for labels, _ in family.samples} == {
        drift_weighted.name for drift_weighted in EVERYTHING.drift_weighted
    }


@pytest.mark.slow
def test_a_detector_with_a_warning_level_says_whether_it_warns_in_series_and_trace():
    spec = replace(EVERYTHING, max_models=1)
    warning = {(each.name, "m") for each in spec.detectors if catalogue.entry(each).warns}
    monitors = EstimatorSet(spec)
    loss = [i % 10 == 0 for i in range(300)] + [1] * 40
    trace = monitors.trace([Outcome("m", "a", "b" if x else "a", i, 0) for i, x in enumerate(loss)])
    assert "warning:page_hinkley" not in trace.columns
    warned = [row[trace.columns.index("warning:ddm")] for row in trace.rows]
    alarmed = [row[trace.columns.index("alarm:ddm")] for row in trace.rows]
    assert sum(warned) > 0
    assert warned.index(1) < alarmed.index(1)
    assert warned[alarmed.index(1)] == 0
    series = series_of(monitors)["detector_warning"]
    assert series.keys() == warning
    assert series["ddm", "m"] == float(warned[-1])
    calm = EstimatorSet(spec)
    until = warned.index(1) + 1
    calm.fold([Outcome("m", "a", "b" if x else "a", i, 0) for i, x in enumerate(loss[:until])])
    assert series_of(calm)["detector_warning"]["ddm", "m"] == 1.0
