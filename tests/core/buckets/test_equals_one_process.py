"""Buckets of ids and of models give what one process gives, to the bit, however they are cut and rebuilt."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamwatch.core.buckets.spec import BucketsSpec
from streamwatch.core.estimators.registers.late_labels.register import LateLabelsSpec
from streamwatch.core.estimators.registers.prediction_clock import PredictionClockSpec
from streamwatch.core.estimators.registers.probabilities.spec import ProbabilitiesSpec
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.specs import (
    ComparisonSpec,
    DriftWeightedSpec,
    JoinSpec,
    PageHinkleySpec,
    columns_suffice,
)
from tests.core.buckets.cluster import BY_SETTINGS, ROWS, Cluster
from tests.core.buckets.logs import BEGIN_MS, SIDES, a_log, one_process, samples
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
    )


def check(log, join, spec, chance, *, ended, start_ms=None, excused=()):
    """Both forms of buckets, where settings allow both."""
    one = one_process(log, join, spec, ended=ended, start_ms=start_ms)
    for form in [ROWS, BY_SETTINGS] if columns_suffice(join) else [BY_SETTINGS]:
        check_form(log, one, join, spec, chance, form, ended=ended, start_ms=start_ms, excused=excused)
    return one


def check_form(log, one, join, spec, chance, form, *, ended, start_ms, excused):
    buckets = BucketsSpec(
        SIDES, join, spec, chance.choice([1, 2, 4, 7]), chance.choice([1, 2, 3, 5]), start_ms=start_ms
    )
    cluster = Cluster(buckets, chance, form=form)
    cluster.run(log, chance.choice([0, 1, 3, 9]), ended=ended)
    assert_told(cluster.view, one, excused)


def assert_told(view, one, excused=()):
    """What results say is what one process says, but for the series that are excused."""
    ours, theirs = samples(view.join_families()), samples(one.pipeline.join_families())
    for each in excused:
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


@settings(max_examples=examples(1))
@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([None, BEGIN_MS, BEGIN_MS + 4000]))
def test_everything_told_is_that_of_one_process(seed, ended, start_ms):
    chance = Random(seed)
    log = a_log(chance, chance.choice([20, 80, 300]))
    check(log, a_join(chance), SPEC, chance, ended=ended, start_ms=start_ms)


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
    spec = replace(SPEC, comparisons=comparisons, drift_weighted=(follows,))
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
        LateLabelsSpec(join.horizon_ms, assumed=join.assume is not None),
        ProbabilitiesSpec(),
        SegmentsSpec(max_classes=6),
        PredictionClockSpec(
            join.horizon_ms,
            (PageHinkleySpec(name="by_prediction", threshold=3.0),),
            (),
            chance.choice([9, 500]),
        ),
    )
    check(log, join, replace(SPEC, registers=registers), chance, ended=ended)
