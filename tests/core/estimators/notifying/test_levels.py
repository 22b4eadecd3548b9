"""Recent levels of the error, by model and over its folds."""

from __future__ import annotations

import pytest

from streamwatch.core.estimators.notifying.model_facts import Level, joined_levels
from streamwatch.core.records.events import fold_name


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
