"""The verdict as its definition reads, with the whole past at hand: slow, nothing of the kernel's in it."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

LAMBDAS = (0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8)
ALPHA = 0.9999


@dataclass
class Side:
    """One of the two e-detectors."""

    sign: int
    s: list[float] = field(default_factory=lambda: [0.0] * 8)
    m: list[float] = field(default_factory=lambda: [0.0] * 8)
    c: list[float] = field(default_factory=lambda: [0.0] * 8)
    start: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)] * 8)

    @property
    def mean(self) -> float:
        return sum(self.m) / 8

    def take(self, d: float, g: int, phi: float, outcome: tuple[int, int]) -> None:
        for j, rate in enumerate(LAMBDAS):
            f = (1 + self.sign * rate * d) ** (1 / phi)
            self.m[j] = (self.m[j] + g + 1) * f
            if self.c[j] <= 1:
                self.start[j] = outcome
                self.c[j] = 1.0
            self.c[j] *= f

    def add(self, d: float) -> None:
        """Before the start: the sums of logarithms alone."""
        self.s = [s + log(1 + self.sign * rate * d) for s, rate in zip(self.s, LAMBDAS, strict=True)]

    def begin(self, t: int, phi: float, first: tuple[int, int]) -> None:
        """The start, at step t; `first` is the outcome of step 1."""
        self.c = [exp(min(s / phi, 600.0)) for s in self.s]
        self.m = [t * c for c in self.c]
        self.start = [first] * 8

    def forget(self) -> None:
        self.m, self.c = [0.0] * 8, [0.0] * 8


class PlainVerdict:
    """Feed it leads; everything it says is an attribute."""

    def __init__(self, outcomes: int = 100_000, delta: float = 0.05) -> None:
        self.horizon, self.delta = outcomes, delta
        self.threshold = 2 * outcomes / delta
        self.better, self.worse = Side(+1), Side(-1)
        self.leads: list[float] = []
        self.first = (0, 0)
        self.started = False
        self.g = 0
        self.phi = 1.0
        self.verdict = 0
        self.since = (0, 0)
        self.last_claim = 0
        self.changed_at = 0
        self.changes = 0
        self.variance = 0.0
        self.differences: dict[int, list[float]] = {16: [], 64: [], 256: []}

    def take(self, d: float, outcome: int, event_ms: int) -> bool:
        """One step; whether the verdict changed."""
        before = self.changes
        self.leads.append(d)
        t = len(self.leads)
        if t == 1:
            self.first = (outcome, event_ms)
        if not self.started:
            for side in (self.better, self.worse):
                side.add(d)
            if t >= max(1_152, 2_000 * self.phi):
                self.started = True
                for side in (self.better, self.worse):
                    side.begin(t, self.phi, self.first)
                self._claim(t)
        elif d == 0:
            self.g += 1
        else:
            for side in (self.better, self.worse):
                side.take(d, self.g, self.phi, (outcome, event_ms))
            self.g = 0
            self._claim(t)
        if self.verdict and t - self.last_claim >= self.horizon:
            self._change(0, (outcome, event_ms), t)
        if t % 16 == 0:
            self._count_blocks()
        return self.changes > before

    def _claim(self, t: int) -> None:
        reached = [side for side in (self.worse, self.better) if side.mean >= self.threshold]
        if not reached:
            return
        winner = max(reached, key=lambda side: side.mean)  # of equals the first, worse
        if self.verdict != winner.sign:
            largest = max(range(8), key=lambda j: (winner.c[j], -j))
            self._change(winner.sign, winner.start[largest], t)
        self.last_claim = t
        for side in reached:
            side.forget()

    def _change(self, verdict: int, since: tuple[int, int], t: int) -> None:
        self.verdict, self.since, self.changed_at = verdict, since, t
        self.changes += 1

    def _count_blocks(self) -> None:
        """At the end of every 16 steps: what ends there, and at every 64 what φ is then."""
        d = np.array(self.leads)
        t = len(d)
        self._count_block(d, 16)
        if t % 64:
            return
        weight = ALPHA ** np.arange(t - 1, -1, -1.0)
        mean = (weight * d).sum() / weight.sum()
        self.variance = max((weight * d * d).sum() / weight.sum() - mean**2, 1e-6)
        self._count_block(d, 64)
        if t % 256 == 0:
            self._count_block(d, 256)
        wanted = 1.0
        for b, kept in self.differences.items():
            m, average = _faded(kept, b)
            if m >= 8:
                wanted = max(wanted, average * m / (m - 3) / (b * self.variance))
        if abs(wanted / self.phi - 1) > 0.02:
            self.phi = wanted

    def _count_block(self, d: NDArray[np.float64], b: int) -> None:
        t, kept = len(d), self.differences[b]
        if t > b:
            x = (d[t - b :].sum() - d[t - 2 * b : t - b].sum()) ** 2 / 2
            m, average = _faded(kept, b)
            kept.append(min(x, 8 * max(average, b * self.variance)) if m >= 8 else x)

    def interval(self) -> tuple[float, float, float]:
        """Mean lead and its bounds, from the blocks of 64 that lie after the last change."""
        blocks = [
            sum(self.leads[end - 64 : end]) / 64
            for end in range(64, len(self.leads) + 1, 64)
            if end - 64 >= self.changed_at
        ]
        n = len(blocks)
        mean = sum(blocks) / n if n else np.nan
        if n < 20:
            return mean, np.nan, np.nan
        deviation = sqrt(sum((z - mean) ** 2 for z in blocks) / (n - 1))
        rho2 = 1 / 200
        width = deviation * sqrt(2 * (n * rho2 + 1) / (n**2 * rho2) * log(sqrt(n * rho2 + 1) / self.delta))
        return mean, max(mean - width, -1.0), min(mean + width, 1.0)


def _faded(values: list[float], b: int) -> tuple[float, float]:
    """Number and mean of values, the newest of weight 1."""
    if not values:
        return 0.0, 0.0
    weight = (ALPHA**b) ** np.arange(len(values) - 1, -1, -1.0)
    return float(weight.sum()), float((weight * values).sum() / weight.sum())
