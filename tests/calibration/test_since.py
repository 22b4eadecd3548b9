"""*Since* of verdicts by cohorts: its interval contains the time of the change as often as is said."""

from __future__ import annotations

import pytest

from tests.calibration.since_figures import SUDDEN, WORLDS, run
from tests.tiers import by_tier

RUNS = by_tier(fast=8, default=16, everything=100)
LEAST = by_tier(fast=0.6, default=0.7, everything=0.8)
"""Of intervals of 80 %; in so few runs, a share of .9 is below it in less than one of a hundred."""


def named(name: str):
    (world,) = (world for world in WORLDS if world.name == name)
    return world


@pytest.mark.parametrize("name", [SUDDEN.name, "−.10, correlation .5", "−.05, worse once before"])
def test_the_interval_contains_a_sudden_change_and_is_short(name: str) -> None:
    world = named(name)
    found = [each for seed in range(RUNS) if (each := run(world, seed)) is not None]
    assert len(found) >= 0.9 * RUNS
    assert sum(each.contains for each in found) >= LEAST * len(found)
    assert sorted(each.width for each in found)[len(found) // 2] <= 3.0


def test_it_has_no_first_time_where_the_model_was_worse_all_along() -> None:
    found = [run(named("−.10 from the start"), seed) for seed in range(3)]
    assert all(each is not None and each.contains for each in found)
