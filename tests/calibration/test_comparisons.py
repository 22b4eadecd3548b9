"""By cohorts, no challenger is judged falsely where the order of labels does it every time."""

from __future__ import annotations

import pytest

from tests.calibration.comparison_figures import GAINS, SCENES, Found, Scene, run


def found_in(scene: Scene, runs: int) -> Found:
    found = Found()
    for seed in range(100, 100 + runs):
        run(scene, seed, found)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "delays by class, volume × 5",
        "champion's errors labelled sooner, volume ÷ 10",
        "by costs: champion's errors labelled sooner, volume × 5",
    ],
)
def test_no_verdict_is_false_when_traffic_changes(name: str) -> None:
    (scene,) = (each for each in SCENES if each.name == name)
    found = found_in(scene, 3)
    assert (found.cohorts, found.labels) == (0, 3)


@pytest.mark.slow
@pytest.mark.parametrize("scene", GAINS[-2:], ids=lambda scene: scene.name)
def test_a_challenger_that_is_better_is_said_to_be(scene) -> None:
    found = found_in(scene, 3)
    assert len(found.cohorts_days) == 3
    assert max(found.cohorts_days) < 40.0
