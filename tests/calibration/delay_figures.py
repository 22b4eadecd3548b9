"""How often delays are said to have moved: where they keep their law, and where they do not.

    python -m tests.calibration.delay_figures [--runs 10]

Each run is looked at 32 times a horizon. *Said* is the share of runs in which it is said at some look,
*first* the median of the first such time.
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.late_labels.accuracy import estimates_of
from streamwatch.core.estimators.registers.late_labels.observe import geometry_of
from streamwatch.core.estimators.registers.late_labels.ring import LabelRing
from tests.calibration.cohorts import worlds
from tests.calibration.cohorts.scenes import CHANGES, HELD, NOT_HELD
from tests.calibration.cohorts.worlds import World, outcomes_of

LOOKS = 32
"""In a horizon."""
MOVING = tuple(
    world
    for world in (*HELD, *NOT_HELD)
    if world.name.startswith(("three classes", "the same, delays by class", "hits after 15", "delays grow"))
    or world.delays is worlds.with_volume
)
"""Worlds in which the delays of hits or errors do change."""
STEADY = (
    *(world for world in HELD if world not in MOVING and world.unit_ms == worlds.DAY_MS),
    CHANGES[2],
)


def first_said(world: World, runs: int) -> NDArray[np.float64]:
    """When it is first said, in the world's unit, by run; NaN if it never is."""
    geometry = geometry_of(world.horizon_ms)
    ring = LabelRing(runs, geometry)
    drawn = [outcomes_of(world, seed) for seed in range(runs)]
    taken = [0] * runs
    found = np.full(runs, np.nan)
    step_ms = world.horizon_ms // LOOKS
    for look in range(1, int(world.length * world.unit_ms / step_ms) + 1):
        for run, (outcomes, began) in enumerate(drawn):
            end = int(np.searchsorted(outcomes.at, began + look * step_ms, side="right"))
            news = slice(taken[run], end)
            ring.observe(
                np.full(end - taken[run], run, np.int32),
                outcomes.label[news] == outcomes.predicted[news],
                outcomes.at[news],
                outcomes.delay[news],
            )
            taken[run] = end
        said = np.array([any(estimate.moved) for estimate in estimates_of(ring, np.arange(runs))])
        found[said & np.isnan(found)] = look * step_ms / world.unit_ms
    return found


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.delay_figures")
    parser.add_argument("--runs", type=int, default=10)
    runs = parser.parse_args().runs
    print("| world | delays | runs | said | first, day |")
    print("|---|---|---|---|---|")
    for kind, chosen in (("move", MOVING), ("stay", STEADY)):
        for world in chosen:
            found = first_said(world, runs)
            said = found[np.isfinite(found)]
            first = f"{np.median(said):.0f}" if len(said) else "–"
            print(
                f"| {world.name} | {kind} | {runs} | {len(said) / runs:.2f} | {first} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
