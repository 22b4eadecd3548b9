"""The estimators that benches measure row by row keep what the kernel keeps."""

from __future__ import annotations

from random import Random

import pytest

pytest.importorskip("river")

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import MonitorsSpec
from tests.bench.peers.row_estimators import RowEstimators

OUTCOMES = 12_000


def test_rows_say_what_the_kernel_says():
    chance = Random(1)
    rows, monitors = RowEstimators(), EstimatorSet(MonitorsSpec())
    outcomes = []
    for number in range(OUTCOMES):
        right = chance.random() < (0.8 if number < OUTCOMES / 2 else 0.3)
        y = chance.choice("abc")
        guess = y if right else chance.choice("abc")
        rows.update(y, guess)
        outcomes.append(Outcome("m", y, guess, event_ms=number, delay_ms=0))
    monitors.fold(outcomes)
    said = {
        (family.name, *sample[0]): sample[1] for family in monitors.families() for sample in family.samples
    }
    for mechanism, totals in (
        ("landmark", rows.landmark),
        ("fading:0.999", rows.faded),
        ("sliding:1000", rows.sliding),
    ):
        assert said["kappa", mechanism, "m"] == pytest.approx(totals.kappa(), abs=1e-9)
    assert said["kappa", "adwin:0.05", "m"] == pytest.approx(rows.adaptive.kappa(), abs=0.02)  # river's cuts
    verdicts = {
        name: verdict.verdict for name, verdict in rows.verdicts.items() if name != "temporal correction"
    }
    assert {name: said["verdict", "m", name] for name in verdicts} == verdicts
    assert rows.adaptive.outcomes < OUTCOMES
