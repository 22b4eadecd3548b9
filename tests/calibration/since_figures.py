"""How far *since* is off, by cohorts, and how often its interval contains the time of the change.

    python -m tests.calibration.since_figures [--runs 100] [--worlds TEXT]

Each run is a model whose lead over the majority changes its sign, suddenly or bit by bit. The first verdict
"worse" against the majority after the change is compared with the time at which the expected lead fell below
0. The width of an interval without a first time counts from the first cohort on.
"""

from __future__ import annotations

import argparse
from statistics import median
from typing import NamedTuple

import numpy as np

from streamwatch.core.estimators.registers.cohorts import CohortsSpec
from streamwatch.core.estimators.registers.cohorts.state import CLAIMED, MAJORITY
from tests.calibration.cohorts import worlds
from tests.calibration.cohorts.worlds import Floats, World, constant, outcomes_of, ramp, step
from tests.core.estimators.registers.cohorts.observed import batch_of, register_of

EQUAL = 0.85
SUDDEN = World("−.10, hits late", accuracy=step(0.9, 0.75), length=220.0, change=100.0)
SECONDS = World(
    "−.10, labels within seconds",
    accuracy=step(0.9, 0.75, 43_200.0),
    rate=5.0,
    length=86_400.0,
    horizon=7 * 86_400.0,
    unit_ms=1_000,
    delays=worlds.two_means(3.0, 0.5),
    change=43_200.0,
)


def again(t: Floats) -> Floats:
    """Worse, better and worse again."""
    return np.where(t < 60.0, 0.75, np.where(t < 100.0, 0.9, 0.8))


WORLDS = (
    SUDDEN.but(name="−.05, hits late", accuracy=step(0.9, 0.8)),
    SUDDEN,
    SUDDEN.but(name="−.20, hits late", accuracy=step(0.9, 0.65)),
    SUDDEN.but(name="−.10, all alike", delays=worlds.alike),
    SUDDEN.but(name="−.10, errors late", delays=worlds.by_error),
    SUDDEN.but(name="−.10, heavy-tailed", delays=worlds.heavy),
    SUDDEN.but(name="−.10, no labels at weekends", delays=worlds.without_weekends),
    SUDDEN.but(name="−.10, volume × 5 before", volume=step(1.0, 5.0, 60.0)),
    SUDDEN.but(name="−.05, correlation .5", accuracy=step(0.9, 0.8), correlation=0.5),
    SUDDEN.but(name="−.10, correlation .5", correlation=0.5),
    SUDDEN.but(name="−.20, correlation .5", accuracy=step(0.9, 0.65), correlation=0.5),
    SUDDEN.but(name="−.10, correlation .8", correlation=0.8),
    SUDDEN.but(name="−.05, worse once before", accuracy=again),
    SECONDS,
    SECONDS.but(name="−.10, labels within seconds, correlation .5", correlation=0.5),
    SUDDEN.but(name="−.10 from the start", accuracy=constant(0.75), length=120.0, change=0.0),
    SUDDEN.but(name="−.05 in 30 days", accuracy=ramp(0.9, 0.8, 100.0, 130.0)),
    SUDDEN.but(name="−.10 in 30 days", accuracy=ramp(0.9, 0.75, 100.0, 130.0)),
    SUDDEN.but(name="−.20 in 30 days", accuracy=ramp(0.9, 0.65, 100.0, 130.0)),
)


def fell_at(world: World) -> float:
    """When the expected lead fell below 0 for good."""
    times = np.linspace(0.0, world.length, 200_001)
    ahead = np.flatnonzero(world.accuracy(times) >= EQUAL)
    return float(times[ahead[-1] + 1]) if len(ahead) else 0.0


class Found(NamedTuple):
    """What a run said; times in the world's unit."""

    off: float
    """*Since* less the time of the change."""
    contains: bool
    width: float


def run(world: World, seed: int) -> Found | None:
    """Simulate; None without a verdict."""
    outcomes, began = outcomes_of(world, seed)
    register = register_of(CohortsSpec(world.horizon_ms))
    changed = began + fell_at(world) * world.unit_ms
    for each in register.changes_in(batch_of(outcomes)):
        said = each["kind"] == CLAIMED and each["after"] < 0 and each["opponent"] == MAJORITY
        if said and outcomes.at[each["position"]] >= changed:
            since, earliest, latest = (int(each[f"{name}_ms"]) for name in ("since", "earliest", "latest"))
            first = earliest or int(register.state.models[0]["bounds_ms"][0])
            return Found(
                (since - changed) / world.unit_ms,
                earliest <= changed <= latest,
                (latest - first) / world.unit_ms,
            )
    return None


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m tests.calibration.since_figures")
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--worlds", default="", help="only those whose name contains it")
    asked = parser.parse_args()
    print("| lead | said | off by: median | 80 % of runs within | interval holds | its width: median |")
    print("|---|---|---|---|---|---|")
    for world in WORLDS:
        if asked.worlds not in world.name:
            continue
        found = [each for seed in range(asked.runs) if (each := run(world, seed)) is not None]
        if found:
            off = sorted(abs(each.off) for each in found)
            within = off[min(int(0.8 * len(off)), len(off) - 1)]
            holds = sum(each.contains for each in found) / len(found)
            unit = "d" if world.unit_ms == worlds.DAY_MS else "s"
            print(
                f"| {world.name} | {len(found)} of {asked.runs} | {median(off):.2f} {unit} "
                f"| {within:.2f} {unit} | {holds:.2f} | {median(each.width for each in found):.2f} {unit} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
