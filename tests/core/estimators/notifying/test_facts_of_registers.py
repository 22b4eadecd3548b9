"""Facts that registers know are asked of them by the row of the model, and of no other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from streamwatch.core.estimators.notifying.model_facts import ModelFacts
from streamwatch.core.estimators.registers.fleet import WorseList, WorsePair
from streamwatch.core.estimators.registers.kind import HeadlineChange
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

    def headline_verdicts(self, rows: Sequence[int]) -> list[int | None]:
        return [None if row == 0 else -1 for row in rows]

    def headline_changes(self) -> Sequence[HeadlineChange]:
        return ()

    def worse(self, models: Sequence[tuple[str, int]], share: float) -> WorseList:
        pairs = [WorsePair(name, "majority", row + share, "worse") for name, row in models]
        return WorseList(2 * len(models), tuple(pairs))


class Delays:
    """Found the delays of hits moved in row 1, and those of errors in others."""

    def delays_moved(self, row: int) -> tuple[DelayKind, ...]:
        return ("hits",) if row == 1 else ("errors",)


@pytest.fixture(scope="module")
def state() -> EstimatorState:
    """Models in the rows 0, 1 and 2."""
    found = EstimatorState(SPEC)
    assert [found.index.enter(name, 5).row for name in ("by labels", "late", FOLD)] == [0, 1, 2]
    return found


def facts_of(state: EstimatorState, judging: Judging | None, delays: Sequence[Delays] = ()) -> ModelFacts:
    state.explaining, state.judging = delays, judging  # type: ignore[assignment]
    return ModelFacts(state)


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


def test_the_models_that_are_worse_are_those_that_cohorts_judge_and_whose_verdicts_are_not_withheld(
    state: EstimatorState,
) -> None:
    facts = facts_of(state, Judging())
    late = WorsePair("late", "majority", 1.25, "worse")
    assert facts.worse(0.25) == facts.worse(0.25, {"by labels", FOLD}) == WorseList(2, (late,))
    assert facts.worse(0.25, {"late"}) == WorseList(0, ())
    assert facts_of(state, None).worse(0.25) == WorseList(0, ())


def test_the_headlines_of_models_are_those_of_their_rows(state: EstimatorState) -> None:
    """The layout has no headline in the order of labels; none is known of a fold."""
    models = ["by labels", "of nobody", "late", "folded"]
    assert facts_of(state, Judging()).headlines(models) == {"late": -1}
    assert facts_of(state, None).headlines(models) == {}


def test_a_model_is_as_old_as_its_oldest_fold() -> None:
    state = EstimatorState(SPEC)
    for name, first_ms in ((f"m{SEPARATOR}0", 7_000), (f"m{SEPARATOR}1", 6_000), ("n", 5_000)):
        state.index.enter(name, first_ms)
    facts = facts_of(state, None)
    assert [facts.first_ms(model) for model in ("m", "n", "of nobody")] == [6_000, 5_000, 0]
