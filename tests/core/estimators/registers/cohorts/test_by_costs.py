"""Models that are judged by their costs: evidence by hand, cuts and restores, other tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamwatch.core.estimators.registers.cohorts import CohortsSpec, bytes_of
from streamwatch.core.estimators.registers.cohorts.register import Cohorts
from streamwatch.core.estimators.registers.cohorts.state import (
    BY_COSTS,
    CLAIMED,
    CLASS,
    HELD_OUTCOMES,
    MODEL,
    empty,
)
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.estimators.verdicts.state import BETTER, STAKES, WORSE
from streamwatch.core.records.events import Outcome
from streamwatch.core.specs import UtilitySpec
from tests.core.estimators.registers.cohorts.observed import (
    batch_of,
    bytes_of_state,
    merged,
    part,
    register_of,
)
from tests.core.estimators.registers.cohorts.streams import Outcomes, Stream, in_order_of_labels, outcomes_of
from tests.layouts import BALANCED

COSTS = UtilitySpec("c*", "costs", (("0", "0", 0.0), ("1", "1", 0.0), ("1", "0", 4.0)), 1.0)
OTHER = replace(COSTS, models="d*", other=2.0)
SPEC = CohortsSpec(Stream().horizon_ms, outcomes=1_000, utilities=(COSTS, OTHER))
START = (100.0, 100.0)
NAMES = [str(label) for label in range(10)]


def judged(spec: CohortsSpec, *utilities: UtilitySpec | None) -> Cohorts:
    """Build a register with a model for each utility; None stands for accuracy."""
    register = register_of(spec, len(utilities), START)
    for row, utility in enumerate(utilities):
        if utility is not None:
            register.name_classes(row, utility, NAMES)
    return register


def test_evidence_of_a_cohort_is_its_predictions_times_its_bets_of_their_size() -> None:
    # In the order of predictions, cohorts are of 32 predictions at 40 ms each. In each, no change answers 0
    # where 1 is right once (cost 4), and 1 where 0 is right twice (cost 1), and the model takes 1 for 0 once:
    # of 4, leads are 1, .25 twice, and −1 where no change was right.
    cohorts, size = 41, 32
    phase = np.arange(size * cohorts + 1) % size
    label = np.where((phase == 3) | (phase == 20), 1, 0)
    last = np.where(phase == 3, 0, np.where((phase == 9) | (phase == 17), 1, label))
    predicted = np.where(phase == 20, 0, label)
    at = 1_000_000 + 40 * np.arange(len(phase))
    outcomes = Outcomes(at, np.zeros(len(phase), np.int64), np.arange(len(phase)), label, predicted, last)
    spec = CohortsSpec(16_000, outcomes=1_000, by_prediction=True, utilities=(COSTS,))
    register = register_of(spec, start=(0.0, 0.0))
    register.name_classes(0, COSTS, ["0", "1"])
    register.observe(batch_of(outcomes))
    no_change = register.taken_in([0]).models[0]["opponents"][0]
    assert register.taken_in([0]).models[0]["judged"] == 41
    assert no_change["total"] == pytest.approx(41 * (1 + 0.25 + 0.25 - 1))
    assert no_change["squares"] == pytest.approx(41 * (1 + 0.0625 + 0.0625 + 1))
    better = (1 + STAKES) * (1 + STAKES / 4) ** 2 * (1 - STAKES)
    worse = (1 - STAKES) * (1 - STAKES / 4) ** 2 * (1 + STAKES)
    assert no_change["sums"][BETTER] == pytest.approx(32 * better)
    assert no_change["sums"][WORSE] == pytest.approx(32 * worse)


def test_state_does_not_depend_on_cuts_on_other_models_or_on_restores() -> None:
    utilities = (COSTS, None, OTHER)
    batches = [batch_of(outcomes_of(Stream(predictions=4_000), seed), seed) for seed in range(3)]
    alone = [judged(SPEC, *utilities) for _ in batches]
    for register, batch in zip(alone, batches, strict=True):
        register.observe(batch)
    rng = np.random.default_rng(3)
    keys = np.concatenate([np.sort(rng.random(len(batch.rows))) for batch in batches])
    together = merged(batches, np.argsort(keys, kind="stable"))
    register = judged(SPEC, *utilities)
    cuts = np.sort(rng.integers(0, len(together.rows), 40))
    for number, (first, last) in enumerate(zip([0, *cuts], [*cuts, len(together.rows)], strict=True)):
        register.observe(part(together, slice(first, last)))
        if number % 7 == 0:
            again = judged(SPEC, *utilities)
            for row, state in enumerate(register.snapshots(np.arange(3))):
                again.restore(row, state)
            register = again
    for row in range(3):
        assert register.snapshots(np.array([row]))[0] == alone[row].snapshots(np.array([row]))[0]
        assert bytes_of_state(register, row) == bytes_of_state(alone[row], row)


def test_cohorts_wait_for_the_horizon_where_a_class_with_few_labels_is_dear() -> None:
    """Of 90 predictions a day, one in 200 is of a class that costs 100, and labelled ten times as late.

    It is a fiftieth of the misses, and half of what the model wins; its lead is 0.
    """
    day_ms, days, chance = 86_400_000, 250, np.random.default_rng(1)
    made_ms = 1_700_000_000_000 + np.sort(chance.random(90 * days) * days * day_ms).astype(np.int64)
    is_dear, drawn = chance.random(len(made_ms)) < 0.005, chance.random(len(made_ms))
    answer = drawn < np.where(is_dear, 0.5, 0.005 * 0.5 * 100 / 0.995)
    mean = np.where(is_dear, 30.0, 3.0)
    delay = -np.log(1.0 - chance.random(len(made_ms)) * (1.0 - np.exp(-60.0 / mean))) * mean * day_ms
    comes = np.ones(len(made_ms), np.bool_)
    outcomes = in_order_of_labels(made_ms, delay.astype(np.int64), comes, is_dear.astype(np.int64), answer)
    costs = UtilitySpec("*", "costs", (("0", "0", 0.0), ("1", "1", 0.0), ("1", "0", 100.0)), 1.0)
    register = register_of(CohortsSpec(60 * day_ms, utilities=(costs,)))
    register.name_classes(0, costs, ["0", "1"])
    assert not (register.changes_in(batch_of(outcomes))["kind"] == CLAIMED).any()
    assert register.taken_in([0]).models[0]["opponents"]["started"].all()


def test_a_model_by_accuracy_is_what_it_is_without_others_by_costs() -> None:
    batch = batch_of(outcomes_of(Stream(predictions=4_000), 1))
    plain, beside = register_of(replace(SPEC, utilities=()), 1, START), judged(SPEC, None)
    for register in (plain, beside):
        register.observe(batch)
    assert plain.section == beside.section
    assert plain.snapshots(np.array([0])) == beside.snapshots(np.array([0]))
    assert bytes_of_state(plain, 0) == bytes_of_state(beside, 0)


def test_a_snapshot_goes_on_only_by_the_utility_that_it_was_judged_by() -> None:
    batch = batch_of(outcomes_of(Stream(predictions=3_000), 1))
    for taken in (COSTS, OTHER, None):
        register = judged(SPEC, taken)
        register.observe(batch)
        state = register.snapshots(np.array([0]))[0]
        for now in (COSTS, OTHER, None):
            again = judged(replace(SPEC, utilities=(OTHER, COSTS)), now)  # numbered the other way round
            again.restore(0, state)
            assert again.snapshots(np.array([0]))[0] == (state if again.state.models["observed"][0] else b"")
            assert (again.state.models["observed"][0] > 0) == (now is taken)
            again.observe(batch)
            assert again.taken_in([0]).models["observed"][0] >= len(batch.rows)


def test_a_cleared_row_has_no_costs() -> None:
    batch = batch_of(outcomes_of(Stream(predictions=3_000), 4))
    register, plain = judged(SPEC, COSTS), judged(SPEC, None)
    register.observe(batch)
    register.clear(0)
    for each in (register, plain):
        each.observe(batch)
    assert register.snapshots(np.array([0])) == plain.snapshots(np.array([0]))


def test_a_model_takes_no_more_bytes_than_promised() -> None:
    state = empty(1, 100, np.zeros((1, 3, 3)))
    for classes in (1, 2, 8, 100):
        own = min(classes, len(state.classes)) * CLASS.itemsize + 8 * classes + 4 * (classes + 2)
        taken = MODEL.itemsize + HELD_OUTCOMES.itemsize + BY_COSTS.itemsize + own
        assert taken <= bytes_of(classes, by_costs=True)


def test_estimators_judge_each_model_by_its_own_utility() -> None:
    """The classes of models get their indices in the table as they appear, and after a restore."""
    utilities = (COSTS, UtilitySpec("b*", "balanced"))
    spec = replace(
        BALANCED, max_models=3, utilities=utilities, registers=(CohortsSpec(16_000, utilities=utilities),)
    )

    def outcomes(model: str, start: int) -> list[Outcome]:
        rng = np.random.default_rng(start)
        labels = rng.choice(["0", "1", "x"], 3_000).tolist()
        answers = rng.choice(["0", "1"], 3_000).tolist()
        return [
            Outcome(
                model,
                label,
                answer,
                event_ms=20 * i,
                delay_ms=1,
                label_at_prediction="0",
                made=i,
                resolved_ms=20 * i,
                waited_ms=1,
            )
            for i, (label, answer) in enumerate(zip(labels, answers, strict=True), start)
        ]

    def document(estimators: EstimatorSet, model: str) -> object:
        return estimators.details()[model]["cohorts"]

    whole, halved = EstimatorSet(spec), EstimatorSet(spec)
    models = ("costed", "plain", "balanced")
    for model in models:
        whole.fold(outcomes(model, 0))
        whole.fold(outcomes(model, 3_000))
        halved.fold(outcomes(model, 0))
    again = EstimatorSet(spec)
    for model in models:
        again.restore(halved.snapshot(model))
        again.fold(outcomes(model, 3_000))
        assert again.snapshot(model) == whole.snapshot(model)
        assert document(again, model) == document(whole, model)
    kinds = {model: whole.details()[model].get("utility") for model in models}
    assert kinds == {"costed": "costs", "plain": None, "balanced": "balanced"}
    assert not any("utility" in document(whole, model) for model in models), "it is said once"  # type: ignore[operator]
    leads = [document(whole, model)["opponents"]["persistent_at_prediction"]["lead"] for model in models]  # type: ignore[index]
    assert leads[1] == leads[2] != leads[0]
    assert "headline" in whole.details()["costed"]
    assert "headline" not in whole.details()["balanced"]
