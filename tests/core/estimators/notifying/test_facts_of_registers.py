"""Facts that registers know are asked of them by the row of the model, and of no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from streamwatch.core.estimators.notifying.model_facts import ModelFacts
from streamwatch.core.estimators.state import EstimatorState
from streamwatch.core.records.events import SEPARATOR, Confirmation, DelayKind
from tests.layouts import TINY

SPEC = replace(TINY, max_models=3)
FOLD = f"folded{SEPARATOR}0"


class Judging:
    """Confirms every alarm, and gives no headline to one of the models; what it says depends on the row."""

    def gives_headline(self, model: str) -> bool:
        return model != "by labels"

    def confirmation_expected_ms(self, row: int, at_ms: int) -> int | None:
        return at_ms + 100 * row

    def confirmation(self, row: int, at_ms: int, rise: float) -> Confirmation | None:
        return Confirmation(is_confirmed=True, since_ms=at_ms - row, before=0.0, after=rise)


class Delays:
    """Found the delays of hits moved in row 1, and those of errors in others."""

    def delays_moved(self, row: int) -> tuple[DelayKind, ...]:
        return ("hits",) if row == 1 else ("errors",)


@pytest.fixture(scope="module")
def state() -> EstimatorState:
    """Models in the rows 0, 1 and 2."""
    found = EstimatorState(SPEC)
    assert [found.index.enter(name, 5)[0] for name in ("by labels", "late", FOLD)] == [0, 1, 2]
    return found


def facts_of(state: EstimatorState, judging: Judging | None, delays: Sequence[Delays] = ()) -> ModelFacts:
    return ModelFacts(SPEC, state.table, state.index, delays, judging)


def test_an_alarm_is_confirmed_by_the_row_of_its_model_where_cohorts_judge_it(state: EstimatorState) -> None:
    facts = facts_of(state, Judging())
    assert facts.confirmation_expected_ms("late", 7_000) == 7_100
    assert facts.confirmation("late", 7_000, 0.25) == Confirmation(
        is_confirmed=True, since_ms=6_999, before=0.0, after=0.25
    )


@pytest.mark.parametrize("model", ["by labels", "of nobody", "folded"])
def test_no_other_alarm_is_or_will_be_confirmed(state: EstimatorState, model: str) -> None:
    facts = facts_of(state, Judging())
    assert facts.confirmation_expected_ms(model, 7_000) is None
    assert facts.confirmation(model, 7_000, 0.25) is None


def test_without_a_register_that_judges_nothing_is_confirmed(state: EstimatorState) -> None:
    facts = facts_of(state, None)
    assert facts.confirmation_expected_ms("late", 7_000) is None
    assert facts.confirmation("late", 7_000, 0.25) is None


def test_delays_are_those_of_the_row_of_the_model_and_none_have_moved_without_one(
    state: EstimatorState,
) -> None:
    facts = facts_of(state, None, [Delays()])
    assert facts.delays_moved("late") == ("hits",)
    assert facts.delays_moved("by labels") == ("errors",)
    assert facts.delays_moved("of nobody") == facts.delays_moved("folded") == ()
    assert facts_of(state, None).delays_moved("late") == ()
