"""On Elec2 the clock of predictions places a change where it is, whichever labels come late."""

from __future__ import annotations

import numpy as np
import pytest

from tests.golden.elec2_clocks import DELAYS, EVERY, FIRST, LAST, exchanged, first_alarms, is_bad, placed


@pytest.mark.parametrize("means", DELAYS.values(), ids=DELAYS)
def test_alarms_by_the_clock_of_predictions_stand_nearer_to_the_change(means: tuple[float, float]) -> None:
    found = placed(exchanged(*means))
    by_label, by_prediction = first_alarms(found.label), first_alarms(found.prediction)
    assert len(by_label) == len(by_prediction) == len(range(FIRST, LAST, EVERY))
    assert np.median(by_prediction) < 2.5
    assert np.median(by_label) > np.median(by_prediction) + 0.5
    assert np.mean(is_bad(found.prediction)) > 0.8
