"""A stream on which models fall and recover: alarms and verdicts of buckets are those of one process."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from streamwatch.core.records.events import Label, Partition, Prediction
from streamwatch.core.specs import DriftWeightedSpec, JoinSpec
from tests.core.buckets.logs import BEGIN_MS, SIDES, Log
from tests.core.buckets.test_equals_one_process import SPEC, check
from tests.tiers import by_tier

JOIN = JoinSpec(horizon_ms=60_000, early_horizon_ms=1_000, dedup_horizon_ms=10**9, max_models=24)


def falling(ids: int) -> Log:
    """Three models, of which one is right 95 times in 100, then 40 times; labels a second later."""
    chance = Random(3)
    log = Log({Partition(topic, p): [] for topic in SIDES for p in range(2)})
    for n in range(ids):
        now, truth = BEGIN_MS + 100 * n, chance.choice("xy")
        for model in "mno":
            right = chance.random() < (0.4 if model == "m" and n > ids // 2 else 0.95)
            answer = truth if right else "xy"[truth == "x"]
            log.records["predictions", n % 2].append((now, Prediction(str(n), model, answer, -1)))
        log.records["labels", n % 2].append((now + 1_000, Label(str(n), truth, -1)))
    return log


@pytest.mark.parametrize(
    "signal",
    by_tier(fast=["reference"], default=["own", "reference"], everything=["own", "reference", "labels"]),
)
def test_a_fall_is_reported_by_buckets_as_by_one_process(signal: str) -> None:
    follows = DriftWeightedSpec(drift_signal=signal, reference="m" if signal == "reference" else "")
    spec = replace(SPEC, drift_weighted=(follows,), verdict_outcomes=1_000)
    one = check(falling(3_000), JOIN, spec, Random(1), ended=True)
    assert {alarm.detector for alarm in one.alarms} >= {"page_hinkley", "adwin", "verdict"}
