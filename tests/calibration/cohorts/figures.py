"""Figures of simulated worlds: false claims, retractions, delays until "worse", how often the age moves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from tests.calibration.cohorts.label_order import turns_worse
from tests.calibration.cohorts.rule import AGE_CHANGE, CLAIM, CONFIRMED, RETRACTED, STARTED, Told
from tests.calibration.cohorts.scenes import NO_CHANGE
from tests.calibration.cohorts.worlds import World, outcomes_of
from tests.core.estimators.registers.cohorts.naive_cohorts import ages_of
from tests.core.estimators.registers.cohorts.streams import Outcomes

FROM = 0.4
"""Part of a world after which turns of the verdict in the order of labels count: all delays are then seen."""
Judge = Callable[[Outcomes, int], Told]
"""What is calibrated: a rule that takes outcomes and the horizon in milliseconds."""


@dataclass(frozen=True)
class Run:
    """What one run of a world showed; times in the world's unit, NaN: never."""

    worse: float
    worse_since: float
    worse_while_right: float
    """First "worse" before the world changes."""
    better: float
    confirmed: int
    retracted: int
    moves: int
    age: float
    started: float
    dispersion: float
    first_retracted: float
    by_label_order: float
    """In the order of labels: the verdict turns to "worse"; after the first weeks, when it always does."""


@dataclass(frozen=True)
class Figures:
    """Of many runs of a world, as shares and medians."""

    name: str
    runs: int
    predictions: int
    false_worse: float
    false_better: float
    false_worse_by_label_order: float
    confirmed: float
    """Claims a run that were confirmed."""
    retracted: float
    moves: float
    """Changes of the age, in a run."""
    age: float
    started: float
    dispersion: float
    first_false: float
    """Median time of the first claim before the world changes, of runs that have one."""
    first_retracted: float
    said: float
    """Share of runs that say "worse" after the change."""
    delay: float
    delay_by_label_order: float
    since_off: float
    """Median of |since − change|."""


def run_of(world: World, seed: int, judge: Judge) -> tuple[Run, int]:
    """Judge one run; beside it, its number of predictions with labels."""
    outcomes, began = outcomes_of(world, seed)
    told = judge(outcomes, world.horizon_ms)
    opponent = 0 if world.name in NO_CHANGE else 1
    events = told.events
    of_opponent = events[events["opponent"] == opponent]

    def unit(ms: NDArray[np.int64]) -> NDArray[np.float64]:
        return (ms - began) / world.unit_ms

    def first(times: NDArray[np.float64]) -> float:
        return float(times[0]) if times.size else np.nan

    claims = of_opponent[of_opponent["what"] == CLAIM]
    worse, better = claims[claims["side"] == -1], claims[claims["side"] == 1]
    after = worse[unit(worse["at"]) >= world.change]
    started = of_opponent[of_opponent["what"] == STARTED]
    ages = events[events["what"] == AGE_CHANGE]["age"]
    by_label = unit(turns_worse(outcomes))
    run = Run(
        worse=first(unit(after["at"])),
        worse_since=first(unit(after["since"])),
        worse_while_right=first(unit(worse["at"])),
        better=first(unit(better["at"])),
        confirmed=int((of_opponent["what"] == CONFIRMED).sum()),
        retracted=int((of_opponent["what"] == RETRACTED).sum()),
        moves=max(len(ages) - 1, 0),
        age=ages_of(world.horizon_ms)[ages[-1]] / world.unit_ms if ages.size else np.nan,
        started=first(unit(started["at"])),
        dispersion=float(told.phi[opponent]),
        first_retracted=first(unit(of_opponent["at"][of_opponent["what"] == RETRACTED])),
        by_label_order=first(by_label[by_label >= max(world.change, FROM * world.length)]),
    )
    return run, len(outcomes.at)


def median(values: Sequence[float]) -> float:
    """Of those that are defined."""
    defined = [value for value in values if np.isfinite(value)]
    return float(np.median(defined)) if defined else np.nan


def figures_of(world: World, runs: int, judge: Judge, seed: int = 10_000) -> Figures:
    """Run a world so often."""
    told, sizes = zip(*(run_of(world, seed + k, judge) for k in range(runs)), strict=True)
    changes = world.change >= 0
    false_worse = [
        np.isfinite(run.worse_while_right) and not (changes and run.worse_while_right >= world.change)
        for run in told
    ]
    return Figures(
        name=world.name,
        runs=runs,
        predictions=int(np.mean(sizes)),
        false_worse=float(np.mean(false_worse)),
        false_better=float(np.mean([np.isfinite(run.better) for run in told])),
        false_worse_by_label_order=float(
            np.mean([np.isfinite(run.by_label_order) and not changes for run in told])
        ),
        confirmed=float(np.mean([run.confirmed for run in told])),
        retracted=float(np.mean([run.retracted for run in told])),
        moves=float(np.mean([run.moves for run in told])),
        age=median([run.age for run in told]),
        started=median([run.started for run in told]),
        dispersion=median([run.dispersion for run in told]),
        first_false=median([float(np.fmin(run.worse_while_right, run.better)) for run in told]),
        first_retracted=median([run.first_retracted for run in told]),
        said=float(np.mean([np.isfinite(run.worse) for run in told])),
        delay=median([run.worse - world.change for run in told]),
        delay_by_label_order=median([run.by_label_order - world.change for run in told]),
        since_off=median([abs(run.worse_since - world.change) for run in told]),
    )


def as_row(figures: Figures) -> dict[str, object]:
    """For JSON: NaN as None."""
    return {
        key: None
        if isinstance(value, float) and np.isnan(value)
        else round(value, 4)
        if isinstance(value, float)
        else value
        for key, value in asdict(figures).items()
    }
