"""Simulated late labels: hits after 15 d on average, errors after 3 d, within a horizon of 60 d."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.registers.late_labels.accuracy import (
    estimates_of,
    latest_change,
    wilson,
)
from streamwatch.core.estimators.registers.late_labels.observe import Geometry, geometry_of
from streamwatch.core.estimators.registers.late_labels.ring import LabelRing
from streamwatch.core.records.events import ErrorChange
from streamwatch.core.specs import DAY_MS

HORIZON_DAYS = 60.0
GEOMETRY = geometry_of(60 * DAY_MS)
BEGAN_MS = 1_700_000_000_000
LAST_LABELS = 1_000
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Scene:
    """What is simulated, until a day on which it is looked at; days count from the first prediction."""

    name: str
    days: float
    rate: Callable[[Numbers], Numbers]
    accuracy: Callable[[Numbers], Numbers]
    target: float
    """Accuracy of the predictions of the last 30 days."""
    hits_unlabelled: float = 0.0


def always(value: float) -> Callable[[Numbers], Numbers]:
    return lambda day: np.full_like(day, value)


def changing(before: float, after: float, day: float) -> Callable[[Numbers], Numbers]:
    return lambda at: np.where(at < day, before, after)


STEADY = Scene("steady", 150.0, always(100.0), always(0.9), 0.9)
SCENES = (
    STEADY,
    Scene("70 days after the start", 70.0, always(100.0), always(0.9), 0.9),
    Scene("volume × 10 five days ago", 150.0, changing(100.0, 1_000.0, 145.0), always(0.9), 0.9),
    Scene("volume ÷ 10 ten days ago", 150.0, changing(100.0, 10.0, 140.0), always(0.9), 0.9),
    Scene(
        "accuracy .9 → .8 ten days ago",
        150.0,
        always(100.0),
        changing(0.9, 0.8, 140.0),
        0.9 * 2 / 3 + 0.8 / 3,
    ),
    Scene("a third of the hits never labelled", 150.0, always(100.0), always(0.9), 0.9, 1 / 3),
)


@dataclass(frozen=True)
class Figures:
    """Of many runs of a scene: mean error of an estimate, and how often its interval holds the truth."""

    bias: float
    coverage: float
    last_bias: float
    """Of the last 1,000 labels."""
    last_coverage: float
    settled_bias: float
    n_eff: float


def began_of(rng: np.random.Generator) -> int:
    """Time of the first prediction; the boundary of buckets falls anywhere in the day."""
    return BEGAN_MS + int(rng.integers(0, GEOMETRY.width_ms))


def outcomes_of(scene: Scene, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
    """Times of predictions and labels that are in, and hits; in the order of the labels."""
    rng = np.random.default_rng(seed)
    began_ms = began_of(rng)
    most = float(scene.rate(np.linspace(0.0, scene.days, 400)).max())
    day = np.sort(rng.random(rng.poisson(most * scene.days)) * scene.days)
    day = day[rng.random(len(day)) < scene.rate(day) / most]
    hit = rng.random(len(day)) < scene.accuracy(day)
    delay = rng.exponential(np.where(hit, 15.0, 3.0))
    never = rng.random(len(day)) < np.where(hit, scene.hits_unlabelled, 0.0)
    is_in = ~never & (delay <= HORIZON_DAYS) & (day + delay <= scene.days)
    predicted = began_ms + np.rint(day[is_in] * DAY_MS).astype(np.int64)
    known = began_ms + np.rint((day + delay)[is_in] * DAY_MS).astype(np.int64)
    order = np.argsort(known, kind="stable")
    return predicted[order], known[order], hit[is_in][order]


def figures_of(scene: Scene, runs: int, seed: int = 0) -> Figures:
    """Run a scene, a model of the ring for each run."""
    ring = LabelRing(runs, GEOMETRY)
    last = np.zeros(runs)
    for run in range(runs):
        predicted, known, hit = outcomes_of(scene, seed * 100_000 + run)
        ring.observe(np.full(len(hit), run, np.int32), hit, known, known - predicted)
        last[run] = hit[-LAST_LABELS:].mean()
    late = estimates_of(ring, np.arange(runs)).late
    lower, upper = wilson(last, np.full(runs, float(LAST_LABELS)))
    found = late.corrected
    inside = (found.lower <= scene.target) & (scene.target <= found.upper)
    return Figures(
        float(np.mean(found.value) - scene.target),
        float(np.mean(inside)),
        float(np.mean(last) - scene.target),
        float(np.mean((lower <= scene.target) & (scene.target <= upper))),
        float(np.mean(late.settled.value) - scene.target),
        float(np.median(found.n_eff)),
    )


@dataclass(frozen=True)
class WindowFigures:
    """Of many runs in which hits are labelled only when a dispute window closes."""

    undefined: float
    """Share of runs without a corrected accuracy."""
    settled_bias: float
    settled_coverage: float
    last_bias: float
    """Of the last 1,000 labels."""


def window_figures_of(
    window_days: float, horizon_days: float, runs: int, *, growth: float = 1.0
) -> WindowFigures:
    """Hits are labelled some hours after the window closed, errors after 6 days on average; accuracy .9.

    100 predictions a day for 150 days; `growth` times as many in the last 5.
    """
    geometry = geometry_of(round(horizon_days * DAY_MS))
    ring, last = LabelRing(runs, geometry), np.zeros(runs)
    for run in range(runs):
        rng = np.random.default_rng((run, 2))
        day = np.concatenate([rng.random(14_500) * 145, 145 + rng.random(round(500 * growth)) * 5])
        hit = rng.random(len(day)) < 0.9
        delay = np.where(hit, window_days + 0.25 * rng.random(len(day)), rng.exponential(6.0, len(day)))
        is_in = (delay <= horizon_days) & (day + delay <= 150)
        predicted = began_of(rng) + np.rint(day[is_in] * DAY_MS).astype(np.int64)
        known = predicted + np.rint(delay[is_in] * DAY_MS).astype(np.int64)
        order = np.argsort(known, kind="stable")
        predicted, known, hit = predicted[order], known[order], hit[is_in][order]
        ring.observe(np.full(len(hit), run, np.int32), hit, known, known - predicted)
        last[run] = hit[-LAST_LABELS:].mean()
    late = estimates_of(ring, np.arange(runs)).late
    settled = late.settled
    return WindowFigures(
        float(np.isnan(late.corrected.value).mean()),
        float(np.mean(settled.value) - 0.9),
        float(np.mean((settled.lower <= 0.9) & (settled.upper >= 0.9))),
        float(np.mean(last) - 0.9),
    )


@dataclass(frozen=True)
class Changes:
    """Of many runs in which the error changes once: found, within the interval, off by so many buckets."""

    found: float
    coverage: float
    median_error: float
    median_width: float
    """Of the intervals, in buckets."""


def summed_up(told: list[ErrorChange | None], truth_ms: Sequence[float], geometry: Geometry) -> Changes:
    """Sum up what was told of changes at these times."""
    found = [(c, at) for c, at in zip(told, truth_ms, strict=True) if c is not None]
    inside = [c.earliest_ms <= at <= c.latest_ms for c, at in found]
    off = [abs(c.since_ms - at) for c, at in found]
    wide = [c.latest_ms - c.earliest_ms for c, _ in found]
    return Changes(
        len(found) / len(told),
        float(np.mean(inside or [1.0])),
        float(np.median(off or [0.0])) / geometry.width_ms,
        float(np.median(wide or [0.0])) / geometry.width_ms,
    )


def changes_of(outcomes: float, before: float, after: float, runs: int) -> Changes:
    """Locate changes of the error at any time within 64 buckets of so many outcomes each, in the mean."""
    rng = np.random.default_rng(int(1_000 * (before + 10 * after) + outcomes))
    told, truth_ms = [], []
    for _ in range(runs):
        at = rng.uniform(10, 60)
        part = np.clip(at - np.arange(64), 0.0, 1.0)
        number = rng.poisson(outcomes, 64)
        wrong = rng.binomial(number, before * part + after * (1 - part))
        told.append(latest_change(wrong.astype(np.float64), number.astype(np.float64), 0, GEOMETRY))
        truth_ms.append(at * GEOMETRY.width_ms)
    return summed_up(told, truth_ms, GEOMETRY)


def changes_in_runs_of(
    outcomes: float, before: float, after: float, correlation: float, runs: int
) -> Changes:
    """Locate changes as `changes_of` does where errors come in runs.

    Each outcome repeats the chance of the one before it with a probability, which is then the correlation of
    neighbouring errors.
    """
    rng = np.random.default_rng(int(1_000 * (before + 10 * after + 100 * correlation) + outcomes))
    told, truth_ms = [], []
    for _ in range(runs):
        at = rng.uniform(10, 60)
        number = rng.poisson(outcomes, 64)
        time = np.sort(np.repeat(np.arange(64), number) + rng.random(int(number.sum())))
        fresh = rng.random(len(time)) >= correlation
        drawn = np.maximum.accumulate(np.where(fresh, np.arange(len(time)), 0))
        error = rng.random(len(time))[drawn] < np.where(time < at, before, after)
        wrong = np.bincount(time.astype(np.int64), weights=error, minlength=64)
        told.append(latest_change(wrong, number.astype(np.float64), 0, GEOMETRY))
        truth_ms.append(at * GEOMETRY.width_ms)
    return summed_up(told, truth_ms, GEOMETRY)


def delayed_changes_of(per_day: float, before: float, after: float, waited_days: float, runs: int) -> Changes:
    """Locate changes of the error from labels that come late, as of so many days after the change.

    The error goes from `before` to `after` on a day between 90 and 120; labels are those of a `Scene`.
    """
    ring, truth = LabelRing(runs, GEOMETRY), np.zeros(runs)
    for run in range(runs):
        day = np.random.default_rng((run, 1)).uniform(90.0, 120.0)
        accuracy = changing(1.0 - before, 1.0 - after, day)
        scene = Scene("one change", day + waited_days, always(per_day), accuracy, 1.0 - after)
        predicted, known, hit = outcomes_of(scene, run)
        ring.observe(np.full(len(hit), run, np.int32), hit, known, known - predicted)
        truth[run] = began_of(np.random.default_rng(run)) + day * DAY_MS
    told = [estimate.change(GEOMETRY) for estimate in estimates_of(ring, np.arange(runs))]
    return summed_up(told, truth.tolist(), GEOMETRY)
