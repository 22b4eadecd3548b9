"""*Since* of verdicts by cohorts: its interval contains the time of the change as often as is said."""

from __future__ import annotations

from tests.calibration.since_figures import SUDDEN, WORLDS, run
from tests.tiers import by_tier

RUNS = by_tier(fast=6, default=16, everything=100)
"""Of each of three worlds."""
LEAST = 0.75
"""Of intervals of 80 %, which hold in about .9 of these runs."""
NAMED = {world.name: world for world in WORLDS}


def test_the_interval_contains_a_sudden_change_and_is_short() -> None:
    names = (SUDDEN.name, "−.10, correlation .5", "−.05, worse once before")
    found = [each for name in names for seed in range(RUNS) if (each := run(NAMED[name], seed)) is not None]
    assert len(found) >= 0.9 * len(names) * RUNS
    assert sum(each.contains for each in found) >= LEAST * len(found)
    assert sorted(each.width for each in found)[len(found) // 2] <= 2.0


def test_it_has_no_first_time_where_the_model_was_worse_all_along() -> None:
    found = [run(NAMED["−.10 from the start"], seed) for seed in range(3)]
    assert all(each is not None and each.contains for each in found)
