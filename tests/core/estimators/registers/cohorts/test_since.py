"""The interval of *since* is that of the definition, whatever the judged cohorts of the stretches were.

The functions are run by Python on records made up here: hundreds of claims of a few stretches take a moment.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np

from streamwatch.core.estimators.registers.cohorts.claims import limits_of
from streamwatch.core.estimators.registers.cohorts.state import BOUNDS, MODEL
from streamwatch.core.estimators.registers.cohorts.trackers import NEVER
from streamwatch.core.estimators.verdicts.state import BETTER, WORSE
from tests.mutants.interpreted import call

MOST_BELOW = 2.25


@dataclass(frozen=True)
class Judged:
    """A stretch of prediction time: its beginning, and the predictions, leads and their squares in it."""

    start_ms: int
    predictions: int
    lead: float
    squares: float


def drawn(chance: random.Random) -> list[Judged]:
    """Stretches of which the later ones have, as a rule, another mean lead than the earlier ones."""
    number = chance.randrange(1, 9)
    change, means = chance.randrange(number + 1), (chance.uniform(-0.3, 0.3), chance.uniform(-0.3, 0.3))
    found, start_ms = [], 1_700_000_000_000
    for k in range(number):
        predictions = chance.randrange(1, 9)
        lead = predictions * means[k >= change] + chance.gauss(0.0, 0.5 * predictions**0.5)
        found.append(Judged(start_ms, predictions, lead, 0.09 * predictions))
        start_ms += chance.randrange(1_000, 60_000)
    return found


def interval_of(
    judged: list[Judged], ends_ms: list[int], sign: int, since_ms: int, dispersion: float
) -> tuple[int, int]:
    """The interval as it is defined, each stretch's likelihood from the whole list; 0: no earliest time."""
    scale = 2 * dispersion * sum(each.squares for each in judged) / sum(each.predictions for each in judged)
    likelihoods = []
    for k in range(len(judged)):
        before, after = (
            (sign * sum(each.lead for each in part), sum(each.predictions for each in part))
            for part in (judged[:k], judged[k:])
        )
        gain = after[0] ** 2 / after[1] if after[0] > 0 else 0.0
        loss = before[0] ** 2 / before[1] if before[0] < 0 else 0.0
        likelihoods.append((gain + loss) / scale)
    near = [k for k, each in enumerate(likelihoods) if each >= max(likelihoods) - MOST_BELOW]
    first, last = near[0], near[-1]
    latest_ms = max((judged[last].start_ms + ends_ms[last]) // 2, since_ms)
    if first == 0:
        return 0, latest_ms
    return min((judged[first - 1].start_ms + judged[first].start_ms) // 2, since_ms), latest_ms


def test_it_holds_all_beginnings_that_are_nearly_as_likely_as_the_likeliest() -> None:
    """Some cohorts are open or wait to be judged: their stretches, the newest, have no leads yet."""
    chance, found = random.Random(1), set[tuple[bool, int, int]]()
    for _ in range(300):
        judged, newer, opponent = drawn(chance), chance.randrange(3), chance.randrange(2)
        side, sign = chance.choice([(BETTER, 1), (WORSE, -1)])
        ended_ms = judged[-1].start_ms + chance.randrange(1_000, 60_000)
        starts_ms = [each.start_ms for each in judged] + [ended_ms + 7_001 * k for k in range(1, newer + 1)]
        model = np.zeros(1, MODEL)[0]
        model["bounds"], model["next_cohort"], model["first_cohort"] = len(starts_ms), 900 + newer, 900
        model["bounds_ms"] = [*starts_ms, *[NEVER] * (BOUNDS - len(starts_ms))]
        for k, each in enumerate(judged):
            model["leads"][k]["predictions"] = each.predictions
            model["leads"][k]["totals"][[opponent, 1 - opponent]] = each.lead, 1.0
            model["leads"][k]["squares"][[opponent, 1 - opponent]] = each.squares, 1.0
        since_ms, dispersion = chance.choice(judged).start_ms, chance.uniform(1.0, 4.0)
        expected = interval_of(judged, [*starts_ms[1:], ended_ms], sign, since_ms, dispersion)
        assert call(limits_of, model, opponent, side, since_ms, dispersion, ended_ms) == expected
        found.add((expected[0] > 0, opponent, sign))
    assert len(found) == 8
