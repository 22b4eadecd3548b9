"""Runs on which detectors are scored: losses of a model on a stream with known drifts."""

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
    """Losses of one stream, and its drifts."""

    losses: NDArray[np.bool_]
    """Losses, (n,): True for a wrong prediction."""
    positions: NDArray[np.int64]
    """Instance (0-based) of each outcome, (n,), ascending; not every instance has an outcome."""
    drifts: tuple[tuple[int, int], ...]
    """Instances at which each drift begins and is complete."""
    instances: int
    """Length of the stream."""


@dataclass(frozen=True, slots=True)
class World:
    """Independently drawn runs of one kind of stream."""

    name: str
    rule: Rule
    runs: tuple[Run, ...]


def stacked(runs: Sequence[Run]) -> Losses:
    """Stack the losses of all runs, (runs, outcomes of the longest); shorter runs are padded with hits.

    The padding does not change a detector's alarms before it.
    """
    losses = np.zeros((len(runs), max(len(run.losses) for run in runs)), np.bool_)
    for row, run in enumerate(runs):
        losses[row, : len(run.losses)] = run.losses
    return losses


def at_instances(alarms: Alarms, runs: Sequence[Run]) -> Alarms:
    """Convert alarms on `stacked` runs from outcomes (1-based) to instances, without those in the padding."""
    return [
        [int(run.positions[alarm - 1]) for alarm in those if alarm <= len(run.losses)]
        for those, run in zip(alarms, runs, strict=True)
    ]


def scored(alarms: Alarms, world: World) -> list[Counts]:
    """Count the alarms of each run, given as instances."""
    return [
        counted(episodes_of(those, run.drifts, world.rule), world.rule)
        for those, run in zip(alarms, world.runs, strict=True)
    ]


def pooled(
    counts: Sequence[Counts], world: World, value: Callable[[Metrics], float], decimals: int = 3
) -> Measured:
    """Compute a metric over all drifts of a world, as the paper pools trials, with its jackknife error.

    Rates refer to the instances of all runs (the paper divides the alarms of all trials by the instances of
    one). Jackknife samples in which the metric is undefined are ignored.
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
    """Mean over independently drawn worlds, and its error; undefined values (NaN) are left out."""
    known = [value for value in values if not np.isnan(value.value)]
    if not known:
        return Measured(float("nan"), 0.0, decimals)
    error = float(np.sqrt(sum(value.error**2 for value in known))) / len(known)
    return Measured(sum(value.value for value in known) / len(known), error, decimals)
