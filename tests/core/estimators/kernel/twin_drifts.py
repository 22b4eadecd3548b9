"""The slow twins of drift detectors and drift weights, in plain Python, each as its definition says."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from streamwatch.core.estimators.detectors.ddm import DdmSpec
from streamwatch.core.specs import DriftWeightedSpec, PageHinkleySpec


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


class TwinDependence:
    """Dispersion of 0/1 losses by batch means, from the sums of all blocks of 16 when one ends."""

    ALPHA = 0.9999
    SIZES = (16, 64, 256)

    def __init__(self) -> None:
        self.losses: list[int] = []
        self.dispersion = 1.0
        self.parts: list[int] = []
        """Sum of each block of 16."""
        self.variance = 1e-6
        """p(1 − p) at the end of the last of them."""
        self.varied = dict.fromkeys(self.SIZES, (0.0, 0.0))
        """Number and total, faded, of what neighbouring blocks vary, by their size."""

    def update(self, loss: int) -> None:
        self.losses.append(loss)
        if len(self.losses) % 16:
            return
        self.parts.append(sum(self.losses[-16:]))
        ages = np.arange(len(self.parts) - 1, -1, -1.0)
        weights = self.ALPHA ** (16 * ages)
        p = float(weights @ self.parts / (16 * weights.sum()))
        self.variance = max(p * (1 - p), 1e-6)
        self.dispersion = max(1.0, *map(self.of, self.SIZES))

    def of(self, size: int) -> float:
        """Ratio of what blocks of this size vary, to what those of independent losses would."""
        number, total = self.varied[size]
        ended, left = divmod(len(self.losses), size)
        if ended > 1 and not left:
            before, after = sum(self.losses[-2 * size : -size]), sum(self.losses[-size:])
            x = (after - before) ** 2 / 2
            x = min(x, 8 * max(total / number if number else 0.0, size * self.variance))
            number, total = self.ALPHA**size * number + 1, self.ALPHA**size * total + x
            self.varied[size] = number, total
        return total / ((number - 3) * size * self.variance) if number >= 8 else 1.0


class TwinAdwin:
    """ADWIN over numbers, buckets as [size, sum], oldest first, entered one outcome at a time."""

    def __init__(self, delta: float, min_subwindow: int, clock: int, dependence: str) -> None:
        self.delta, self.min_subwindow, self.clock = delta, min_subwindow, clock
        self.dependence = TwinDependence() if dependence == "followed" else None
        self.buckets: list[list[int]] = []
        self.seen = 0
        self.split = (math.nan, math.nan)
        self.last_drift = 0
        self.drift: tuple[float, float, int] | None = None
        """Of this outcome: (mean dropped, mean kept, width kept)."""
        self.cut: int | None = None
        """Width kept, if it cut at this outcome, new drift or not."""

    @property
    def width(self) -> int:
        return sum(size for size, _ in self.buckets)

    @property
    def total(self) -> int:
        return sum(total for _, total in self.buckets)

    def update(self, x: int) -> None:
        self.seen += 1
        if self.dependence:
            self.dependence.update(x)
        self.drift = self.cut = None
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
            kept = self.cut = self.width
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
                m = (1 / (n0 - 4) + 1 / (n1 - 4)) * (self.dependence.dispersion if self.dependence else 1)
                epsilon = math.sqrt(2 * m * variance * d) + 2 / 3 * d * m
                found.append((abs(s0 / n0 - (total - s0) / n1), epsilon))
        return found


class TwinPageHinkley:
    """Page-Hinkley over the inputs since its last reset, kept as a list."""

    def __init__(self, spec: PageHinkleySpec) -> None:
        self.spec = spec
        self.statistic = math.nan
        self.threshold = spec.threshold
        self.warned = False
        self.losses: list[int] = []
        self.dependence = TwinDependence() if spec.dependence == "followed" else None
        self.reset()

    def reset(self) -> None:
        self.inputs: list[float] = []
        self.value = {"up": 0.0, "down": 0.0}
        self.minimum = {"up": (math.inf, 0), "down": (math.inf, 0)}
        """Smallest value and the last t at which it was reached."""

    def faded_error(self) -> float:
        """Error rate of all losses ever, weighted by .999 per outcome."""
        weights = 0.999 ** np.arange(len(self.losses) - 1, -1, -1.0)
        return float(weights @ self.losses / weights.sum())

    def update(self, loss: int) -> tuple[float, float, int] | None:
        """Feed a loss; at an alarm gives the means before and after the last minimum, and t."""
        spec = self.spec
        self.losses.append(loss)
        if self.dependence:
            self.dependence.update(loss)
            self.threshold = spec.threshold * self.dependence.dispersion
        x = self.faded_error() if spec.input == "error_rate" else float(loss)
        self.inputs.append(x)
        n = len(self.inputs)
        mean = sum(self.inputs) / n
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
        if self.statistic <= self.threshold or n < spec.min_outcomes:
            return None
        split = self.minimum[side][1]
        before, after = self.inputs[:split], self.inputs[split:]
        self.reset()
        return sum(before) / len(before), sum(after) / len(after), n


class TwinDdm:
    """DDM over the losses since its last reset."""

    def __init__(self, spec: DdmSpec) -> None:
        self.spec = spec
        self.statistic = self.threshold = math.nan
        self.reset()

    def reset(self) -> None:
        self.losses: list[int] = []
        self.best = (math.inf, 0, 0.0, 0.0)
        """The least (p + s, -n, p, s) since `min_outcomes`."""
        self.warned = False

    def update(self, loss: int) -> tuple[float, float, int] | None:
        """Feed a loss; at an alarm gives p_min, p and n."""
        self.losses.append(loss)
        n = len(self.losses)
        p = sum(self.losses) / n
        s = math.sqrt(p * (1 - p) / n)
        self.statistic, self.threshold = p + s, math.nan
        if n < self.spec.min_outcomes:
            return None
        self.best = min(self.best, (p + s, -n, p, s))
        _, newest, p_min, s_min = self.best
        s_min = max(s_min, 1 / -newest)
        self.threshold = p_min + self.spec.alarm_level * s_min
        self.warned = p + s > p_min + self.spec.warning_level * s_min
        if p + s <= self.threshold:
            return None
        self.reset()
        return p_min, p, n


class TwinLabels:
    """Drifts of labels: an ADWIN of its own for repeats, and for each of the first three classes."""

    def __init__(self, delta: float, dependence: str) -> None:
        self.delta, self.dependence = delta / 4, dependence
        self.labels: list[int] = []
        self.repeats = TwinAdwin(self.delta, 5, 32, dependence)
        self.shares: dict[int, TwinAdwin] = {}
        self.last_drift = 0

    def update(self, label: int) -> bool:
        """Feed a label; gives whether a new drift was declared."""
        self.labels.append(label)
        fed: list[TwinAdwin] = []
        if len(self.labels) > 1:
            self.repeats.update(int(label == self.labels[-2]))
            fed.append(self.repeats)
        if len(self.shares) < 3:
            self.shares.setdefault(label, TwinAdwin(self.delta, 5, 32, self.dependence))
        for of, window in self.shares.items():
            window.update(int(label == of))
            fed.append(window)
        declared = False
        for window in fed:
            if window.cut is not None and len(self.labels) - window.cut > self.last_drift:
                self.last_drift = len(self.labels)
                declared = True
        return declared


@dataclass
class TwinWeighting:
    spec: DriftWeightedSpec
    weights: list[float] = field(default_factory=list)
    hits: list[int] = field(default_factory=list)
    drifts: int = 0
    declared: int = 0
    d: float = 0.0
    followed: int = 0

    def follow(self, drifts: int) -> None:
        """Before an outcome: so many drifts the reference has declared by now."""
        if self.weights and drifts > self.followed:
            self.restart(drifts - self.followed)
        self.followed = drifts

    def update(self, hit: int) -> None:
        t = len(self.weights) - self.declared
        weight = 1.0
        if self.drifts:
            weight = max(1 + (self.spec.w_avg - 1) * math.log(self.d / (t + 1)), 1.0)
        self.weights.append(weight)
        self.hits.append(hit)

    def restart(self, number: int = 1) -> None:
        self.drifts += number
        self.declared = len(self.weights)
        self.d = self.declared / self.drifts

    def now(self) -> tuple[float, float]:
        """(accuracy, n_eff)."""
        ages = np.arange(len(self.weights) - 1, -1, -1.0)
        weights = np.array(self.weights) * self.spec.alpha**ages
        return float(weights @ self.hits / weights.sum()), float(weights.sum() ** 2 / (weights**2).sum())
