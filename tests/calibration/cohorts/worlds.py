"""Worlds of late labels: predictions, how often they are right, and when their labels come.

Times count from the first prediction, in the world's unit of time. Unless said otherwise a model of two
classes meets a majority of .85; hits and errors do not depend on the class; delays are exponential within the
horizon, so that what is labelled by then is a fair sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from heapq import heappop, heappush

import numba
import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from tests.core.estimators.registers.cohorts.streams import Outcomes, in_order_of_labels

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
DAY_MS = 86_400_000
BEGAN_MS = 1_700_000_000_000
OfTime = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Predictions:
    """What delays may depend on."""

    time: Floats
    hit: Bools
    label: Ints
    volume: Floats


Delays = Callable[[np.random.Generator, Predictions, float], Floats]
Drawn = Callable[[np.random.Generator, Predictions], Predictions]
"""Draws times, hits and labels again, of those that were drawn independently."""
Clock = Callable[[np.random.Generator, Predictions], Floats]
"""By how much the time in a prediction's record is after its true one."""


def constant(value: float) -> OfTime:
    return lambda t: np.full_like(t, value)


def step(before: float, after: float, at: float = 100.0) -> OfTime:
    return lambda t: np.where(t < at, before, after)


def ramp(before: float, after: float, start: float = 100.0, end: float = 160.0) -> OfTime:
    return lambda t: before + (after - before) * np.clip((t - start) / (end - start), 0.0, 1.0)


def weekly(t: Floats) -> Floats:
    return 1.0 + 0.6 * np.sin(2 * np.pi * t / 7)


def exponential(rng: np.random.Generator, mean: Floats, horizon: float) -> Floats:
    return -mean * np.log(1 - rng.random(mean.size) * (1 - np.exp(-horizon / mean)))


def by_hit(slow: float = 15.0, fast: float = 3.0) -> Delays:
    return lambda rng, p, h: exponential(rng, np.where(p.hit, slow, fast), h)


def by_error(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
    return exponential(rng, np.where(p.hit, 3.0, 15.0), h)


def by_class(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
    return exponential(rng, np.array([15.0, 3.0, 30.0])[np.minimum(p.label, 2)], h)


def by_hit_and_class(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
    mean = np.where(p.hit, np.array([15.0, 6.0, 25.0])[p.label], np.array([3.0, 9.0, 5.0])[p.label])
    return exponential(rng, mean, h)


def alike(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
    return exponential(rng, np.full(p.time.size, 7.0), h)


def heavy(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
    """Lognormal, median 6 d (hits) or 1 d; drawn again where beyond the horizon."""
    median = np.where(p.hit, 6.0, 1.0)
    delay = median * np.exp(1.5 * rng.standard_normal(p.time.size))
    while (late := delay > h).any():
        delay[late] = median[late] * np.exp(1.5 * rng.standard_normal(int(late.sum())))
    return delay


def without_weekends(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
    """As `by_hit`, but what would come on the sixth or seventh day comes at the start of the next week."""
    known = p.time + by_hit()(rng, p, h - 2.0)
    day = known % 7.0
    return np.where(day >= 5.0, known - day + 7.0 + 0.2 * rng.random(day.size), known) - p.time


def in_batches(every: float) -> Delays:
    """As `by_hit`, but labels are delivered together, once in so many days."""

    def delays(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
        known = p.time + by_hit()(rng, p, h - every)
        return np.ceil(known / every) * every - p.time

    return delays


def dispute_window(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
    """Hits are labelled within hours after a window of 30 days closed."""
    return np.where(
        p.hit, 30.0 + 0.25 * rng.random(p.time.size), exponential(rng, np.full(p.time.size, 6.0), h)
    )


@numba.njit(error_model="numpy")
def _delays_by_last_known(time, label, slow, fast, horizon, uniform):
    delay = np.empty(time.size)
    waiting = [(np.inf, 0)]
    last = 0
    for i in range(time.size):
        while waiting[0][0] <= time[i]:
            last = heappop(waiting)[1]
        mean = slow if label[i] == last else fast
        delay[i] = -mean * np.log(1 - uniform[i] * (1 - np.exp(-horizon / mean)))
        heappush(waiting, (time[i] + delay[i], label[i]))
    return delay


def by_no_change(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
    """Labels that repeat the last one known at the prediction come late, whatever the model said."""
    return _delays_by_last_known(p.time, p.label, 15.0, 3.0, h, rng.random(p.time.size))


def with_volume(rng: np.random.Generator, p: Predictions, h: float) -> Floats:
    """As `by_hit`, times the root of the volume."""
    return exponential(rng, np.where(p.hit, 15.0, 3.0) * np.sqrt(p.volume), h)


def changing(law: OfTime, fast: float = 3.0) -> Delays:
    """Hits after a delay that changes with the time of the prediction."""
    return lambda rng, p, h: exponential(rng, np.where(p.hit, law(p.time), fast), h)


def half_of_errors_late(rng: np.random.Generator, p: Predictions, _: float) -> Floats:
    """In seconds: labels come within seconds, but half of those of errors after two hours."""
    late = ~p.hit & (rng.random(p.time.size) < 0.5)
    return np.where(late, 7_200.0, 0.0) + exponential(rng, np.full(p.time.size, 1.0), 60.0)


def two_means(hits: float, errors: float) -> Delays:
    return lambda rng, p, h: exponential(rng, np.where(p.hit, hits, errors), h)


EVEN, EQUAL, FEW = constant(1.0), constant(0.85), constant(0.15)
HITS_LATE = by_hit()


@dataclass(frozen=True)
class World:
    name: str
    accuracy: OfTime = EQUAL
    delays: Delays = HITS_LATE
    volume: OfTime = EVEN
    rate: float = 1_000.0
    """Predictions in a unit of time."""
    length: float = 160.0
    horizon: float = 60.0
    unit_ms: int = DAY_MS
    shares: tuple[OfTime, ...] = (FEW,)
    """Of classes 1, 2, …; class 0 has the rest."""
    correlation: float = 0.0
    """Chance that a prediction has the draw of the one before it."""
    wander: tuple[float, float] = (0.0, 0.0)
    """Time constant, in predictions, and deviation of an autoregression that is added to the accuracy."""
    change: float = -1.0
    """When a drop begins, for delays."""
    drawn: Drawn | None = None
    clock: Clock | None = None

    def but(self, **changes: object) -> World:
        return replace(self, **changes)

    @property
    def horizon_ms(self) -> int:
        return round(self.horizon * self.unit_ms)


def times_of(rng: np.random.Generator, world: World) -> Floats:
    """Times of predictions, of a Poisson process with the world's volume."""
    cells = min(20 * int(np.ceil(world.length)), 20_000)
    edges = np.linspace(0.0, world.length, cells + 1)
    middles = (edges[1:] + edges[:-1]) / 2
    number = rng.poisson(world.rate * world.volume(middles) * world.length / cells)
    time = np.repeat(edges[:-1], number) + rng.random(int(number.sum())) * world.length / cells
    time.sort()
    return time


def draws(rng: np.random.Generator, number: int, correlation: float) -> Floats:
    """Uniform draws, each of which repeats the one before it with that chance."""
    if not correlation:
        return rng.random(number)
    source = np.where(rng.random(number) < correlation, 0, np.arange(number))
    return rng.random(number)[np.maximum.accumulate(source)]


def outcomes_of(world: World, seed: int) -> tuple[Outcomes, int]:
    """A run: outcomes in the order of labels, all that come within the world's length; when it began, ms."""
    rng = np.random.default_rng(seed)
    time = times_of(rng, world)
    n = time.size
    edges = np.cumsum([share(time) for share in world.shares], axis=0)
    pick = rng.random(n)
    label = np.zeros(n, np.int64)
    for k in range(len(world.shares)):
        label[(pick >= (edges[k - 1] if k else 0.0)) & (pick < edges[k])] = k + 1
    accuracy = world.accuracy(time)
    constant_, deviation = world.wander
    if constant_:
        kept = np.exp(-1 / constant_)
        shocks = rng.standard_normal(n) * deviation * np.sqrt(1 - kept**2)
        accuracy = np.clip(accuracy + lfilter([1.0], [1.0, -kept], shocks), 0.0, 1.0)
    hit = draws(rng, n, world.correlation) < accuracy
    predictions = Predictions(time, hit, label, world.volume(time))
    if world.drawn is not None:
        predictions = world.drawn(rng, predictions)
        time, hit, label = predictions.time, predictions.hit, predictions.label
    delay = world.delays(rng, predictions, world.horizon)
    if world.clock is not None:
        recorded = time + world.clock(rng, predictions)
        order = np.argsort(recorded, kind="stable")
        delay = np.maximum(time + delay - recorded, 0.0)[order]
        time, hit, label = recorded[order], hit[order], label[order]
    predicted = np.where(hit, label, np.where(label == 0, 1, 0))
    began = BEGAN_MS + int(rng.integers(0, world.horizon_ms))
    made_at = began + np.rint(time * world.unit_ms).astype(np.int64)
    waited = np.rint(delay * world.unit_ms).astype(np.int64)
    comes = (time + delay <= world.length) & (waited <= world.horizon_ms)
    return in_order_of_labels(made_at, waited, comes, label, predicted), began
