"""Numbers that papers print, got from outcomes the way an operator gets them."""

from __future__ import annotations

import csv
import gzip
from functools import cache
from pathlib import Path

import pytest

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import MonitorsSpec

pytestmark = pytest.mark.long

HERE = Path(__file__).parent
SPEC = MonitorsSpec()
FIVE_ATTRIBUTES = ("nb@5", "ht@5", "ddm_nb@5", "hat@5", "adwinbag@5", "levbag@5")


def table(name):
    with gzip.open(HERE / f"{name}.csv.gz", "rt") as lines:
        return list(csv.DictReader(lines))


def reported(monitors):
    """{series: {labels: value}} of everything the monitors report."""
    return {family.name: dict(family.samples) for family in monitors.families()}


@pytest.mark.parametrize("forgetting", ["landmark", "sliding:1000"])
def test_the_worked_example_of_bifet_2015_comes_out_to_six_digits(forgetting) -> None:
    """Table 5, as 100 shuffled outcomes: confusion [[40, 30], [5, 25]]. The paper prints four digits."""
    monitors = EstimatorSet(SPEC)
    rows = table("S3_table5_input")
    monitors.fold([Outcome("m", r["y_true"], r["y_pred"], i, 0) for i, r in enumerate(rows)])
    series = reported(monitors)
    expected = {
        "accuracy_ratio": 0.65,
        "kappa": 0.326923,
        "mcc": 0.372839,
        "arithmetic_mean_recall_ratio": 0.702381,
        "geometric_mean_recall_ratio": 0.690066,
        "harmonic_mean_recall_ratio": 0.677966,
        "kappa_majority": -0.166667,
    }
    for name, value in expected.items():
        assert series[name][forgetting, "m"] == pytest.approx(value, abs=5e-7), name
    assert series["baseline_accuracy_ratio"]["random", forgetting, "m"] == pytest.approx(0.48, abs=5e-7)
    assert series["baseline_accuracy_ratio"]["majority", forgetting, "m"] == 0.7


@cache
def elec2():
    """What the monitors report of six classifiers on Elec2, and of two that need no attributes.

    The last: always the same class, and the label before (the first guess is right, as it happens).
    """
    rows = table("elec2_five_attributes")
    monitors = EstimatorSet(SPEC)
    labels = [row["y_true"] for row in rows]
    for name in FIVE_ATTRIBUTES:
        monitors.fold([Outcome(name, row["y_true"], row[name], i, 0) for i, row in enumerate(rows)])
    persistent = ["1", *labels[:-1]]
    monitors.fold(
        [Outcome("persistent", y, p, i, 0) for i, (y, p) in enumerate(zip(labels, persistent, strict=True))]
    )
    return reported(monitors)


@pytest.mark.parametrize("model", FIVE_ATTRIBUTES)
def test_the_baselines_of_elec2_are_those_of_the_literature_whatever_the_model(model) -> None:
    """P(M) = .575455 and P(T) = 38664/45311 = .853303 (Žliobaitė et al. 2015; Bifet et al. 2015)."""
    baselines = elec2()["baseline_accuracy_ratio"]
    assert round(baselines["majority", "landmark", model], 6) == 0.575455
    assert baselines["persistent", "landmark", model] == 38_664 / 45_311
    assert round(baselines["persistent", "landmark", model], 6) == 0.853303
    assert baselines["uninformed", "landmark", model] == 0.5


def test_the_persistent_classifier_is_right_on_elec2_in_85_33_percent() -> None:
    """Žliobaitė et al. 2015, Table 2; it gains nothing on itself, but much on chance."""
    series = elec2()
    assert round(100 * series["accuracy_ratio"]["landmark", "persistent"], 2) == 85.33
    assert series["kappa_persistent"]["landmark", "persistent"] == pytest.approx(0.0, abs=1e-3)
    assert series["kappa"]["landmark", "persistent"] == pytest.approx(0.70, abs=0.005)


@pytest.mark.parametrize("model", FIVE_ATTRIBUTES)
def test_ordinary_classifiers_on_five_attributes_lose_to_the_persistent_one(model) -> None:
    """κ_per < 0 although κ > 0 and κ_m > 0: Žliobaitė et al. 2015, §5, with the time attributes left out."""
    series = elec2()
    assert series["kappa"]["landmark", model] > 0.2
    assert series["kappa_majority"]["landmark", model] > 0.0
    assert series["kappa_persistent"]["landmark", model] < 0.0
    assert series["kappa_plus"]["landmark", model] == 0.0
    rows = table("elec2_five_attributes")
    hits = sum(row["y_true"] == row[model] for row in rows)
    expected = (hits / 45_312 - 38_664 / 45_311) / (1 - 38_664 / 45_311)
    assert series["kappa_persistent"]["landmark", model] == pytest.approx(expected, abs=1e-9)
