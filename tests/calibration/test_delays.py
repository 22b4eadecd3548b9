"""Delays are said to have moved where they do, not where labels come in a rhythm or the volume changes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.calibration.delay_figures import MOVING, STEADY, first_said
from tests.tiers import by_tier

RUNS = by_tier(fast=2, default=4, everything=20)
NAMED = {world.name: world for world in (*MOVING, *STEADY)}


@pytest.mark.parametrize(
    "name",
    ["weekly volume, then × 5", "no labels at weekends, × 5", "labels in weekly batches, × 5, 700 days"],
)
def test_delays_that_keep_their_law_are_not_said_to_have_moved(name: str) -> None:
    assert np.isnan(first_said(NAMED[name], RUNS)).all()


def test_delays_that_become_longer_at_once_are_found_within_a_horizon() -> None:
    found = first_said(NAMED["hits after 15, from day 100 on 22 days"], RUNS)
    assert ((found > 100.0) & (found <= 170.0)).all()
