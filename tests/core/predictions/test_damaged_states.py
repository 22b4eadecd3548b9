"""A register's state with a damaged number is refused by name, or the register goes on."""

from __future__ import annotations

import numpy as np
import pytest

from streamwatch.core.predictions import KINDS, PredictionRegisterKind
from streamwatch.core.predictions.registers import PredictionRegisters
from streamwatch.core.records.events import Outcome, Prediction
from tests.damage import encoded, gone_on
from tests.tiers import by_tier

HOUR = 3_600_000
BEGIN = 1_700_000_000_000
TRIES = by_tier(fast=20, default=40, everything=1_000)


def predictions(start: int, stop: int) -> list[Prediction]:
    """Predictions of two models, some of which had a label asked for."""
    chance = np.random.default_rng(start)
    found: list[Prediction] = []
    for i in range(start, stop):
        score = float(chance.random())
        scores = {"a": score, "b": 1.0 - score}
        at = BEGIN + i * HOUR
        found.append(
            Prediction(
                str(i),
                "mn"[i % 2],
                "ab"[i % 3 % 2],
                at,
                at,
                scores,
                topic="t",
                label_probability=0.5,
                label_requested=bool(i % 2),
            )
        )
    return found


def outcomes(given: list[Prediction]) -> list[Outcome]:
    """Outcomes of every second prediction, an hour later."""
    return [
        Outcome(
            each.model,
            "a",
            each.predicted_class,
            each.record_ms + HOUR,
            HOUR,
            scores=each.scores,
            resolved_ms=each.record_ms + HOUR,
            label_probability=each.label_probability,
        )
        for each in given[::2]
    ]


def observe(registers: PredictionRegisters, start: int, stop: int) -> None:
    """Observe predictions, then outcomes of them, and report."""
    given = predictions(start, stop)
    registers.observe_events(given)
    registers.learn(outcomes(given))
    registers.families()
    assert all(details for details in registers.details().values())
    registers.active_hints()
    registers.unrepresentative()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_of_a_prediction_register(kind: PredictionRegisterKind) -> None:
    chance = np.random.default_rng(1)
    before = PredictionRegisters([kind.spec()])
    observe(before, 0, 400)
    ((section, state),) = before.snapshot().items()
    for _ in range(TRIES):
        other = encoded(state, chance)
        after = PredictionRegisters([kind.spec()])

        def go_on(after: PredictionRegisters = after) -> None:
            observe(after, 400, 500)
            after.snapshot()
            after.forget("m")
            observe(after, 500, 520)

        gone_on(lambda after=after, other=other: after.restore({section: other}), go_on)
