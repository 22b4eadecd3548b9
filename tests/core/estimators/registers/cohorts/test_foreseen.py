"""How long a verdict takes is foreseen about right, by how long it takes in streams drawn at random."""

from __future__ import annotations

from dataclasses import replace
from statistics import median

import numpy as np
import pytest

from streamwatch.core.estimators.names import Classes, Slice
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts.readout import predictions_until_shown
from tests.core.estimators.registers.cohorts.observed import batch_of, part, register_of
from tests.core.estimators.registers.cohorts.streams import Stream, outcomes_of


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.2, 0.4])
def test_a_lead_of_five_points_takes_about_as_many_predictions_as_foreseen(share: float) -> None:
    # Shiryaev-Roberts sums of single bets on leads drawn with this share of leads other than 0.
    threshold, stakes = 8e6, np.array([0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8])
    rng, taken = np.random.default_rng(1), []
    for _ in range(60):
        leads = rng.choice([1, -1, 0], 60_000, p=[(share + 0.05) / 2, (share - 0.05) / 2, 1 - share])
        sums = np.zeros(len(stakes))
        for i, lead in enumerate(leads.tolist()):
            sums = (sums + 1.0) * (1.0 + stakes * lead)
            if sums.mean() >= threshold:
                taken.append(i)
                break
    assert median(taken) == pytest.approx(predictions_until_shown(share, 1.0, threshold), rel=0.3)


def test_smaller_mean_squares_than_the_lead_say_nothing() -> None:
    assert np.isnan(predictions_until_shown(0.05, 1.0, 8e6))
    assert np.isnan(predictions_until_shown(float("nan"), 1.0, 8e6))


def test_an_open_verdict_is_foreseen_from_the_rate_of_predictions_and_a_held_one_is_not() -> None:
    classes = Classes(4)
    for name in ("0", "1"):
        classes[name]
    stream = Stream(predictions=20_000, classes=2, majority=0.5, accuracy=(0.5, 0.5))
    seconds = []
    for faster in (1, 4):
        some = replace(stream, per_horizon=faster * stream.per_horizon)
        register = register_of(CohortsSpec(some.horizon_ms))
        register.observe(batch_of(outcomes_of(some, 1)))
        document = register.details([Slice("m", 0, classes)])(0)["cohorts"]
        seconds.append(document["opponents"]["majority"]["five_points_shown_after_seconds"])
    assert seconds[0] / seconds[1] == pytest.approx(4.0, rel=0.3)
    # A tenth of a second a prediction: with half of the leads not 0, some 6,000 of them.
    assert seconds[1] > stream.horizon_ms / 1_000 / stream.per_horizon * 1_000
    register = register_of(CohortsSpec(stream.horizon_ms, outcomes=1_000), start=(100.0, 100.0))
    better = batch_of(outcomes_of(replace(stream, accuracy=(0.9, 0.9)), 1))
    register.observe(part(better, slice(0, 10_000)))
    opponents = register.details([Slice("m", 0, classes)])(0)["cohorts"]["opponents"]
    assert opponents["majority"]["verdict"] == "better"
    assert "five_points_shown_after_seconds" not in opponents["majority"]
