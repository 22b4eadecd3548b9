"""The kernel against its slow twin, after every outcome."""

from __future__ import annotations

import numpy as np
import pytest

from streamwatch.core.specs import MonitorsSpec
from tests.core.kernel.streams import EVERYTHING, drifting, one_row, table_of
from tests.core.kernel.twin import Twin

FIELDS = ("n", "hits", "repeats", "pairs", "n_eff", "truth", "predicted", "agreed")


def assert_same(trace, t: int, twin: Twin, classes: int) -> None:
    for index, totals in enumerate(trace.totals):
        expected = twin.totals(index, classes)
        for name in FIELDS:
            got = getattr(totals, name)[t]
            np.testing.assert_allclose(got, expected[name], rtol=1e-11, atol=1e-9, err_msg=f"{name} {index} {t}")
    for index in range(len(twin.spec.detectors)):
        got = (trace.statistic[index, t], trace.threshold[index, t])
        np.testing.assert_allclose(got, twin.detector(index), rtol=1e-9, atol=1e-12, err_msg=f"{index} {t}")
    for index, weighting in enumerate(twin.weighting):
        got = (trace.weighted[index, t], trace.weighted_n_eff[index, t])
        np.testing.assert_allclose(got, weighting.read(), rtol=1e-11, err_msg=f"{index} {t}")


def assert_same_alarms(alarms, twins: dict[int, list]) -> None:
    """`twins`: position → alarms of the twin there."""
    by_position: dict[int, list] = {}
    for alarm in alarms:
        by_position.setdefault(alarm.position, []).append(alarm)
    assert set(by_position) == {t for t, found in twins.items() if found}
    for t, found in by_position.items():
        for got, expected in zip(found, twins[t], strict=True):
            assert (got.detector, got.ordinal, got.outcome) == (
                expected.detector,
                expected.ordinal,
                expected.outcome,
            )
            np.testing.assert_allclose(
                (got.statistic, got.threshold, got.before, got.after, got.n_eff),
                (expected.statistic, expected.threshold, expected.before, expected.after, expected.n_eff),
                rtol=1e-9,
            )


@pytest.mark.parametrize(("classes", "seed"), [(2, 1), (30, 2)])
def test_every_estimator_equals_the_twin_at_every_outcome(classes: int, seed: int) -> None:
    n = 2_000
    truth, predicted = drifting(n, classes, seed)
    trace = table_of(EVERYTHING).trace(one_row(n), truth, predicted)
    twin = Twin(EVERYTHING)
    found = {}
    for t in range(n):
        found[t] = twin.update(int(truth[t]), int(predicted[t]))
        assert_same(trace, t, twin, classes)
    assert_same_alarms(trace.alarms, found)
    assert {alarm.detector for alarm in trace.alarms} == set(range(len(EVERYTHING.detectors)))
