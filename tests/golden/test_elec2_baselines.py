"""How far one comes on Elec2 with the majority class, and with the last label."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import MonitorsSpec

PREDICTIONS = Path(__file__).parent / "elec2_three_models.csv.gz"


def test_majority_and_persistence_on_elec2_are_those_of_the_literature():
    with gzip.open(PREDICTIONS, "rt") as lines:
        labels = [row["y_true"] for row in csv.DictReader(lines)]
    assert len(labels) == 45_312
    monitors = EstimatorSet(MonitorsSpec())
    monitors.fold([Outcome("m", y, "UP", i, 0) for i, y in enumerate(labels)])
    (family,) = [f for f in monitors.families() if f.name == "baseline_accuracy_ratio"]
    baselines = dict(family.samples)
    assert round(baselines["majority", "landmark", "m"], 6) == 0.575455
    assert round(baselines["persistent", "landmark", "m"], 6) == 0.853303
    assert baselines["persistent", "landmark", "m"] == 38_664 / 45_311
