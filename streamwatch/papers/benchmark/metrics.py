"""Metrics of drift detectors by Cerqueira, Gomes, Heyden, Pfahringer, Bifet 2026, and runs that are scored.

An *episode* is one drift with the alarms that are attributed to it. An alarm is true from `early` instances
before the drift begins to `max_delay` after it is complete, both ends included; every other alarm of the
episode is false. Every true alarm counts (the metrics count alarms, not drifts), but the delay is that of the
first one, from the beginning of the drift. A drift without a true alarm is missed.

Definitions are those of `EvaluateDriftDetector` of CapyMOA 0.15.1 and of the paper's published experiments;
tests/papers/test_benchmark_metrics.py compares them with figures of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from streamwatch.papers.detection.candidates import Alarms
from streamwatch.papers.detection.streams import Losses
from streamwatch.papers.result import Measured

PERIOD: Final = 1_000
"""Number of instances to which rates of alarms refer, as in the paper."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Tolerance within which an alarm of a drift is true.

    Raises
    ------
    ValueError
        If `max_delay` is below 1 or `early` below 0.
    """

    max_delay: int
    """Instances after a drift is complete within which an alarm is true."""
    early: int = 0
    """Instances before a drift begins from which on an alarm is true."""

    def __post_init__(self) -> None:
        if self.max_delay < 1 or self.early < 0:
            raise ValueError(
                f"expected max_delay from 1 and early from 0 on, got {self.max_delay}, {self.early}"
            )


@dataclass(frozen=True, slots=True)
class Episode:
    """Drift with the alarms from the end of the previous episode to the end of its tolerance."""

    start: int
    end: int
    """Instance at which the drift is complete; `start` for an abrupt drift."""
    alarms: tuple[int, ...]
    """Instances of the alarms, ascending."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Metrics of a detector; NaN where undefined."""

    true: int
    """Number of alarms within the tolerance of their drift, all counted."""
    false: int
    missed: int
    """Drifts without a true alarm."""
    precision: float
    """true / (true + false); 0 without an alarm, as in the paper."""
    recall: float
    """true / (true + missed), although `true` counts alarms and `missed` drifts."""
    episode_recall: float
    """Share of drifts with a true alarm."""
    f1: float
    """Harmonic mean of precision and recall; 0 if both are 0."""
    delay: float
    """MDT: mean instances from the beginning of a drift to its first true alarm, over drifts found."""
    normalised_delay: float
    """NDT: MDT divided by `max_delay`."""
    false_rate: float
    """FAR: false alarms in `PERIOD` instances."""
    alarm_rate: float
    """AR: alarms in `PERIOD` instances."""


def episodes_of(alarms: Sequence[int], drifts: Sequence[tuple[int, int]], rule: Rule) -> list[Episode]:
    """Split the alarms of one stream among its drifts.

    An alarm belongs to the first drift whose tolerance has not ended before it. Alarms after the last
    tolerance belong to the last drift and are false, as in CapyMOA 0.15.1; its earlier versions, and the
    paper's experiments on synthetic streams, left them out (`within`).

    Raises
    ------
    ValueError
        If drifts or alarms are not in order, or a drift ends before it begins.
    """
    _check(alarms, drifts)
    found: list[list[int]] = [[] for _ in drifts]
    ends = [end + rule.max_delay for _, end in drifts]
    for alarm in alarms:
        found[next((k for k, end in enumerate(ends) if alarm <= end), len(ends) - 1)].append(alarm)
    return [Episode(start, end, tuple(those)) for (start, end), those in zip(drifts, found, strict=True)]


def within(alarms: Sequence[int], drifts: Sequence[tuple[int, int]], rule: Rule) -> list[int]:
    """Return the alarms up to the end of the last tolerance, which the paper's own code counts."""
    last = drifts[-1][1] + rule.max_delay
    return [alarm for alarm in alarms if alarm <= last]


def _check(alarms: Sequence[int], drifts: Sequence[tuple[int, int]]) -> None:
    if not drifts:
        raise ValueError("expected at least one drift")
    if list(alarms) != sorted(alarms):
        raise ValueError("expected alarms in order")
    starts = [start for start, _ in drifts]
    if starts != sorted(starts) or any(end < start for start, end in drifts):
        raise ValueError(f"expected drifts in order, each with its start before its end, got {list(drifts)}")


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts from which metrics are computed; those of several streams can be added."""

    true: int = 0
    false: int = 0
    missed: int = 0
    found: int = 0
    """Drifts with a true alarm."""
    waited: int = 0
    """Sum of the instances from the beginning of each drift found to its first true alarm."""

    def plus(self, other: Counts, sign: int = 1) -> Counts:
        """Add other counts, or subtract them with sign −1."""
        return Counts(
            self.true + sign * other.true,
            self.false + sign * other.false,
            self.missed + sign * other.missed,
            self.found + sign * other.found,
            self.waited + sign * other.waited,
        )


def counted(episodes: Sequence[Episode], rule: Rule) -> Counts:
    """Count true and false alarms, and drifts missed and found."""
    true, false, found, waited = 0, 0, 0, 0
    for episode in episodes:
        first, last = episode.start - rule.early, episode.end + rule.max_delay
        hits = [alarm for alarm in episode.alarms if first <= alarm <= last]
        true += len(hits)
        false += len(episode.alarms) - len(hits)
        if hits:
            found += 1
            waited += hits[0] - episode.start
    return Counts(true, false, len(episodes) - found, found, waited)


def metrics_of(counts: Counts, rule: Rule, instances: int) -> Metrics:
    """Compute metrics from counts.

    Parameters
    ----------
    counts
        Counts of one stream or several.
    rule
        Tolerance.
    instances
        Number of instances that rates are divided by. The paper uses the length of one stream even for
        several.

    Raises
    ------
    ValueError
        If there is no drift, or no instance.
    """
    drifts = counts.missed + counts.found
    if not drifts or instances < 1:
        raise ValueError(f"expected a drift and an instance, got {drifts} and {instances}")
    alarms, sought = counts.true + counts.false, counts.true + counts.missed
    precision = counts.true / alarms if alarms else 0.0
    recall = counts.true / sought if sought else 0.0
    delay = counts.waited / counts.found if counts.found else math.nan
    return Metrics(
        true=counts.true,
        false=counts.false,
        missed=counts.missed,
        precision=precision,
        recall=recall,
        episode_recall=counts.found / drifts,
        f1=2.0 * precision * recall / (precision + recall) if precision + recall else 0.0,
        delay=delay,
        normalised_delay=delay / rule.max_delay,
        false_rate=PERIOD * counts.false / instances,
        alarm_rate=PERIOD * alarms / instances,
    )


def measured(episodes: Sequence[Episode], rule: Rule, instances: int) -> Metrics:
    """Compute metrics from episodes, see `metrics_of`."""
    return metrics_of(counted(episodes, rule), rule, instances)


# Runs on which detectors are scored: losses of a model on a stream with known drifts.


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
