"""Many independent models in one fold: each is one repetition of an experiment.

Models are fed one after the other, so a table stays in the processor's cache however many repetitions it
holds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.detectors.kind import AlarmRow
from streamwatch.core.estimators.kernel.table import ModelTable
from streamwatch.core.estimators.measures.measures import Totals
from streamwatch.core.specs import (
    AdwinDriftSpec,
    AdwinSpec,
    DetectorSpec,
    FadingSpec,
    ForgettingSpec,
    LandmarkSpec,
    MonitorsSpec,
    PageHinkleySpec,
    SlidingSpec,
)

Ints = NDArray[np.int32]
Losses = NDArray[np.bool_]


def table_of(
    models: int,
    forgetting: tuple[ForgettingSpec, ...] = (),
    detectors: tuple[DetectorSpec, ...] = (),
) -> ModelTable:
    """A table of so many models in rows 0, 1, …, of two classes, with these estimators first.

    Others follow until there are as many of each kind as elsewhere in these tests, so that what one of them
    compiles serves all.
    """
    table = ModelTable(
        MonitorsSpec(
            *_filled_up(forgetting, detectors),
            (),
            max_models=models,
            max_classes=2,
            shadow_max_classes=0,
            opponents=(),
        )
    )
    for _ in range(models):
        table.add_model()
    return table


def _filled_up(
    forgetting: tuple[ForgettingSpec, ...], detectors: tuple[DetectorSpec, ...]
) -> tuple[tuple[ForgettingSpec, ...], tuple[DetectorSpec, ...]]:
    """With as many of each kind as any calibration has; an ADWIN shares the window of the other one.

    Detectors that nobody asked for never alarm, unless they share a window that was asked for.
    """
    if not all(isinstance(each, PageHinkleySpec | AdwinDriftSpec) for each in detectors):
        return forgetting, detectors
    kept = next((f for f in forgetting if isinstance(f, AdwinSpec)), AdwinSpec(delta=1e-300))
    watching = next(
        (d for d in detectors if isinstance(d, AdwinDriftSpec)),
        AdwinDriftSpec("adwin", kept.delta, kept.min_subwindow, kept.clock, kept.dependence),
    )
    window = AdwinSpec(watching.delta, watching.min_subwindow, watching.clock, watching.dependence)
    usual = (LandmarkSpec(), FadingSpec(0.98), FadingSpec(0.97), SlidingSpec(90), window)
    lacking = [
        other
        for kind in (LandmarkSpec, FadingSpec, SlidingSpec, AdwinSpec)
        for other in [f for f in usual if type(f) is kind][sum(type(f) is kind for f in forgetting) :]
    ]
    unused = [
        d
        for d in (PageHinkleySpec(threshold=1e18), watching)
        if not any(isinstance(e, type(d)) for e in detectors)
    ]
    return (*forgetting, *lacking), (*detectors, *unused)


def feed(table: ModelTable, losses: Losses) -> list[AlarmRow]:
    """Feed each model, a row of `losses`, its outcomes; labels are all of class 0. Gives the alarms."""
    models, length = losses.shape
    rows = np.repeat(np.arange(models, dtype=np.int32), length)
    predicted_class = losses.reshape(-1).astype(np.int32)
    return table.fold(rows, np.zeros_like(predicted_class), predicted_class)


def totals_after(losses: Losses, forgetting: tuple[ForgettingSpec, ...]) -> tuple[Totals, ...]:
    """Totals of every repetition, a row of `losses`, under each mechanism."""
    table = table_of(len(losses), forgetting)
    feed(table, losses)
    return tuple(table.totals(np.arange(len(losses)), index) for index in range(len(forgetting)))


def alarms_on(
    detector: DetectorSpec, models: int, length: int, draw: Callable[[int, int], Losses], chunk: int = 250_000
) -> list[list[AlarmRow]]:
    """Alarms of each of `models` repetitions of `length` outcomes, drawn in chunks by (start, number)."""
    table = table_of(models, (), (detector,))
    found: list[list[AlarmRow]] = [[] for _ in range(models)]
    for start in range(0, length, chunk):
        for alarm in feed(table, draw(start, min(chunk, length - start))):
            found[alarm.row].append(alarm)
    return found


def correlated(rng: np.random.Generator, p: float, rho: float, models: int, length: int) -> Losses:
    """Losses of a two-state Markov chain with stationary error p and lag-1 autocorrelation rho.

    With probability rho an outcome repeats the loss before it, else it is drawn anew.
    """
    fresh = rng.random((models, length)) < p
    renewed = rng.random((models, length)) >= rho
    renewed[:, 0] = True
    source = np.maximum.accumulate(np.where(renewed, np.arange(length), 0), axis=1)
    return np.take_along_axis(fresh, source, axis=1)


def binomial_error(share: float, repetitions: int) -> float:
    """Standard error of a share seen over independent repetitions."""
    return float(np.sqrt(share * (1.0 - share) / repetitions))
