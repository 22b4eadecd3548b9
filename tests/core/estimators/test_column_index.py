"""Outcomes in columns are evaluated as the same outcomes one by one are, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from streamwatch.core.estimators import index as column_index
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records import outcome_objects
from streamwatch.core.records.events import Outcome, PairedAnswer
from streamwatch.core.records.outcomes import OUTCOME, OutcomeBatch
from streamwatch.core.records.scores import lists_of
from streamwatch.core.specs import UtilitySpec
from tests.core.estimators.by_name import looking_up_names
from tests.layouts import EVERYTHING, TINY
from tests.tiers import by_tier, few

ROUNDS = by_tier(fast=2, default=3, everything=60)
MODELS = [f"model-{number}" for number in range(9)]
COSTS = UtilitySpec("model-1", "costs", (("class-0", "class-1", 2.0), ("class-1", "class-0", 1.0)), 0.5)


class Numbers:
    """Numbers of names, in whatever order they are met."""

    def __init__(self, chance):
        self.names = ["nobody's"] * chance.randrange(5)

    def of(self, name):
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)


def in_columns(outcomes, models, classes):
    """The same outcomes as the join hands them over."""
    records, scores = np.zeros(len(outcomes), OUTCOME), []
    for record, outcome in zip(records, outcomes, strict=True):
        record["model"] = models.of(outcome.model)
        record["true_class"] = classes.of(outcome.true_class)
        record["predicted_class"] = classes.of(outcome.predicted_class)
        label = outcome.label_at_prediction
        record["label_at_prediction"] = -1 if label is None else classes.of(label)
        record["event_ms"], record["delay_ms"] = outcome.event_ms, outcome.delay_ms
        record["assumed"] = outcome.assumed
        record["scores"] = -1
        if outcome.scores is not None:
            record["scores"] = len(scores)
            scores.append({classes.of(name): score for name, score in outcome.scores.items()})
    lists = lists_of(scores, [-1] * len(scores))
    return OutcomeBatch(records, models.names, classes.names, lists)


def some_outcomes(chance, spec, now):
    """A batch; more models than rows and more classes than are kept, now and then with scores."""
    classes = [f"class-{number}" for number in range(chance.choice([2, 3, spec.max_classes + 3]))]
    models = chance.sample(MODELS, chance.randrange(1, len(MODELS)))
    scored = chance.random() < 0.2
    outcomes = []
    for position in range(chance.choice([0, 1, 7, 120])):
        true = chance.choice(classes)
        predicted = true if chance.random() < 0.6 else chance.choice(classes)
        scores = {true: 0.75, classes[0]: 0.25} if scored and chance.random() < 0.5 else None
        label = chance.choice([None, true, *classes, "never seen"])
        assumed = chance.random() < 0.1
        at, delay = now + position, chance.randrange(10_000)
        outcomes.append(Outcome(chance.choice(models), true, predicted, at, delay, assumed, scores, label))
    return outcomes


def all_of(monitors):
    snapshots = {name: monitors.snapshot(name) for name in monitors.models()}
    return snapshots, monitors.totals(), monitors.families(), monitors.details()


SPECS = {
    "tiny": replace(TINY, max_models=6),
    "everything": EVERYTHING,
    "costs": replace(EVERYTHING, utilities=(COSTS, *EVERYTHING.utilities)),
}


@pytest.mark.parametrize("spec", few(SPECS.values(), 1), ids=few(SPECS, 1))
def test_outcomes_in_columns_leave_the_same_state_and_raise_the_same_alarms(spec):
    alarms = 0
    for seed in range(ROUNDS):
        chance = Random(seed)
        one_by_one, columns = looking_up_names(spec), EstimatorSet(spec)
        models, classes = Numbers(chance), Numbers(chance)
        for step in range(30):
            outcomes = some_outcomes(chance, spec, 1_000 * step)
            batch = in_columns(outcomes, models, classes)
            assert list(batch) == outcomes
            raised = one_by_one.fold(outcomes)
            assert columns.fold(batch) == raised
            alarms += len(raised)
            if one_by_one.models() and chance.random() < 0.2:
                model = chance.choice(one_by_one.models())
                one_by_one.retire(model)
                columns.retire(model)
            if chance.random() < 0.2:  # names were released: other numbers, in another list
                models, classes = Numbers(chance), Numbers(chance)
            if step % 5 == 0:
                assert all_of(columns) == all_of(one_by_one)
        assert all_of(columns) == all_of(one_by_one)
    assert alarms > 0 or not spec.detectors


@pytest.mark.parametrize("most", [16, 1 << 21])
def test_more_classes_than_are_remembered_by_number_make_no_difference(most, monkeypatch):
    monkeypatch.setattr(column_index, "FIRST_SLOTS", 16)
    monkeypatch.setattr(column_index, "MOST_SLOTS", most)
    chance = Random(7)
    spec = replace(TINY, max_models=6)
    one_by_one, columns = looking_up_names(spec), EstimatorSet(spec)
    models, classes = Numbers(chance), Numbers(chance)
    for step in range(60):
        outcomes = some_outcomes(chance, spec, 1_000 * step)
        one_by_one.fold(outcomes)
        columns.fold(in_columns(outcomes, models, classes))
    assert all_of(columns) == all_of(one_by_one)


def test_a_batch_is_a_sequence_of_outcomes():
    outcomes = [
        *some_outcomes(Random(3), TINY, 0),
        Outcome("m", "a", "b", 5, 7, True, {"a": 0.5}, "b"),
        Outcome("n", "a", "a", 6, 8),
    ]
    batch = in_columns(outcomes, Numbers(Random(1)), Numbers(Random(2)))
    assert len(batch) == len(outcomes)
    assert list(batch) == outcomes
    assert batch[-2] == outcomes[-2]
    assert list(batch[1:]) == outcomes[1:]
    assert list(batch.only(np.array([o.model == "n" for o in outcomes]))) == [outcomes[-1]]


def test_outcomes_given_as_objects_are_the_same_in_columns():
    """In all their fields, with names that are models and classes, or said by scores and partners only."""
    segments = {"country": "de", "a": 'é"\\\0'}
    pairs = (PairedAnswer("q", "only a partner's", 2**32 - 1), PairedAnswer("m", "a", 0))
    given = [
        Outcome("m", "a", "b", 5, 7),
        Outcome("n", "m", "a", 9, 0, True, {"x": 0.5, "a": 0.25}, "b", pairs, segments, "y", 2**32 - 1, 8, 3),
        Outcome("m", "a", "a", 2**60, 2**59, segments={"country": "de"}, last_class="a"),
        Outcome("q", "a", "a", -1, 1, False, {"x": 1.0}, "z", pairs[1:], label_probability=0.5),
        Outcome("m", "b", "a", 9, 1, segments=segments, label_probability=0.25, label_requested=True),
        Outcome("m", "b", "a", 9, 1, scores={"b": 0.0}, label_probability=0.25, label_requested=False),
    ]
    batch = outcome_objects.in_columns(iter(given))
    assert list(batch) == given
    assert list(batch[1:4]) == given[1:4]
    assert outcome_objects.in_columns(batch) is batch
    unpaired = given[0], given[2]
    assert outcome_objects.in_columns(unpaired).pairs is None
    assert list(outcome_objects.in_columns(unpaired)) == list(unpaired)
    assert list(outcome_objects.in_columns([])) == []
