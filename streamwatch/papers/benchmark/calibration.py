"""False alarms of detectors at defaults while no error rises, by dependence of losses."""

from __future__ import annotations

from typing import Final

import numpy as np

from streamwatch.papers.benchmark.contestants import OURS, at_defaults
from streamwatch.papers.benchmark.simulated import Simulated
from streamwatch.papers.result import Cell, Effort, Table, over_runs

ERRORS: Final = (0.05, 0.2)
DAY: Final = 1_440
"""Outcomes per day: one a minute."""
SWING: Final = 0.3
"""Amplitude of the daily cycle, as a share of the error."""
OUTCOMES: Final = 50_000
"""Outcomes of each stream for the daemon's detectors; others get the first fifth."""


def worlds(error: float) -> tuple[Simulated, ...]:
    """Build streams whose error does not rise: with correlations 0, .5 and .8, and with a daily cycle."""
    return (
        Simulated(error, error),
        Simulated(error, error, rho=0.5),
        Simulated(error, error, rho=0.8),
        Simulated(error, error, day=DAY, swing=SWING),
    )


def calibration_tables(effort: Effort) -> list[Table]:
    """Count the false alarms of all detectors at defaults."""
    candidates = at_defaults(effort.moa)
    headings, rows = ["detector"], [list[Cell]([f"{each.library} {each.name}"]) for each in candidates]
    length = effort.size(OUTCOMES, OUTCOMES // 10)
    for error in ERRORS:
        for world, how in zip(
            worlds(error), ("ρ = 0", "ρ = .5", "ρ = .8", f"days ± {SWING:.0%}"), strict=True
        ):
            effort.progress(f"calibration: error {error:g}, {how}")
            headings.append(f"{error:g}, {how}")
            full = np.stack(
                [
                    world.still(length, effort.rng("calibration", world.name, seed))
                    for seed in range(effort.seeds)
                ]
            )
            part = np.ascontiguousarray(full[:, : length // 5])
            for row, each in zip(rows, candidates, strict=True):
                losses = full if each.library == OURS else part
                rates = [1e5 * len(alarms) / losses.shape[1] for alarms in each.alarms(losses)]
                row.append(over_runs(rates, 1))
    return [
        Table(
            "False alarms in 100,000 outcomes at defaults, where no error rises",
            tuple(headings),
            tuple(tuple(row) for row in rows),
            f"By error and by how losses depend on one another: ρ is the correlation of a loss with the "
            f"one before; days: the error follows a daily cycle of {DAY:,} outcomes, {SWING:.0%} up and "
            f"down. {effort.seeds} streams, of {length:,} outcomes for the daemon's detectors and "
            f"{length // 5:,} for the others; 0.0 means that there was none in all of them.",
        )
    ]
