"""Cohorts of few labels: some hundred outcomes leave what the plain rule says.

Only some predictions in a hundred get a label, so that cohorts of enough predictions are judged within some
hundred outcomes: seconds where Python runs what is compiled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts.state import (
    CLAIMED,
    CONFIRMS,
    FAST_RULE,
    HEADLINE,
    RETRACTED,
    SETTLED_RULE,
    WHOLE_HORIZON,
)
from tests.core.estimators.registers.cohorts.costs import COSTS, utility_of
from tests.core.estimators.registers.cohorts.naive_cohorts import NaiveCohorts
from tests.core.estimators.registers.cohorts.observed import (
    batch_of,
    bytes_of_state,
    part,
    register_of,
)
from tests.core.estimators.registers.cohorts.same_as_plain import differences, rule_of
from tests.core.estimators.registers.cohorts.streams import Outcomes, in_order_of_labels

HOUR_MS = 3_600_000
START = (100.0, 100.0)


@dataclass(frozen=True)
class Sparse:
    """Predictions of which few get a label; the model changes after a part of them. Delays in horizons."""

    predictions: int
    per_horizon: int
    labelled: float
    accuracy: tuple[float, float]
    changes_at: float
    delays: tuple[float, float]
    """Of hits and of errors."""
    later_delays: tuple[float, float] | None = None
    age: int | None = None
    """Number of the fixed age, if it is fixed."""
    seed: int = 1
    outcomes: int = 10_000
    """Those after so many are left out."""
    burst_ms: int = 1
    """Times of predictions are multiples of it."""
    at_horizon: float = 0.0
    """Share of the labels that come exactly at the horizon."""
    unknown: float = 0.0
    """Share of the predictions at which no label was known."""

    def drawn(self) -> Outcomes:
        rng = np.random.default_rng(self.seed)
        n = self.predictions
        gaps = rng.exponential(HOUR_MS / self.per_horizon, n)
        made_at = (1_700_000_000_000 + np.cumsum(gaps).astype(np.int64)) // self.burst_ms * self.burst_ms
        is_later = np.arange(n) >= self.changes_at * n
        label = np.where(rng.random(n) < 0.6, 0, 1)
        hit = rng.random(n) < np.where(is_later, self.accuracy[1], self.accuracy[0])
        before, after = (np.where(hit, *each) for each in (self.delays, self.later_delays or self.delays))
        delay = (rng.exponential(np.where(is_later, after, before)) * HOUR_MS).astype(np.int64)
        comes = (rng.random(n) < self.labelled) & (delay <= 1.01 * HOUR_MS)
        delay = np.where(rng.random(n) < self.at_horizon, HOUR_MS, delay)
        found = in_order_of_labels(made_at, delay, comes, label, np.where(hit, label, 1 - label))
        is_unknown = rng.random(len(found.at)) < self.unknown
        found = found._replace(last=np.where(is_unknown, -1, found.last))
        return Outcomes(*(column[: self.outcomes] for column in found))


STREAMS = {
    "judged at the horizon": Sparse(8_000, 900, 0.06, (0.75, 0.2), 0.55, (0.2, 0.1)),
    "in bursts": Sparse(
        8_000, 900, 0.06, (0.75, 0.2), 0.55, (0.2, 0.1), burst_ms=HOUR_MS // 16 // 5, at_horizon=0.2
    ),
    "judged early": Sparse(36_000, 4_000, 0.1, (0.65, 0.4), 0.6, (0.02, 0.01), seed=2, outcomes=2_500),
    "judged early, and confirmed": Sparse(
        36_000,
        4_000,
        0.05,
        (0.5, 0.5),
        0.6,
        (0.02, 0.3),
        (0.3, 0.02),
        age=9,
        seed=3,
        outcomes=1_380,
        unknown=0.1,
    ),
    "judged early, and retracted": Sparse(
        36_000, 4_000, 0.05, (0.5, 0.5), 0.6, (0.02, 0.3), (0.3, 0.02), age=9, outcomes=1_450, unknown=0.1
    ),
    "labelled at once": Sparse(2_600, 900, 0.998, (0.9, 0.1), 0.75, (1e-4, 2e-4), outcomes=2_530),
}
"""Classes are 0 and 1. Every fifth burst is at the beginning of a bucket of prediction time.

The delays of a model with a fixed age change, so that early shares are wrong.
"""


def say_the_same(
    stream: Sparse, utility: Callable[[object, object], float] | None = None
) -> tuple[set[int], set[int]]:
    """Compare the register with the plain rule after every few outcomes; returns changes and rules seen."""
    outcomes = stream.drawn()
    given = {} if utility is None else {"utility": utility}
    naive = NaiveCohorts(HOUR_MS, predictions=100, start=START, age=stream.age, **given)
    spec = CohortsSpec(
        HOUR_MS,
        outcomes=100,
        age_ms=0 if stream.age is None else naive.ages[stream.age],
        utilities=() if utility is None else (COSTS,),
    )
    register = register_of(spec, start=START)
    if utility is not None:
        register.name_classes(0, COSTS, [str(label) for label in range(10)])
    batch, kinds, rules, done = batch_of(outcomes), set[int](), set[int](), 0
    changed, expected = set[int](), set[int]()
    for i, (at, delay, made, label, predicted, last) in enumerate(
        zip(*(column.tolist() for column in outcomes), strict=True), 1
    ):
        before = naive.verdicts()
        naive.take(at, delay, made, label, predicted, last if last >= 0 else None)
        expected |= {i} if naive.verdicts() != before else set()
        rules |= {rule_of(each.parameters) for each in naive.closed[:1]}
        if i % 23 == 0 or i == len(outcomes.at):
            changes = register.changes_in(part(batch, slice(done, i)))
            kinds |= set(changes["kind"].tolist())
            changed |= set((done + 1 + changes["position"][changes["kind"] != HEADLINE]).tolist())
            assert changed == expected
            whole = i % 115 == 0 or i == len(outcomes.at)
            assert differences(register, naive, short=whole) == [], i
            done = i
    assert naive.judged > 40
    return kinds, rules


@pytest.mark.parametrize(
    ("name", "kinds", "rule"),
    [
        ("judged at the horizon", {CLAIMED}, WHOLE_HORIZON),
        ("in bursts", {CLAIMED}, WHOLE_HORIZON),
        ("judged early", {CLAIMED, CONFIRMS}, SETTLED_RULE),
        ("judged early, and confirmed", {CLAIMED, CONFIRMS}, SETTLED_RULE),
        ("judged early, and retracted", {CLAIMED, RETRACTED}, SETTLED_RULE),
        ("labelled at once", {CLAIMED}, FAST_RULE),
    ],
)
def test_few_outcomes_leave_what_the_plain_rule_says(name: str, kinds: set[int], rule: int) -> None:
    found, rules = say_the_same(STREAMS[name])
    assert found - {HEADLINE} == kinds
    assert rule in rules


def test_few_outcomes_of_a_model_judged_by_costs_leave_what_the_plain_rule_says() -> None:
    found, _ = say_the_same(STREAMS["judged at the horizon"], utility_of(COSTS))
    assert found


def test_a_label_that_is_assumed_counts_as_one_that_came_at_the_horizon() -> None:
    """Whether it is assumed is held beside the label that was known, and must not change that."""
    outcomes = STREAMS["in bursts"].drawn()
    at_horizon = np.arange(len(outcomes.at)) % 3 == 0
    batch = batch_of(outcomes._replace(delay=np.where(at_horizon, HOUR_MS, outcomes.delay)))
    states = []
    for assumed in (np.zeros_like(at_horizon), at_horizon):
        register = register_of(CohortsSpec(HOUR_MS, outcomes=100), start=START)
        register.observe(replace(batch, assumed=assumed))
        states.append(bytes_of_state(register, 0))
    assert states[0] == states[1]


def test_a_label_that_is_assumed_counts_though_its_deadline_a_whole_second_is_after_the_horizon() -> None:
    outcomes = STREAMS["judged at the horizon"].drawn()
    assumed = np.arange(len(outcomes.at)) % 3 == 0
    outcomes = outcomes._replace(delay=np.where(assumed, HOUR_MS + 400, outcomes.delay))
    register = register_of(CohortsSpec(HOUR_MS, outcomes=100), start=START)
    register.observe(replace(batch_of(outcomes), assumed=assumed))
    model = register.taken_in([0]).models[0]
    predicted_ms = outcomes.at - outcomes.delay
    counted = (assumed | (outcomes.delay <= HOUR_MS)) & (predicted_ms >= model["bounds_ms"][0])
    assert model["stretches"]["outcomes"].sum(axis=0)[0] == (counted & (outcomes.last >= 0)).sum()
    assert (counted & assumed).sum() > 50


def test_labels_that_are_assumed_at_the_end_of_a_second_count_for_predictions_made_in_batches() -> None:
    """Each batch is followed, within its second, by what is assumed of the one a horizon before it.

    Half of a batch are hits where no change (1) is wrong, a quarter misses where the majority (0) is right,
    and a quarter hits where it is wrong.
    """
    made_at = 1_700_000_000_600 + np.repeat(np.arange(70), 40) * (HOUR_MS // 16)
    number = np.arange(len(made_at)) % 4
    label = np.where(number == 0, 1, 0)
    delay = np.where(label == 1, 30_000, HOUR_MS + 400)
    predicted = np.where(number < 2, 1, 0)
    outcomes = in_order_of_labels(made_at, delay, np.ones(len(made_at), np.bool_), label, predicted)
    register = register_of(CohortsSpec(HOUR_MS, outcomes=100), start=START)
    register.observe(replace(batch_of(outcomes), assumed=outcomes.delay > HOUR_MS))
    model = register.taken_in([0]).models[0]
    assert model["judged"] > 10
    assert register.read([0]).lead[0].tolist() == [0.5, 0.0]
