"""Intervals from sampled labels hold at every look where labels alone are far off; lost ones are noticed.

A short form of `python -m tests.calibration.sampled`.
"""

from __future__ import annotations

import pytest

from tests.calibration.sampled.figures import figures_of
from tests.calibration.sampled.worlds import ONES, World
from tests.tiers import by_tier

RUNS = by_tier(fast=2, default=5, everything=40)
BY_NAME = {world.name: world for world in ONES}
UNWEIGHTED_BIAS = {
    "5 %, more where scores are low": -0.1,
    "1 %, all of a segment and 0.6 % of the rest": -0.04,
    "5 %, errors labelled sooner": -0.1,
}


@pytest.mark.parametrize("name", UNWEIGHTED_BIAS)
def test_intervals_hold_at_every_look_where_labels_alone_are_far_off(name: str) -> None:
    figures = figures_of(BY_NAME[name], RUNS)
    assert min(figures.held) >= by_tier(fast=1.0, default=0.8, everything=0.85)
    assert abs(figures.bias) < 0.006
    assert figures.unweighted_bias < UNWEIGHTED_BIAS[name]
    assert figures.width[0] < 0.06
    assert figures.width[0] < 1.05 * figures.width_without_scores
    assert (figures.missing, figures.differ) == (0.0, 0.0)


def test_errors_where_labels_are_seldom_asked_for_are_within_the_interval() -> None:
    """Long after 200 effective labels, there may be none of them yet."""
    figures = figures_of(BY_NAME["50 %, 1 % of a twentieth that has most of the errors"], RUNS)
    assert min(figures.held) >= by_tier(fast=1.0, default=0.8, everything=0.85)


@pytest.mark.parametrize("told", [False, True])
def test_a_third_of_the_labels_lost_is_noticed_and_corrected(told: bool) -> None:  # noqa: FBT001 - a world
    figures = figures_of(World("", by="score", lost=1.0 / 3.0, told=told), RUNS)
    assert figures.missing == 1.0
    assert abs(figures.bias) < 0.008
    assert figures.held[0] >= by_tier(fast=1.0, default=0.8, everything=0.85)
