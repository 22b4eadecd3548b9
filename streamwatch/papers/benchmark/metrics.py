"""Metrics of drift detectors by Cerqueira, Gomes, Heyden, Pfahringer, Bifet 2026, and their tolerance rules.

An *episode* is one drift with the alarms that are attributed to it. An alarm is true from `early` instances
before the drift begins to `max_delay` after it is complete, both ends included; every other alarm of the
episode is false. Every true alarm counts (the metrics count alarms, not drifts), but the delay is that of the
first one, from the beginning of the drift. A drift without a true alarm is missed.

Definitions are those of `EvaluateDriftDetector` of CapyMOA 0.15.1 and of the paper's published experiments;
tests/papers/test_benchmark_metrics.py compares them with figures of both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

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
