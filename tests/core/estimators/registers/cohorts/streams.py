"""Streams of one model's outcomes, drawn by a seed, as the rule of cohorts takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.records.events import Outcome

Ints = NDArray[np.int64]


class Outcomes(NamedTuple):
    """Outcomes of a model in the order of evaluation, one array each.

    Clock at the label and delay in milliseconds, predictions made so far, true and predicted class, and the
    last label that was known at the prediction (−1: none).
    """

    at: Ints
    delay: Ints
    made: Ints
    label: Ints
    predicted: Ints
    last: Ints

    def events(self, model: str = "m") -> list[Outcome]:
        """Return them as the join tells them."""
        return [
            Outcome(
                model,
                str(label),
                str(predicted),
                at,
                delay,
                label_at_prediction=None if last < 0 else str(last),
                made=made,
                resolved_ms=at,
                waited_ms=delay,
            )
            for at, delay, made, label, predicted, last in zip(
                *(column.tolist() for column in self), strict=True
            )
        ]


@dataclass(frozen=True)
class Stream:
    """What is drawn: delays are exponential, in horizons, and a fall of the accuracy comes after 60 %."""

    predictions: int = 8_000
    horizon_ms: int = 20_000_000
    per_horizon: int = 2_000
    classes: int = 3
    majority: float = 0.7
    accuracy: tuple[float, float] = (0.85, 0.4)
    mean_delays: tuple[float, float] = (0.2, 0.05)
    """Of hits and of errors."""
    hits_after: float = 0.0
    """Part of a horizon that hits wait in addition."""
    crowded: float = 1.0
    """How many times as many predictions come in the second half."""
    burst_ms: int = 1
    """Times of predictions are multiples of it, so that many share a millisecond."""


def in_order_of_labels(
    made_at: Ints, delay: Ints, comes: NDArray[np.bool_], label: Ints, predicted: Ints
) -> Outcomes:
    """Put predictions into the order of their labels; only those that come."""
    known = made_at + delay
    order = np.flatnonzero(comes)[np.argsort(known[comes], kind="stable")]
    at = known[order]
    before = np.searchsorted(at, made_at[order], side="left") - 1
    last = np.where(before >= 0, label[order][np.maximum(before, 0)], -1)
    made = np.searchsorted(made_at, at, side="right").astype(np.int64)
    return Outcomes(at, delay[order], made, label[order], predicted[order], last)


def outcomes_of(stream: Stream, seed: int) -> Outcomes:
    rng = np.random.default_rng(seed)
    n = stream.predictions
    gaps = rng.exponential(stream.horizon_ms / stream.per_horizon, n)
    gaps[n // 2 :] /= stream.crowded
    made_at = 1_700_000_000_000 + np.cumsum(gaps).astype(np.int64) // stream.burst_ms * stream.burst_ms
    label = np.where(rng.random(n) < stream.majority, 0, rng.integers(1, stream.classes, n))
    hit = rng.random(n) < np.where(np.arange(n) < 0.6 * n, *stream.accuracy)
    predicted = np.where(hit, label, (label + 1) % stream.classes)
    delay = (rng.exponential(np.where(hit, *stream.mean_delays)) * stream.horizon_ms).astype(np.int64)
    delay += np.where(hit, int(stream.hits_after * stream.horizon_ms), 0)
    return in_order_of_labels(made_at, delay, delay <= 1.01 * stream.horizon_ms, label, predicted)
