"""Verdicts by cohorts of models judged by costs hold where labels are late in a biased way.

A short form of `python -m tests.calibration.cohorts.by_costs`.
"""

from __future__ import annotations

import pytest

from tests.calibration.cohorts.by_costs import AHEAD, FALLS, HELD, figures_of
from tests.tiers import by_tier

RUNS = by_tier(fast=2, default=4, everything=40)


@pytest.mark.parametrize("world", HELD, ids=lambda world: world.name)
def test_a_model_that_costs_as_much_as_the_majority_has_no_verdict(world) -> None:
    figures = figures_of(world, RUNS)
    assert (figures.worse, figures.better) == (0.0, 0.0)


def test_a_model_that_is_right_less_often_but_costs_less_is_better() -> None:
    figures = figures_of(AHEAD, RUNS)
    assert (figures.worse, figures.better, figures.retracted) == (0.0, 1.0, 0.0)


def test_a_model_that_begins_to_cost_more_is_called_worse_soon() -> None:
    figures = figures_of(FALLS[1], RUNS)
    assert figures.worse == 1.0
    assert figures.delay <= 25.0
