"""What is reported of a model with folds, against its folds evaluated as models of their own."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from streamwatch.core.estimators import catalogue
from streamwatch.core.estimators.folds import join_folds
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.metrics.series import Histogram
from streamwatch.core.records.events import SEPARATOR, Outcome, fold_name
from tests.layouts import DEFAULT

SPEC = replace(DEFAULT, max_models=40, max_classes=6)
FOLDS = 4
SUMS = {"outcomes_total", "errors_total", "alarms_total", "drifts_total", "label_delay_seconds"}
LARGEST = {"last_alarm_timestamp_seconds", "last_label_timestamp_seconds", "recovering"}
OF_THE_MODEL = {
    "verdict",
    "verdict_since_timestamp_seconds",
    "verdict_since_outcome",
    "verdict_evidence",
    "lead",
    "lead_lower",
    "lead_upper",
}
"""Not joined from what the folds say: see verdicts/test_folds.py."""
OF_ONE_FOLD = {"detector_statistic", "detector_threshold", "detector_warning"}


def outcomes_of(n, folds=FOLDS, seed=1):
    """(fold, outcome of a model named after the fold), by ids that every fold tests."""
    rng = np.random.default_rng(seed)
    label = 0
    for i in range(n):
        label = label if rng.random() < 0.7 else int(rng.integers(3))
        for fold in range(folds):
            right = rng.random() < (0.9 if i < n // 2 else 0.5) - 0.02 * fold
            predicted = label if right else int(rng.integers(3))
            yield fold, Outcome(str(fold), "abc"[label], "abc"[predicted], 1_000 * i, 100 * fold, scores=None)


def in_folds(stream, model="m"):
    return [
        Outcome(fold_name(model, fold), o.true_class, o.predicted_class, o.event_ms, o.delay_ms)
        for fold, o in stream
    ]


def samples(monitors):
    return {f.name: dict(f.samples) for f in monitors.families()}


@pytest.fixture(scope="module")
def both():
    stream = list(outcomes_of(1_500))
    folds, apart = EstimatorSet(SPEC), EstimatorSet(SPEC)
    folds.fold(in_folds(stream))
    apart.fold([o for _, o in stream])
    return folds, apart


def test_every_estimate_of_a_model_is_the_mean_over_its_folds_and_every_count_the_sum(both):
    found, apart = map(samples, both)
    checked = 0
    for metric in catalogue.metrics():
        if metric.name in OF_THE_MODEL | OF_ONE_FOLD or "model" not in metric.labels:
            continue
        at = metric.labels.index("model")
        groups: dict[tuple[str, ...], list[float | Histogram]] = {}
        for key, value in apart[metric.name].items():
            groups.setdefault((*key[:at], "m", *key[at + 1 :]), []).append(value)
        for key, values in groups.items():
            value = found[metric.name][key]
            if isinstance(value, Histogram):
                assert value.total == pytest.approx(sum(v.total for v in values))
                assert value.counts == tuple(np.sum([v.counts for v in values], axis=0))
            elif metric.name in SUMS:
                assert value == sum(values)
            elif metric.name in LARGEST:
                assert value == max(values)
            else:
                assert value == pytest.approx(np.mean(values), rel=1e-12, abs=1e-12), metric.name
            checked += 1
    assert checked > 100
    for name in OF_ONE_FOLD:
        assert found[name] == {}


def test_times_are_the_latest_of_the_folds_and_a_verdict_by_cohorts_is_of_one_fold_only():
    found = {metric.name: [] for metric in catalogue.metrics()}
    folds = [fold_name("m", fold) for fold in range(FOLDS)]
    settled = "prediction_clock_settled_until_timestamp_seconds"
    found[settled] = [((fold,), 10.0 * k) for k, fold in enumerate(folds)]
    found["cohort_lead"] = [((fold, "majority"), 0.1 * k) for k, fold in enumerate(folds)]
    for name in ("verdict", "verdict_since_timestamp_seconds", "verdict_confirmed"):
        found[f"cohort_{name}"] = [((fold, "majority"), float(k % 2)) for k, fold in enumerate(folds)]
    found["cohort_verdict_evidence"] = [((fold, "majority", "worse"), 0.5) for fold in folds]
    join_folds(found, catalogue.metrics(), {})
    assert {name: series for name, series in found.items() if series} == {
        settled: [(("m",), 30.0)],
        "cohort_lead": [(("m", "majority"), pytest.approx(0.15))],
    }


def test_the_accuracy_of_every_fold_and_how_much_they_differ_is_reported(both):
    found, apart = map(samples, both)
    accuracies = apart["accuracy_ratio"]
    for forgetting in (f.name for f in SPEC.forgetting):
        by_fold = [accuracies[forgetting, str(fold)] for fold in range(FOLDS)]
        for fold in range(FOLDS):
            assert found["fold_accuracy_ratio"][str(fold), forgetting, "m"] == by_fold[fold]
        deviation = found["fold_accuracy_deviation"][forgetting, "m"]
        assert deviation == pytest.approx(np.std(by_fold, ddof=1))
        details = both[0].details()["m"]["folds"][forgetting]
        assert details == {str(fold): by_fold[fold] for fold in range(FOLDS)}
    assert found["fold_outcomes_total"] == {(str(fold), "m"): 1_500 for fold in range(FOLDS)}
    assert found["folds_evaluated"] == {("m",): FOLDS}


def test_nothing_that_users_see_has_the_name_of_a_fold(both):
    monitors = both[0]
    assert SEPARATOR not in repr(monitors.families())
    assert SEPARATOR not in repr(monitors.details())
    assert SEPARATOR not in repr(list(monitors.recent_alarms))
    assert all(name == "m" for labels in samples(monitors)["outcomes_total"] for name in labels)


def test_details_and_level_of_a_model_are_those_of_its_folds_together(both):
    folds, apart = both
    (details,), parts = folds.details().values(), list(apart.details().values())
    assert sorted(details["classes"]) == ["a", "b", "c"]
    assert details["first_seen_timestamp_seconds"] == 0.0
    total = sum(np.sum(part["confusion"]["counts"]) for part in parts)
    assert np.sum(details["confusion"]["counts"]) == pytest.approx(total)
    at = {name: i for i, name in enumerate(details["confusion"]["classes"])}
    expected = 0.0
    for part in parts:
        names = part["confusion"]["classes"]
        expected += part["confusion"]["counts"][names.index("a")][names.index("b")]
    assert details["confusion"]["counts"][at["a"]][at["b"]] == pytest.approx(expected)
    level = folds.facts.levels(["m", "nobody"])
    levels = apart.facts.levels([str(fold) for fold in range(FOLDS)]).values()
    assert list(level) == ["m"]
    assert level["m"].error == pytest.approx(np.mean([each.error for each in levels]))
    assert folds.facts.first_ms("m") == 0
    assert folds.facts.first_ms("nobody") == 0


@pytest.mark.slow
def test_a_model_beside_one_with_folds_is_reported_as_alone():
    stream = list(outcomes_of(300))
    alone, beside = EstimatorSet(SPEC), EstimatorSet(SPEC)
    own = [Outcome("n", o.true_class, o.predicted_class, o.event_ms, 5) for fold, o in stream if not fold]
    alone.fold(own)
    beside.fold(own)
    beside.fold(in_folds(stream))
    for name, values in samples(alone).items():
        of_n = {k: v for k, v in samples(beside)[name].items() if "n" in k or not k}
        assert of_n == values, name


def test_a_report_has_the_series_of_folds_whatever_the_limit():
    monitors = EstimatorSet(replace(SPEC, max_series=170))
    monitors.fold(in_folds(outcomes_of(300)))
    assert len(samples(monitors)["fold_accuracy_ratio"]) == FOLDS * len(SPEC.forgetting)


def test_a_fold_that_tests_some_ids_takes_the_persistence_of_its_models_stream():
    """What Bifet's folds would say of persistence were they to compare their own outcomes only is wrong."""
    rng = np.random.default_rng(4)
    labels = [0]
    for _ in range(4_000):
        labels.append(labels[-1] if rng.random() < 0.85 else 1 - labels[-1])
    monitors = EstimatorSet(replace(SPEC, folds_share_stream=True))
    outcomes, tested = [], {fold: [] for fold in range(FOLDS)}
    for i, y in enumerate(labels):
        fold = int(rng.integers(FOLDS))
        right = rng.random() < 0.8
        previous = None if i == 0 else str(labels[i - 1])
        predicted = str(y if right else 1 - y)
        outcomes.append(Outcome(fold_name("m", fold), str(y), predicted, i, 0, label_at_prediction=previous))
        if i:
            tested[fold].append((right, y == labels[i - 1]))
    monitors.fold(outcomes)
    found = samples(monitors)
    shares = [np.mean([repeat for _, repeat in each]) for each in tested.values()]
    assert found["baseline_accuracy_ratio"]["persistent", "landmark", "m"] == pytest.approx(np.mean(shares))
    assert np.mean(shares) == pytest.approx(0.85, abs=0.03)
    accuracy = found["accuracy_ratio"]["landmark", "m"]
    kappa = [found["fold_accuracy_ratio"][str(f), "landmark", "m"] for f in range(FOLDS)]
    gains = [(a - s) / (1 - s) for a, s in zip(kappa, shares, strict=True)]
    assert found["kappa_persistent"]["landmark", "m"] == pytest.approx(np.mean(gains))
    assert accuracy == pytest.approx(np.mean(kappa))
    baselines = {key[0] for key in found["baseline_accuracy_ratio"]}
    assert "persistent" in baselines
    assert not baselines & {"persistent_at_prediction", "transition", "temporally_augmented"}
    opponents = {opponent for _, opponent in found["verdict"]}
    assert opponents == {"persistent", "majority"}
    lead = np.mean([np.mean([float(r) - float(p) for r, p in each]) for each in tested.values()])
    assert found["lead"]["m", "persistent"] == pytest.approx(lead, abs=0.02)
    assert found["verdict"]["m", "persistent"] in (0.0, -1.0)
    assert not any(math.isnan(v) for f in found.values() for v in f.values() if isinstance(v, float))
