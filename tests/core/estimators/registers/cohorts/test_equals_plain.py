"""The compiled register says what the plain rule says, after every outcome."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts.state import (
    CLAIMED,
    CONFIRMS,
    HEADLINE,
    RETRACTED,
    SETTLED_RULE,
)
from tests.core.estimators.registers.cohorts.costs import COSTS, utility_of
from tests.core.estimators.registers.cohorts.drawn import STREAMS, drawn
from tests.core.estimators.registers.cohorts.naive_cohorts import NaiveCohorts
from tests.core.estimators.registers.cohorts.observed import batch_of, part, register_of
from tests.core.estimators.registers.cohorts.same_as_plain import differences, rule_of
from tests.core.estimators.registers.cohorts.streams import Outcomes, Stream, outcomes_of

START = (100.0, 100.0)


def say_the_same(register, naive: NaiveCohorts, outcomes: Outcomes) -> None:
    """Tell both outcome by outcome, and compare them after each."""
    batch = batch_of(outcomes)
    for i, (at, delay, made, label, predicted, last) in enumerate(
        zip(*(column.tolist() for column in outcomes), strict=True)
    ):
        naive.take(at, delay, made, label, predicted, last if last >= 0 else None)
        register.observe(part(batch, slice(i, i + 1)))
        assert differences(register, naive) == [], i
    assert naive.judged > 40


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_every_outcome_leaves_what_the_plain_rule_says(name) -> None:
    horizon_ms, outcomes = drawn(name)
    naive = NaiveCohorts(horizon_ms, predictions=1_000, start=START)
    register = register_of(CohortsSpec(horizon_ms, outcomes=1_000), start=START)
    say_the_same(register, naive, outcomes)


@pytest.mark.slow
@pytest.mark.parametrize("classes", [3, 7])
def test_classes_beyond_the_limit_share_a_kind(classes) -> None:
    """They come as one class: that of the index after the last of those with an index of their own."""
    horizon_ms, outcomes = drawn("ten classes")
    label, predicted = outcomes.label, outcomes.predicted
    is_hit = label == predicted
    outcomes = outcomes._replace(
        label=np.minimum(label, classes),
        predicted=np.where(
            is_hit, np.minimum(label, classes), np.where(predicted < classes, predicted, classes + 1)
        ),
        last=np.where(outcomes.last < classes, outcomes.last, classes + 1),
    )
    naive = NaiveCohorts(horizon_ms, predictions=1_000, start=START, most_classes=classes)
    register = register_of(CohortsSpec(horizon_ms, outcomes=1_000), start=START, classes=classes)
    say_the_same(register, naive, outcomes)
    assert SETTLED_RULE not in {rule_of(each.parameters) for each in naive.closed}


@pytest.mark.slow
@pytest.mark.parametrize("name", STREAMS)
def test_every_outcome_of_a_model_judged_by_costs_leaves_what_the_plain_rule_says(name) -> None:
    horizon_ms, outcomes = drawn(name)
    naive = NaiveCohorts(horizon_ms, utility_of(COSTS), predictions=1_000, start=START)
    register = register_of(CohortsSpec(horizon_ms, outcomes=1_000, utilities=(COSTS,)), start=START)
    register.name_classes(0, COSTS, [str(label) for label in range(10)])
    say_the_same(register, naive, outcomes)


def test_streams_judged_by_costs_have_claims_confirmations_and_retractions() -> None:
    kinds: set[int] = set()
    for name in STREAMS:
        horizon_ms, outcomes = drawn(name)
        register = register_of(CohortsSpec(horizon_ms, outcomes=1_000, utilities=(COSTS,)), start=START)
        register.name_classes(0, COSTS, [str(label) for label in range(10)])
        kinds |= set(register.changes_in(batch_of(outcomes))["kind"].tolist())
    assert {CLAIMED, CONFIRMS, HEADLINE} <= kinds


def test_streams_have_claims_confirmations_and_retractions() -> None:
    kinds: set[int] = set()
    for name in STREAMS:
        horizon_ms, outcomes = drawn(name)
        register = register_of(CohortsSpec(horizon_ms, outcomes=1_000), start=START)
        kinds |= set(register.changes_in(batch_of(outcomes))["kind"].tolist())
    assert kinds == {CLAIMED, CONFIRMS, RETRACTED, HEADLINE}


def test_a_fixed_age_is_that_of_the_plain_rule() -> None:
    stream = Stream(predictions=6_000, classes=2, majority=0.6)
    outcomes = outcomes_of(stream, 2)
    naive = NaiveCohorts(stream.horizon_ms, predictions=1_000, start=START, age=10)
    spec = CohortsSpec(stream.horizon_ms, outcomes=1_000)
    register = register_of(replace(spec, age_ms=naive.ages[10]), start=START)
    say_the_same(register, naive, outcomes)
    assert naive.last_age == naive.ages[10]
