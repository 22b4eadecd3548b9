"""The past as the state keeps it: each time once, in the finest stretch there is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.metrics.series import Report
from streamwatch.core.records.events import Outcome
from streamwatch.edge.web.ports import Asked
from streamwatch.edge.web.routes.history import PastExporter
from tests.edge.web.http_faces import Model, report_of
from tests.layouts import TINY

NOON_S = 1_760_011_200
HOUR_S = 3_600


def report_with_past(outcomes: list[Outcome], days: int = 30, published_s: int = NOON_S) -> Report:
    """A report of what estimators keep of these outcomes."""
    monitors = EstimatorSet(replace(TINY, max_models=4, history_days=days))
    monitors.fold(outcomes)
    made = report_of({name: Model() for name in monitors.pasts()})
    return replace(made, published_ms=1_000 * published_s, pasts=monitors.pasts(), history_days=days)


def past(report: Report | None, model: str = "m") -> Any:
    body = PastExporter().render(Asked(report, {"model": model}))
    return None if body is None else json.loads(body)


def every(seconds: int, from_s: int, until_s: int, model: str = "m") -> list[Outcome]:
    """Outcomes at equal distances; every fourth is wrong, labels change each time."""
    return [
        Outcome(model, "ab"[n % 2], "ab"[(n + (n % 4 == 0)) % 2], 1_000 * at, 5)
        for n, at in enumerate(range(from_s, until_s, seconds))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("days", [1, 3, 30])
@pytest.mark.parametrize("end_s", [NOON_S, NOON_S + 59 * 60, NOON_S + 23 * HOUR_S + 61])
def test_every_time_is_in_one_stretch_and_nothing_is_lost_within_the_days(days: int, end_s: int) -> None:
    stream = every(60, end_s - 32 * 24 * HOUR_S, end_s)
    reported = past(report_with_past(stream, days, end_s))
    starts, seconds, counts = reported["starts"], reported["seconds"], reported["outcomes"]
    assert starts == sorted(starts)
    ends = [start + length for start, length in zip(starts, seconds, strict=True)]
    assert ends[:-1] == starts[1:], "neither gaps nor overlaps"
    shown = [o for o in stream if o.event_ms >= 1_000 * starts[0]]
    assert sum(counts) == len(shown)
    assert sum(reported["hits"]) == sum(o.predicted_class == o.true_class for o in shown)
    if days > 2:
        assert starts[0] <= end_s - (days * 24 - 2) * HOUR_S
        assert set(seconds) == {60, 600, 3600}
    assert [seconds[-1], starts[-1] <= end_s <= starts[-1] + 120] == [60, True]
    assert reported["accuracy"][0] == pytest.approx(0.75, abs=0.06)
    assert set(reported["persistent"]) == {0.0}


def test_accuracies_are_those_of_the_stretch_alone() -> None:
    right = [Outcome("m", "a", "a", 1_000 * (NOON_S + n), 5) for n in range(30)]
    wrong = [Outcome("m", "a", "b", 1_000 * (NOON_S + 60 + n), 5) for n in range(10)]
    reported = past(report_with_past([*right, *wrong]))
    assert reported["starts"] == [NOON_S, NOON_S + 60]
    assert (reported["outcomes"], reported["hits"], reported["accuracy"]) == ([30, 10], [30, 0], [1.0, 0.0])
    assert reported["persistent"] == [pytest.approx(29 / 30, abs=1e-7), 1.0]


def test_a_time_in_the_far_future_takes_nothing_away() -> None:
    stream = every(60, NOON_S - HOUR_S, NOON_S)
    mistaken = Outcome("m", "a", "a", 253_370_764_800_000, 5)
    assert past(report_with_past([*stream, mistaken]))["starts"] == past(report_with_past(stream))["starts"]


def test_who_has_no_outcome_has_no_past_and_folds_have_one_together() -> None:
    assert past(None) is None
    made = report_with_past(every(60, NOON_S - 600, NOON_S))
    assert past(made, "nobody") is None
    assert past(replace(made, pasts={}))["starts"] == []
    (view,) = made.pasts["m"]
    both = past(replace(made, pasts={"m": (view, view)}))
    assert both["outcomes"] == [2 * n for n in past(made)["outcomes"]]
    assert set(both["persistent"]) == {None}
