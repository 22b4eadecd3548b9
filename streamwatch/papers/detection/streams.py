"""Losses with known changes: steps, ramps, dependent losses, stale models on the testbed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from streamwatch.papers.detection.scoring import Change
from streamwatch.papers.streams.testbed import KINDS, StreamKind

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
