"""The slow twin: every estimator written down as its definition says, in plain Python, one model at a time.

Windows are suffixes of the whole history, so totals are recounted from it at every outcome. Nothing is shared
with the kernel but the specifications.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from streamwatch.core.specs import (
    AdwinDriftSpec,
    AdwinSpec,
    DriftWeightedSpec,
    FadingSpec,
    MonitorsSpec,
    PageHinkleySpec,
    SlidingSpec,
)


MOST = 6_000
"""Outcomes a twin can hold."""


@cache
def powers(alpha: float) -> np.ndarray:
    """Weights of outcomes by age, the newest last."""
    return alpha ** np.arange(MOST - 1, -1, -1.0)


@dataclass
class TwinAlarm:
    detector: int
    ordinal: int
    outcome: int
    statistic: float
    threshold: float
    before: float
    after: float
    n_eff: float


class TwinAdwin:
    """ADWIN over numbers, buckets as [size, sum], oldest first, entered one outcome at a time."""

    def __init__(self, delta: float, min_subwindow: int, clock: int) -> None:
        self.delta, self.min_subwindow, self.clock = delta, min_subwindow, clock
        self.buckets: list[list[int]] = []
        self.seen = 0
        self.split = (math.nan, math.nan)
        self.last_drift = 0
        self.drift: tuple[float, float, int] | None = None
        """Of this outcome: (mean dropped, mean kept, width kept)."""

    @property
    def width(self) -> int:
        return sum(size for size, _ in self.buckets)

    @property
    def total(self) -> int:
        return sum(total for _, total in self.buckets)

    def update(self, x: int) -> None:
        self.seen += 1
        self.drift = None
        self.buckets.append([1, x])
        size = 1
        first = len(self.buckets) - 6
        while first >= 0 and self.buckets[first][0] == size:  # six of this size: merge the two oldest
            older, newer = self.buckets[first : first + 2]
            self.buckets[first : first + 2] = [[2 * size, older[1] + newer[1]]]
            size *= 2
            first -= 5
        if self.seen % self.clock == 0:
            self.check()

    def check(self) -> None:
        width, total = self.width, self.total
        splits = self.splits() if width > 10 else []
        self.split = max(splits, key=lambda s: s[0] / s[1], default=(math.nan, math.nan))
        cut = False
        while any(gap > epsilon for gap, epsilon in splits):
            del self.buckets[0]
            cut = True
            splits = self.splits()
        if cut:
            kept = self.width
            if self.seen - kept > self.last_drift:
                self.last_drift = self.seen
                self.drift = ((total - self.total) / (width - kept), self.total / kept, kept)

    def splits(self) -> list[tuple[float, float]]:
        """(|difference of means|, threshold) of every split with two long enough sides."""
        width, total = self.width, self.total
        variance = total / width * (1 - total / width)
        d = math.log(2 * math.log(width) / self.delta) if width > 1 else math.nan
        found: list[tuple[float, float]] = []
        n0 = s0 = 0
        for size, part in self.buckets:
            n0 += size
            s0 += part
            n1 = width - n0
            if n0 >= self.min_subwindow and n1 >= self.min_subwindow:
                m = 1 / (n0 - 4) + 1 / (n1 - 4)
                epsilon = math.sqrt(2 * m * variance * d) + 2 / 3 * d * m
                found.append((abs(s0 / n0 - (total - s0) / n1), epsilon))
        return found


class TwinPageHinkley:
    """Page-Hinkley over the losses since its last reset, kept as a list."""

    def __init__(self, spec: PageHinkleySpec) -> None:
        self.spec = spec
        self.statistic = math.nan
        self.ordinal = 0
        self.reset()

    def reset(self) -> None:
        self.losses: list[int] = []
        self.value = {"up": 0.0, "down": 0.0}
        self.minimum = {"up": (math.inf, 0), "down": (math.inf, 0)}
        """Smallest value and the last t at which it was reached."""

    def update(self, x: int) -> tuple[float, float] | None:
        """Feed a loss; at an alarm gives the means before and after the last minimum."""
        spec = self.spec
        self.losses.append(x)
        n = len(self.losses)
        mean = sum(self.losses) / n
        values: dict[str, float] = {}
        for side, sign in (("up", 1), ("down", -1)):
            if spec.direction not in (side, "both"):
                continue
            value = spec.alpha * self.value[side] + sign * (x - mean) - spec.tolerance
            self.value[side] = max(0.0, value) if spec.form == "clipped" else value
            if self.value[side] <= self.minimum[side][0]:
                self.minimum[side] = (self.value[side], n)
            values[side] = self.value[side] - self.minimum[side][0]
        side = max(values, key=lambda s: values[s])
        self.statistic = values[side]
        if self.statistic <= spec.threshold or n < spec.min_outcomes:
            return None
        split = self.minimum[side][1]
        before, after = self.losses[:split], self.losses[split:]
        self.ordinal += 1
        self.reset()
        return sum(before) / len(before), sum(after) / len(after)


@dataclass
class TwinWeighting:
    spec: DriftWeightedSpec
    weights: list[float] = field(default_factory=list)
    hits: list[float] = field(default_factory=list)
    drifts: int = 0
    declared: int = 0
    d: float = 0.0

    def update(self, hit: bool) -> None:
        t = len(self.weights) - self.declared
        weight = 1.0
        if self.drifts:
            weight = max(1 + (self.spec.w_avg - 1) * math.log(self.d / (t + 1)), 1.0)
        self.weights.append(weight)
        self.hits.append(weight * hit)

    def restart(self) -> None:
        self.drifts += 1
        self.declared = len(self.weights)
        self.d = self.declared / self.drifts

    def read(self) -> tuple[np.ndarray, np.ndarray]:
        """(accuracy, n_eff) after every outcome so far."""
        weights = np.array(self.weights)
        total = np.cumsum(weights)
        return np.cumsum(self.hits) / total, total**2 / np.cumsum(weights**2)


class Twin:
    """One model."""

    def __init__(self, spec: MonitorsSpec) -> None:
        self.spec = spec
        self.outcomes = 0
        self.history = np.full((2, MOST + 1), -1)
        """Labels and predictions of outcomes 1, 2, …; no label before the first."""
        self.alarms: list[TwinAlarm] = []
        self.windows: dict[tuple[float, int, int], TwinAdwin] = {}
        for f in (*spec.forgetting, *spec.detectors):
            if isinstance(f, (AdwinSpec, AdwinDriftSpec)):
                self._window(f.delta, f.min_subwindow, f.clock)
        for w in spec.weighting:
            self._window(w.delta)
        self.page_hinkley = {
            i: TwinPageHinkley(d) for i, d in enumerate(spec.detectors) if isinstance(d, PageHinkleySpec)
        }
        self.drift_ordinals = dict.fromkeys(range(len(spec.detectors)), 0)
        self.weighting = [TwinWeighting(w) for w in spec.weighting]

    def _window(self, delta: float, min_subwindow: int = 5, clock: int = 32) -> TwinAdwin:
        key = (delta, min_subwindow, clock)
        return self.windows.setdefault(key, TwinAdwin(*key))

    def update(self, truth: int, predicted: int) -> list[TwinAlarm]:
        self.outcomes += 1
        outcome = self.outcomes
        self.history[:, outcome] = truth, predicted
        miss = int(truth != predicted)
        for weighting in self.weighting:
            weighting.update(truth == predicted)
        for window in self.windows.values():
            window.update(miss)
        found: list[TwinAlarm] = []
        for i, detector in enumerate(self.spec.detectors):
            if isinstance(detector, PageHinkleySpec):
                ph = self.page_hinkley[i]
                n = len(ph.losses) + 1
                split = ph.update(miss)
                if split:
                    found.append(
                        TwinAlarm(i, ph.ordinal, outcome, ph.statistic, detector.threshold, *split, n)
                    )
            else:
                window = self._window(detector.delta, detector.min_subwindow, detector.clock)
                if window.drift:
                    before, after, kept = window.drift
                    way = "up" if after > before else "down"
                    if detector.direction in (way, "both"):
                        self.drift_ordinals[i] += 1
                        found.append(
                            TwinAlarm(
                                i, self.drift_ordinals[i], outcome, *window.split, before, after, kept
                            )
                        )
        for weighting in self.weighting:
            drift = self._window(weighting.spec.delta).drift
            if drift and drift[1] > drift[0]:
                weighting.restart()
        self.alarms += found
        return found

    def width(self, forgetting: int) -> int:
        """Outcomes that count under a mechanism."""
        f = self.spec.forgetting[forgetting]
        n = self.outcomes
        if isinstance(f, SlidingSpec):
            return min(n, f.size)
        if isinstance(f, AdwinSpec):
            return self._window(f.delta, f.min_subwindow, f.clock).width
        return n

    def totals(self, forgetting: int, classes: int) -> dict[str, np.ndarray | float]:
        """Agreement totals recounted from the history."""
        f = self.spec.forgetting[forgetting]
        width = self.width(forgetting)
        alpha = f.alpha if isinstance(f, FadingSpec) else 1.0
        weights = powers(alpha)[MOST - width :]
        window = slice(self.outcomes - width + 1, self.outcomes + 1)
        truth, predicted = self.history[:, window]
        previous = self.history[0, window.start - 1 : window.stop - 1]
        agreed = np.where(truth == predicted, weights, 0.0)

        def count(labels: np.ndarray, of: np.ndarray) -> np.ndarray:
            return np.bincount(labels, of, minlength=classes)

        return {
            "n": weights.sum(),
            "hits": agreed.sum(),
            "repeats": weights[truth == previous].sum(),
            "pairs": weights[previous >= 0].sum(),
            "n_eff": weights.sum() ** 2 / (weights**2).sum(),
            "truth": count(truth, weights),
            "predicted": count(predicted, weights),
            "agreed": count(truth, agreed),
        }

    def detector(self, index: int) -> tuple[float, float]:
        """(statistic, threshold) now."""
        spec = self.spec.detectors[index]
        if isinstance(spec, PageHinkleySpec):
            return self.page_hinkley[index].statistic, spec.threshold
        return self._window(spec.delta, spec.min_subwindow, spec.clock).split
