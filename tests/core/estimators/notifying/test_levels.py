"""Recent levels of the error, by model and over its folds."""

from __future__ import annotations

from dataclasses import replace
from math import log, sqrt

import pytest

from streamwatch.core.estimators.notifying.model_facts import Level, joined_levels
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import Outcome, fold_name
from streamwatch.core.specs import FadingSpec
from tests.layouts import DEFAULT


def test_the_level_of_folds_is_their_mean_and_counts_the_outcomes_of_the_longest() -> None:
    plain = Level(0.3, 0.01, 900.0, 1_000, 310)
    levels = {
        "plain": plain,
        fold_name("folded", 0): Level(0.1, 0.02, 100.0, 200),
        fold_name("folded", 1): Level(0.2, 0.04, 300.0, 150),
        fold_name("single", 0): Level(0.5, 0.1, 50.0, 60),
    }
    joined = joined_levels(levels)
    assert joined.keys() == {"plain", "folded", "single"}
    assert joined["plain"] == plain, "the errors of a model without folds are kept"
    assert joined["single"] == Level(0.5, 0.1, 50.0, 60)
    error, bound, n_eff, outcomes, errors = joined["folded"]
    assert (error, bound, n_eff) == pytest.approx((0.15, 0.03, 200.0))
    assert (outcomes, errors) == (200, None)


def test_levels_of_models_without_folds_are_those_given() -> None:
    levels = {"a": Level(0.3, 0.01, 900.0, 1_000, 310), "b": Level(0.0, 0.2, 20.0, 20, 0)}
    assert joined_levels(levels) == levels


def test_folds_alone_are_joined_too() -> None:
    levels = {fold_name("m", k): Level(0.1 + 0.2 * k, 0.02, 100.0, 200 + k) for k in range(2)}
    joined = joined_levels(levels)
    assert joined.keys() == {"m"}
    assert joined["m"] == pytest.approx(Level(0.2, 0.02, 100.0, 201))


def test_the_level_is_the_faded_error_with_the_bound_of_hoeffding() -> None:
    """By its definition, of a model and of a fold; errors are counted of the model alone."""
    fading = next(each for each in DEFAULT.forgetting if isinstance(each, FadingSpec))
    monitors = EstimatorSet(replace(DEFAULT, max_models=4))
    losses = [int(i % 7 < 2) for i in range(60)]
    for model in ("m", fold_name("n", 0)):
        monitors.fold([Outcome(model, "a", "ab"[loss], 1_000 * i, 5) for i, loss in enumerate(losses)])
    weights = [fading.alpha**age for age in reversed(range(60))]
    n_eff = sum(weights) ** 2 / sum(weight**2 for weight in weights)
    error = sum(weight * loss for weight, loss in zip(weights, losses, strict=True)) / sum(weights)
    bound = sqrt(log(2 / DEFAULT.confidence_delta) / (2 * n_eff))
    found = monitors.facts.levels(["nobody", "n", "m"])
    assert found.keys() == {"n", "m"}
    assert found["m"] == pytest.approx((error, bound, n_eff, 60, sum(losses)))
    assert found["n"][:4] == pytest.approx((error, bound, n_eff, 60))
    assert found["n"].errors is None
    assert monitors.facts.levels(["nobody"]) == {}
