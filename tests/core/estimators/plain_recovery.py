"""Recovery after drifts as its definition says: every drift is measured anew after every outcome."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streamwatch.core.estimators.detectors.kind import AlarmRow
from streamwatch.papers.recovery import recovery

KEPT = 64
"""Samples that a drift can date from."""
Floats = NDArray[np.float64]


def faded(loss: NDArray[np.integer], alpha: float) -> tuple[Floats, Floats]:
    """Faded error and its effective sample size after every outcome, as weighted means over all losses."""
    weights = alpha ** np.arange(len(loss) - 1, -1, -1.0)
    ends = range(1, len(loss) + 1)
    losses = loss.astype(np.float64)
    sums, squares = np.cumsum(weights[::-1]), np.cumsum(weights[::-1] ** 2)
    error = np.array([weights[-n:] @ losses[:n] for n in ends]) / sums
    return error, sums**2 / squares


class Recovered(NamedTuple):
    """What is known of a model's drifts."""

    since: int
    recovered: int
    not_recovered: int
    depth: float
    outcomes: float


class PlainRecovery:
    """Drifts of one model, whose losses and alarms are known from the start."""

    def __init__(self, loss: NDArray[np.integer], alpha: float, outcomes: int) -> None:
        self.error, self.n_eff = (np.append(np.nan, values) for values in faded(loss, alpha))
        """By number of outcomes so far."""
        self.memory = round(1 / (1 - alpha))
        self.stride = max(2**k for k in range(30) if 2**k <= max(self.memory / 8, 1))
        self.longest = max(outcomes, 10 * self.memory)
        self.ended: list[tuple[float, float]] = []
        """Depth and length of every drift."""

    def samples(self, alarm: int) -> list[int]:
        return list(range(self.stride, alarm, self.stride))[-KEPT:]

    def start(self, alarm: int, since: int) -> int | None:
        """Sample from which a drift dates."""
        samples = self.samples(alarm)
        if not samples:
            return None
        if since:
            before = [k for k in samples if k < since]
            return before[-1] if before else None
        old = [k for k in samples if k <= alarm - self.memory]
        first = old[-1] if old else samples[0]
        return next(k for k in reversed(samples) if k >= first and self.error[k] <= self.error[first])

    def measured(self, start: int, alarm: int, now: int) -> tuple[float, float]:
        """Depth and length of a drift as of now; NaN before the error is back."""
        seen = [start, *(k for k in self.samples(alarm) if k > start), *range(alarm, now + 1)]
        found = recovery(self.error[seen], self.n_eff[seen], 1)
        length = found.outcomes
        return found.depth, seen[int(length)] - start if length > 0 else length

    def run(self, alarms: Iterable[AlarmRow]) -> Iterator[Recovered]:
        """What is known after every outcome."""
        starts = {
            a.outcome: max(b.since for b in alarms if b.outcome == a.outcome and rises(b))
            for a in alarms
            if rises(a)
        }
        under_way: tuple[int, int] | None = None
        for now in range(1, len(self.error)):
            if under_way is None and now in starts:
                start = self.start(now, starts[now])
                under_way = None if start is None else (start, now)
            if under_way is not None:
                start, alarm = under_way
                depth, length = self.measured(start, alarm, now)
                settled = now >= alarm + self.memory and not math.isnan(length)
                if settled or now >= start + self.longest:
                    self.ended.append((depth, length if settled else math.nan))
                    under_way = None
            recovered = sum(not math.isnan(length) for _, length in self.ended)
            last = self.ended[-1] if self.ended else (0.0, 0.0)
            yield Recovered(under_way[0] if under_way else 0, recovered, len(self.ended) - recovered, *last)


def rises(alarm: AlarmRow) -> bool:
    """Whether a drift begins: the error rose, or the verdict became worse."""
    return alarm.after < 0 if alarm.since else alarm.after > alarm.before
