"""The compiled register says what the plain rule says, after every outcome."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import isclose

import numpy as np
import pytest

from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts.state import (
    CLAIMED,
    CONFIRMED,
    CONFIRMS,
    EARLY,
    FAST_RULE,
    HEADLINE,
    OPEN,
    RETRACTED,
    SETTLED_RULE,
    SLOTS,
    WHOLE_HORIZON,
)
from tests.core.estimators.registers.cohorts.costs import COSTS, utility_of
from tests.core.estimators.registers.cohorts.drawn import STREAMS, drawn
from tests.core.estimators.registers.cohorts.naive_cohorts import AGES, OPPONENTS, NaiveCohorts
from tests.core.estimators.registers.cohorts.observed import batch_of, part, register_of
from tests.core.estimators.registers.cohorts.streams import Outcomes, Stream, outcomes_of

STATUS = {"": OPEN, "early": EARLY, "confirmed": CONFIRMED, "complete": CONFIRMED}
START = (100.0, 100.0)


def rule_of(parameters) -> int:
    if parameters.status == "early":
        return SETTLED_RULE
    return WHOLE_HORIZON if parameters.age == AGES - 1 else FAST_RULE


def close(own: Iterable[float], plain: Iterable[float]) -> bool:
    """Whether sums are the same but for the order in which they were added."""
    return all(isclose(a, b, rel_tol=1e-6) for a, b in zip(own, plain, strict=True))


def differences(register, naive: NaiveCohorts) -> list[str]:
    """What a model's record says otherwise than the plain rule."""
    m = register.taken_in([0]).models[0]
    cohorts = [*naive.closed, *([naive.current] if naive.current else [])]
    pairs: dict[str, tuple[object, object]] = {
        "judged": (int(m["judged"]), naive.judged),
        "cohorts": (int(m["next_cohort"] - m["first_cohort"]), len(cohorts)),
    }
    for k, cohort in enumerate(cohorts):
        slot = int(m["first_cohort"] + k) % SLOTS
        own = m["cohorts"][slot]
        pairs[f"cohort {k}"] = (
            (int(own["opened_ms"]), int(own["age_ms"]), int(own["rule"])),
            (cohort.opened, naive.ages[cohort.parameters.age], rule_of(cohort.parameters)),
        )
        if cohort.end is not None:
            pairs[f"closed {k}"] = (
                (int(own["ended_ms"]), int(own["predictions"])),
                (cohort.end, cohort.n),
            )
    for j, name in enumerate(OPPONENTS):
        own, plain = m["opponents"][j], naive.opponents[name]
        pairs[f"{name} verdict"] = (
            (int(own["verdict"]), int(own["status"]), int(own["changes"]), int(own["retracted"])),
            (plain.verdict, STATUS[plain.status], plain.changes, plain.retracted),
        )
        pairs[f"{name} started"] = (bool(own["started"]), plain.started)
        if plain.verdict:
            pairs[f"{name} since"] = (int(own["since_ms"]), plain.since)
        earliest, latest = plain.between or (None, 0)
        pairs[f"{name} between"] = ((int(own["earliest_ms"]), int(own["latest_ms"])), (earliest or 0, latest))
        same = isclose(max(float(own["dispersion"]), 1.0), plain.phi, rel_tol=1e-9)
        pairs[f"{name} dispersion"] = (same, True)
        for side, evidence in ((0, plain.better), (1, plain.worse)):
            pairs[f"{name} evidence {side}"] = (close(own["sums"][side].tolist(), evidence.m), True)
        if plain.started:
            pairs[f"{name} wealth"] = (close(own["wealth"][0].tolist(), plain.worse.wealth), True)
    stretches = m["stretches"][: int(m["bounds"])]
    errors = np.column_stack([stretches["weights"], stretches["weight_squares"]])
    if naive.judged % 8 == 0:  # whole lists are slow
        plain_errors = np.array(naive.errors_by_stretch()).reshape(-1, 4)
        pairs["errors"] = (errors.shape == plain_errors.shape and np.allclose(errors, plain_errors), True)
    return [f"{what}: {own}, not {plain}" for what, (own, plain) in pairs.items() if own != plain]


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
    stream = Stream(predictions=6_000)
    outcomes = outcomes_of(stream, 2)
    naive = NaiveCohorts(stream.horizon_ms, predictions=1_000, start=START, age=10)
    spec = CohortsSpec(stream.horizon_ms, outcomes=1_000)
    register = register_of(replace(spec, age_ms=naive.ages[10]), start=START)
    say_the_same(register, naive, outcomes)
