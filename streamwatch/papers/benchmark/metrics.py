"""Metrics of drift detectors by Cerqueira, Gomes, Heyden, Pfahringer, Bifet 2026, and their tolerance rules.

An *episode* is one drift with the alarms that are put down to it. An alarm is true from `early` instances
before the drift begins to `max_delay` after it is complete, both ends included; every other alarm of the
episode is false. Every true alarm counts (the metrics count alarms, not drifts), but for the delay only the
first one does, and delays are counted from where the drift begins. A drift without a true alarm is missed.

Definitions were read from `EvaluateDriftDetector` of CapyMOA 0.15.1 and from the experiments that the paper
publishes; they are held against figures that both print (tests/papers/test_benchmark_metrics.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PERIOD: Final = 1_000
"""Instances that rates of alarms are given for, as in the paper."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Tolerance: which alarms are put down to a drift."""

    max_delay: int
    """Instances after a drift is complete within which an alarm is true."""
    early: int = 0
    """Instances before it begins from which on one is."""

    def __post_init__(self) -> None:
        if self.max_delay < 1 or self.early < 0:
            raise ValueError(
                f"expected max_delay from 1 and early from 0 on, got {self.max_delay}, {self.early}"
            )


@dataclass(frozen=True, slots=True)
class Episode:
    """One drift, and the alarms between the episode before and the end of its tolerance."""

    start: int
    end: int
    """The same as `start` for an abrupt drift."""
    alarms: tuple[int, ...]
    """Ascending instances."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Figures that the paper reports of a detector; NaN where undefined."""

    true: int
    """Alarms within the tolerance of their drift; several at one drift count as several."""
    false: int
    missed: int
    """Drifts without a true alarm."""
    precision: float
    """true / (true + false); 0 without an alarm, as in the paper."""
    recall: float
    """true / (true + missed), alarms over alarms and drifts."""
    episode_recall: float
    """Share of drifts with a true alarm."""
    f1: float
    """Harmonic mean of precision and recall; 0 if both are 0."""
    delay: float
    """MDT: mean instances from the beginning of a drift to its first true alarm, over those found."""
    normalised_delay: float
    """NDT: the same over `max_delay`."""
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
    """Alarms up to the end of the last tolerance, those that the paper's own code counted."""
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
    """Numbers that metrics are made of; those of several streams add up."""

    true: int = 0
    false: int = 0
    missed: int = 0
    found: int = 0
    """Drifts with a true alarm."""
    waited: int = 0
    """Instances from the beginning of each drift found to its first true alarm, all together."""

    def plus(self, other: Counts, sign: int = 1) -> Counts:
        """The sum, or with sign −1 the difference."""
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
    """Metrics of a detector from its counts.

    Parameters
    ----------
    counts
        Of one stream or several.
    rule
        Tolerance of all of them.
    instances
        Number that rates are divided by. The paper takes the length of one stream, however many it has run.

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
    """Metrics of a detector from episodes, as `metrics_of` has them."""
    return metrics_of(counted(episodes, rule), rule, instances)
