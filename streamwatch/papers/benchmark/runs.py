"""Runs that detectors are scored on: losses of a model in a stream whose drifts are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamwatch.papers.benchmark.metrics import (
    Counts,
    Metrics,
    Rule,
    counted,
    episodes_of,
    metrics_of,
)
from streamwatch.papers.detection.candidates import Alarms
from streamwatch.papers.detection.streams import Losses
from streamwatch.papers.result import Measured


@dataclass(frozen=True, slots=True)
class Run:
    """One stream, as a detector sees it."""

    losses: NDArray[np.bool_]
    """(n,): 1 for an outcome that the model got wrong."""
    positions: NDArray[np.int64]
    """(n,): instance (0-based) of the stream that each outcome is of, ascending; some have no outcome."""
    drifts: tuple[tuple[int, int], ...]
    """Instances at which each drift begins and is complete."""
    instances: int
    """Length of the stream."""


@dataclass(frozen=True, slots=True)
class World:
    """Streams of one kind, of which every run is drawn by itself."""

    name: str
    rule: Rule
    runs: tuple[Run, ...]


def stacked(runs: Sequence[Run]) -> Losses:
    """Losses of all runs, (runs, outcomes of the longest); what is missing is filled with hits.

    A detector learns nothing from what follows a run, so its alarms up to there are the same.
    """
    losses = np.zeros((len(runs), max(len(run.losses) for run in runs)), np.bool_)
    for row, run in enumerate(runs):
        losses[row, : len(run.losses)] = run.losses
    return losses


def at_instances(alarms: Alarms, runs: Sequence[Run]) -> Alarms:
    """Instances of alarms by outcome (1-based) on `stacked` runs."""
    return [
        [int(run.positions[alarm - 1]) for alarm in those if alarm <= len(run.losses)]
        for those, run in zip(alarms, runs, strict=True)
    ]


def scored(alarms: Alarms, world: World) -> list[Counts]:
    """Counts of each run, from instances of alarms."""
    return [
        counted(episodes_of(those, run.drifts, world.rule), world.rule)
        for those, run in zip(alarms, world.runs, strict=True)
    ]


def pooled(
    counts: Sequence[Counts], world: World, value: Callable[[Metrics], float], decimals: int = 3
) -> Measured:
    """Metric over all drifts of a world, as the paper pools its trials, with its jackknife error over runs.

    Rates are of all runs' instances together (the paper divides the alarms of all trials by the instances of
    one). A leave-out in which the metric is undefined is left out.
    """
    lengths = [run.instances for run in world.runs]
    total = sum(lengths)
    whole = Counts()
    for each in counts:
        whole = whole.plus(each)
    found = value(metrics_of(whole, world.rule, total))
    if len(counts) < 2:
        return Measured(found, float("nan"), decimals)
    without = np.array(
        [
            value(metrics_of(whole.plus(each, -1), world.rule, total - length))
            for each, length in zip(counts, lengths, strict=True)
        ]
    )
    without = without[~np.isnan(without)]
    if len(without) < 2:
        return Measured(found, 0.0, decimals)
    spread = (len(without) - 1) / len(without) * float(((without - without.mean()) ** 2).sum())
    return Measured(found, float(np.sqrt(spread)), decimals)


def mean_of(values: Sequence[Measured], decimals: int = 3) -> Measured:
    """Mean over worlds that were drawn apart, and its error; those without a value (NaN) are left out."""
    known = [value for value in values if not np.isnan(value.value)]
    if not known:
        return Measured(float("nan"), 0.0, decimals)
    error = float(np.sqrt(sum(value.error**2 for value in known))) / len(known)
    return Measured(sum(value.value for value in known) / len(known), error, decimals)
