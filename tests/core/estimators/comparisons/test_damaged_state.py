"""A state of comparisons with a damaged number is refused by name, or they go on."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from streamwatch.core.estimators.comparisons.set import ComparisonSet
from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.records.events import Outcome, PairedAnswer
from tests.core.estimators.comparisons.test_state import SPECS
from tests.damage import encoded, gone_on
from tests.tiers import by_tier

TRIES = by_tier(fast=20, default=40, everything=1_000)
MINUTE = 60_000


def paired(start: int, stop: int) -> list[Outcome]:
    """Outcomes of three models, with what the others answered."""
    chance = np.random.default_rng(start)
    found: list[Outcome] = []
    for i in range(start, stop):
        own, other, third = ("abc"[(i + k) % 3] for k in range(3))
        true_class, predicted_class, *answers = ("xyz"[int(k)] for k in chance.integers(3, size=4))
        pairs = tuple(
            PairedAnswer(name, answer, made=i + 1)
            for name, answer in zip((other, third), answers, strict=True)
        )
        at = 1_700_000_000_000 + i * MINUTE
        found.append(
            Outcome(own, true_class, predicted_class, at, MINUTE, pairs=pairs, made=i + 1, resolved_ms=at)
        )
    return found


@pytest.mark.parametrize("name", SPECS)
def test_of_comparisons(name: str) -> None:
    spec = replace(SPECS[name], registers=(CohortsSpec(),))
    chance = np.random.default_rng(1)
    before = ComparisonSet(spec)
    before.fold(paired(0, 600))
    state = before.snapshot()
    for _ in range(TRIES):
        other = encoded(state, chance)
        after = ComparisonSet(spec)

        def go_on(after: ComparisonSet = after) -> None:
            after.fold(paired(600, 800))
            after.families()
            after.snapshot()
            after.retire("a")
            after.fold(paired(800, 850))

        gone_on(lambda after=after, other=other: after.restore(other), go_on)
