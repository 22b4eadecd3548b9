"""When a model's cohorts are looked after next, run by Python on records made up here."""

from __future__ import annotations

import numpy as np
import pytest

from streamwatch.core.estimators.registers.cohorts import life
from streamwatch.core.estimators.registers.cohorts.state import CONFIRMED, EARLY, MODEL, PARAMETERS
from streamwatch.core.estimators.registers.cohorts.trackers import NEVER
from tests.mutants.interpreted import call


@pytest.mark.parametrize("opponent", [0, 1])
@pytest.mark.parametrize(("status", "due_ms"), [(EARLY, 15_000), (CONFIRMED, 40_000)])
def test_an_early_claim_is_looked_at_once_its_predictions_are_a_horizon_old(
    opponent: int, status: int, due_ms: int
) -> None:
    """Otherwise nothing is due before the open cohort can close."""
    model, parameters = np.zeros(1, MODEL)[0], np.zeros(1, PARAMETERS)[0]
    parameters["horizon_ms"] = 10_000
    model["clock_ms"], model["closes_ms"], model["is_open"], model["next_cohort"] = 12_000, 40_000, 1, 1
    model["tracked_ms"] = model["tracked_made"] = model["settles_ms"] = NEVER
    model["opponents"]["status"][opponent], model["opponents"]["to_ms"][opponent] = status, 5_000
    call(life.schedule, model, parameters)
    assert model["due_ms"] == due_ms
    assert model["claims"] == (status == EARLY)
