"""Every estimate is the plain one after every outcome, and a trace says what the series say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.specs import MonitorsSpec
from tests.core.estimators.estimated import SPEC, SPECS, STREAM, folded, outcomes_of, state, streams
from tests.core.estimators.measures import plain_measures as plain
from tests.core.estimators.measures import plain_uncertainty as slow
from tests.tiers import examples

PLAIN = {
    "landmark": plain.landmark,
    "fading:0.9": plain.fading(0.9),
    "fading:0.99": plain.fading(0.99),
    "fading:0.5": plain.fading(0.5),
    "sliding:20": plain.sliding(20),
}


def guessed(lead, labels, true_class):
    """The class that leads among earlier labels, counted by .999 per outcome of age, and whether it is right.

    A class that led before keeps the lead at a tie; nothing is guessed before the first label.
    """
    if not labels:
        return true_class, None
    counts = {k: sum(0.999**age for age, y in enumerate(reversed(labels)) if y == k) for k in labels}
    best = max(counts, key=counts.__getitem__)
    lead = best if counts[best] > counts[lead] * (1 + 1e-12) else lead
    return lead, lead == true_class


@pytest.mark.parametrize("spec", SPECS)
@given(drawn=streams)
@settings(max_examples=examples(0.25))
def test_every_estimate_is_the_plain_one_after_every_outcome(spec, drawn):
    monitors = EstimatorSet(replace(spec, max_classes=8))
    outcomes = outcomes_of(drawn)
    trace = monitors.trace(outcomes)
    seen, leads = {"m": [], "n": []}, {"m": None, "n": None}
    for outcome, row in zip(outcomes, trace.rows, strict=True):
        pairs = seen[outcome.model]
        leads[outcome.model], mark = guessed(leads[outcome.model], [t for t, *_ in pairs], outcome.true_class)
        pairs.append((outcome.true_class, outcome.predicted_class, plain.Flags(majority=mark)))
        cells = dict(zip(trace.columns, row, strict=True))
        assert (cells["model"], cells["outcome"]) == (outcome.model, len(pairs))
        for label in (f.name for f in spec.forgetting if f.name in PLAIN):
            remembered = PLAIN[label](pairs)
            twins = plain.MEASURES | slow.MEASURES
            expected = {f"{name}:{label}": of(remembered) for name, of in twins.items()}
            for name, bound in slow.BOUNDS.items():
                expected[f"accuracy_bound_ratio:{name}:{label}"] = bound(remembered, spec.confidence_delta)
            majority = {"majority_prequential": plain.majority_prequential}
            for name, of in (plain.BASELINES | majority).items():
                expected[f"baseline_accuracy_ratio:{name}:{label}"] = of(remembered)
            expected[f"effective_sample_size:{label}"] = plain.effective_sample_size(remembered)
            for column, theirs in expected.items():
                tolerance = 1e-7 if column.startswith("kappa_plus") else 1e-9
                assert plain.agree(cells[column], theirs, tolerance), (column, cells[column], theirs)


def test_a_trace_folds_and_its_last_row_says_what_the_series_say():
    traced = EstimatorSet(SPEC)
    trace = traced.trace(STREAM)
    monitors, alarms = folded(STREAM)
    assert trace.alarms == alarms
    assert state(traced) == state(monitors)
    assert traced.families() == monitors.families()
    last = {row[0]: dict(zip(trace.columns, row, strict=True)) for row in trace.rows}
    compared = 0
    for family in monitors.families():
        if family.kind != "gauge" or "model" not in family.labels:
            continue
        position = family.labels.index("model")
        for labels, number in family.samples:
            column = ":".join([family.name, *labels[:position], *labels[position + 1 :]])
            if column in trace.columns:
                compared += 1
                assert last[labels[position]][column] == number, column
    assert compared >= 3 * 60


def test_a_trace_flags_each_alarm_in_the_row_of_its_outcome():
    trace = EstimatorSet(SPEC).trace(STREAM)
    flagged = [
        (row[0], detector.name, row[1])
        for row in trace.rows
        for detector in SPEC.detectors
        if row[trace.columns.index(f"alarm:{detector.name}")] == 1
    ]
    assert flagged == [(a.model, a.detector, a.outcome) for a in trace.alarms]
    assert flagged


def test_a_trace_has_the_columns_of_the_default_settings_by_name():
    trace = EstimatorSet(MonitorsSpec()).trace(STREAM[:3])
    assert trace.columns[:4] == ["model", "outcome", "y_true", "y_pred"]
    assert len(set(trace.columns)) == len(trace.columns)
    for column in (
        "accuracy_ratio:fading:0.999",
        "kappa:landmark",
        "kappa_majority:sliding:1000",
        "kappa_persistent:landmark",
        "kappa_plus:adwin:0.05",
        "mcc:fading:0.999",
        "adwin_window_outcomes:adwin:0.05",
        "baseline_accuracy_ratio:persistent:landmark",
        "effective_sample_size:landmark",
        "accuracy_bound_ratio:hoeffding:fading:0.999",
        "accuracy_bound_ratio:chernoff_upper:adwin:0.05",
        "kappa_zscore:sliding:1000",
        "drift_weighted_accuracy_ratio",
        "detector_statistic:page_hinkley",
        "detector_threshold:page_hinkley",
        "alarm:page_hinkley",
        "alarm:adwin",
    ):
        assert column in trace.columns
    first = dict(zip(trace.columns, trace.rows[0], strict=True))
    assert first["kappa:landmark"] is None
    assert first["alarm:page_hinkley"] == 0
    assert first["adwin_window_outcomes:adwin:0.05"] == 1
