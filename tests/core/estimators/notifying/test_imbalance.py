"""Accuracy misjudges a useful model of rare classes, not a useless one, and not where classes are even."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import MonitorsSpec, UtilitySpec
from tests.layouts import DEFAULT


def stream(rare: float, recall: float, false_alarms: float, outcomes: int = 4_000) -> list[Outcome]:
    rng = random.Random(7)
    made: list[Outcome] = []
    for at in range(outcomes):
        fraud = rng.random() < rare
        flagged = rng.random() < (recall if fraud else false_alarms)
        made.append(Outcome("m", "fraud" if fraud else "ok", "fraud" if flagged else "ok", 1_000 * at, 5))
    return made


def misleads(outcomes: list[Outcome], spec: MonitorsSpec = DEFAULT) -> bool:
    monitors = EstimatorSet(replace(spec, max_models=4))
    monitors.fold(outcomes)
    samples = next(f.samples for f in monitors.families() if f.name == "accuracy_misleads")
    found = monitors.facts.accuracy_misleads("m")
    assert list(samples) == ([(("m",), 1.0)] if found else [])
    return found


def test_a_useful_fraud_model_that_loses_in_accuracy_is_misjudged_by_it() -> None:
    outcomes = stream(0.01, 0.8, 0.02)
    truth, predicted = [o.true_class for o in outcomes], [o.predicted_class for o in outcomes]
    assert accuracy_score(truth, predicted) < accuracy_score(truth, ["ok"] * len(truth))
    assert cohen_kappa_score(truth, predicted) > 0.3
    assert misleads(outcomes)


@pytest.mark.parametrize(
    ("what", "outcomes"),
    [
        ("it flags at random", stream(0.01, 0.02, 0.02)),
        ("it never flags", stream(0.01, 0.0, 0.0)),
        ("classes are even", stream(0.4, 0.9, 0.1)),
    ],
)
def test_a_useless_model_and_even_classes_are_judged_by_accuracy(what: str, outcomes: list[Outcome]) -> None:
    assert not misleads(outcomes), what


@pytest.mark.parametrize("kind", ["balanced", "costs"])
def test_a_model_judged_by_something_else_is_not_misjudged(kind: str) -> None:
    costs = (("fraud", "ok", 100.0),) if kind == "costs" else ()
    utility = UtilitySpec("m", kind, costs, 1.0 if costs else None)  # type: ignore[arg-type]
    assert not misleads(stream(0.01, 0.8, 0.02), replace(DEFAULT, utilities=(utility,)))


def test_a_model_nobody_watches_is_not_misjudged() -> None:
    assert not EstimatorSet(replace(DEFAULT, max_models=1)).facts.accuracy_misleads("nobody")
