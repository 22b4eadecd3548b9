"""Reported values beside their formulas, from records made up here."""

from __future__ import annotations

from math import log, nan, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts.readout import (
    document_of,
    headline_document,
    newest_cohorts,
    predictions_until_shown,
    read_cohorts,
    shown_of,
)
from streamwatch.core.estimators.registers.cohorts.register import parameters_of
from streamwatch.core.estimators.registers.cohorts.state import (
    CONFIRMED,
    EARLY,
    FAST_RULE,
    HEADLINES,
    OPEN,
    SETTLED_RULE,
    SLOTS,
    WHOLE_HORIZON,
    State,
    empty,
)
from streamwatch.core.estimators.verdicts.state import BETTER, STAKES, WORSE

DELTA, LEAST = 0.05, 1_000
SPEC = CohortsSpec(16_000, delta=DELTA, outcomes=LEAST)
PARAMETERS = parameters_of(SPEC)
ONE = np.zeros(1, np.int64)
NAMES = ("persistent_at_prediction", "majority")


def state_of(**fields: Any) -> State:
    """State of one model with these fields of its record."""
    state = empty(1, 10)
    for name, value in fields.items():
        state.models[name][0] = value
    return state


def with_opponents(**fields: Any) -> State:
    """State of one model with these fields of both opponents."""
    state = state_of()
    for name, value in fields.items():
        state.models["opponents"][name][0] = value
    return state


def read(state: State, parameters: NDArray[Any] = PARAMETERS) -> Any:
    return read_cohorts(state.models, ONE, parameters)


def document(state: State) -> dict[str, Any]:
    """Document of the model."""
    newest = newest_cohorts(state, ONE)[0]
    return document_of(read(state), shown_of(state.models, ONE), newest, 0, DELTA, LEAST)


@pytest.mark.parametrize("k", [20, 21, 150])
@pytest.mark.parametrize(("middle", "phi"), [(-0.1, 1.7), (0.0, 0.0), (0.15, 4.0)])
def test_the_mean_lead_has_the_bounds_of_the_confidence_sequence(k: int, middle: float, phi: float) -> None:
    """With cohorts of 40 predictions, of which half have a lead of a weight of 1.5, for its blocks."""
    squares, rho2 = 20 * 1.5**2, 1 / 200
    state = with_opponents(
        judged=k, predictions=40 * k, total=40 * k * middle, squares=k * squares, dispersion=phi
    )
    deviation = sqrt(max(phi, 1.0) * squares) / 40  # of the mean lead of a cohort
    width = deviation * sqrt(2 * (k * rho2 + 1) / (k**2 * rho2) * log(sqrt(k * rho2 + 1) / DELTA))
    found = read(state)
    for values, expected in (
        (found.lead, middle),
        (found.lower, max(middle - width, -1.0)),
        (found.upper, min(middle + width, 1.0)),
    ):
        assert values[0].tolist() == pytest.approx([expected] * 2, rel=1e-12)


@pytest.mark.parametrize(("middle", "bounds"), [(0.95, (None, 1.0)), (-0.95, (-1.0, None))])
def test_the_bounds_do_not_leave_what_a_lead_can_be(
    middle: float, bounds: tuple[float | None, float | None]
) -> None:
    found = read(with_opponents(judged=20, predictions=800, total=800 * middle, squares=800))
    for values, bound in zip((found.lower, found.upper), bounds, strict=True):
        assert bound is None or values[0].tolist() == [bound] * 2
        assert (np.abs(values) <= 1.0).all()


@pytest.mark.parametrize(("k", "lead"), [(0, nan), (1, 0.25), (19, 0.25)])
def test_a_lead_needs_one_cohort_and_its_bounds_twenty(k: int, lead: float) -> None:
    found = read(with_opponents(judged=k, predictions=40 * k, total=10 * k, squares=20 * k))
    assert found.lead[0].tolist() == pytest.approx([lead] * 2, nan_ok=True)
    assert np.isnan([found.lower, found.upper]).all()


@pytest.mark.parametrize(("recent", "n"), [(999.0, 1_000), (5_000.0, 5_000)])
@pytest.mark.parametrize(("of_pairs", "worse_needs"), [(False, 4), (True, 2)])
def test_evidence_is_1_where_a_claim_needs_no_more(
    recent: float, n: int, *, of_pairs: bool, worse_needs: int
) -> None:
    parameters = parameters_of(CohortsSpec(16_000, delta=DELTA, outcomes=LEAST, of_pairs=of_pairs))
    state = with_opponents(started=1)
    state.models["recent"] = recent
    for side, needed in ((BETTER, 2 * n / DELTA), (WORSE, worse_needs * n / DELTA)):
        sums = needed * np.array([0.5, 1.5, *[1.0] * 6])
        for j, exponent in enumerate((1.0, 0.5)):
            state.models["opponents"]["sums"][0, j, side] = sums * needed ** (exponent - 1.0)
    found = read(state, parameters)
    assert found.better[0].tolist() == pytest.approx([1.0, 0.5])
    assert found.worse[0].tolist() == pytest.approx([1.0, 0.5])
    state.models["opponents"]["sums"] = 0.1
    found = read(state, parameters)
    assert [*found.better[0], *found.worse[0]] == [0.0] * 4


def test_what_is_known_of_a_verdict() -> None:
    state = with_opponents(
        started=1, verdict=[1, -1], status=[EARLY, CONFIRMED], since_ms=12_500, earliest_ms=[11_500, 0]
    )
    opponents = state.models["opponents"][0]
    opponents["latest_ms"], opponents["changes"], opponents["retracted"] = 13_500, [1, 3], [0, 2]
    opponents["wealth"] = np.arange(8) / 2.0
    state.models["judged"] = 1
    opponents["dispersion"] = [0.0, 2.5]
    found = read(state)
    assert found.verdict[0].tolist() == [1.0, -1.0]
    assert found.confirmed[0].tolist() == [0.0, 1.0]
    assert found.since_seconds[0].tolist() == [12.5, 12.5]
    assert found.earliest_seconds[0].tolist() == pytest.approx([11.5, nan], nan_ok=True)
    assert found.latest_seconds[0].tolist() == [13.5, 13.5]
    assert found.e_value[0].tolist() == [1.75, 1.75]
    assert found.dispersion[0].tolist() == [1.0, 2.5]
    first, second = (document(state)["opponents"][name] for name in NAMES)
    assert first == {
        "retracted": 0,
        "changes": 1,
        "verdict": "better",
        "evidence": {"better": 0.0, "worse": 0.0},
        "status": "early",
        "e_value": 1.75,
        "since_timestamp_seconds": 12.5,
        "earliest_timestamp_seconds": 11.5,
        "latest_timestamp_seconds": 13.5,
        "dispersion": 1.0,
    }
    assert (second["verdict"], second["status"], second["changes"]) == ("worse", "confirmed", 3)
    assert (second["retracted"], second["dispersion"]) == (2, 2.5)
    assert "earliest_timestamp_seconds" not in second


def test_before_evidence_is_kept_nothing_is_said_of_a_verdict() -> None:
    state = with_opponents(wealth=1.0)
    found = read(state)
    for values in (found.verdict, found.confirmed, found.since_seconds, found.e_value, found.dispersion):
        assert np.isnan(values).all()
    assert np.isnan([found.better, found.worse, found.earliest_seconds, found.latest_seconds]).all()
    assert np.isnan(found.age_seconds).all()
    assert document(state) == {
        "judged": 0,
        "provisional": True,
        "waiting": 0,
        "age_changes": 0,
        "left_out": 0,
        "opponents": {name: {"retracted": 0, "changes": 0} for name in NAMES},
    }


@pytest.mark.parametrize(("is_open", "waiting"), [(0, 3), (1, 2)])
def test_cohorts_that_are_closed_and_not_judged_wait(is_open: int, waiting: int) -> None:
    state = state_of(
        first_cohort=40, next_cohort=43, is_open=is_open, judged=40, last_age_ms=7_500, headlines=1
    )
    state.models["age_changes"] = 2
    state.models["cohorts"]["rule"] = WHOLE_HORIZON
    found = document(state)
    assert (found["judged"], found["waiting"], found["age_changes"]) == (40, waiting, 2)
    assert (found["provisional"], found["age_seconds"]) == (False, 7.5)


@pytest.mark.parametrize(
    ("rule", "name", "age_ms", "classes", "shares", "is_immediate"),
    [
        (SETTLED_RULE, "settled", 60_000, 2, (0.99, 0.998), True),
        (SETTLED_RULE, "settled", 60_001, 2, (0.99, 0.998), False),
        (SETTLED_RULE, "settled", 60_000, 3, (0.4, 0.998), False),
        (SETTLED_RULE, "settled", 60_000, 50, (0.2, 0.999), False),
        (FAST_RULE, "complete", 60_000, 50, (1.0, 1.0), True),
        (WHOLE_HORIZON, "horizon", 60_001, 50, (1.0, 1.0), False),
    ],
)
def test_the_newest_cohort_says_its_age_and_the_shares_of_the_kinds_there_are(
    rule: int, name: str, age_ms: int, classes: int, shares: tuple[float, float], *, is_immediate: bool
) -> None:
    state = state_of(next_cohort=901, first_cohort=899, is_open=1, classes=classes, last_age_ms=age_ms)
    state.classes["share"] = 0.01  # of other cohorts
    newest = 900 % SLOTS
    state.models["cohorts"]["rule"] = 99
    state.models["cohorts"]["rule"][0, newest] = rule
    state.models["cohorts"]["age_ms"][0, newest] = age_ms
    of_newest = state.classes["share"][:, 0, newest]
    of_newest[:] = [[0.998, 0.995], [0.991, 0.99], [0.4, 0.99], *[[0.99, 0.99]] * 4, [0.2, 0.999]]
    found = document(state)
    lowest, highest = shares
    assert found["share_labelled"] == {"lowest": lowest, "highest": highest}
    assert (found["age_rule"], found["as_good_as_immediate"]) == (name, is_immediate)
    assert found["age_seconds"] == age_ms / 1000


def most_growth(squares: float, phi: float) -> float:
    """Growth of the best bet on a lead of 5 points by one prediction."""
    ahead, behind = (squares + 0.05) / 2, (squares - 0.05) / 2
    return max(ahead * log(1 + stake) + behind * log(1 - stake) for stake in STAKES.tolist()) / phi


@pytest.mark.parametrize("squares", [0.051, 0.3, 1.0, 2.5])
@pytest.mark.parametrize("phi", [1.0, 3.0])
def test_a_verdict_is_foreseen_by_the_growth_of_the_best_bet(squares: float, phi: float) -> None:
    growth = most_growth(squares, phi)
    assert predictions_until_shown(squares, phi, 8e6) == pytest.approx(log(1 + 8e6 * growth) / growth)


@pytest.mark.parametrize("squares", [0.051, 1.0, 4.9, 5.1, 40.0])
@pytest.mark.parametrize("phi", [1.0, 3e4, 1e9])
@pytest.mark.parametrize("threshold", [1.0, 8e6])
def test_what_is_foreseen_is_a_positive_number_or_undefined(squares, phi, threshold) -> None:
    found = predictions_until_shown(squares, phi, threshold)
    assert found > 0.0 if most_growth(squares, phi) > 0.0 else np.isnan(found)


@pytest.mark.parametrize(("phi", "recent", "n"), [(0.0, 0.0, 1_000), (2.0, 5_000.0, 5_000)])
def test_an_open_verdict_is_foreseen_by_the_rate_of_closed_cohorts(phi: float, recent: float, n: int) -> None:
    """Three cohorts are closed, of 40, 50 and 60 predictions in 1, 2 and 2 seconds; one is open."""
    state = with_opponents(predictions=[1_000.0, 0.0], squares=300.0, dispersion=phi, started=1)
    state.models["recent"], state.models["last_age_ms"] = recent, 9_000
    cohorts = state.models["cohorts"][0]
    for slot, opened_ms, ended_ms, number in (
        (3, 1_000, 2_000, 40),
        (4, 2_000, 4_000, 50),
        (5, 4_000, 6_000, 60),
        (6, 6_000, 2**63 - 1, 0),
    ):
        cohort = cohorts[slot]
        cohort["opened_ms"], cohort["ended_ms"], cohort["predictions"] = opened_ms, ended_ms, number
    growth = most_growth(0.3, max(phi, 1.0))
    until = log(1 + 4 * n / DELTA * growth) / growth
    first, second = (document(state)["opponents"][name] for name in NAMES)
    assert first["five_points_shown_after_seconds"] == pytest.approx(until / 30 + 9)
    assert "five_points_shown_after_seconds" not in second, "no cohort was judged since it changed"
    state.models["opponents"]["verdict"] = -1
    assert "five_points_shown_after_seconds" not in document(state)["opponents"][NAMES[0]]
    state.models["opponents"]["verdict"] = 0
    cohorts["predictions"] = 0
    assert "five_points_shown_after_seconds" not in document(state)["opponents"][NAMES[0]]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"is_there": 0, "verdict": -1}, None),
        ({"status": OPEN, "opponent": 1, "since_ms": 9}, {"verdict": "open"}),
        (
            {"verdict": 1, "status": EARLY, "opponent": 1, "since_ms": 12_500, "latest_ms": 13_500},
            {
                "verdict": "better",
                "status": "early",
                "since_timestamp_seconds": 12.5,
                "latest_timestamp_seconds": 13.5,
            },
        ),
        (
            {"verdict": -1, "status": CONFIRMED, "opponent": 1, "since_ms": 12_500, "earliest_ms": 11_500},
            {
                "verdict": "worse",
                "opponent": "majority",
                "status": "confirmed",
                "since_timestamp_seconds": 12.5,
                "earliest_timestamp_seconds": 11.5,
            },
        ),
    ],
)
def test_the_document_of_a_headline(fields: dict[str, int], expected: dict[str, object] | None) -> None:
    found = np.zeros(1, HEADLINES)[0]
    for name, value in ({"is_there": 1} | fields).items():
        found[name] = value
    assert headline_document(found) == (expected and {"basis": "cohorts"} | expected)
