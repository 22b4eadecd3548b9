"""Calibrate verdicts by cohorts of models that are judged by costs, with the register itself.

python -m tests.calibration.cohorts.by_costs [--runs 200]

One label in .15 is of class 1. Missing one costs 1, a false call of class 1 costs .35/.85 of that, and hits
cost nothing: a model that is right with a, whatever the class, has a lead of .15 − .5·(1 − a) over always
answering class 0. So it is as good as the majority at .70, though it is right less often than the majority's
.85, and though single leads are 1, 0 and −.41.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from time import process_time

import numpy as np

from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts.state import CLAIMED, MAJORITY, RETRACTED
from streamwatch.core.specs import UtilitySpec
from tests.calibration.cohorts import worlds
from tests.calibration.cohorts.worlds import World, constant, outcomes_of, step
from tests.core.estimators.registers.cohorts.observed import batch_of, register_of

FALSE_CALL = 0.35 / 0.85
COSTS = UtilitySpec(
    kind="costs", costs=(("0", "0", 0.0), ("1", "1", 0.0), ("1", "0", 1.0), ("0", "1", FALSE_CALL))
)
CHANGED = 100.0


def right_for(lead: float) -> float:
    """Accuracy at which the lead over the majority is this."""
    return 1.0 - (0.15 - lead) / 0.5


EQUAL = World("equal", accuracy=constant(right_for(0.0)))
HELD = (
    EQUAL.but(name="hits late, × 5", volume=step(1.0, 5.0)),
    EQUAL.but(name="errors late, ÷ 10", volume=step(1.0, 0.1), delays=worlds.by_error),
    EQUAL.but(name="delays by class, ÷ 10", volume=step(1.0, 0.1), delays=worlds.by_class),
    EQUAL.but(name="correlation .8, × 5", volume=step(1.0, 5.0), correlation=0.8),
)
"""Worlds in which the model is as good as the majority: every claim is false."""
AHEAD = EQUAL.but(
    name="ahead by .05, hits late, × 5", accuracy=constant(right_for(0.05)), volume=step(1.0, 5.0)
)
FALLS = tuple(
    EQUAL.but(
        name=f"+.05 → {lead:+.2f}",
        accuracy=step(right_for(0.05), right_for(lead)),
        length=220.0,
        change=CHANGED,
    )
    for lead in (-0.05, -0.10)
)


@dataclass(frozen=True)
class Figures:
    """Of some runs: shares of them, and the median delay of "worse" after a change, in days."""

    worse: float
    better: float
    retracted: float
    delay: float


def figures_of(world: World, runs: int, seed: int = 20_000) -> Figures:
    """Run a world so often; after a change, only what is claimed after it counts as worse."""
    worse, better, retracted, delays = [], [], [], []
    for number in range(runs):
        outcomes, began = outcomes_of(world, seed + number)
        register = register_of(CohortsSpec(world.horizon_ms, utilities=(COSTS,)))
        register.name_classes(0, COSTS, ["0", "1"])
        changes = register.changes_in(batch_of(outcomes))
        of_majority = changes[changes["opponent"] == MAJORITY]
        claims = of_majority[of_majority["kind"] == CLAIMED]
        days = (outcomes.at[claims["position"]] - began) / world.unit_ms
        found = days[(claims["after"] == -1) & (days >= world.change)]
        worse.append(found.size > 0)
        better.append(bool((claims["after"] == 1).any()))
        retracted.append(bool((of_majority["kind"] == RETRACTED).any()))
        delays += [found[0] - world.change] if found.size else []
    median = float(np.median(delays)) if delays else np.nan
    return Figures(float(np.mean(worse)), float(np.mean(better)), float(np.mean(retracted)), median)


def main() -> None:
    """Print a row for each world."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.cohorts.by_costs")
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    print("| world | runs | “worse” | “better” | retracted | days until “worse” |")
    print("|---|---|---|---|---|---|")
    for world in (*HELD, AHEAD, *FALLS):
        began = process_time()
        found = figures_of(world, runs)
        delay = f"{found.delay:.1f}" if world.change > 0 else ""
        shares = " | ".join(f"{each:.3f}" for each in (found.worse, found.better, found.retracted))
        print(f"| {world.name} | {runs} | {shares} | {delay} |", flush=True)
        print(f"{process_time() - began:.0f} s of CPU")


if __name__ == "__main__":
    main()
