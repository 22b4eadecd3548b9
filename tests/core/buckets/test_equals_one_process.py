"""Buckets of ids and of models give what one process gives, to the bit, however they are cut and rebuilt."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.buckets.contract import BucketsSpec
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.late_labels.register import LateLabelsSpec
from streamwatch.core.estimators.registers.prediction_clock import PredictionClockSpec
from streamwatch.core.estimators.registers.probabilities import ProbabilitiesSpec
from streamwatch.core.estimators.registers.revisions import RevisionsSpec
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.specs import (
    ComparisonSpec,
    DriftWeightedSpec,
    JoinSpec,
    PageHinkleySpec,
)
from tests.core.buckets.cluster import Cluster
from tests.core.buckets.logs import BEGIN_MS, SIDES, a_log, by_model, one_process, samples
from tests.layouts import DEFAULT
from tests.tiers import examples

SPEC = replace(DEFAULT, max_models=24, max_classes=6)
FOREVER = 10**9


def a_join(chance):
    return JoinSpec(
        horizon_ms=chance.choice([1000, 2500, 5000, 20_000]),
        early_horizon_ms=chance.choice([0, 400, 2500, 20_000]),
        dedup_horizon_ms=FOREVER,
        assume=chance.choice([None, None, "x"]),
        order=chance.choice(["resolution", "prediction_time"]),
        reorder_window_ms=chance.choice([0, 700, 3000, 60_000]),
        retain_unmatched=chance.random() < 0.8,
        max_models=24,
        conflicts=chance.choice(["first", "both"]),
        carried=("sampling",) if chance.random() < 0.5 else (),
    )


def check(log, join, spec, chance, *, ended, start_ms=None, excused=()):
    """Compare a cluster of any size, and return the one process."""
    one = one_process(log, join, spec, ended=ended, start_ms=start_ms)
    buckets = BucketsSpec(
        SIDES, join, spec, chance.choice([1, 2, 4, 7]), chance.choice([1, 2, 3, 5]), start_ms=start_ms
    )
    cluster = Cluster(buckets, chance)
    cluster.run(log, chance.choice([0, 1, 3, 9]), ended=ended)
    assert_same_results(cluster.view, one, excused)
    assert_evaluated(cluster, one)
    return one


def assert_same_results(view, one, excused=()):
    """What results say is what one process says, but for the series that are excused."""
    ours, theirs = samples(view.join_families()), samples(one.pipeline.join_families())
    for each in ("join_entries", *excused):  # where entries lie is not the same
        del ours[each], theirs[each]
    assert ours == theirs
    assert samples(view.monitors.families()) == samples(one.monitors.families())
    assert sorted(view.monitors.models()) == sorted(one.monitors.models())
    for model in one.monitors.models():
        assert view.monitors.snapshot(model) == one.monitors.snapshot(model)
    if one.monitors.comparisons is not None:
        assert view.monitors.comparisons.snapshot() == one.monitors.comparisons.snapshot()
    assert sorted(map(repr, view.alarms.values())) == sorted(map(repr, one.alarms))
    assert view.caveats() == one.pipeline.caveats()
    records, progress = view.totals.records, one.progress.state()
    for name in ("evaluated", "events", "skipped", "tied", "out_of_order", "corrected"):
        assert getattr(records, name) == getattr(progress, name)


def assert_evaluated(cluster, one):
    """Every model was given the same outcomes, in the same order."""
    folded = [outcome for _, outcomes in sorted(cluster.folded.items()) for outcome in outcomes]
    assert by_model(folded) == by_model(one.monitors.folded)


@settings(max_examples=examples(1))
@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([None, BEGIN_MS, BEGIN_MS + 4000]))
def test_every_result_is_that_of_one_process(seed, ended, start_ms):
    chance = Random(seed)
    log = a_log(chance, chance.choice([20, 80, 300]))
    check(log, a_join(chance), SPEC, chance, ended=ended, start_ms=start_ms)


@pytest.mark.slow
@settings(max_examples=examples(1))
@given(st.integers(0, 2**32), st.booleans())
def test_all_of_it_together_is_that_of_one_process(seed, ended):
    """Folds of one stream or several, comparisons, a model that others follow, any order and few held."""
    chance = Random(seed)
    log = a_log(chance, chance.choice([80, 300]), folds=True)
    shares = chance.random() < 0.5
    comparisons = (ComparisonSpec("m", ("n", "o*")), ComparisonSpec("p", ("m",)))
    join = replace(a_join(chance), folds=True, folds_share_stream=shares, comparisons=comparisons)
    follows = DriftWeightedSpec(drift_signal="reference", reference=chance.choice("mp"))
    spec = replace(SPEC, folds="bootstrap, 3 folds", folds_share_stream=shares, drift_weighted=(follows,))
    spec = replace(spec, comparisons=comparisons)
    check(log, join, spec, chance, ended=ended, excused=["pairs_expired_total"])


@settings(max_examples=examples(0.5))
@given(st.integers(0, 2**32), st.booleans(), st.integers(0, 12))
def test_of_too_many_held_the_oldest_leave_as_in_one_process(seed, ended, most):
    """One model bucket, as every one has its share of the limit."""
    chance = Random(seed)
    log = a_log(chance, 200)
    window_ms = chance.choice([3000, 60_000])
    join = replace(a_join(chance), order="prediction_time", reorder_window_ms=window_ms, max_reordered=most)
    one = one_process(log, join, SPEC, ended=ended)
    buckets = BucketsSpec(SIDES, join, SPEC, chance.choice([1, 4]), 1)
    cluster = Cluster(buckets, chance)
    cluster.run(log, chance.choice([0, 3, 9]), ended=ended)
    assert_same_results(cluster.view, one)
    assert_evaluated(cluster, one)


@settings(max_examples=examples(0.5))
@given(st.integers(0, 2**32), st.booleans(), st.booleans())
def test_folds_of_a_model_are_those_of_one_process(seed, ended, share_stream):
    chance = Random(seed)
    log = a_log(chance, chance.choice([80, 300]), folds=True)
    join = replace(a_join(chance), folds=True, folds_share_stream=share_stream)
    spec = replace(SPEC, folds="bootstrap, 3 folds", folds_share_stream=share_stream)
    check(log, join, spec, chance, ended=ended)


@settings(max_examples=examples(0.5))
@given(st.integers(0, 2**32), st.booleans())
def test_models_compared_and_models_that_follow_another_are_those_of_one_process(seed, ended):
    chance = Random(seed)
    log = a_log(chance, chance.choice([80, 300]))
    comparisons = (ComparisonSpec("m", ("n", "o*")), ComparisonSpec("p", ("m",)))
    join = replace(a_join(chance), comparisons=comparisons)
    follows = DriftWeightedSpec(drift_signal="reference", reference=chance.choice("mp"))
    cohorts = CohortsSpec(join.horizon_ms, outcomes=100, max_classes=6)
    spec = replace(SPEC, comparisons=comparisons, drift_weighted=(follows,), registers=(cohorts,))
    # What an entry waits for depends on the models known to its bucket.
    one = check(log, join, spec, chance, ended=ended, excused=["pairs_expired_total"])
    assert one.monitors.comparisons is not None


@pytest.mark.slow
@settings(max_examples=examples(0.2))
@given(st.integers(0, 2**32), st.booleans())
def test_registers_of_a_model_are_those_of_one_process(seed, ended):
    chance = Random(seed)
    log = a_log(chance, chance.choice([80, 300]))
    join = a_join(chance)
    registers = (
        *([RevisionsSpec(join.horizon_ms, 0.9)] if join.conflicts == "both" else []),
        LateLabelsSpec(join.horizon_ms, assumed=join.assume is not None),
        ProbabilitiesSpec(),
        SegmentsSpec(max_classes=6),
        CohortsSpec(join.horizon_ms, outcomes=100, max_classes=6),
        PredictionClockSpec(
            join.horizon_ms,
            (PageHinkleySpec(name="by_prediction", threshold=3.0),),
            (),
            chance.choice([9, 500]),
        ),
    )
    check(log, join, replace(SPEC, registers=registers), chance, ended=ended)
