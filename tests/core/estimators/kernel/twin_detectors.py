"""The slow twins of further detectors: each test is made anew from all losses since the last reset."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np

from streamwatch.core.estimators.detectors.cusum import CusumSpec
from streamwatch.core.estimators.detectors.ewma import EwmaSpec
from streamwatch.core.estimators.detectors.hddm_a import HddmASpec
from streamwatch.core.estimators.detectors.hddm_w import HddmWSpec
from streamwatch.core.estimators.detectors.kswin import KswinSpec
from streamwatch.core.estimators.detectors.stepd import StepdSpec

Alarm = tuple[float, float, int]
"""Before, after, n."""
SIGNS = {"up": (1,), "down": (-1,), "both": (1, -1)}


class TwinHddmA:
    """HDDM_A: every beginning is weighed again."""

    def __init__(self, spec: HddmASpec) -> None:
        self.spec = spec
        self.statistic = self.threshold = math.nan
        self.reset()

    def reset(self) -> None:
        self.losses: list[int] = []
        self.best: dict[int, tuple[float, int]] = dict.fromkeys((1, -1), (math.inf, 0))
        """The least (±x + ε, -k) of all beginnings so far, the latest of equals."""
        self.warned = False

    def update(self, loss: int) -> Alarm | None:
        self.losses.append(loss)
        n, z = len(self.losses), sum(self.losses) / len(self.losses)
        found: list[tuple[float, float, float, int, float]] = []
        for sign in SIGNS[self.spec.direction]:
            bound = sign * z + math.sqrt(math.log(1 / self.spec.delta) / (2 * n))
            self.best[sign] = min(self.best[sign], (bound, -n))
            k = -self.best[sign][1]
            x = sum(self.losses[:k]) / k
            spread = (1 / k - 1 / n) / 2
            limit = math.sqrt(spread * math.log(2 / self.spec.delta))
            warning = math.sqrt(spread * math.log(2 / self.spec.warning_delta))
            found.append((sign * (z - x), limit, warning, k, x))
        self.statistic, self.threshold, *_ = max(found, key=lambda f: f[0] - f[1])
        self.warned = any(worse > warning for worse, _, warning, *_ in found)
        for worse, limit, _, k, x in reversed(found):
            if worse > limit:
                self.statistic, self.threshold = worse, limit
                after = sum(self.losses[k:]) / (n - k)
                self.reset()
                return x, after, n
        return None


def faded_mean(losses: list[int], weight: float) -> tuple[float, float]:
    """(mean, sum of squared weights): λ(1−λ)^age, and (1−λ)^age of the first."""
    ages = np.arange(len(losses) - 1, -1, -1.0)
    weights = weight * (1 - weight) ** ages
    weights[0] /= weight
    return float(weights @ losses), float(weights @ weights)


class TwinHddmW:
    """HDDM_W: weights are written out."""

    def __init__(self, spec: HddmWSpec) -> None:
        self.spec = spec
        self.statistic = self.threshold = math.nan
        self.reset()

    def reset(self) -> None:
        self.losses: list[int] = []
        self.best: dict[int, tuple[float, int, float, float]] = dict.fromkeys(
            (1, -1), (math.inf, 0, 0.0, 0.0)
        )
        """The least (±μ + ε, n, μ, s) of all outcomes so far, the first of equals."""
        self.warned = False

    def update(self, loss: int) -> Alarm | None:
        spec = self.spec
        self.losses.append(loss)
        n = len(self.losses)
        mean, squares = faded_mean(self.losses, spec.weight)
        found: list[tuple[float, float, float, float, float]] = []
        for sign in SIGNS[spec.direction]:
            bound = sign * mean + math.sqrt(squares * math.log(1 / spec.delta) / 2)
            self.best[sign] = min(self.best[sign], (bound, n, mean, squares))
            _, at, before, s = self.best[sign]
            after, more = faded_mean(self.losses[at:], spec.weight) if at < n else (before, 0.0)
            limit = math.sqrt((s + more) * math.log(1 / spec.delta) / 2)
            warning = math.sqrt((s + more) * math.log(1 / spec.warning_delta) / 2)
            found.append((sign * (after - before), limit, warning, before, after))
        self.statistic, self.threshold, *_ = max(found, key=lambda f: f[0] - f[1])
        self.warned = any(worse > warning for worse, _, warning, *_ in found)
        for worse, limit, _, before, after in reversed(found):
            if worse > limit:
                self.statistic, self.threshold = worse, limit
                self.reset()
                return before, after, n
        return None


class TwinEwma:
    """ECDD: weights are written out."""

    def __init__(self, spec: EwmaSpec) -> None:
        self.spec = spec
        self.statistic = self.threshold = math.nan
        self.reset()

    def reset(self) -> None:
        self.losses: list[int] = []
        self.warned = False

    def update(self, loss: int) -> Alarm | None:
        spec, weight = self.spec, self.spec.weight
        self.losses.append(loss)
        n, p = len(self.losses), sum(self.losses) / len(self.losses)
        weights = weight * (1 - weight) ** np.arange(n - 1, -1, -1.0)
        faded = float(weights @ self.losses)
        sigma = math.sqrt(p * (1 - p) * float(weights @ weights))
        if spec.limits == "bernstein":
            self.threshold = spec.alarm_level * sigma + weight * spec.alarm_level**2 / 6
        else:
            self.threshold = (3.97 - 6.56 * p + 48.73 * p**3 - 330.13 * p**5 + 848.18 * p**7) * sigma
        rise, fall = faded - p, float(weights @ (p - np.array(self.losses)))
        self.statistic = {"up": rise, "down": fall, "both": max(rise, fall)}[spec.direction]
        if n < spec.min_outcomes:
            return None
        self.warned = self.statistic > self.threshold / 2
        if self.statistic <= self.threshold:
            return None
        self.reset()
        return p, faded, n


class TwinCusum:
    """CUSUM: the sum is its highest over all of its beginnings."""

    def __init__(self, spec: CusumSpec) -> None:
        self.spec = spec
        self.statistic = math.nan
        self.threshold = spec.threshold
        self.warned = False
        self.reset()

    def reset(self) -> None:
        self.losses: list[int] = []
        self.steps: dict[int, list[float]] = {1: [], -1: []}

    def update(self, loss: int) -> Alarm | None:
        spec = self.spec
        self.losses.append(loss)
        n = len(self.losses)
        expected = spec.expected or sum(self.losses) / n
        sums: dict[int, tuple[float, int]] = {}
        for sign in SIGNS[spec.direction]:
            self.steps[sign].append(sign * (loss - expected) - spec.allowance)
            from_each = np.cumsum(self.steps[sign][::-1])[::-1]
            since = int(np.argmax(from_each))  # the latest outcome at which the sum was zero, or before it
            sums[sign] = (max(0.0, float(from_each[since])), since if from_each[since] > 0 else n)
        sign = max(sums, key=lambda s: sums[s][0])
        self.statistic, split = sums[sign]
        if self.statistic <= spec.threshold or n < spec.min_outcomes:
            return None
        before = sum(self.losses[:split]) / split if split else expected
        after = sum(self.losses[split:]) / (n - split)
        self.reset()
        return before, after, n


class TwinStepd:
    """STEPD: both windows are counted again."""

    def __init__(self, spec: StepdSpec) -> None:
        self.spec = spec
        self.statistic = math.nan
        self.threshold = NormalDist().inv_cdf(1 - spec.significance / 2)
        self.reset()

    def reset(self) -> None:
        self.losses: list[int] = []
        self.warned = False

    def update(self, loss: int) -> Alarm | None:
        spec = self.spec
        self.losses.append(loss)
        recent, older = self.losses[-spec.recent :], self.losses[: -spec.recent]
        if len(older) < spec.recent:
            self.statistic = math.nan
            return None
        p, before, after = (sum(part) / len(part) for part in (self.losses, older, recent))
        inverse = 1 / len(older) + 1 / len(recent)
        away = {"up": after - before, "down": before - after, "both": abs(after - before)}[spec.direction]
        self.statistic = (away - inverse / 2) / math.sqrt(p * (1 - p) * inverse) if 0 < p < 1 else 0.0
        self.warned = self.statistic > NormalDist().inv_cdf(1 - spec.warning_significance / 2)
        if self.statistic <= self.threshold:
            return None
        n = len(self.losses)
        self.reset()
        return before, after, n


WORD = (1 << 64) - 1


def split_mix(state: int) -> int:
    """Output of SplitMix64 (Steele, Lea, Flood 2014) for a state, in whole numbers."""
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & WORD
    return z ^ (z >> 31)


def sampled_errors(outcome: int, size: int, older: int, errors: int) -> int:
    """Errors among `size` of `older` outcomes drawn for this outcome, one after the other."""
    state = split_mix((outcome * 0x9E3779B97F4A7C15) & WORD)
    left, drawn = errors, 0
    for remaining in range(older, older - size, -1):
        state = (state + 0x9E3779B97F4A7C15) & WORD
        if (split_mix(state) >> 11) / 2**53 * remaining < left:
            left -= 1
            drawn += 1
    return drawn


class TwinKswin:
    """KSWIN over a window kept as a list."""

    def __init__(self, spec: KswinSpec) -> None:
        self.spec = spec
        self.statistic = math.nan
        self.warned = False
        self.window: list[int] = []
        self.outcomes = 0
        w, r = min(spec.older, spec.recent), spec.recent
        self.threshold = math.sqrt(-math.log(spec.significance) * (r + w) / (2 * r * w))

    def update(self, loss: int) -> Alarm | None:
        spec = self.spec
        self.outcomes += 1
        self.window = [*self.window, loss][-spec.recent - spec.older :]
        if len(self.window) < spec.recent + spec.older:
            self.statistic = math.nan
            return None
        older, recent = self.window[: spec.older], self.window[spec.older :]
        size = min(spec.older, spec.recent)
        sampled = sampled_errors(self.outcomes, size, spec.older, sum(older)) / size
        away = sum(recent) / spec.recent - sampled
        self.statistic = {"up": away, "down": -away, "both": abs(away)}[spec.direction]
        if self.statistic <= self.threshold:
            return None
        n = len(self.window)
        self.window = recent
        return sum(older) / spec.older, sum(recent) / spec.recent, n


TWINS = {
    CusumSpec: TwinCusum,
    EwmaSpec: TwinEwma,
    HddmASpec: TwinHddmA,
    HddmWSpec: TwinHddmW,
    KswinSpec: TwinKswin,
    StepdSpec: TwinStepd,
}
