"""Folds after a restart: bitwise what an undisturbed run has, wherever commits and restarts fall."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from random import Random

import pytest

from streamwatch.core.records.events import VERDICT, fold_name
from streamwatch.core.specs import JoinSpec
from tests.core.join.join_stream import label_for_all, predict, tick
from tests.core.pipeline.test_checkpoint import Life
from tests.layouts import DEFAULT
from tests.tiers import by_tier, few

FOLDS = 3
JOIN = JoinSpec(horizon_ms=40_000, early_horizon_ms=5_000, dedup_horizon_ms=5_000, max_models=8, folds=True)
SPEC = replace(DEFAULT, max_models=8, max_classes=6, verdict_outcomes=300, folds="bootstrap, 3 folds")


def ids(n, seed):
    """Batches: predictions of an id by all folds, and labels of earlier ids; now and then time passes."""
    chance = Random(seed)
    label, labels = 0, []
    for i in range(n):
        label = label if chance.random() < 0.8 else 1 - label
        labels.append(label)
        share = 0.97 if i < n // 2 else 0.6
        names = [fold_name("m", fold) for fold in range(FOLDS) if fold or i < n - 500]
        batch = [
            predict(str(i), str(label if chance.random() < share else 1 - label), 100 * i, name)
            for name in names
        ]
        if i >= 3:
            batch.append(label_for_all(str(i - 3), str(labels[i - 3]), 100 * i))
        yield batch


def verdicts(life):
    return [a for a in life.alarms if a.detector == VERDICT]


@pytest.mark.slow
@pytest.mark.parametrize("share_stream", few([True, False], 1))
@pytest.mark.parametrize("seed", range(by_tier(fast=1, default=2, everything=20)))
def test_a_restarted_run_is_bitwise_the_undisturbed_one(seed: int, *, share_stream: bool) -> None:
    chance = Random(seed)
    join, spec = (replace(s, folds_share_stream=share_stream) for s in (JOIN, SPEC))
    calm, troubled = Life(spec=spec, join=join), Life(spec=spec, join=join, journal=2_000)
    alarms = []
    for number, batch in enumerate(ids(2_600, seed)):
        again = [type(e)(**{f: getattr(e, f) for f in e.__struct_fields__}) for e in batch]
        calm.feed(*batch)
        troubled.feed(*again)
        if chance.random() < 0.1:
            troubled.commit()
            if chance.random() < 0.15:
                alarms += troubled.alarms
                troubled = troubled.restarted()
        if number % 650 == 649:
            assert troubled.canonical() == calm.canonical()
    assert alarms + troubled.alarms == calm.alarms
    assert troubled.canonical() == calm.canonical()
    assert troubled.pipeline_state() == calm.pipeline_state()
    assert troubled.monitors.families() == calm.monitors.families()
    assert {1.0, -1.0} <= {a.after for a in verdicts(calm)}
    calm.feed(tick(400_000))
    assert set(calm.monitors.models()) <= {fold_name("m", fold) for fold in range(FOLDS)}


def test_under_another_scheme_folds_begin_anew_and_models_without_go_on() -> None:
    life = Life(spec=SPEC, join=JOIN)
    for batch in islice(ids(1_000, 1), 200):
        life.feed(*batch, predict(batch[0].id, "0", batch[0].record_ms, "plain"))
    life.commit()
    again = life.restarted(spec=replace(SPEC, folds="cross-validation, 3 folds"))
    assert set(again.resumed.refused) == {fold_name("m", fold) for fold in range(FOLDS)}
    assert again.monitors.models() == ["plain"]
    assert again.monitors.snapshot("plain") == life.monitors.snapshot("plain")
    again.commit()
    assert again.restarted().monitors.models() == ["plain"]


def test_a_state_from_before_there_were_folds_is_opened_as_it_is() -> None:
    before = Life(spec=replace(SPEC, folds=""), join=replace(JOIN, folds=False))
    for i in range(50):
        before.feed(predict(str(i), "0", i, "m"), label_for_all(str(i), str(i % 2), i))
    before.commit()
    after = before.restarted(spec=SPEC, join=JOIN)
    assert after.resumed.refused == {}
    assert after.canonical() == before.canonical()
    after.feed(predict("x", "0", 60, fold_name("n", 1)), label_for_all("x", "0", 61))
    assert after.monitors.models() == ["m", fold_name("n", 1)]
