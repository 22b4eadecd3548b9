"""Streams of one model's outcomes, drawn by a seed, as the rule of cohorts takes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numba
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
    rhythm: tuple[float, float] = (0.0, 0.0)
    """Period of labels in horizons, and the part of it, at its beginning, in which none come."""
    burst_ms: int = 1
    """Times of predictions are multiples of it, so that many share a millisecond."""


@numba.njit(cache=True)
def _columns(known, made_at, delay, label, predicted, order):  # pragma: no cover
    """The columns of `Outcomes` for predictions in this order, that of their labels."""
    at, waited, made = np.empty_like(order), np.empty_like(order), np.empty_like(order)
    truth, said, last = np.empty_like(order), np.empty_like(order), np.empty_like(order)
    for i in range(order.size):
        at[i] = known[order[i]]
        waited[i] = delay[order[i]]
        truth[i] = label[order[i]]
        said[i] = predicted[order[i]]
    last_known = np.full_like(made_at, -1)
    labelled = 0
    for number in range(made_at.size):
        while labelled < order.size and at[labelled] < made_at[number]:
            labelled += 1
        if labelled:
            last_known[number] = truth[labelled - 1]
    number = 0
    for i in range(order.size):
        while number < made_at.size and made_at[number] <= at[i]:
            number += 1
        made[i] = number
        last[i] = last_known[order[i]]
    return at, waited, made, truth, said, last


def in_order_of_labels(
    made_at: Ints, delay: Ints, comes: NDArray[np.bool_], label: Ints, predicted: Ints
) -> Outcomes:
    """Put predictions, in the order of their times, into the order of their labels; only those that come."""
    known = made_at + delay
    which = np.flatnonzero(comes)
    bits = known.size.bit_length()
    keys = ((known[which] - made_at[0]) << bits) | which  # sorted far sooner than by `argsort`
    keys.sort()
    order = keys & ((1 << bits) - 1)
    return Outcomes(*_columns(known, made_at, delay, label, predicted, order))


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
    period = int(stream.rhythm[0] * stream.horizon_ms)
    if period:
        quiet = int(stream.rhythm[1] * period)
        delay += np.maximum(quiet - (made_at + delay) % period, 0)
    return in_order_of_labels(made_at, delay, delay <= 1.01 * stream.horizon_ms, label, predicted)
