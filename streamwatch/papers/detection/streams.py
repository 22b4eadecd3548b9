"""Losses with known changes, and the attribution of alarms to these.

A change may be found from its first outcome to the end of its span, or to the next change if that is sooner.
The first alarm within the span of a rise of the error finds it, with a delay counted from the first outcome
after the change; further alarms in the span are repeats, counted separately. A rise without an alarm is
missed. Alarms outside all spans are false. A fall of the error need not be found: alarms within its span are
not counted, as some detectors look in both directions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.papers.streams.testbed import KINDS, StreamKind


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a model's error."""

    at: int
    """First instance (0-based) after the change, or first of a ramp."""
    span: int
    """Outcomes within which an alarm is attributed to the change."""
    rises: bool = True


@dataclass(frozen=True, slots=True)
class Score:
    """Score of one detector on one stream."""

    delays: tuple[int, ...]
    """Delay of each rise found, in outcomes; 1 for an alarm at the first outcome after it."""
    missed: int
    false: int
    repeats: int
    calm: int
    """Number of outcomes outside all spans, where alarms are false."""
    spans: tuple[int, ...]
    """Length of the span of each missed rise."""

    @property
    def rises(self) -> int:
        """Number of rises, found or missed."""
        return len(self.delays) + self.missed


def score(alarms: Sequence[int], changes: Sequence[Change], outcomes: int) -> Score:
    """Attribute the alarms of a stream to its changes.

    Parameters
    ----------
    alarms
        Outcomes (1-based), ascending.
    changes
        Changes in order of their instances.
    outcomes
        Length of the stream.

    Raises
    ------
    ValueError
        If changes are not in order, or not within the stream.
    """
    starts = [change.at for change in changes]
    if starts != sorted(set(starts)) or (starts and not 0 <= starts[0] <= starts[-1] < outcomes):
        raise ValueError(f"changes must be in order within {outcomes} outcomes, got {starts}")
    delays: list[int] = []
    missed: list[int] = []
    repeats, excused, calm = 0, 0, outcomes
    for index, change in enumerate(changes):
        end = min(change.at + change.span, *starts[index + 1 : index + 2], outcomes)
        within = [alarm for alarm in alarms if change.at < alarm <= end]
        calm -= end - change.at
        excused += len(within)
        if not change.rises:
            continue
        if within:
            delays.append(within[0] - change.at)
            repeats += len(within) - 1
        else:
            missed.append(end - change.at)
    return Score(tuple(delays), len(missed), len(alarms) - excused, repeats, calm, tuple(missed))


# Losses with known changes: steps, ramps, dependent losses, stale models on the testbed.


Losses: TypeAlias = NDArray[np.bool_]
CALM = 5_000
"""Outcomes before the first change."""
SPAN = 5_000
"""Outcomes within which a change of a Bernoulli stream may be found."""


@dataclass(frozen=True, slots=True)
class LossStream:
    """Stream of losses with known changes."""

    name: str
    outcomes: int
    changes: tuple[Change, ...]
    draw: Callable[[np.random.Generator], Losses]
    """Function that draws one run, (outcomes,)."""


@dataclass(frozen=True, slots=True)
class Group:
    """Streams with one kind of change."""

    name: str
    streams: tuple[LossStream, ...]


def bernoulli(name: str, error: NDArray[np.float64], changes: tuple[Change, ...]) -> LossStream:
    """Build a stream of independent losses of a given error, (outcomes,)."""

    def drawn(rng: np.random.Generator) -> Losses:
        return rng.random(len(error)) < error

    return LossStream(name, len(error), changes, drawn)


def together(name: str, error: NDArray[np.float64], rho: float, changes: tuple[Change, ...]) -> LossStream:
    """Build a stream of losses of a given error that repeat the previous one with probability `rho`."""
    return LossStream(name, len(error), changes, partial(repeating, error, rho=rho))


def repeating(error: NDArray[np.float64], rng: np.random.Generator, rho: float) -> Losses:
    """Draw losses of a given error that repeat the previous one with probability `rho`, (outcomes,)."""
    renewed = rng.random(len(error)) >= rho
    renewed[0] = True
    source = np.maximum.accumulate(np.where(renewed, np.arange(len(error)), 0))
    return (rng.random(len(error)) < error)[source]


def levels(*parts: tuple[float, int]) -> NDArray[np.float64]:
    """Build the error of a stream that steps between levels, given as (error, outcomes)."""
    return np.concatenate([np.full(length, error) for error, length in parts])


def ramp(low: float, high: float, length: int) -> NDArray[np.float64]:
    """Build an error of `CALM` outcomes at `low`, a linear rise over `length`, and `SPAN` at `high`."""
    rising = np.linspace(low, high, length, endpoint=False)
    return np.concatenate([np.full(CALM, low), rising, np.full(SPAN, high)])


def stale(kind: StreamKind) -> LossStream:
    """Build a stream of losses of a classifier that is optimal until its stream of the testbed drifts.

    The stream is stationary for `CALM` instances, then passes one lap. The change is set at the
    beginning of the lap, and may be found during the whole of it.
    """
    mixture, length = kind.mixture, CALM + kind.mixture.lap
    instants = np.maximum(np.arange(length) - CALM, 0)

    def drawn(rng: np.random.Generator) -> Losses:
        x, true_class = mixture.draw(instants, rng)
        return mixture.posterior(np.zeros(length, np.int64), x).argmax(axis=1) != true_class

    return LossStream(kind.name, length, (Change(CALM, mixture.lap),), drawn)


def _step(low: float, high: float) -> LossStream:
    error = levels((low, CALM), (high, SPAN))
    return bernoulli(f"step {low:g} to {high:g}", error, (Change(CALM, SPAN),))


_ALTERNATING = bernoulli(
    "steps between .1 and .3",
    levels((0.1, CALM), (0.3, SPAN), (0.1, SPAN), (0.3, SPAN)),
    (Change(CALM, SPAN), Change(CALM + SPAN, SPAN, rises=False), Change(CALM + 2 * SPAN, SPAN)),
)

GROUPS: tuple[Group, ...] = (
    Group("steps", (_step(0.02, 0.06), _step(0.1, 0.15), _step(0.2, 0.3), _step(0.2, 0.5), _ALTERNATING)),
    Group(
        "ramps",
        tuple(
            bernoulli(f"ramp {low:g} to {high:g} over {n:,}", ramp(low, high, n), (Change(CALM, n + SPAN),))
            for low, high, n in ((0.02, 0.1, 5_000), (0.2, 0.3, 1_000), (0.2, 0.4, 5_000))
        ),
    ),
    Group(
        "losses that go together",
        tuple(
            together(
                f"step .2 to .3, ρ = {rho:g}", levels((0.2, CALM), (0.3, SPAN)), rho, (Change(CALM, SPAN),)
            )
            for rho in (0.5, 0.8)
        ),
    ),
    Group("stale models on the testbed", tuple(stale(kind) for kind in KINDS)),
)
