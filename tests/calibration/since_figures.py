"""How far *since* is off, by cohorts, beside the time of the change.

    python -m tests.calibration.since_figures [--runs 100]

Each run is a model that is right with .9 (majority .85) until a change, and worse from it on. Of the first
verdict "worse" after the change, *since* is compared with the time of the change.
"""

from __future__ import annotations

import argparse
from statistics import median

from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts.state import CLAIMED
from tests.calibration.cohorts.scenes import CHANGES
from tests.calibration.cohorts.worlds import World, outcomes_of
from tests.core.estimators.registers.cohorts.observed import batch_of, register_of

WORLDS = (
    *CHANGES[1:],
    *(world.but(name=f"{world.name}, correlation .8", correlation=0.8) for world in CHANGES[1:3]),
)


def off_by(world: World, seed: int) -> float | None:
    """*Since* less the time of the change, in days; None without a verdict."""
    outcomes, began = outcomes_of(world, seed)
    register = register_of(CohortsSpec(world.horizon_ms))
    changed = began + int(world.change * world.unit_ms)
    for each in register.changes_in(batch_of(outcomes)):
        if each["kind"] == CLAIMED and each["after"] < 0:
            return (int(each["since_ms"]) - changed) / world.unit_ms
    return None


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.since_figures")
    parser.add_argument("--runs", type=int, default=100)
    runs = parser.parse_args().runs
    print("| lead | said | off by, days: median | 80 % of runs within |")
    print("|---|---|---|---|")
    for world in WORLDS:
        found = sorted(abs(off) for seed in range(runs) if (off := off_by(world, seed)) is not None)
        if found:
            within = found[min(int(0.8 * len(found)), len(found) - 1)]
            print(
                f"| {world.name} | {len(found)} of {runs} | {median(found):.2f} | {within:.2f} |", flush=True
            )


if __name__ == "__main__":
    main()
