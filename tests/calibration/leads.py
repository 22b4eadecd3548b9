"""Streams of leads over the previous label: the model's hit less the baseline's, −1, 0 or 1.

Each generator gives (streams, outcomes) int8. The model and its opponent are right equally often unless said
otherwise, so every verdict is a false one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter

from tests.calibration.monte_carlo import correlated

Leads = NDArray[np.int8]
Draw = Callable[[np.random.Generator, int, int], Leads]


def hits(rng: np.random.Generator, p: NDArray[np.float64] | float, streams: int, n: int) -> NDArray[np.bool_]:
    """Hits of probability p, a number or one for every outcome."""
    return rng.random((streams, n), np.float32) < p


def lead(model: NDArray[np.bool_], opponent: NDArray[np.bool_]) -> Leads:
    """d = hit of the model − hit of its opponent."""
    return model.astype(np.int8) - opponent.astype(np.int8)


def independent(p: float) -> Draw:
    """Both right with probability p, independently."""
    return lambda rng, streams, n: lead(hits(rng, p, streams, n), hits(rng, p, streams, n))


def correlated_losses(rho: float, p: float = 0.85, *, both: bool = False, ahead: float = 0.0) -> Draw:
    """The model's losses are a Markov chain of lag-1 correlation rho; the opponent's, too, if `both`.

    The opponent is right with p, the model with p + `ahead`.
    """

    def draw(rng: np.random.Generator, streams: int, n: int) -> Leads:
        model = ~correlated(rng, 1 - p - ahead, rho, streams, n)
        return lead(model, ~correlated(rng, 1 - p, rho, streams, n) if both else hits(rng, p, streams, n))

    return draw


def wandering(constant: float, p: float = 0.7, deviation: float = 0.11) -> Draw:
    """The model's accuracy wanders about p as an autoregression of this time constant, in outcomes.

    Its losses have a lag-1 correlation of only deviation²·e^(−1/constant)/(p(1 − p)), .057.
    """

    def draw(rng: np.random.Generator, streams: int, n: int) -> Leads:
        kept = np.exp(-1.0 / constant)
        shocks = rng.standard_normal((streams, n), np.float32) * np.float32(deviation * np.sqrt(1 - kept**2))
        shocks[:, 0] = rng.standard_normal(streams) * deviation
        away = lfilter([1.0], [1.0, -kept], shocks, axis=1)
        return lead(hits(rng, np.clip(p + away, 0.0, 1.0), streams, n), hits(rng, p, streams, n))

    return draw


def errs_at_switches(rng: np.random.Generator, streams: int, n: int) -> Leads:
    """Labels repeat with .85; the model is right with .95 then, and rarely where the label switches."""
    repeats = hits(rng, 0.85, streams, n)
    right = rng.random((streams, n), np.float32) < np.where(repeats, 0.95, (0.85 - 0.85 * 0.95) / 0.15)
    return lead(right, repeats)


def near_periodic(rng: np.random.Generator, streams: int, n: int) -> Leads:
    """Labels run for 9, 10 or 11 outcomes; the model is right with .9 at any time."""
    runs = rng.integers(9, 12, (streams, n // 9 + 1))
    ends = runs.cumsum(axis=1)
    repeats = np.ones((streams, n), np.bool_)
    for stream, end in zip(repeats, ends, strict=True):
        stream[end[end <= n] - 1] = False
    return lead(hits(rng, 0.9, streams, n), repeats)


def regimes(length: int) -> Draw:
    """The baseline is right with .95 or .75, in turns of that mean length; the model with .85."""

    def draw(rng: np.random.Generator, streams: int, n: int) -> Leads:
        turn = (rng.random((streams, n), np.float32) < 1 / length).cumsum(axis=1) % 2
        repeats = rng.random((streams, n), np.float32) < np.where(turn == 0, 0.95, 0.75)
        return lead(hits(rng, 0.85, streams, n), repeats)

    return draw


def changing(before: float, after: float, at: int, p: float = 0.853) -> Draw:
    """The baseline is right with p; the model is better by `before`, from outcome `at` + 1 on by `after`."""

    def draw(rng: np.random.Generator, streams: int, n: int) -> Leads:
        rate = np.where(np.arange(n) < at, p + before, p + after)
        return lead(hits(rng, rate, streams, n), hits(rng, p, streams, n))

    return draw
