"""Scores in columns are evaluated as those of the same outcomes one by one are, bit for bit."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from streamwatch.core.estimators.registers.probabilities import probabilities_under
from streamwatch.core.estimators.registers.segments import SegmentsSpec
from streamwatch.core.estimators.set import EstimatorSet
from streamwatch.core.records.events import segments_text
from streamwatch.core.records.outcomes import OUTCOME, SEGMENTS_FROM, OutcomeBatch
from streamwatch.core.records.scores import lists_of
from tests.core.estimators.by_name import looking_up_names
from tests.core.estimators.test_column_index import MODELS, Numbers, all_of
from tests.layouts import DEFAULT, TINY
from tests.tiers import by_tier, few

ROUNDS = by_tier(fast=2, rotating=2, default=4, everything=60)
CLASSES = [f"class-{number}" for number in range(20)]
"""More than `shadow_max_classes`, and than the tiny layout distinguishes."""
SEGMENTS = [segments_text({"country": value}) for value in ("de", "fr")]


def beside(spec):
    """The layout with what looks at scores and segments, and fewer rows than models."""
    registers = (probabilities_under(spec.forgetting, auc_outcomes=30), SegmentsSpec())
    return replace(spec, max_models=6, registers=registers)


SPECS = {"tiny": beside(TINY), "default": beside(DEFAULT)}


def some_batch(chance, now, models, classes):
    """A batch: most outcomes have scores, of some classes only, in one order or another."""
    count = chance.choice([0, 1, 7, 120])
    known = CLASSES[: chance.choice([2, 3, 8, 20])]
    names = chance.sample(CLASSES, chance.choice([1, 2, 3, 7, 18]))
    lacking = chance.choice([0.0, 0.3, 0.95])
    scores = []
    for _ in range(count + 3):
        listed = chance.sample(names, len(names)) if chance.random() < 0.5 else names
        given = {classes.of(name): chance.random() for name in listed if chance.random() >= lacking}
        scores.append({number: score / sum(given.values()) for number, score in given.items()})
    segments = np.array([chance.randrange(-1, 2) for _ in scores], np.int32)
    records = np.zeros(count, OUTCOME)
    some = chance.sample(MODELS, chance.randrange(1, len(MODELS)))
    numbers = chance.sample(range(count + 3), count)
    for position, record in enumerate(records):
        true = chance.choice(known)
        record["model"] = models.of(chance.choice(some))
        record["true_class"] = classes.of(true)
        record["predicted_class"] = classes.of(true if chance.random() < 0.6 else chance.choice(known))
        label = chance.choice([None, true, *known, "never seen"])
        record["label_at_prediction"] = -1 if label is None else classes.of(label)
        record["event_ms"], record["delay_ms"] = now + position, chance.randrange(10_000)
        record["assumed"] = chance.random() < 0.1
        number = numbers[position]
        unscored = -1 if segments[number] < 0 else SEGMENTS_FROM + segments[number]
        record["scores"] = number if scores[number] and chance.random() < 0.9 else unscored
    return OutcomeBatch(records, models.names, classes.names, lists_of(scores, segments), SEGMENTS)


@pytest.mark.parametrize("spec", few(SPECS.values(), 1), ids=few(SPECS, 1))
def test_scores_in_columns_leave_the_same_state_and_raise_the_same_alarms(spec):
    given, used = 0, 0.0
    for seed in range(ROUNDS):
        chance = Random(seed)
        one_by_one, columns = looking_up_names(spec), EstimatorSet(spec)
        models, classes = Numbers(chance), Numbers(chance)
        for step in range(30):
            batch = some_batch(chance, 1_000 * step, models, classes)
            raised = one_by_one.fold(list(batch))
            if chance.random() < 0.1:  # a batch that is looked at outcome by outcome in between
                assert columns.fold(list(batch)) == raised
            else:
                cut = chance.randrange(len(batch) + 1)
                assert columns.fold(batch[:cut]) + columns.fold(batch[cut:]) == raised
            if one_by_one.models() and chance.random() < 0.2:
                model = chance.choice(one_by_one.models())
                one_by_one.retire(model)
                columns.retire(model)
            if chance.random() < 0.2:
                models, classes = Numbers(chance), Numbers(chance)
            if chance.random() < 0.1:
                resumed = EstimatorSet(spec)
                for model in columns.models():
                    resumed.restore(columns.snapshot(model))
                resumed.restore_totals(columns.totals())
                columns = resumed
            assert all_of(columns) == all_of(one_by_one)
            given += sum(outcome.scores is not None for outcome in batch)
        families = {family.name: family.samples for family in one_by_one.families()}
        used += sum(value for _, value in families.get("scored_outcomes_total", ()))
    assert given > 500
    assert used > 0
